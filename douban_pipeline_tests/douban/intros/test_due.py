"""Whose turn it is: linked, synced, not locked, rested; those synced last first, found by a shard's index."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.intros.due import DueIntros
from douban_pipeline_tests.douban.intros.room import KEY, Room, linked
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements

DAY = timedelta(days=1)
READY = {
    "vod_douban_id": 90_000_101,
    "douban_review_status": "CONFIRMED",
    "douban_last_sync_at": START - DAY,
    "douban_next_sync_at": START + DAY,
}


def found(library, shard=1, limit=10):
    return [item.vod_id for item in DueIntros(library.services).find(shard, limit=limit)]


@pytest.mark.parametrize(
    ("state", "due"),
    [
        ({}, True),
        ({"intro_locked": True}, False),
        ({"douban_review_status": "REVIEW"}, False),
        ({"douban_review_status": "IGNORED"}, False),
        ({"vod_douban_id": 0}, False),
        ({"douban_last_sync_at": None}, False),
        ({"douban_next_sync_at": None}, False),
        ({"intro_ai_last_at": START - 29 * DAY}, False),
        ({"intro_ai_last_at": START - 30 * DAY}, True),
        ({"intro_ai_last_fail_at": START - 29 * DAY}, False),
        ({"intro_ai_last_fail_at": START - 30 * DAY}, True),
        ({"intro_ai_last_at": START - 40 * DAY, "intro_ai_last_fail_at": START - DAY}, False),
        ({"intro_ai_last_at": START - DAY, "intro_ai_last_fail_at": START - 40 * DAY}, False),
        ({"type_id": 24}, False),
    ],
)
def test_whose_turn_it_is(shared_library, state, due):
    library = shared_library.renewed(excluded_type_ids={24})
    library.add_states({"vod_id": 1, **READY, **state})
    assert found(library) == ([1] if due else [])


def test_a_video_in_the_recycle_bin_has_no_turn_until_it_comes_back(library):
    library.add(video(1, vod_recycle_time=5))
    library.add_states({"vod_id": 1, **READY})
    assert found(library) == []
    library.set_cms(1, vod_recycle_time=0)
    assert found(library) == [1]


def test_a_pending_decision_comes_first(library):
    library.add_states({"vod_id": 1, **READY}, {"vod_id": 65, **READY})
    row = {"vod_id": 1, "shard": 1, "action": "set_id", "reviewer": "王", "run_id": "r", "created_at": START}
    library.execute(sa.insert(library.tables.decision).values(**row, state="pending"))
    assert found(library) == [65]


def test_who_was_synced_last_comes_first_out_of_the_queue_too(library):
    ages = {1: 3, 65: 1, 129: 2, 193: 0}
    library.add_states(
        *({"vod_id": n, **READY, "douban_last_sync_at": START - age * DAY} for n, age in ages.items() if age)
    )
    due, queue = DueIntros(library.services), library.queue()
    assert [item.vod_id for item in due.take(queue, [1], limit=2, run_id="run")] == [65, 129]
    # Those of the next run come before what waits.
    library.add_states({"vod_id": 193, **READY, "douban_last_sync_at": START})
    assert [item.vod_id for item in due.take(queue, [1], limit=2, run_id="next")] == [193, 1]
    leased = queue.lease([1], "intro", limit=10)
    assert [task.vod_id for task in leased] == [193, 65, 129, 1]
    assert due.take(queue, [1], limit=2, run_id="third") == []


def test_this_runs_videos_come_first(stage, monkeypatch):
    monkeypatch.setattr("douban_pipeline.douban.intros.assets.INTROS_PER_RUN", 1)
    options = {"ai_intros": True, "openrouter_api_key": KEY, "llm_requests_per_minute": 60_000}
    loopback = {"llm_url": "http://127.0.0.1/"}
    scenario = stage([linked(RIVER, 4), row_of(WHALE, 68)], FILMS, **options, **loopback)
    scenario = scenario.under(llm_url=scenario.upstream.llm_url)
    # Video 4 was synced long ago; 68 is linked by this run.
    scenario.library.set_state(
        4, douban_review_status="CONFIRMED", douban_last_sync_at=START - 5 * DAY, douban_next_sync_at=START + DAY
    )
    run = scenario.play()
    assert (run.metadata("synced_fields")["written"], run.metadata("ai_intros")["written"]) == (1, 1)
    room = Room(scenario.library, scenario.upstream)
    assert [intro["vod_id"] for intro in room.intros()] == [68]
    assert room.failed_guards() == {}
    assert room.upstream.requests.count("douban") == 1, "what the sync asked is in the archive"


def test_nothing_is_found_by_reading_the_whole_library(library):
    library.add_states(
        *(
            {"vod_id": n, **READY, "douban_last_sync_at": START - timedelta(minutes=n), "intro_locked": n % 50 > 0}
            for n in range(1, 5001)
        )
    )
    if library.mysql:
        library.query("ANALYZE TABLE mac_douban_video")
    with sent_statements(library.engine) as sent:
        assert found(library, shard=0)
    [(statement, parameters)] = [item for item in sent if "mac_douban_video" in item[0]]
    plan = library.plan(statement, parameters)
    if library.mysql:
        [step] = [row for row in plan if row["table"] == "mac_douban_video"]
        assert step["key"] in {f"ix_mac_douban_video_{name}" for name in ("shard", "first", "round")}, step
        assert int(step["rows"]) < 500, step
    else:
        [step] = [row["detail"] for row in plan if row["detail"].startswith("SEARCH mac_douban_video ")]
        assert " USING INDEX " in step, step
