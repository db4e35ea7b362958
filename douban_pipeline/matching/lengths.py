"""Lengths: minutes of a film, episodes of a series."""

from __future__ import annotations

from dataclasses import dataclass

from douban_pipeline.matching.facts import Kind

CLOSE = 0.06
"""Minutes within this share (at least three minutes) agree: cuts, frame rates, end titles."""

FAR = 0.25
"""Beyond this share it is another work or another cut."""


@dataclass(frozen=True, slots=True)
class LengthMatch:
    """What two lengths say: agree, disagree or unknown, in words for a reviewer."""

    agree: bool | None
    note: str
    far: bool = False


def compare_lengths(
    kind: Kind | None, minutes: tuple[int | None, int | None], episodes: tuple[int | None, int | None]
) -> LengthMatch:
    """Compare (local, subject) minutes and episodes.

    Series are compared by episodes, since all have episodes of 24 or 45 minutes; works of one episode by
    minutes. A merged record may hold several seasons, so differing episodes are far only from one and a half times.
    """
    mine, theirs = episodes
    if mine and theirs and max(mine, theirs) > 1:
        if mine == theirs:
            return LengthMatch(True, f"同为 {mine} 集")
        far = max(mine, theirs) > 1.5 * min(mine, theirs)
        return LengthMatch(False, f"集数不同：本地 {mine} / 豆瓣 {theirs}", far)
    if kind in (Kind.SERIES, Kind.VARIETY) or max(mine or 0, theirs or 0) > 1:
        return LengthMatch(None, "")
    mine, theirs = minutes
    if not mine or not theirs:
        return LengthMatch(None, "")
    gap = abs(mine - theirs)
    longer = max(mine, theirs)
    if gap <= max(3, CLOSE * longer):
        return LengthMatch(True, f"片长相差 {gap} 分钟")
    note = f"片长不同：本地 {mine} 分钟 / 豆瓣 {theirs} 分钟"
    return LengthMatch(False, note, True) if gap > FAR * longer else LengthMatch(None, note)
