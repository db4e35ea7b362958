"""The one type of a decision: what makes two the same, which contradict, and how far one has come."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionAction

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ROW: dict[str, Any] = {
    "decision_id": 9,
    "vod_id": 70,
    "shard": 6,
    "action": "set_id",
    "douban_id": 90_000_101,
    "lock": True,
    "days": 0,
    "accept_conflicts": False,
    "override_cms_lock": False,
    "imported": False,
    "verdict_id": None,
    "fingerprint": "f" * 32,
    "checked_at": None,
    "reviewer": "小王",
    "note": "海报一致",
    "state": "pending",
    "state_reason": "",
    "batch_id": "b1",
    "run_after": None,
    "created_at": NOW,
}


@pytest.mark.parametrize(
    ("state", "run_after", "status"),
    [
        ("pending", None, "recorded"),
        ("pending", NOW, "waiting"),
        ("queued", None, "queued"),
        ("queued", NOW, "queued"),
        ("applied", NOW, "applied"),
        ("refused", None, "refused"),
        ("reverted", None, "reverted"),
    ],
)
def test_a_decision_is_read_from_its_row(state: str, run_after: datetime | None, status: str) -> None:
    found = Decision.from_row({**ROW, "state": state, "run_after": run_after})
    assert found.status == status
    assert found.pending is (state == "pending")
    assert found.unchecked is (state == "pending"), "the subject was never asked for"
    assert (found.vod_id, found.shard, found.verdict_id, found.reviewer) == (70, 6, 0, "小王")


def test_what_means_nothing_for_an_action_makes_no_difference() -> None:
    named = Decision(70, DecisionAction.set_id, 90_000_101)
    assert named.identity == "70:set_id:90000101:0:0:0"
    assert replace(named, days=3, note="x", reviewer="小李", status=DecisionStatus.WAITING).identity == named.identity
    assert replace(named, lock=True).identity != named.identity
    assert replace(named, accept_conflicts=True).identity != named.identity
    assert replace(named, override_cms_lock=True).identity != named.identity
    ignored = Decision(70, DecisionAction.ignore, days=3, accept_conflicts=True)
    assert ignored.identity == "70:ignore:0:0:3:0"
    assert replace(ignored, days=4).identity != ignored.identity
    second = Decision(70, DecisionAction.choose, rank=2)
    assert second.identity == "70:choose:0:0:0:0#2", "no subject yet: the place counts"
    assert replace(second, douban_id=90_000_102).identity == "70:choose:90000102:0:0:0"


def test_a_subject_that_was_compared_is_not_to_be_checked_again() -> None:
    found = Decision.from_row(ROW)
    assert not replace(found, checked_at=NOW).unchecked
    assert not replace(found, status=DecisionStatus.REFUSED).unchecked
    assert replace(found, status=DecisionStatus.CHECKED).unchecked
    assert not replace(found, action=DecisionAction.choose).unchecked, "candidates were compared by the matcher"


def test_a_reason_is_reported_with_its_row_and_video() -> None:
    refused = Decision(70, DecisionAction.ignore, where="第 3 行", title="甲", reason="没有这部影片")
    assert refused.sentence == "第 3 行（影片 70《甲》）：没有这部影片"
    assert replace(refused, title="").sentence == "第 3 行（影片 70）：没有这部影片"
