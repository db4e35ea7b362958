"""The titles that a text names in 《》 or 〈〉, and whether they are the record's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from douban_pipeline.matching import normalise
from douban_pipeline.matching.titles import alias_readings, parse_title

_LOOKALIKES = str.maketrans("≪≫", "《》")
_BRACKETED = re.compile(r"《([^《》]*)》|〈([^〈〉]*)〉")
_LEFT_OVER = re.compile(r"[《》〈〉].{0,20}")


def title_mentions(text: str) -> list[str]:
    """Return the texts in title brackets in order, including nested and similar ones (≪≫)."""
    return [match[1] or match[2] or "" for match in _BRACKETED.finditer(text.translate(_LOOKALIKES))]


def unpaired(text: str) -> list[str]:
    """Return the texts after title brackets without a partner."""
    before, text = None, text.translate(_LOOKALIKES)
    while before != text:
        before, text = text, _BRACKETED.sub(" ", text)
    return _LEFT_OVER.findall(text)


@lru_cache(maxsize=4096)
def _forms(title: str) -> frozenset[str]:
    """Return the accepted forms of a title: whole, without (港), and a season's also without its number."""
    whole = {normalise(title)}
    for reading in alias_readings(title):
        whole.add(normalise(reading.raw))
        if reading.number is None or reading.number_kind == "season":
            whole.add(reading.base)
    return frozenset(form for form in whole if form)


def foreign_titles(text: str, titles: Iterable[str], synopsis: str) -> list[str]:
    """Return the bracketed titles that are not the record's.

    A title may be written with or without its season, and as any alias; a title that the synopsis names in brackets is
    accepted too. The number of another season or part makes another title.
    """
    own = set().union(*(_forms(title) for title in titles))
    numbered = {_numbered(title) for title in titles}
    named = {normalise(title) for title in title_mentions(synopsis)}
    return [
        said
        for said in dict.fromkeys(title_mentions(text))
        if normalise(said) not in own | named and _numbered(said) not in numbered
    ]


def _numbered(title: str) -> tuple[str, int | None, frozenset[str]]:
    """Return what distinguishes a title from its siblings: 庆余年2 and 庆余年 第二季 are the same."""
    parsed = parse_title(title)
    return parsed.base, parsed.number, parsed.distinct_editions
