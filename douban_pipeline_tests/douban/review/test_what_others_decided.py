"""A batch or an old sheet does not push aside what somebody decided about a single video."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.review.batch.filters import VideoFilter
from douban_pipeline.douban.review.batch.rules import BatchDecision
from douban_pipeline.douban.review.batch.selection import select_videos
from douban_pipeline.douban.store.states import DecisionAction, DecisionState
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.intro_changes import INTRO
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.douban.review.world import (
    A,
    B,
    asking,
    decide,
    decision_on,
    furnish,
    judged,
    linked,
    only,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.deciding import decide as decided

OTHER = 90_000_777
BEST = 90_000_001
BY_PERSON = {"douban_review_status": "CONFIRMED", "vod_douban_id": OTHER, "douban_id_source": "person"}
MEANT = f"审核员已选定 {OTHER}；确实要改，请设 i_am_sure: true"


@pytest.mark.parametrize(
    ("action", "douban_id", "sure", "why"),
    [
        ("confirm_top1", 0, False, MEANT),
        ("choose", BEST, False, MEANT),
        ("set_id", BEST, False, MEANT),
        ("replace_and_lock", BEST, False, MEANT),
        ("clear_id", 0, False, MEANT),
        ("rematch", 0, False, MEANT),
        ("set_id", OTHER, False, ""),
        ("lock_id", 0, False, ""),
        ("ignore", 0, False, ""),
        ("confirm_top1", 0, True, ""),
    ],
)
def test_a_batch_leaves_alone_what_a_person_chose(shared_library, action, douban_id, sure, why):
    library = shelved(shared_library, [Case(1, {"vod_douban_id": OTHER}, BY_PERSON)])
    decided(library, 1, "set_id", OTHER, state=DecisionState.APPLIED, pending_key=None)
    bulk = BatchDecision(DecisionAction(action), douban_id, i_am_sure=sure)
    picked = select_videos(library.services, VideoFilter(vod_ids=(1,)), bulk)
    assert [entry.why for entry in picked.left_out] == ([why] if why else [])
    assert len(picked.videos) == (not why)


def test_a_batch_does_not_confirm_what_a_person_took_back(shared_library):
    library = shelved(shared_library, [Case(1, {"vod_douban_id": BEST}, {"vod_douban_id": BEST}), Case(2)])
    taken_back = {"operator": "小王", "automatic": False, "state": {"vod_douban_id": 0}}
    library.change_log().write([Change(1, "clear_id", {"vod_douban_id": BEST}, {"vod_douban_id": 0}, **taken_back)])
    bulk = BatchDecision(DecisionAction.confirm_top1)
    picked = select_videos(library.services, VideoFilter(vod_ids=(1, 2)), bulk)
    assert [pick.vod_id for pick in picked.videos] == [2]
    assert [entry.why for entry in picked.left_out] == [f"首选 {BEST} 曾被人工撤销，请逐部决定"]


def test_the_same_order_about_an_id_is_harmless_in_a_batch(shared_library):
    library = shelved(shared_library, [Case(1, {"vod_douban_id": OTHER}, {**BY_PERSON, "douban_id_source": "cms"})])
    assert only(decide(library, decision_on(1, "lock_id"))).status == "recorded"
    [pick] = select_videos(library.services, VideoFilter(vod_ids=(1,)), BatchDecision(DecisionAction.lock_id)).videos
    assert only(decide(library, decision_on(pick.vod_id, "lock_id"))).status == "known"


def test_an_old_sheet_does_not_push_aside_what_was_decided_since(shared_library):
    library = furnish(shared_library)
    verdict_id = judged(library, 4, A, B)
    linked(library, 4, B)
    library.set_state(4, douban_id_source="person")
    with asking():
        for asked in (
            decision_on(4, "confirm_top1", verdict_id=verdict_id),
            decision_on(4, "set_id", A, verdict_id=verdict_id),
        ):
            item = only(decide(library, asked, dry_run=True))
            assert (item.status, item.reason) == (
                "refused",
                f"候选已过时：审核员已把影片关联到 {B}，要改为 {A} 请把 verdict_id 填 0 重新决定",
            )
        # The same subject, or a decision that is meant to replace it.
        assert only(decide(library, decision_on(4, "choose", rank=2, verdict_id=verdict_id))).status == "already"
        assert only(decide(library, decision_on(4, "confirm_top1"))).status == "recorded"


def test_a_written_intro_is_locked_by_a_person_for_all_that(shared_library):
    library = furnish(shared_library)
    linked(library, 4, A)
    row = library.row(4)
    lock = {"intro_locked": True, "intro_lock_time": START}
    old = {"vod_content": row["vod_content"]}
    library.change_log().write([Change(4, INTRO, old, {"vod_content": "<p>新简介</p>"}, state=lock)])
    # The lock of the writing goes with the intro when the link changes; a person's does not.
    assert only(decide(library, decision_on(4, "lock_intro"))).status == "recorded"
    library.set_state(4, intro_lock_time=library.clock.now().replace(year=2031))
    assert only(decide(library, decision_on(4, "lock_intro"), dry_run=True)).status in ("known", "already")
