"""In-memory fuzzy search over titles, ranked and deterministic."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import opencc

_YEAR = re.compile(r"(?:19|20)\d\d")
_IGNORED = frozenset({"豆瓣", "豆瓣电影", "subject", "douban"})
_LEAST_SHARE = 0.4
"""Share of a title's character pairs and characters that a query must contain. Sequels, similar titles and titles with
one variant character (琅邪榜, 琅琊榜) are found too, as they are online."""

_RANKED = 200
"""Maximum number of names that are ranked in detail after the selection by counts."""


class TitleIndex:
    """Finds subjects by title or alias, in traditional or simplified characters."""

    def __init__(self, subjects: Sequence[Mapping[str, Any]]) -> None:
        """Index ``subjects``: mappings with ``id``, ``title``, ``original_title``, ``aka``, ``year`` and people."""
        self._subjects = list(subjects)
        self._votes = [int(subject.get("votes") or 0) for subject in self._subjects]
        owners: list[int] = []
        sizes: list[int] = []
        places: dict[str, list[int]] = defaultdict(list)
        for number, subject in enumerate(self._subjects):
            names = (subject["title"], subject.get("original_title") or "", *(subject.get("aka") or ()))
            for parts in {frozenset(_parts(_fold(str(name)))) for name in names} - {frozenset()}:
                for part in parts:
                    places[part].append(len(owners))
                owners.append(number)
                sizes.append(len(parts))
        self._owners = np.array(owners, dtype=np.int32)
        self._sizes = np.array(sizes, dtype=np.float32)
        self._places = {part: np.array(found, dtype=np.int32) for part, found in places.items()}

    def find(self, query: str, limit: int) -> list[Mapping[str, Any]]:
        """Return up to ``limit`` subjects for ``query``, best first.

        Irrelevant words in the query (豆瓣, ``site:…``) are ignored; a year and people's names raise a subject's rank.
        """
        words = [word for word in re.sub(r"site:\S+", " ", query).split() if word.lower() not in _IGNORED]
        years = {int(word) for word in words if _YEAR.fullmatch(word)}
        text = _fold("".join(words))
        # A year may belong to the title (歌手2025) or be separate from it: both readings are used.
        asked = _parts(_fold("".join(word for word in words if not _YEAR.fullmatch(word)))) | _parts(text)
        found = [self._places[part] for part in asked if part in self._places]
        if not found:
            return []
        counts = np.bincount(np.concatenate(found), minlength=len(self._sizes))
        # A name that contains the whole query is found too, however long the name is.
        near = np.flatnonzero((counts >= _LEAST_SHARE * self._sizes) | (counts == len(asked)))
        points = counts[near] * (0.7 / self._sizes[near] + 0.3 / len(asked))
        order = np.argsort(-points, kind="stable")[: max(_RANKED, 2 * limit)]
        best: dict[int, float] = {}
        for place, value in zip(near[order].tolist(), points[order].tolist(), strict=True):
            best.setdefault(int(self._owners[place]), value)

        def rank(number: int) -> tuple[float, int, int]:
            subject = self._subjects[number]
            people = (*(subject.get("directors") or ()), *(subject.get("actors") or ()))
            known = bool(people) and len(words) > 1 and any(name and _fold(str(name)) in text for name in people)
            bonus = 0.1 * (subject.get("year") in years) + 0.1 * known
            return -(best[number] + bonus), -self._votes[number], int(subject["id"])

        return [self._subjects[number] for number in sorted(best, key=rank)[:limit]]


def _fold(text: str) -> str:
    simplified = _converter().convert(unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"[\W_]+", "", simplified)


def _parts(text: str) -> set[str]:
    """Return pairs of adjacent characters, and single characters that are significant alone."""
    pairs = {text[n : n + 2] for n in range(len(text) - 1)}
    return pairs | {character for character in text if not character.isascii() or len(text) == 1}


@cache
def _converter() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")
