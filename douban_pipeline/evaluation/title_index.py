"""A small search engine over the titles of the sample: forgiving, ranked, always the same answer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

import opencc

from douban_pipeline.demo.answers import Subject

_YEAR = re.compile(r"(?:19|20)\d\d")
_IGNORED = frozenset({"豆瓣", "豆瓣电影", "subject", "douban"})
_LEAST_SHARE = 0.4
"""Share of a title's letter pairs and characters that a query must hold. Sequels, neighbours and titles with one
character written otherwise (琅邪榜, 琅琊榜) are found too, as they are online."""


class TitleIndex:
    """Finds subjects by title or alias, in traditional or simplified characters."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        """Index ``subjects``."""
        self._subjects = list(subjects)
        self._titles: list[tuple[int, frozenset[str]]] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, subject in enumerate(self._subjects):
            names = (subject["title"], subject.get("original_title") or "", *(subject.get("aka") or ()))
            for parts in {frozenset(_parts(_fold(str(name)))) for name in names} - {frozenset()}:
                for part in parts:
                    self._places[part].append(len(self._titles))
                self._titles.append((number, parts))

    def find(self, query: str, limit: int) -> list[Subject]:
        """Return up to ``limit`` subjects for ``query``, best first.

        The query may hold words of no use (豆瓣, ``site:…``); a year and names of people in it move a subject up.
        """
        words = [word for word in re.sub(r"site:\S+", " ", query).split() if word.lower() not in _IGNORED]
        years = {int(word) for word in words if _YEAR.fullmatch(word)}
        text = _fold("".join(words))
        # A year may belong to the title (歌手2025) or stand beside it: both readings count.
        asked = _parts(_fold("".join(word for word in words if not _YEAR.fullmatch(word)))) | _parts(text)
        shared = Counter(place for part in asked for place in self._places.get(part, ()))
        best: dict[int, float] = {}
        for place, count in shared.items():
            number, parts = self._titles[place]
            if count / len(parts) >= _LEAST_SHARE:
                points = 0.7 * count / len(parts) + 0.3 * count / len(asked)
                best[number] = max(best.get(number, 0.0), points)

        def order(number: int) -> tuple[float, int, int]:
            subject = self._subjects[number]
            people = (*(subject.get("directors") or ()), *(subject.get("actors") or ()))
            known = any(name and _fold(str(name)) in text for name in people)
            points = best[number] + 0.1 * (subject.get("year") in years) + 0.1 * known
            return -points, -int(subject.get("votes") or 0), int(subject["id"])

        return [self._subjects[number] for number in sorted(best, key=order)[:limit]]


def _fold(text: str) -> str:
    simplified = _converter().convert(unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"[\W_]+", "", simplified)


def _parts(text: str) -> set[str]:
    """Return pairs of neighbours, and single characters where one alone says something."""
    pairs = {text[n : n + 2] for n in range(len(text) - 1)}
    return pairs | {character for character in text if not character.isascii() or len(text) == 1}


@cache
def _converter() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")
