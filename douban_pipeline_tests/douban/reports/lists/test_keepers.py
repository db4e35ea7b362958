"""Which of a group is proposed to be kept, by each rule, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.reports.lists.keepers import GroupMember, KeeperRule, LinkOrigin, keep_reason, ranked

ZONE = ZoneInfo("Asia/Shanghai")
MATCH, EARLIEST, POPULAR = KeeperRule.best_match, KeeperRule.earliest_link, KeeperRule.popularity
LOCKED, PERSON, AUTO, CMS, NONE = LinkOrigin


def on(day: int) -> datetime:
    return datetime(2026, 2, day, 20, tzinfo=UTC)


def member(vod_id, origin=AUTO, score=None, linked_at=None, hits=0):
    return GroupMember(vod_id, f"片{vod_id}", 2024, 90_000_101, origin, score, linked_at, hits)


CASES = {
    "a lock outweighs a person": (MATCH, [member(1, PERSON, hits=9), member(2, LOCKED)], 2, "豆瓣 ID 已锁定（其次："),
    "a person outweighs any score": (MATCH, [member(1, AUTO, 102.0), member(2, PERSON)], 2, "由人工指定"),
    "a match outweighs the CMS": (MATCH, [member(1, CMS, 99.0, on(1), 900), member(2, AUTO, 86.0)], 2, "由自动匹配"),
    "the CMS outweighs nothing": (MATCH, [member(1, NONE, hits=900), member(2, CMS)], 2, "CMS 原有"),
    "then the score": (MATCH, [member(1, score=90.0), member(2, score=95.5)], 2, "匹配得分最高：95.5（其次 90.0）"),
    "any score outweighs none": (MATCH, [member(1), member(2, score=3.0)], 2, "匹配得分最高：3.0（其次 无）"),
    "then the earliest link": (
        MATCH,
        [member(1, score=90.0, linked_at=on(3)), member(2, score=90.0, linked_at=on(2))],
        2,
        "关联最早：2026-02-03\u00a004:00",
    ),
    "a known time outweighs none": (MATCH, [member(1), member(2, linked_at=on(9))], 2, "关联最早"),
    "then the hits": (MATCH, [member(1, hits=5), member(2, hits=1200)], 2, "播放最多：1200（其次 5）"),
    "then whoever came first": (MATCH, [member(7), member(2)], 2, "其余相同，入库最早（ID 最小）"),
    "earliest link before origin": (
        EARLIEST,
        [member(1, LOCKED, linked_at=on(3)), member(2, CMS, linked_at=on(2))],
        2,
        "关联最早",
    ),
    "earliest link, then origin": (EARLIEST, [member(1, AUTO, 99.0), member(2, PERSON)], 2, "由人工指定"),
    "earliest link: unlinked last": (EARLIEST, [member(1, NONE, hits=9), member(2, AUTO, linked_at=on(9))], 2, "关联"),
    "popularity before a lock": (POPULAR, [member(1, LOCKED), member(2, NONE, hits=1)], 2, "播放最多：1（其次 0）"),
    "popularity, then origin": (POPULAR, [member(1, CMS, hits=4), member(2, AUTO, hits=4)], 2, "由自动匹配"),
}


@pytest.mark.parametrize(("rule", "members", "kept", "why"), CASES.values(), ids=CASES)
def test_who_is_kept_and_why(rule: KeeperRule, members: list[GroupMember], kept: int, why: str) -> None:
    best, next_best, *_ = ranked(members, rule)
    assert best.vod_id == kept
    assert why in keep_reason(best, next_best, rule, ZONE)


members_drawn = st.lists(
    st.builds(
        member,
        st.integers(1, 500),
        st.sampled_from(LinkOrigin),
        st.none() | st.sampled_from([0.0, 85.0, 102.0]),
        st.none() | st.integers(1, 28).map(on),
        st.integers(0, 3),
    ),
    min_size=2,
    max_size=8,
    unique_by=lambda drawn: drawn.vod_id,
)


@given(members_drawn, st.sampled_from(KeeperRule), st.randoms(use_true_random=False))
def test_the_choice_does_not_hang_on_the_order_of_reading(members, rule, random) -> None:
    order = ranked(members, rule)
    shuffled = list(members)
    random.shuffle(shuffled)
    assert ranked(shuffled, rule) == order
    assert sorted(each.vod_id for each in order) == sorted(each.vod_id for each in members)
    assert keep_reason(order[0], order[1], rule, ZONE)


@given(members_drawn)
def test_no_unlocked_video_pushes_a_locked_one_aside(members) -> None:
    kept = ranked(members, MATCH)[0]
    assert kept.locked or not any(each.locked for each in members)
