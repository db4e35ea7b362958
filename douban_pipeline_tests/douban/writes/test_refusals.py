"""Every reason why something may not be written or linked, as a table of cases on plain values."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.writes.refusals import (
    Reason,
    automatic_write_refusal,
    changed_since_refusal,
    match_refusal,
    new_link_refusal,
    restore_refusal,
    subject_refusal,
)

ID, TEXT, YEAR = {"vod_douban_id": 5}, {"vod_content": "新", "vod_blurb": "新"}, {"vod_year": "2024"}


def row(**columns):
    return {"vod_lock": 0, "vod_douban_id": 5, **columns}


def state(**columns):
    plain = {"vod_douban_id": 5, "douban_review_status": "CONFIRMED", "douban_id_locked": False, "intro_locked": False}
    return {**plain, **columns}


IGNORED, ID_LOCKED, INTRO_LOCKED = (
    state(douban_review_status="IGNORED"),
    state(douban_id_locked=True),
    state(intro_locked=True),
)
LOCKED_TO_7 = state(douban_id_locked=True, vod_douban_id=7)
IN_CMS = row(vod_lock=1)


@pytest.mark.parametrize(
    ("row", "state", "new", "restores", "reason"),
    [
        (row(), state(), ID | TEXT | YEAR, False, None),
        (row(), None, ID | TEXT | YEAR, False, None),
        (IN_CMS, None, YEAR, False, Reason.LOCKED_IN_CMS),
        (IN_CMS, ID_LOCKED, ID, True, Reason.LOCKED_IN_CMS),
        (IN_CMS, IGNORED, ID, False, Reason.LOCKED_IN_CMS),
        (row(), IGNORED, YEAR, False, Reason.IGNORED),
        (row(), IGNORED, ID, True, Reason.IGNORED),
        (row(), ID_LOCKED, ID, False, Reason.ID_LOCKED),
        (row(), ID_LOCKED, YEAR | TEXT, False, None),
        (row(), ID_LOCKED, ID, True, None),
        (row(), LOCKED_TO_7, ID, True, Reason.ID_NO_LONGER_LOCKED),
        (row(), state(), ID, True, Reason.ID_NO_LONGER_LOCKED),
        (row(), INTRO_LOCKED, TEXT, False, Reason.INTRO_LOCKED),
        (row(), INTRO_LOCKED, {"vod_blurb": "新"}, False, Reason.INTRO_LOCKED),
        (row(), INTRO_LOCKED, ID | YEAR, False, None),
        (row(), INTRO_LOCKED, TEXT, True, None),
        (row(), state(), TEXT, True, Reason.INTRO_NO_LONGER_LOCKED),
        (row(), state(intro_locked=True, douban_id_locked=True), ID | TEXT, False, Reason.ID_LOCKED),
    ],
)
def test_what_automation_may_not_write(row, state, new, restores, reason):
    refusal = automatic_write_refusal(row, state, new, restores=restores, respect_vod_lock=True)
    assert (refusal and refusal.reason) == reason
    if reason is Reason.LOCKED_IN_CMS:
        free = automatic_write_refusal(row, state, new, restores=restores, respect_vod_lock=False)
        assert free is None or free.reason is not reason


@pytest.mark.parametrize(
    ("row", "state", "reason"),
    [
        (row(vod_year="2024"), state(), None),
        (None, state(), "影片已从 CMS 中删除"),
        (row(vod_year="2023"), state(), "读取之后 CMS 中的值已被改动：vod_year"),
        (row(vod_year="2023", vod_douban_id=6), state(), "读取之后 CMS 中的值已被改动：vod_year, vod_douban_id"),
        (row(vod_year="2024"), None, "读取之后影片被锁定、解锁或另有决定"),
        (row(vod_year="2024"), ID_LOCKED, "读取之后影片被锁定、解锁或另有决定"),
        (row(vod_year="2023"), ID_LOCKED, "读取之后 CMS 中的值已被改动：vod_year"),
    ],
)
def test_what_changed_since_a_write_was_planned(row, state, reason):
    read, seen = {"vod_year": "2024", "vod_douban_id": 5}, {"douban_id_locked": False}
    refusal = changed_since_refusal(row, state, read=read, seen=seen)
    assert (refusal and refusal.sentence) == reason


@pytest.mark.parametrize(
    ("row", "state", "reason"),
    [
        (row(vod_douban_id=0), state(douban_review_status="NOT_FOUND", vod_douban_id=0), None),
        (row(), state(douban_review_status="REVIEW"), None),
        (row(vod_douban_id=0), state(vod_douban_id=0), None),
        (None, state(), Reason.GONE),
        (row(), None, Reason.GONE),
        (row(), ID_LOCKED, Reason.ID_LOCKED),
        (row(), IGNORED, Reason.IGNORED),
        (row(), state(), Reason.LINKED_ALREADY),
    ],
)
def test_which_videos_need_no_match(row, state, reason):
    refusal = match_refusal(row, state)
    assert (refusal and refusal.reason) == reason


@pytest.mark.parametrize(
    ("row", "state", "douban_id", "sentence"),
    [
        (row(), state(), None, None),
        (row(), state(), 5, None),
        (row(vod_douban_id=6), LOCKED_TO_7, None, None),
        (None, state(), None, "影片已从 CMS 中删除"),
        (row(), None, 5, "影片已从 CMS 中删除"),
        (row(), state(douban_review_status="REVIEW"), None, "影片不是已确认状态"),
        (row(), state(vod_douban_id=0), None, "影片不是已确认状态"),
        (row(), IGNORED, None, "影片不是已确认状态"),
        (row(vod_douban_id=6), state(), 5, "CMS 中的豆瓣 ID 已变为 6"),
        (row(vod_douban_id=7), state(vod_douban_id=7), 5, "豆瓣关联已变为 7"),
    ],
)
def test_when_nothing_may_be_written_from_a_subject(row, state, douban_id, sentence):
    refusal = subject_refusal(row, state, douban_id=douban_id)
    assert (refusal and refusal.sentence) == sentence


@pytest.mark.parametrize(
    ("current", "reverted", "sentence"),
    [
        (0, (), None),
        (5, (6,), None),
        (0, (5,), "关联 5 曾被人工撤销"),
        (6, (5,), "关联 5 曾被人工撤销"),
        (6, (), "CMS 中已有豆瓣 ID 6"),
    ],
)
def test_when_a_video_may_not_be_linked(current, reverted, sentence):
    refusal = new_link_refusal(5, current=current, reverted=reverted)
    assert (refusal and refusal.sentence) == sentence


@pytest.mark.parametrize(
    ("row", "state", "decision_waits", "reason"),
    [
        (row(), ID_LOCKED, False, None),
        (IN_CMS, IGNORED, True, Reason.LOCKED_IN_CMS),
        (row(), IGNORED, True, Reason.IGNORED),
        (row(), ID_LOCKED, True, Reason.DECISION_WAITS),
    ],
)
def test_when_a_locked_value_is_not_restored(row, state, decision_waits, reason):
    refusal = restore_refusal(row, state, respect_vod_lock=True, decision_waits=decision_waits)
    assert (refusal and refusal.reason) == reason
