"""However large the library is, a selection reads it by index and in pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.review.batch.filters import VideoFilter
from douban_pipeline.douban.review.batch.rules import BatchDecision
from douban_pipeline.douban.review.batch.selection import select_videos
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline_tests.douban.review.shelves import Case, decision_of, shelved

IGNORE = BatchDecision(DecisionAction.ignore)
CONFIRM = BatchDecision(DecisionAction.confirm_top1)
REVIEW = VideoFilter(statuses=(ReviewStatus.REVIEW,))


@pytest.fixture(scope="module")
def crowd(shared_library):
    """Three thousand videos, one in a hundred of them in review."""
    idle = {"state": {"douban_review_status": "CONFIRMED"}, "verdict": {"score": 50.0}}
    cases = [Case(vod_id, **(idle if vod_id % 100 else {})) for vod_id in range(1, 3001)]
    library = shelved(shared_library, cases)
    settled = [decision_of(library, vod_id, DecisionAction.lock_id, 0, "applied") for vod_id in range(1, 3001, 2)]
    library.execute(sa.insert(library.tables.decision).values(settled))
    if library.mysql:  # else it takes them for few
        library.query(f"ANALYZE TABLE {library.tables.decision.name}")
    return library


@pytest.mark.parametrize(
    ("asked", "bulk", "expected"),
    [
        (REVIEW, CONFIRM, 30),
        (VideoFilter(vod_ids=tuple(range(100, 1000, 100))), CONFIRM, 9),
        (VideoFilter(duplicates_of=90_000_777), IGNORE, 0),
        (VideoFilter(type_ids=(6,), statuses=(ReviewStatus.REVIEW,), min_year=2024), IGNORE, 30),
    ],
)
def test_every_query_uses_an_index(crowd, asked, bulk, expected):
    asked_for = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        if statement.lstrip().startswith("SELECT") and not statement.startswith("SELECT mac_type"):
            asked_for.append((statement, parameters))

    assert crowd.services.categories
    sa.event.listen(crowd.engine, "before_cursor_execute", note)
    try:
        found = select_videos(crowd.services, replace(asked, max_rows=1000), bulk)
    finally:
        sa.event.remove(crowd.engine, "before_cursor_execute", note)
    assert len(found.videos) == expected
    assert asked_for
    for statement, parameters in asked_for:
        for step in crowd.plan(statement, parameters):
            if crowd.mysql:
                assert step["key"] or step["table"] is None, (statement, step)
                assert step["type"] not in ("ALL", "index"), (statement, step)
            else:
                assert not step["detail"].startswith("SCAN"), (statement, step)


def test_videos_are_looked_at_a_few_hundred_at_a_time(crowd):
    reported = []
    everything = VideoFilter(type_ids=(6,))
    found = select_videos(
        crowd.services, everything, IGNORE, progress=lambda looked_at, of: reported.append((looked_at, of))
    )
    assert (len(found.videos), found.matched_in_all, found.beyond) == (100, 3000, 2900)
    assert reported[-1] == (3000, 3000)
    assert len(reported) == 6


def test_those_left_out_are_counted_beyond_what_is_listed(crowd):
    found = select_videos(crowd.services, VideoFilter(type_ids=(6,)), CONFIRM)
    assert (len(found.videos), len(found.left_out), found.left_out_in_all) == (30, 500, 2970)
    assert {entry.why for entry in found.left_out} == {"首选得分 50.0 低于 85"}
