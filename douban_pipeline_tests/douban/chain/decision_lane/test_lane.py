"""The lane of people's decisions: nothing is searched before them, nobody waits behind many, nothing is done twice."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from douban_pipeline.core.gate import Gate
from douban_pipeline.douban.chain.decision_lane.assets import LANE_TIME
from douban_pipeline.douban.chain.decision_lane.checks import decisions_accepted
from douban_pipeline.douban.decisions.application import apply_decisions, decisions_of_run
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, KITE, RIVER, TRAM, WHALE, row_of

MISSING = 90_000_999


@pytest.fixture
def busy(stage):
    """Videos 4 and 5 are linked and synced, 68 is linked; 6 and 7 are due and were never searched."""
    linked = [row_of(film, vod_id, vod_douban_id=film["id"]) for vod_id, film in ((4, RIVER), (5, WHALE), (68, TRAM))]
    scenario = stage([*linked, row_of(KITE, 6), row_of(RIVER, 7)], FILMS, search_concurrency=1, douban_concurrency=1)
    assert scenario.play(4, 5).success
    scenario.clock.advance(days=2)
    return scenario


def lane(scenario):
    run = scenario.launch("apply_decisions")
    assert run.success, run.failure
    return run.metadata("applied_decisions")


def test_decisions_are_applied_and_their_syncs_made_and_nothing_is_searched_or_judged(busy):
    searched, judged = busy.upstream.requests.count("search"), len(busy.verdicts())
    decide(busy.library, 4, "set_id", TRAM["id"])
    decide(busy.library, 5, "sync_now")
    decide(busy.library, 68, "ignore")
    found = lane(busy)
    assert (found["decisions_applied"], found["synced"]) == (3, 2)
    assert decisions(busy.library, "state") == ["applied"] * 3
    assert busy.cms(4, "vod_douban_id") == (TRAM["id"],)
    assert (busy.upstream.requests.count("search"), len(busy.verdicts())) == (searched, judged)
    assert not [task for task in busy.library.tasks() if task["vod_id"] in (6, 7)]
    again = lane(busy)
    assert (again["decisions_applied"], again["synced"]) == (0, 0), "each run tells of its own"


def test_what_asks_no_source_goes_first_also_if_it_comes_while_a_run_is_at_others(busy):
    decide(busy.library, 4, "set_id", WHALE["id"], checked_at=None, accept_conflicts=True)
    decide(busy.library, 5, "set_id", RIVER["id"], checked_at=None, accept_conflicts=True)
    decide(busy.library, 68, "ignore")
    real, asked = busy.services.douban, []

    class Slow:
        def subject(self, douban_id, **given):
            assert set(decisions(busy.library, "state")[2:]) == {"applied"}, "those that need nobody"
            if not asked:
                decide(busy.library, 6, "ignore")
            asked.append(douban_id)
            busy.clock.advance(seconds=LANE_TIME.total_seconds())
            return real.subject(douban_id, **given)

    vars(busy.services)["douban"] = Slow()
    found = lane(busy)
    assert asked[:2] == [WHALE["id"], RIVER["id"]]
    assert (found["decisions_applied"], found["decisions_waiting"]) == (4, 0)
    assert set(decisions(busy.library, "state", "lease_until")) == {("applied", None)}


def test_a_run_of_the_lane_ends_when_its_time_is_used(busy):
    decide(busy.library, 4, "set_id", WHALE["id"], checked_at=None, accept_conflicts=True)
    decide(busy.library, 5, "set_id", RIVER["id"], checked_at=None, accept_conflicts=True)
    real = busy.services.douban

    class Slow:
        def subject(self, douban_id, **given):
            busy.clock.advance(seconds=busy.services.settings.run_seconds)
            return real.subject(douban_id, **given)

    vars(busy.services)["douban"] = Slow()
    found = lane(busy)
    assert (found["decisions_applied"], found["decisions_waiting"]) == (1, 1)
    vars(busy.services)["douban"] = real
    assert lane(busy)["decisions_applied"] == 1


def test_what_another_run_holds_is_left_to_it_and_so_is_what_follows(busy):
    services = busy.services
    decide(busy.library, 4, "set_id", TRAM["id"])
    busy.library.execute(
        "UPDATE mac_douban_decision SET lease_owner = 'run@elsewhere:1', lease_until = '2999-01-01 00:00:00.000000'"
    )
    decide(busy.library, 4, "lock_id")
    decide(busy.library, 5, "lock_id")
    assert lane(busy)["decisions_applied"] == 1
    assert decisions(busy.library, "state") == ["pending", "pending", "applied"]
    assert busy.library.state(4)["douban_id_locked"] is False, "the old id is not what was meant"
    busy.library.execute("UPDATE mac_douban_decision SET lease_until = '2000-01-01 00:00:00.000000'")
    queue = services.queue("late")
    until = busy.clock.now() + timedelta(minutes=1)
    apply_decisions(services, queue, services.change_log("late"), [4], deadline=until, lane=True)
    assert [str(each.status) for each in decisions_of_run(services, queue, [])] == ["applied", "applied"]
    assert (busy.cms(4, "vod_douban_id"), busy.library.state(4)["douban_id_locked"]) == ((TRAM["id"],), True)


def test_calls_for_people_are_urgent_and_no_others(busy, monkeypatch):
    asked = []
    slot = Gate.slot

    def watched(self, source, **given):
        asked.append((source, given["urgent"]))
        return slot(self, source, **given)

    monkeypatch.setattr(Gate, "slot", watched)
    decide(busy.library, 4, "set_id", WHALE["id"], checked_at=None, accept_conflicts=True)
    decide(busy.library, 5, "sync_now")
    lane(busy)
    assert asked, "the subject, and the syncs"
    assert set(asked) == {("douban", True)}
    asked.clear()
    busy.play(6, 7)
    assert len(asked) > 1
    assert not any(urgent for _, urgent in asked)


def test_the_check_names_what_was_refused_until_it_is_decided_anew(busy):
    assert check(busy) == (True, "最近 24 小时的 0 条决定没有被拒绝的", "")
    decide(busy.library, 4, "set_id", MISSING, checked_at=None)
    decide(busy.library, 5, "lock_id")
    decide(busy.library, 68, "clear_id", state="refused", state_reason="被更新的决定取代", pending_key=None)
    assert busy.launch("apply_decisions").guards["decisions_accepted"].passed is False, "evaluated by the lane's runs"
    passed, said, refusals = check(busy)
    assert (passed, said) == (False, "最近 24 小时的 3 条决定中 1 条被拒绝；请按原因改正后重新决定")
    assert refusals == "- 影片 4，指定豆瓣 ID（小王）：豆瓣没有条目 90000999"
    decide(busy.library, 4, "set_id", TRAM["id"])
    assert check(busy)[0] is True
    busy.library.execute("DELETE FROM mac_douban_decision WHERE douban_id = 90000103")
    assert check(busy)[0] is False
    busy.clock.advance(days=1, seconds=1)
    assert check(busy)[0] is True


def check(scenario):
    result = decisions_accepted(scenario.services)
    assert result.severity is dg.AssetCheckSeverity.WARN
    refusals = result.metadata.get("refusals")
    return result.passed, result.description, refusals.value if refusals else ""
