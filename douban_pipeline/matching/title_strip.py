"""Removes known words from the ends of a title, one at a time, and keeps their meaning.

The tables are in ``title_words``, ``title_editions`` and ``title_numbers``. This module defines only the order in
which they are applied and how two statements about the same thing are combined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

from douban_pipeline.matching import title_editions as editions
from douban_pipeline.matching import title_numbers as numbers
from douban_pipeline.matching import title_words as words
from douban_pipeline.matching.numerals import numeral
from douban_pipeline.matching.text import normalise

SEPARATORS = " \t.,_-–—:·,/|~、，。;；+&"
_OPEN, _CLOSE = "([{【〔「『<〖", ")]}】〕」』>〗"
_BRACKET_SUFFIX = re.compile(rf"[{re.escape(_OPEN)}]([^{re.escape(_OPEN + _CLOSE)}]*)[{re.escape(_CLOSE)}]$")
_BRACKET_PREFIX = re.compile(rf"^[{re.escape(_OPEN)}]([^{re.escape(_OPEN + _CLOSE)}]*)[{re.escape(_CLOSE)}]\s*(?=\S)")
_SPAN = re.compile(r"\d+|[一二三四五六七八九十]+")
_DIGITS_OF_NAME = re.compile(r"[^\W\d_]\d{2,}$")


@dataclass(slots=True)
class Strip:
    """Parser state of a title: what is left of it and what was read from it.

    Attributes:
        rest: The text that is left.
        may_vanish: Whether ``rest`` may become empty: in brackets, and after a ``》``.
        display_tail: Removed text that is kept for display.
        head: The name before a number inside the title that a subtitle follows.
        weak: Display text of a mark like 第3期 that counts as a season unless a clearer season mark is found.
    """

    rest: str
    number: int | None = None
    number_kind: numbers.NumberKind | None = None
    editions: set[str] = field(default_factory=set)
    year: int | None = None
    episodes: tuple[int, int] | None = None
    complete: bool = False
    display_tail: list[str] = field(default_factory=list)
    may_vanish: bool = False
    gap: str = ""
    head: str = ""
    weak: str | None = None

    def run(self) -> Strip:
        """Remove suffixes until no known one is left."""
        while True:
            stripped = self.rest.rstrip(SEPARATORS)
            self.gap = " " if self.display_tail and len(stripped) < len(self.rest) else ""
            self.rest = stripped.lstrip(SEPARATORS)
            if not self.rest:
                return self
            if not (_is_ending(self.rest[-1]) or self.rest[-1] in _CLOSE or self.rest[0] in _OPEN):
                return self
            if not (
                self._episodes()
                or self._brackets()
                or self._edition()
                or self._junk()
                or self._firm_year()
                or self._named_number()
                or self._bare_number()
            ):
                return self

    def _cut(self, match: re.Match[str], *, show: bool = False) -> bool:
        """Remove the match unless nothing of the name would be left; ``show`` keeps it for display."""
        rest = self.rest[: match.start()].rstrip(SEPARATORS)
        if not self.may_vanish and not normalise(rest):
            return False
        if show:
            self.display_tail.insert(0, self.rest[len(rest) :] + self.gap)
            self.gap = ""
        self.rest = rest
        return True

    def _brackets(self) -> bool:
        match = _BRACKET_SUFFIX.search(self.rest) if self.rest[-1] in _CLOSE else None
        prefix = match is None
        if match is None and self.rest[0] in _OPEN:
            match = _BRACKET_PREFIX.search(self.rest)
        if match is None:
            return False
        inner = Strip(match[1].strip(), may_vanish=True)
        inner.read_bracket(prefix=prefix, numbered=self.number is not None)
        repeated = inner.number is not None and inner.number == self.number
        if inner.rest or (inner.number is not None and self.number is not None and not repeated):
            return False
        rest = self.rest[match.end() :] if prefix else self.rest[: match.start()]
        if not rest.strip(SEPARATORS) and not self.may_vanish:
            return False
        self.rest = rest
        self.editions |= inner.editions
        self.year = self.year or inner.year
        self.episodes = self.episodes or inner.episodes
        self.complete = self.complete or inner.complete
        if inner.number is not None:
            self.number, self.number_kind = inner.number, inner.number_kind
        if inner.number is not None or inner.editions & _SHOWN:
            self.display_tail.insert(0, match[0] + self.gap)
        return True

    def read_bracket(self, *, prefix: bool, numbered: bool) -> None:
        """Parse the text in brackets; more forms are recognised there than at the end of a name."""
        if (year := words.FIRM_YEAR_ALONE.pattern.fullmatch(self.rest)) is not None:
            self.rest, self.year = "", int(year["y"])
        elif prefix and words.KIND_TAG.pattern.fullmatch(self.rest):
            self.rest = ""
        elif not prefix and (edition := editions.BRACKET_EDITIONS.get(self.rest.casefold())) is not None:
            self.rest, self.editions = "", {edition}
        elif not (prefix or numbered) and (match := numbers.BRACKET_NUMBER.pattern.fullmatch(self.rest)) is not None:
            self.rest, self.number, self.number_kind = "", numeral(match["n"]), "sequel"
        else:
            self.run()

    def _edition(self) -> bool:
        for edition in _editions_ending_in(self.rest[-1]):
            match = edition.words.pattern.search(self.rest)
            if match is not None and self._cut(match, show=edition.code in _SHOWN):
                self.editions.add(edition.code)
                if edition.code == "collection" and (span := _span(match[0])):
                    # 第三、四部 is not 第一、二部.
                    self.editions.add(span)
                if edition.code == "final" and self.number_kind == "part":
                    # 最终季 Part 2: the second part of that season, not of the whole work.
                    self.editions.add(f"part-{self.number}")
                    self.number = self.number_kind = None
                return True
        return False

    def _junk(self) -> bool:
        for pattern in _junk_ending_in(self.rest[-1]):
            match = pattern.search(self.rest)
            if match is not None and self._cut(match):
                return True
        return False

    def _episodes(self) -> bool:
        matches = [match for pattern in _episodes_ending_in(self.rest[-1]) if (match := pattern.search(self.rest))]
        if not matches:
            return False
        # 全76集 已完结 contains 76集 已完结: the longest match is used.
        match = min(matches, key=lambda each: each.start())
        found = {name: numeral(text) for name, text in match.groupdict().items() if name != "all" and text}
        last = found.get("to")
        if last == 0 or not self._cut(match):
            return False
        if last is not None and self.episodes is None:
            self.complete = bool(match.groupdict().get("all"))
            self.episodes = (1 if self.complete else found.get("from") or last, last)
        return True

    def _firm_year(self) -> bool:
        if self.rest[-1] != "版" and not self.rest[-1].isdecimal():
            return False
        for mark in words.FIRM_YEARS:
            match = mark.pattern.search(self.rest)
            if match is not None and self._cut(match, show=True):
                year = int(match["y"])
                # 86版 is 1986, 03版 is 2003.
                self.year = self.year or (year if year > 99 else year + (1900 if year >= 30 else 2000))
                return True
        return False

    def _named_number(self) -> bool:
        for word in _numbers_ending_in(self.rest[-1]):
            match = word.words.pattern.search(self.rest)
            if match is None or (value := numeral(match["n"])) is None:
                continue
            if self.number is not None:
                return self._second_number(word, match, value)
            if not self._cut(match, show=True):
                return False
            self.number, self.number_kind = value, word.kind
            self.weak = self.display_tail[0] if word.weak else None
            return True
        return False

    def _second_number(self, word: numbers.NumberWord, match: re.Match[str], value: int) -> bool:
        """Combine a number with the number that followed it."""
        if word.kind != "season" or self.number is None:
            return False
        if self.weak is not None and not word.weak:
            # 第九季 第3期: the second one is an episode.
            if not self._cut(match, show=True):
                return False
            self.display_tail.remove(self.weak)
            self.episodes = self.episodes or (self.number, self.number)
        elif self.number_kind == "part":
            # 第二季 Part 2: the season is the number, the part an edition.
            if not self._cut(match, show=True):
                return False
            self.editions.add(f"part-{self.number}")
        else:
            # 第2期 Season 2 states the same season twice.
            return value == self.number and self._cut(match)
        self.number, self.number_kind, self.weak = value, "season", None
        return True

    def _bare_number(self) -> bool:
        last = self.rest[-1]
        if self.number is not None or self.may_vanish or not (last.isascii() or last == "年"):
            return False
        for kind, pattern in _bare_ending_in(last):
            match = pattern.search(self.rest)
            if match is None:
                continue
            head = self.rest[: match.start()].rstrip()
            spaced = len(head) < match.start() and _DIGITS_OF_NAME.search(head) is not None
            # 9-1-1, 3.0+1.0, F1: the digits belong to the name. 路人超能100 3 has both.
            if not head or (head[-1] in "0123456789.+-/⁄:%×" and not spaced):
                continue
            if len(normalise(head)) < 2 and head.isascii():
                continue
            if self._cut(match, show=True):
                self.number, self.number_kind = numeral(match["n"] or match["m"]), kind
                return True
        return False

    def inside(self) -> None:
        """Parse the front and middle of the title: a half, an edition, a number followed by a subtitle."""
        half = editions.PART_INSIDE.pattern.search(self.rest) if "(" in self.rest or "[" in self.rest else None
        if half is not None and self.rest[: half.start()].strip():
            self.editions.add(editions.BARE_PARTS[half["part"]])
            self.rest = f"{self.rest[: half.start()]} {self.rest[half.end() :]}".strip()
        if editions.MAYBE_INSIDE.pattern.search(self.rest) is not None:
            self._editions_inside()
        if numbers.MAYBE_INSIDE.pattern.search(self.rest) is not None:
            self._number_inside()

    def _editions_inside(self) -> None:
        for code, mark in editions.PREFIX_EDITIONS:
            match = mark.pattern.search(self.rest)
            if match is not None and normalise(self.rest[match.end() :]):
                self.rest = self.rest[match.end() :]
                self.editions.add(code)
                break
        for code, mark in editions.INSIDE_EDITIONS:
            match = mark.pattern.search(self.rest)
            if match is None or not normalise(self.rest[: match.start()]):
                continue
            head, tail = self.rest[: match.start()], self.rest[match.end() :]
            # 剧场版1 东京毁灭战 numbers the films, so the number stays with the name.
            self.rest = head + ("" if tail[:1].isdigit() and not head.isascii() else " ") + tail
            self.editions.add(code)
            return

    def _number_inside(self) -> None:
        if self.number is not None and self.number_kind not in ("year", "season"):
            return
        for word in numbers.NUMBER_INSIDE:
            match = word.words.pattern.search(self.rest)
            if match is None:
                continue
            head, tail = self.rest[: match.start()].strip(), self.rest[match.end() :].strip()
            value = numeral(match["n"])
            if value is None or not normalise(head) or (len(normalise(head)) < 2 and head.isascii()) or not tail:
                continue
            if self.number_kind == "season":
                if value == self.number and word.kind == "season":
                    # 第四季 Better Call Saul Season 4 states the same season twice.
                    self.rest = f"{head} {tail}"
                return
            if self.number is not None:
                # 歌手2024 第二季 花絮: the year stays in the name.
                tail = f"{tail} {self.number}"
            self.rest, self.head = f"{head} {tail}", head
            self.number, self.number_kind = value, word.kind
            return


def _span(text: str) -> str:
    """Return the parts contained in a record of several parts, as an edition code; empty when not stated."""
    numbered = [value for each in _SPAN.findall(text) if (value := numeral(each)) is not None]
    return f"part-{numbered[0]}-{numbered[1]}" if len(numbered) == 2 else ""


def says_nothing(text: str) -> bool:
    """Return whether a text of Chinese characters has no word or number to remove, as is true of most titles."""
    return not (
        _is_ending(text[-1])
        or editions.MAYBE_INSIDE.pattern.search(text) is not None
        or numbers.MAYBE_INSIDE.pattern.search(text) is not None
    )


@lru_cache(maxsize=65536)
def _is_ending(char: str) -> bool:
    """Return whether any known pattern may end in the given character."""
    return char in "版年" or char.isdecimal() or char in numbers.BARE_ENDS or char.casefold() in _all_endings()


@cache
def _all_endings() -> frozenset[str]:
    known = [*words.JUNK, *words.EPISODES, *(edition.words for edition in editions.EDITIONS)]
    known += [*(word.words for word in numbers.NUMBER_SUFFIXES), *(mark for _, mark in _BARE)]
    return frozenset().union(*(words.endings(each.source) for each in known))


def _may_end_in(mark: words.Words, char: str) -> bool:
    return char.casefold() in words.endings(mark.source)


@lru_cache(maxsize=4096)
def _junk_ending_in(char: str) -> tuple[re.Pattern[str], ...]:
    return tuple(mark.pattern for mark in words.JUNK if _may_end_in(mark, char))


@lru_cache(maxsize=4096)
def _episodes_ending_in(char: str) -> tuple[re.Pattern[str], ...]:
    return tuple(mark.pattern for mark in words.EPISODES if _may_end_in(mark, char))


@lru_cache(maxsize=4096)
def _editions_ending_in(char: str) -> tuple[editions.Edition, ...]:
    return tuple(edition for edition in editions.EDITIONS if _may_end_in(edition.words, char))


@lru_cache(maxsize=4096)
def _numbers_ending_in(char: str) -> tuple[numbers.NumberWord, ...]:
    return tuple(word for word in numbers.NUMBER_SUFFIXES if _may_end_in(word.words, char))


@lru_cache(maxsize=4096)
def _bare_ending_in(char: str) -> tuple[tuple[numbers.NumberKind, re.Pattern[str]], ...]:
    return tuple((kind, mark.pattern) for kind, mark in _BARE if _may_end_in(mark, char))


_SHOWN = editions.DISTINCT_EDITIONS - {"collection", "complete"}
_BARE: tuple[tuple[numbers.NumberKind, words.Words], ...] = (
    ("year", numbers.BARE_YEAR),
    ("sequel", numbers.BARE_NUMBER),
    ("sequel", numbers.BARE_ROMAN),
)
