"""Finds the rivals of a candidate: other works of its name and family that no known fact rules out."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.matching.case import Case
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Subject
from douban_pipeline.matching.scoring import Comparison
from douban_pipeline.matching.similarity import NumberMatch
from douban_pipeline.matching.titles import parse_title

YEARS_NEAR = 1
"""Years within which another work of the name is a rival."""


def has_relatives(case: Case) -> bool:
    """Return whether another work of the same or a longer name is known: a rival, a sequel, a spin-off."""
    if case.has_siblings:
        return True
    base = parse_title(case.video.title).base
    return any(
        rival.title.near_exact or rival.title.same_base or contained(base, parse_title(subject.title).base)
        for subject, rival in case.rivals
    )


def contained(base: str, other: str) -> bool:
    """Return whether a name is part of another; false for one letter, which is part of too many."""
    return len(base) >= 2 and base in other


def is_live(rival: Comparison) -> bool:
    """Return whether a rival is named like the video and no known fact rules it out."""
    if rival.excluded or not rival.title.near_exact or rival.title.numbers is NumberMatch.CONFLICT:
        return False
    return rival.year is None or rival.year.gap <= YEARS_NEAR


def rules_out(best: Comparison, rival: Comparison) -> bool:
    """Return whether original title, edition or year excludes a rival.

    The original title: タッチ 背番号のないエース is one of the films 棒球英豪. An edition that the video's title states
    and only the candidate has: 黑塔利亚 OVA is not the series. The year, where a rival is marked as a special or a half
    that the video is not: 斗破苍穹特别篇 of 2019.
    """
    if best.title.same_original and rival.title.originals_differ:
        return True
    if Code.EDITION_CONFLICT not in best.conflicts and _lacks_edition(rival):
        return True
    if not best.exact_year or rival.exact_year or rival.year is None:
        return False
    return Code.EDITION_CONFLICT in rival.conflicts and Code.EDITION_CONFLICT not in best.conflicts


_EDITIONS_OF_KINDS = frozenset({"movie", "tv", "complete", "animation"})
"""Editions that a work's kind implies; where the kind is unknown, a name without the mark may be of one."""


def _lacks_edition(rival: Comparison) -> bool:
    """Return whether the video's title states an edition that Douban's own answer about a namesake does not mention."""
    lacking, subject = rival.title.editions_local, rival.subject
    if rival.kind is not False:
        lacking -= _EDITIONS_OF_KINDS
    if not lacking or not subject.fetched:
        return False
    # Of names that differ only in the mark, a comparison keeps the first.
    names = (subject.original_title, *subject.aliases)
    return not any(lacking & parse_title(name).distinct_editions for name in names if name)


def contenders(case: Case) -> Iterator[tuple[Subject, Comparison]]:
    """Yield the rivals that no known fact distinguishes from the candidate."""
    return (
        (subject, rival) for subject, rival in case.rivals if is_live(rival) and not rules_out(case.comparison, rival)
    )


def live_rivals(case: Case) -> bool:
    """Return whether another work may be the video's as well: one of about its year, or one of unfetched year."""
    return any(not (case.exact_year and rival.year is None and subject.fetched) for subject, rival in contenders(case))
