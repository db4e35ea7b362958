"""Which video of a group of likely duplicates is proposed to be kept, and why. Pure functions; a person decides.

A rule is an order of criteria; the first on which two videos differ decides between them.

- ``best_match``: origin of the link (locked, a person, an automatic match, the CMS, none), score of the match,
  earliest link, most watched;
- ``earliest_link``: earliest link, origin, score, most watched;
- ``popularity``: most watched, origin, score, earliest link.

If all are equal, the smallest id is kept: it was added first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.presentation import local_time


class KeeperRule(enum.Enum):
    """Rules; members are named as they are entered in the launchpad."""

    best_match = "best_match"
    earliest_link = "earliest_link"
    popularity = "popularity"


class LinkOrigin(enum.IntEnum):
    """Origin of a video's link, the most reliable first."""

    LOCKED = 1
    PERSON = 2
    AUTO = 3
    CMS = 4
    NONE = 5


ORIGIN_SENTENCES: Mapping[LinkOrigin, str] = {
    LinkOrigin.LOCKED: "豆瓣 ID 已锁定",
    LinkOrigin.PERSON: "豆瓣 ID 由人工指定",
    LinkOrigin.AUTO: "豆瓣 ID 由自动匹配确认",
    LinkOrigin.CMS: "豆瓣 ID 为 CMS 原有",
    LinkOrigin.NONE: "没有已确认的豆瓣 ID",
}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A video of a group.

    Attributes:
        year: The year in its row.
        douban_id: The current id, 0 for none.
        origin: Origin of the id.
        score: Score of the match with it, if there was one.
        linked_at: When it was linked; for an id that came with the row, when the row was added.
        hits: How often it was watched.
    """

    vod_id: int
    title: str
    year: int | None
    douban_id: int
    origin: LinkOrigin
    score: float | None
    linked_at: datetime | None
    hits: int

    @property
    def locked(self) -> bool:
        """Whether its id is locked, so that a batch cannot clear it."""
        return self.origin is LinkOrigin.LOCKED


@dataclass(frozen=True, slots=True)
class _Criterion:
    """The sort key of a comparison (the smaller is kept), and the sentence that explains the first place."""

    key: Callable[[GroupMember], Any]
    reason: Callable[[GroupMember, GroupMember, ZoneInfo], str]


def _score_reason(best: GroupMember, next_best: GroupMember, zone: ZoneInfo) -> str:
    other = "无" if next_best.score is None else f"{next_best.score:.1f}"
    return f"匹配得分最高：{best.score:.1f}（其次 {other}）"


_STANDING = _Criterion(
    lambda member: member.origin,
    lambda best, next_best, zone: f"{ORIGIN_SENTENCES[best.origin]}（其次：{ORIGIN_SENTENCES[next_best.origin]}）",
)
_SCORE = _Criterion(lambda member: -1.0 if member.score is None else -2.0 - member.score, _score_reason)
_LINKED = _Criterion(
    lambda member: (member.linked_at is None, member.linked_at.timestamp() if member.linked_at else 0.0),
    lambda best, next_best, zone: f"关联最早：{local_time(best.linked_at, zone)}",
)
_HITS = _Criterion(
    lambda member: -member.hits, lambda best, next_best, zone: f"播放最多：{best.hits}（其次 {next_best.hits}）"
)
_ID = _Criterion(lambda member: member.vod_id, lambda best, next_best, zone: "其余相同，入库最早（ID 最小）")

_ORDERS: Mapping[KeeperRule, Sequence[_Criterion]] = {
    KeeperRule.best_match: (_STANDING, _SCORE, _LINKED, _HITS, _ID),
    KeeperRule.earliest_link: (_LINKED, _STANDING, _SCORE, _HITS, _ID),
    KeeperRule.popularity: (_HITS, _STANDING, _SCORE, _LINKED, _ID),
}


def ranked(members: Sequence[GroupMember], keeper: KeeperRule) -> list[GroupMember]:
    """Return ``members``, the one to keep first."""
    order = _ORDERS[keeper]
    return sorted(members, key=lambda member: tuple(criterion.key(member) for criterion in order))


def keep_reason(best: GroupMember, next_best: GroupMember, keeper: KeeperRule, zone: ZoneInfo) -> str:
    """Return the reason why the first of a ranked group comes before its second."""
    deciding = next(each for each in _ORDERS[keeper] if each.key(best) != each.key(next_best))
    return deciding.reason(best, next_best, zone)
