"""What was never searched for is told apart from what was searched for in vain, wherever it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.due_videos import DueScope, DueVideos
from douban_pipeline.douban.decisions.effects import effect_of
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.shown_status import (
    ShownStatus,
    shown_status,
    shown_status_column,
    status_condition,
    status_counts,
)
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK, CLEARED_WITH_ALL
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, video

SEARCHED: Mapping[str, Any] = {
    "douban_review_status": "NOT_FOUND",
    "douban_review_reason": "没有搜到候选",
    "douban_last_sync_at": START,
    "douban_next_sync_at": START + timedelta(days=3),
}
SYNCED: Mapping[str, Any] = {
    "douban_review_status": "CONFIRMED",
    "vod_douban_id": 90_000_101,
    "douban_last_sync_at": START,
    "douban_next_sync_at": START + timedelta(days=3),
}


@pytest.fixture
def searched(shared_library: Library) -> Library:
    """Eight videos: one of each status, one that was never looked at, one whose only calls failed, one that is gone."""
    library = shared_library.renewed([video(n) for n in range(1, 9)])
    library.set_state(1, douban_next_sync_at=START + timedelta(days=9))
    library.set_state(2, **SEARCHED)
    library.set_state(3, douban_review_status="REVIEW", douban_last_sync_at=START)
    library.set_state(4, **SYNCED)
    library.set_state(5, douban_review_status="IGNORED", douban_ignore_until=START + timedelta(days=1))
    library.set_state(6, douban_sync_fail_count=2, douban_last_fail_at=START, douban_last_fail_reason="HTTP 500")
    library.set_state(7, **SEARCHED | {"douban_next_sync_at": None})
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    held = {"douban_review_status": "REVIEW", "douban_review_reason": CLEARED_IN_BULK, "douban_next_sync_at": None}
    library.set_state(8, **held)
    return library


def shown(library: Library) -> dict[int, str]:
    """Return the status of each video, after seeing that rows, queries, filters and counts agree about it."""
    table = library.tables.video
    of_rows = {vod_id: str(shown_status(state)) for vod_id, state in library.states().items()}
    with reading(library.engine) as connection:
        pairs = connection.execute(sa.select(table.c.vod_id, shown_status_column(table)))
        assert dict(pairs.tuples().all()) == of_rows
        for wanted in ([each] for each in ShownStatus):
            chosen = connection.execute(sa.select(table.c.vod_id).where(status_condition(table, wanted))).scalars()
            assert set(chosen) == {vod_id for vod_id, status in of_rows.items() if status in wanted}
        counts = status_counts(connection, library.tables, library.cms)
        live = [of_rows[row["vod_id"]] for row in library.query("SELECT vod_id FROM mac_vod")]
    assert counts == {status: live.count(status) for status in ShownStatus}
    return of_rows


def test_only_what_a_search_did_not_find_is_not_found(searched: Library) -> None:
    assert shown(searched) == {
        1: "UNCHECKED",
        2: "NOT_FOUND",
        3: "REVIEW",
        4: "CONFIRMED",
        5: "IGNORED",
        6: "UNCHECKED",
        7: "NOT_FOUND",
        8: "HELD",
    }
    table = searched.tables.video
    with reading(searched.engine) as connection:
        several = status_condition(table, [ShownStatus.UNCHECKED, ShownStatus.REVIEW])
        assert set(connection.execute(sa.select(table.c.vod_id).where(several)).scalars()) == {1, 3, 6}
        both = status_condition(table, [ShownStatus.UNCHECKED, ShownStatus.NOT_FOUND])
        assert set(connection.execute(sa.select(table.c.vod_id).where(both)).scalars()) == {1, 2, 6, 7}


@pytest.mark.parametrize(
    ("before", "action"),
    [(SYNCED, DecisionAction.clear_id), (SEARCHED, DecisionAction.rematch)],
    ids=lambda value: str(value) if isinstance(value, DecisionAction) else "",
)
def test_what_a_person_opened_again_is_unchecked_until_it_is_searched(
    searched: Library, before: Mapping[str, Any], action: DecisionAction
) -> None:
    searched.set_state(2, **before)
    row = searched.row(2) | {"vod_douban_id": before.get("vod_douban_id", 0)}
    effect = effect_of(Decision(2, action), row, searched.state(2), START + timedelta(days=1))
    searched.set_state(2, **effect.state)
    if action is DecisionAction.rematch:
        searched.set_state(2, vod_douban_id=0, douban_review_status="NOT_FOUND")
    assert shown(searched)[2] == "UNCHECKED"


def test_an_id_that_the_site_cleared_says_nothing_of_a_search(searched: Library) -> None:
    searched.set_state(4, douban_review_status="NOT_FOUND", douban_review_reason=CLEARED_WITH_ALL, vod_douban_id=0)
    assert shown(searched)[4] == "UNCHECKED"


def test_who_is_no_longer_ignored_is_to_be_searched(searched: Library) -> None:
    searched.clock.advance(days=2)  # type: ignore[attr-defined]
    searched.set_state(5, douban_next_sync_at=searched.clock.now(), douban_last_sync_at=START)
    services = searched.services
    due = DueVideos(services)
    due.take(searched.queue("due"), [5], scope=DueScope.due, limit=9, run_id="due")
    assert searched.state(5)["douban_review_status"] == "NOT_FOUND"
    assert shown(searched)[5] == "UNCHECKED"
