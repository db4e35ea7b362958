"""What the lists' batch links launch: candidates on demand, and many groups of duplicates at once."""

from __future__ import annotations

from typing import Any

import pytest

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.reports.lists.duplicate_settlement import settlement
from douban_pipeline.douban.reports.lists.keepers import KeeperRule
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.matching_now import MATCH_PRIORITY, QueuedMatches, queue_matches
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.reports.planting import linked, task
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video

FIRST, SECOND, THIRD = 90_000_101, 90_000_102, 90_000_103


def queued(library: Library, vod_ids: list[int] | None = None, **given: Any) -> QueuedMatches:
    plain = {"reviewer": "小王", "run_id": "ordered", "most": 100, "dry_run": False}
    asked = given.pop("asked", ListFilter())
    return queue_matches(library.services, library.queue("ordered"), asked, vod_ids or [], **{**plain, **given})


@pytest.fixture
def missing(library: Library) -> Library:
    """Ten videos, the first of which is linked and the second ignored; none is due."""
    library = library.renewed([video(n, vod_time=days_ago(n)) for n in range(1, 11)], **library.options)
    linked(library, 1, FIRST)
    library.set_state(2, douban_review_status="IGNORED")
    later = library.clock.now().replace(year=2027)
    for vod_id in range(1, 11):
        library.set_state(vod_id, douban_next_sync_at=later)
    return library


def test_videos_without_an_id_are_queued_first_and_their_shards_are_due(missing: Library) -> None:
    found = queued(missing, [3, 4, 1, 2, 99])
    assert (found.new, found.waiting, list(found.unknown)) == (2, 0, [1, 2, 99])
    tasks = missing.tasks()
    assert {(row["vod_id"], row["task_type"], row["stage"], row["priority"]) for row in tasks} == {
        (3, "MATCH_DOUBAN_ID", "search", MATCH_PRIORITY),
        (4, "MATCH_DOUBAN_ID", "search", MATCH_PRIORITY),
    }
    assert {row["payload"]["reviewer"] for row in tasks} == {"小王"}
    due = {vod_id for vod_id, row in missing.states().items() if row["douban_next_sync_at"] <= missing.clock.now()}
    assert due == {3, 4}


def test_one_that_waits_already_comes_sooner_and_is_not_queued_twice(missing: Library) -> None:
    task(missing, 5, "MATCH_DOUBAN_ID", "search", "PENDING", priority=10)
    task(missing, 6, "MATCH_DOUBAN_ID", "search", "RUNNING", priority=10, lease_owner="other")
    found = queued(missing, [5, 6, 7])
    assert (found.new, found.waiting) == (1, 2)
    priorities = {row["vod_id"]: row["priority"] for row in missing.tasks()}
    assert priorities == {5: MATCH_PRIORITY, 6: 10, 7: MATCH_PRIORITY}
    assert queued(missing, [5, 6, 7]).new == 0


def test_filters_choose_the_newest(missing: Library) -> None:
    missing.set_state(9, type_id=7)
    missing.set_state(10, type_id=7)
    assert [row["vod_id"] for row in queued(missing, most=3, dry_run=True).videos] == [3, 4, 5]
    chosen = queued(missing, asked=ListFilter(categories=[7]), dry_run=True)
    assert [row["vod_id"] for row in chosen.videos] == [9, 10]
    missing.set_state(4, douban_last_sync_at=missing.clock.now(), douban_review_reason="没有搜到候选")
    for status, vod_ids in (("NOT_FOUND", [4]), ("UNCHECKED", [3, 5, 6, 7, 8, 9, 10])):
        chosen = queued(missing, asked=ListFilter(chosen={"status": [status]}), dry_run=True)
        assert [row["vod_id"] for row in chosen.videos] == vod_ids


def test_a_dry_run_and_a_wrong_order_change_nothing(missing: Library) -> None:
    before = missing.all_bytes()
    assert len(queued(missing, dry_run=True).videos) == 8
    with pytest.raises(ProblemsError) as wrong:
        queued(missing, reviewer=" ", most=0)
    assert [problem.split(":")[0] for problem in wrong.value.problems] == ["reviewer", "most"]
    assert missing.all_bytes() == before


@pytest.fixture
def doubled(library: Library) -> Library:
    """Three groups of two, three and four videos; the last of the second is locked."""
    library = library.renewed([video(n, vod_hits=n) for n in range(1, 11)], **library.options)
    for vod_id, subject in enumerate([FIRST] * 2 + [SECOND] * 3 + [THIRD] * 4, start=1):
        linked(library, vod_id, subject, douban_id_confidence=90.0)
    library.set_state(3, douban_id_locked=True)
    library.set_state(4, douban_id_locked=True)
    return library


def settled(library: Library, *subjects: int, **given: Any) -> Any:
    plain = {"keeper": KeeperRule.popularity, "every_group": not subjects, "most": 100, "largest": 20}
    return settlement(library.services, list(subjects), **{**plain, **given})


def test_each_group_keeps_one_and_locked_ones_are_left_and_named(doubled: Library) -> None:
    found = settled(doubled)
    assert [(group.douban_id, group.keep.vod_id) for group in found.groups] == [(FIRST, 2), (SECOND, 5), (THIRD, 9)]
    assert [[each.vod_id for each in group.locked] for group in found.groups] == [[], [4, 3], []]
    assert {(each.vod_id, each.action) for each in found.decisions} == {
        (vod_id, DecisionAction.clear_id) for vod_id in (1, 6, 7, 8)
    }


def test_groups_are_chosen_by_subject_size_and_number(doubled: Library) -> None:
    named = settled(doubled, THIRD, 90_000_999)
    assert ([group.douban_id for group in named.groups], named.no_groups) == ([THIRD], (90_000_999,))
    small = settled(doubled, largest=3)
    assert ([group.douban_id for group in small.groups], small.too_large) == ([FIRST, SECOND], (THIRD,))
    assert [group.douban_id for group in settled(doubled, most=1).groups] == [FIRST]


@pytest.mark.parametrize("given", [{"every_group": True}, {"most": 0}, {"most": 1001}, {"largest": 1}])
def test_what_is_not_clear_is_refused(given: dict[str, Any], doubled: Library) -> None:
    with pytest.raises(ProblemsError):
        settled(doubled, FIRST, **given)


def test_what_is_settled_can_be_recorded_as_it_is(doubled: Library) -> None:
    signed = {"reviewer": "小王", "note": "重复", "run_id": "run", "dry_run": False}
    recording = record(doubled.services, settled(doubled).decisions, **signed)
    assert [item.reasons for item in recording.items if item.status.name == "REFUSED"] == []
    pending = doubled.query("select vod_id from mac_douban_decision where action = 'clear_id' order by vod_id")
    assert [row["vod_id"] for row in pending] == [1, 6, 7, 8]
