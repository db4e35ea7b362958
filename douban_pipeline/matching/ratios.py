"""Compares one text with many by their letters, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from rapidfuzz import fuzz, process

_PLACE = itemgetter(0)


def ratios(text: str, others: Sequence[str], least: float) -> list[tuple[int, float]]:
    """Return which of ``others`` have a `fuzz.ratio` of at least ``least`` with a text, in their order.

    Each is given by its place, with the ratio, 0 to 100. One call for all is three times as fast as one for each, and
    mostly none is similar.
    """
    found = process.extract(text, others, scorer=fuzz.ratio, score_cutoff=least, limit=None)
    return sorted([(place, ratio) for _, ratio, place in found], key=_PLACE) if found else []
