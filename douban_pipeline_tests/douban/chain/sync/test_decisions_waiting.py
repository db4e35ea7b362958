"""A subject that a person named and nobody could ask about yet: asked first; an unhealthy source concludes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline_tests.douban.chain.sync.test_decisions import run_decisions
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE

CONFLICT = "与《午夜电车站台》（2023）对不上：标题冲突：相似度"
MISSING = 90_000_999


def due(scenario):
    """Return how many decisions the lane would be launched for."""
    return open_orders(scenario.services).decisions


def any_due(scenario):
    services = scenario.services
    work = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
    return bool(work or due(scenario))


@pytest.mark.parametrize("action", ["set_id", "replace_and_lock"])
def test_an_unchecked_subject_is_compared_first(doubtful, action):
    decide(doubtful.library, 5, action, TRAM["id"], checked_at=None)
    run_decisions(doubtful, 5, refused=1)
    [reason] = decisions(doubtful.library, "state_reason")
    assert reason.startswith(CONFLICT)
    assert reason.endswith("；确认无误时请设 accept_conflicts: true 重新决定")
    assert doubtful.cms(5, "vod_douban_id") == (WHALE["id"],)


def test_a_reviewer_who_knows_of_the_conflict_is_believed(doubtful):
    decide(doubtful.library, 5, "set_id", TRAM["id"], checked_at=None, accept_conflicts=True)
    run_decisions(doubtful, 5, applied=1)
    assert doubtful.cms(5, "vod_douban_id") == (TRAM["id"],)
    assert decisions(doubtful.library, "checked_at") == [doubtful.clock.now()]


def test_a_subject_that_does_not_exist_is_refused(doubtful):
    decide(doubtful.library, 4, "set_id", MISSING, checked_at=None, accept_conflicts=True)
    run_decisions(doubtful, 4, refused=1)
    assert decisions(doubtful.library, "state_reason") == [f"豆瓣没有条目 {MISSING}"]


def test_an_answer_about_another_subject_is_refused(doubtful):
    doubtful.upstream.faults.add("douban", "wrong_id")
    decide(doubtful.library, 4, "set_id", TRAM["id"], checked_at=None, accept_conflicts=True)
    run_decisions(doubtful, 4, refused=1)
    [reason] = decisions(doubtful.library, "state_reason")
    assert reason.startswith(f"核对条目 {TRAM['id']} 时得到另一个条目")


def test_what_was_checked_when_it_was_recorded_costs_no_call(doubtful):
    asked = doubtful.upstream.requests.count("douban")
    doubtful.upstream.faults.add("douban", "captcha")
    decide(doubtful.library, 4, "choose", TRAM["id"], checked_at=None)
    decide(doubtful.library, 5, "replace_and_lock", TRAM["id"])
    run_decisions(doubtful, 4, 5, applied=2)
    assert doubtful.upstream.requests.count("douban") <= asked + 1, "for their syncs"


def test_a_failing_source_defers_the_decision_and_launches_nothing_in_vain(doubtful):
    library = doubtful.library
    doubtful.clock.advance(days=2)  # what the archive holds is too old to go by
    doubtful.upstream.faults.add("douban", "captcha")
    decide(library, 4, "set_id", RIVER["id"], checked_at=None)
    decide(library, 4, "lock_id")
    decide(library, 4, "lock_intro")
    decide(library, 5, "set_id", WHALE["id"], checked_at=None)
    before, asked = library.all_bytes(), doubtful.upstream.requests.count("douban")
    metadata = run_decisions(doubtful, applied=1, waiting=3)
    assert metadata["waiting_decisions"].count("暂时无法核对条目：douban: ") == 3
    assert doubtful.upstream.requests.count("douban") == asked + 1, "the other one was not even asked about"
    assert library.all_bytes() == before
    assert library.state(4)["intro_locked"] is True, "the text is another matter"
    assert library.state(4)["douban_id_locked"] is False, "what needs the link waits with it"
    found = decisions(library, "state", "pending_key", "settled_at")
    assert [row[0] for row in found] == ["pending", "pending", "applied", "pending"]
    assert all(row[1] and row[2] is None for row in found if row[0] == "pending")
    [until] = {moment for moment in decisions(library, "run_after") if moment}
    assert until > doubtful.clock.now()
    assert not any_due(doubtful), "or the sensor would launch a run every half minute"
    # Somebody else makes the video due: one run looks, and lets it rest again.
    library.set_state(4, douban_next_sync_at=doubtful.clock.now())
    run_decisions(doubtful, 4, waiting=2)
    assert not any_due(doubtful)
    # Another decision about the video does not overtake it.
    decide(library, 4, "sync_now")
    run_decisions(doubtful, 4, waiting=3)
    # When its time has come and the source is well, it is applied.
    doubtful.upstream.faults.clear()
    doubtful.services.gate.close("douban")
    doubtful.clock.advance(seconds=(until - doubtful.clock.now()).total_seconds())
    assert due(doubtful) == 4
    run_decisions(doubtful, applied=4)
    assert doubtful.cms(4, "vod_douban_id") == (RIVER["id"],)
    assert library.state(4)["douban_id_locked"] is True


def test_a_subject_that_keeps_failing_is_tried_ever_more_seldom(doubtful):
    library = doubtful.library
    doubtful.clock.advance(days=2)
    doubtful.upstream.faults.add("douban", "garbage", match=RIVER["id"])
    decide(library, 4, "set_id", RIVER["id"], checked_at=None)
    decide(library, 5, "set_id", WHALE["id"], checked_at=None)
    waits = []
    for _ in range(9):
        doubtful.play(steps=["synced_fields"])
        until = decisions(library, "run_after")[0]
        waits.append(until - doubtful.clock.now())
        doubtful.services.gate.close("douban")
        doubtful.clock.advance(seconds=waits[-1].total_seconds())
    assert decisions(library, "state") == ["pending", "applied"], "the other one is asked about all the same"
    minutes = [round(wait / timedelta(minutes=1)) for wait in waits]
    assert minutes == [5, 5, 10, 20, 40, 80, 160, 320, 360]


def test_a_run_whose_time_is_over_leaves_the_rest_to_the_next(doubtful):
    doubtful.clock.advance(days=2)
    scenario = doubtful.under(run_seconds=10)
    decide(scenario.library, 4, "set_id", RIVER["id"], checked_at=None)
    decide(scenario.library, 5, "set_id", WHALE["id"], checked_at=None)
    real = scenario.services.douban

    class Slow:
        def subject(self, douban_id, **given):
            scenario.clock.advance(seconds=30)
            return real.subject(douban_id, **given)

    vars(scenario.services)["douban"] = Slow()
    run_decisions(scenario, steps=["synced_fields"], applied=1, waiting=1)
    assert decisions(scenario.library, "state") == ["applied", "pending"]
    assert due(scenario) == 1
    vars(scenario.services)["douban"] = real
    run_decisions(scenario, 5, applied=1)


def test_what_a_newer_decision_replaced_during_the_run_is_not_written(doubtful):
    """A run that asks for subjects takes minutes; a reviewer may think better of it."""
    doubtful.clock.advance(days=2)
    decide(doubtful.library, 4, "set_id", RIVER["id"], checked_at=None)
    decide(doubtful.library, 5, "set_id", TRAM["id"], checked_at=None)
    real = doubtful.services.douban

    class Interfering:
        def subject(self, douban_id, **given):
            doubtful.library.execute("UPDATE mac_douban_decision SET state = 'refused', state_reason = '被取代'")
            return real.subject(douban_id, **given)

    vars(doubtful.services)["douban"] = Interfering()
    before, log = doubtful.library.all_bytes(), doubtful.library.log()
    metadata = doubtful.play(steps=["synced_fields"]).metadata("synced_fields")
    assert (metadata["decisions_applied"], metadata["decisions_refused"]) == (0, 2)
    assert (doubtful.library.all_bytes(), doubtful.library.log()) == (before, log)
    assert doubtful.library.state(5)["douban_review_status"] == "CONFIRMED"


@pytest.mark.parametrize(
    ("edited", "reason"),
    [
        ({"vod_douban_id": WHALE["id"]}, "读取之后 CMS 中的值已被改动：vod_douban_id"),
        ({"vod_name": "另一部片子"}, "读取之后 CMS 中的值已被改动：vod_name"),
        ({"vod_lock": 1}, "影片已在 CMS 中锁定（vod_lock）"),
    ],
)
def test_what_the_cms_changed_while_the_subject_was_asked_for_is_not_written_over(doubtful, edited, reason):
    decide(doubtful.library, 4, "set_id", RIVER["id"], checked_at=None)
    real = doubtful.services.douban

    class Slow:
        def subject(self, douban_id, **given):
            doubtful.library.set_cms(4, **edited)
            return real.subject(douban_id, **given)

    vars(doubtful.services)["douban"] = Slow()
    doubtful.play(4, steps=["synced_fields"])
    assert decisions(doubtful.library, "state", "state_reason") == [("refused", reason)]
    assert doubtful.cms(4, "vod_douban_id") == (edited.get("vod_douban_id", 0),)
    assert doubtful.library.state(4)["douban_review_status"] == "REVIEW"


def test_what_a_newer_decision_replaced_while_it_was_written_says_that_it_was(doubtful, monkeypatch):
    """The record must not call refused what stands in the CMS and in the log."""
    doubtful.clock.advance(days=2)
    decide(doubtful.library, 5, "lock_id")
    write = ChangeLog.write

    def overtaken(self, changes, *given, **options):
        outcomes = write(self, changes, *given, **options)
        if any(change.action == "lock_id" for change in changes):
            doubtful.library.execute(
                "UPDATE mac_douban_decision SET state = 'refused', state_reason = '被取代', pending_key = NULL"
            )
        return outcomes

    monkeypatch.setattr(ChangeLog, "write", overtaken)
    doubtful.play(steps=["synced_fields"])
    assert doubtful.library.state(5)["douban_id_locked"] is True
    assert decisions(doubtful.library, "state", "state_reason") == [("applied", "执行的同时有了更新的决定")]
