"""A source that is unhealthy yields no verdict and no write; once it is well, the next run finishes the work."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of

BACK_OFF_MINUTES = (10, 30, 120, 360, 1440)
VIDEOS = [row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6)]
SUBJECTS = {4: 90_000_101, 5: 90_000_102, 6: 90_000_103}


def gates(scenario):
    return {status.source: status for status in scenario.services.gate.status()}


def outcome(scenario, run, step):
    """Return how many tasks were deferred and failed, after looking at what must hold in every case."""
    assert run.success, "an unhealthy source is no bug"
    assert run.failed_guards == set()
    found = run.metadata(step)
    assert found["deferred"] + found["failed"] == 3
    assert run.metadata("synced_fields")["written"] == 0
    assert (scenario.verdicts(), scenario.library.log()) == ([], [])
    for vod_id, state in scenario.library.states().items():
        task = scenario.task(vod_id)
        assert (task["status"], task["lease_owner"]) == ("PENDING", None)
        assert task["last_error"].startswith(("douban: ", "searxng: "))
        assert task["run_after"] > scenario.clock.now()
        assert state["douban_next_sync_at"] >= task["run_after"] - timedelta(seconds=60)
        assert (state["douban_last_sync_at"], state["douban_review_reason"]) == (None, ""), "nothing was concluded"
        assert state["douban_sync_fail_count"] == task["attempts"]
        assert f"**{vod_id}**" in found["put_back"]
    return found["deferred"], found["failed"]


def make_well(scenario):
    """Let the upstream behave, and have a person open the gates again."""
    scenario.upstream.faults.clear()
    for status in scenario.services.gate.status():
        scenario.services.gate.close(status.source)
    scenario.clock.advance(hours=2)


@pytest.mark.parametrize(("fault", "deferred"), [("captcha", 3), ("server_error", 3), ("wrong_id", 0)])
def test_links_survive_a_failing_source(stage, fault, deferred):
    linked = [row | {"vod_douban_id": SUBJECTS[row["vod_id"]]} for row in VIDEOS]
    scenario = stage(linked, FILMS)
    before = scenario.library.all_bytes()
    scenario.upstream.faults.add("douban", fault)
    waiting, _ = outcome(scenario, scenario.play(), "synced_fields")
    assert waiting == deferred, "nine failed calls in a row are the source's, three are the videos'"
    assert scenario.library.all_bytes() == before
    assert {state["douban_review_status"] for state in scenario.library.states().values()} == {"CONFIRMED"}

    make_well(scenario)
    assert scenario.play().metadata("synced_fields")["written"] == 3
    assert scenario.cms(4, "vod_douban_id", "vod_writer") == (90_000_101, "长河编")


def test_a_source_says_when_to_come_back(stage):
    scenario = stage(VIDEOS, FILMS, videos_at_once=1)
    scenario.upstream.faults.add("search", "throttled", retry_after=1800)
    started = scenario.clock.now()
    run = scenario.run()
    assert (run.success, run.materialized, run.failed_guards) == (True, set(STEPS), set()), "a run of Dagster's, green"
    assert run.total("search_candidates", "deferred") == 3
    assert scenario.upstream.requests.count("search") == 1, "told to wait, it is not asked again"
    again = [task["run_after"] - started for task in scenario.library.tasks()]
    assert all(timedelta(minutes=30) <= wait <= timedelta(minutes=32) for wait in again)
    assert len(set(again)) == 3, "not all at once"
    # A run before that asks nothing; one after it finishes the work.
    scenario.upstream.faults.clear()
    scenario.clock.advance(minutes=20)
    assert scenario.play().metadata("due_videos")["due"] == 0
    assert scenario.upstream.requests.count("search") == 1
    scenario.clock.advance(minutes=15)
    assert scenario.play().metadata("synced_fields")["written"] == 3


def test_a_short_pause_is_waited_out_in_the_run(stage):
    scenario = stage(VIDEOS, FILMS, videos_at_once=1)
    scenario.upstream.faults.add("search", "throttled", retry_after=5, times=1)
    scenario.upstream.faults.add("douban", "server_error", times=2)
    assert scenario.play().metadata("synced_fields")["written"] == 3
    assert sum(scenario.clock.sleeps) >= 5


@pytest.mark.parametrize(("fault", "written", "deferred"), [("", 3, 0), ("empty", 0, 3), ("wrong_id", 0, 3)])
def test_a_chain_goes_on_without_a_closed_provider_but_never_finds_nothing(stage, fault, written, deferred):
    scenario = stage(VIDEOS, FILMS)
    urls = {"searxng": scenario.upstream.search_url, "douban_suggest": scenario.upstream.suggest_url}
    scenario = scenario.under(search_provider="chain", search_chain=urls, videos_at_once=1)
    opens = scenario.clock.now() + timedelta(minutes=45)
    scenario.services.gate.open("searxng", opens, "验证码")
    if fault:
        scenario.upstream.faults.add("suggest", fault)
    run = scenario.play()
    assert run.metadata("search_candidates")["deferred"] == deferred
    assert run.metadata("synced_fields")["written"] == written
    assert {verdict["verdict"] for verdict in scenario.verdicts()} == ({"CONFIRMED"} if written else set())
    assert scenario.upstream.requests.count("search") == 0
    # Once it opens, everybody can be asked.
    scenario.clock.advance(minutes=47)
    assert scenario.play().success
    assert {scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in SUBJECTS} == set(SUBJECTS.values())


def asking_two_web_searches(stage):
    """A video without people, so that only the searches can say that nobody else bears its name."""
    scenario = stage([row_of(RIVER, 4, vod_director="", vod_actor="", vod_duration="118")], FILMS)
    urls = {"searxng": scenario.upstream.search_url, "bocha": scenario.upstream.bocha_url}
    chain = {"search_provider": "chain", "search_chain": urls, "bocha_api_key": "key"}
    return scenario.under(**chain, confirm_score=80, videos_at_once=1)


@pytest.mark.parametrize("fault", ["", "captcha", "closed"])
def test_a_search_that_missed_a_provider_confirms_nothing(stage, fault):
    scenario = asking_two_web_searches(stage)
    if fault == "closed":
        scenario.services.gate.open("searxng", scenario.clock.now() + timedelta(hours=1), "验证码")
    elif fault:
        scenario.upstream.faults.add("search", fault)
    run = scenario.play()
    assert (run.success, run.failed_guards) == (True, set())
    [verdict] = scenario.verdicts()
    assert (verdict["complete"], verdict["source_healthy"]) == (not fault, True)
    assert verdict["verdict"] == ("REVIEW" if fault else "CONFIRMED")
    assert ("候选不完整" in verdict["explanation"]) is bool(fault)
    assert run.metadata("synced_fields")["written"] == (0 if fault else 1)


def test_a_provider_that_failed_after_it_answered_yields_no_verdict(stage):
    """It named subjects, and the next call met a wall: what it said before is not judged."""
    scenario = asking_two_web_searches(stage)
    scenario.upstream.faults.add("search", "captcha", match="豆瓣")
    run = scenario.play()
    assert (run.success, run.metadata("scored_matches")["confirmed"], scenario.verdicts()) == (True, 0, [])
    task = scenario.task(4)
    assert (task["status"], task["stage"], task["last_error"]) == ("PENDING", "search", "数据来源异常，暂不判断。")
    scenario.upstream.faults.clear()
    make_well(scenario)
    assert scenario.play().metadata("synced_fields")["written"] == 1


def test_a_place_at_the_gate_is_held_for_longer_than_the_longest_call(stage):
    scenario = stage([], FILMS).under(request_timeout_seconds=120)
    with scenario.services.gate.slot("douban"):
        scenario.clock.advance(seconds=120)
        assert gates(scenario)["douban"].in_use == 1


def test_one_bad_subject_does_not_stop_the_others_and_asks_for_a_person_in_the_end(stage):
    scenario = stage(VIDEOS, FILMS)
    scenario.upstream.faults.add("douban", "wrong_id", match=90_000_101)
    for failures, wait in enumerate(BACK_OFF_MINUTES, start=1):
        run = scenario.play(4, 6 if failures == 1 else 4)
        assert (run.success, run.metadata("search_candidates")["failed"]) == (True, 1)
        state = scenario.library.state(4)
        assert state["douban_sync_fail_count"] == failures
        assert "asked for 90000101, answered 90000102" in state["douban_last_fail_reason"]
        waited = (state["douban_next_sync_at"] - state["douban_last_fail_at"]).total_seconds() / 60
        assert wait <= waited <= 1.1 * wait
        assert state["douban_review_status"] == ("REVIEW" if failures == 5 else "NOT_FOUND")
        scenario.clock.advance(seconds=60 * waited)
    assert scenario.library.state(4)["douban_review_reason"].startswith("连续失败 5 次：douban: ")
    assert scenario.verdicts(4) == []
    assert (scenario.cms(5, "vod_douban_id"), scenario.cms(6, "vod_douban_id")) == ((90_000_102,), (90_000_103,))
    scenario.upstream.faults.clear()
    scenario.play(4)
    assert scenario.library.state(4)["douban_review_status"] == "CONFIRMED"
