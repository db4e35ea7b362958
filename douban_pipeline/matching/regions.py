"""Regions: agreement is overlap, because a third of all films are co-productions."""

from __future__ import annotations

from functools import lru_cache

from douban_pipeline.cms.vocabulary import Regions, compatible, regions_of


@lru_cache(maxsize=4096)
def _read(words: tuple[str, ...]) -> Regions:
    return regions_of(words)


@lru_cache(maxsize=16384)
def agree(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[bool | None, bool]:
    """Compare two lists of region words.

    Returns:
        True, False or None as :func:`~douban_pipeline.cms.vocabulary.compatible` says, and whether the
        agreement is firm: of regions named one by one. A group (欧美, 其它) agrees softly and never disagrees
        with its members.
    """
    left, right = _read(a), _read(b)
    outcome = compatible(left, right)
    firm = outcome is True and not left.wildcards and not right.wildcards
    return outcome, firm or (outcome is True and bool(left.codes & right.codes))
