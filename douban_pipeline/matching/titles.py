"""Titles taken apart: the name, the number, the editions, the year.

A site writes ``2019年惊悚《寄生虫2》BD中字``, Douban ``寄生虫2``. Stripping junk is what finds matches, keeping
numbers and editions is what prevents wrong ones; so junk is taken only from the ends and only by the tables of
:mod:`~douban_pipeline.matching.title_words`, and every number taken off the name is kept as a number.
A number that is not there is *unknown*, never 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from douban_pipeline.matching import title_words as words
from douban_pipeline.matching.numerals import numeral
from douban_pipeline.matching.text import HAN, narrow, normalise, script, simplify, simplify_taiwan

NumberKind = Literal["season", "part", "sequel", "year"]

_SEPARATORS = " \t.,_-–—:·,/|~、，。;；+&"
_OPEN, _CLOSE = "([{【〔「『<〖", ")]}】〕」』>〗"
_BRACKET_SUFFIX = re.compile(rf"[{re.escape(_OPEN)}]([^{re.escape(_OPEN + _CLOSE)}]*)[{re.escape(_CLOSE)}]$")
_BRACKET_PREFIX = re.compile(rf"^[{re.escape(_OPEN)}]([^{re.escape(_OPEN + _CLOSE)}]*)[{re.escape(_CLOSE)}]\s*(?=\S)")
_BOOK_TITLE = re.compile(r"^(?P<before>[^《》]*)《(?P<inside>[^《》]+)》(?P<after>[^《》]*)$")
_ARTICLE_LAST = re.compile(
    r"^(?P<name>[^\u3000-\U0003ffff]+?)(?:,\s*(?P<a>the|an?|le|la|les|l'|el|los|las|il|lo|gli|i|der|die|das|un|une)"
    r"|\s+(?P<b>the|les|la|le|el|il|gli|der|die|das))$",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[!?@☆★♪♥♡♀♂]+")
_SLASH_OF_TWO_NAMES = re.compile(rf"(?<=[{HAN}\d])\s*/\s*(?=[{HAN}])")


@dataclass(frozen=True, slots=True)
class ParsedTitle:
    """One reading of one title.

    Attributes:
        base: The name without number, editions and junk, normalised.
        number: Season, part, sequel or year brand; None is unknown.
        number_kind: What ``number`` counts. ``"year"`` with no number: the year was read off the end of the name.
        editions: Codes of :data:`~douban_pipeline.matching.title_words.EDITIONS`.
        year: A year the title states as such.
        raw: The text as it came.
        display: The text for people and search engines, simplified: junk gone, season words kept.
        marks: Punctuation that may tell seasons apart (``？？``), in order.
        name: Like ``display``, but without number and editions; empty where the reading has no such text.
    """

    base: str
    number: int | None = None
    number_kind: NumberKind | None = None
    editions: frozenset[str] = frozenset()
    year: int | None = None
    raw: str = ""
    display: str = ""
    marks: str = ""
    name: str = ""

    @property
    def form(self) -> str:
        """Base and number as one string to measure: ``战狼#2``."""
        return self.base if self.number is None else f"{self.base}#{self.number}"

    @property
    def distinct_editions(self) -> frozenset[str]:
        """Editions that are another Douban entry."""
        return self.editions & words.DISTINCT_EDITIONS


@dataclass(slots=True)
class _Strip:
    """The title while its ends are being taken off."""

    rest: str
    number: int | None = None
    number_kind: NumberKind | None = None
    editions: set[str] = field(default_factory=set)
    year: int | None = None
    display_tail: list[str] = field(default_factory=list)
    may_vanish: bool = False
    gap: str = ""

    def run(self) -> _Strip:
        """Take suffixes off until none is known."""
        while True:
            stripped = self.rest.rstrip(_SEPARATORS)
            self.gap = " " if self.display_tail and len(stripped) < len(self.rest) else ""
            self.rest = stripped.lstrip(_SEPARATORS)
            if not self.rest or not any(
                rule(self)
                for rule in (
                    _Strip._brackets,
                    _Strip._edition,
                    _Strip._junk,
                    _Strip._firm_year,
                    _Strip._named_number,
                    _Strip._bare_number,
                )
            ):
                return self

    def _cut(self, match: re.Match[str], *, show: bool = False) -> bool:
        """Drop the match unless nothing of the name would be left; ``show`` keeps it for people."""
        rest = self.rest[: match.start()].rstrip(_SEPARATORS)
        if not rest and not self.may_vanish:
            return False
        if show:
            self.display_tail.insert(0, self.rest[len(rest) :] + self.gap)
            self.gap = ""
        self.rest = rest
        return True

    def _brackets(self) -> bool:
        match = _BRACKET_SUFFIX.search(self.rest)
        prefix = match is None
        match = match or _BRACKET_PREFIX.search(self.rest)
        if match is None:
            return False
        inner = _Strip(match[1].strip(), may_vanish=True)
        if (year := words.FIRM_YEAR_ALONE.fullmatch(inner.rest)) is not None:
            inner.rest, inner.year = "", int(year["y"])
        elif (part := words.BARE_PARTS.get(inner.rest)) is not None and not prefix:
            inner.rest, inner.editions = "", {part}
        elif inner.rest.isdecimal() and len(inner.rest) <= 2 and self.number is None and not prefix:
            inner.number, inner.number_kind, inner.rest = int(inner.rest), "sequel", ""
        else:
            inner.run()
        if inner.rest or (inner.number is not None and self.number is not None):
            return False
        rest = self.rest[match.end() :] if prefix else self.rest[: match.start()]
        if not rest.strip(_SEPARATORS) and not self.may_vanish:
            return False
        self.rest = rest
        self.editions |= inner.editions
        self.year = self.year or inner.year
        if inner.number is not None:
            self.number, self.number_kind = inner.number, inner.number_kind
        if inner.number is not None or inner.editions & words.DISTINCT_EDITIONS:
            self.display_tail.insert(0, match[0] + self.gap)
        return True

    def _edition(self) -> bool:
        for edition in words.EDITIONS:
            match = edition.pattern.search(self.rest)
            if match is not None and self._cut(match, show=edition.distinct):
                self.editions.add(edition.code)
                return True
        return False

    def _junk(self) -> bool:
        return any((match := pattern.search(self.rest)) is not None and self._cut(match) for pattern in words.JUNK)

    def _firm_year(self) -> bool:
        for pattern in words.FIRM_YEAR_SUFFIXES:
            match = pattern.search(self.rest)
            if match is not None and self._cut(match, show=True):
                year = int(match["y"])
                # 86版 is 1986, 03版 is 2003.
                self.year = self.year or (year if year > 99 else year + (1900 if year >= 30 else 2000))
                return True
        return False

    def _named_number(self) -> bool:
        for kind, pattern in words.NUMBER_SUFFIXES:
            match = pattern.search(self.rest)
            if match is None or (value := numeral(match["n"])) is None:
                continue
            # 第二季 Part 2: the season is the number, the part one of its editions.
            half = self.number if self.number_kind == "part" and kind == "season" else None
            if self.number is not None and half is None:
                continue
            if not self._cut(match, show=True):
                return False
            if half is not None:
                self.editions.add(f"part-{half}")
            self.number, self.number_kind = value, kind  # type: ignore[assignment]
            return True
        return False

    def _bare_number(self) -> bool:
        if self.number is not None or self.may_vanish:
            return False
        for kind, pattern in (
            ("year", words.BARE_YEAR),
            ("sequel", words.BARE_NUMBER),
            ("sequel", words.BARE_ROMAN),
        ):
            match = pattern.search(self.rest)
            if match is None:
                continue
            head = self.rest[: match.start()].rstrip()
            # 9-1-1, 3.0+1.0, F1: the digits are the name.
            if not head or head[-1] in "0123456789.+-/⁄:%×" or (len(normalise(head)) < 2 and head.isascii()):
                continue
            if self._cut(match, show=True):
                self.number, self.number_kind = numeral(match["n"]), kind  # type: ignore[assignment]
                return True
        return False


def _unwrap(text: str) -> tuple[str, str, int | None, tuple[str, ...]]:
    """Split ``2019年惊悚《名/别名》BD中字`` into name, tail, year, other names."""
    match = _BOOK_TITLE.match(text)
    if match is None:
        return text, "", None, ()
    year = words.FIRM_YEAR_PREFIX.search(match["before"])
    names = [name for name in _SLASH_OF_TWO_NAMES.split(match["inside"]) if name.strip()]
    return names[0], match["after"], int(year["y"]) if year else None, tuple(names[1:])


def _inside(state: _Strip) -> None:
    """Read a number in the middle of the name, if none ended it, and a half: 死亡圣器(下)：终章."""
    half = words.PART_INSIDE.search(state.rest)
    if half is not None and state.rest[: half.start()].strip():
        state.editions.add(words.BARE_PARTS[half["part"]])
        state.rest = f"{state.rest[: half.start()]} {state.rest[half.end() :]}".strip()
    if state.number is not None and state.number_kind != "year":
        return
    for kind, pattern in words.NUMBER_INSIDE:
        match = pattern.search(state.rest)
        if match is None:
            continue
        head, tail = state.rest[: match.start()].strip(), state.rest[match.end() :].strip()
        value = numeral(match["n"])
        if value is None or not normalise(head) or (len(normalise(head)) < 2 and head.isascii()) or not tail:
            continue
        if state.number is not None:
            # 歌手2024 第二季 花絮: what looked like a year brand stays in the name.
            tail = f"{tail} {state.number}"
        state.rest = f"{head} {tail}"
        state.number, state.number_kind = value, kind  # type: ignore[assignment]
        return


@lru_cache(maxsize=65536)
def readings(text: str) -> tuple[ParsedTitle, ...]:
    """Return the ways to read a title, the likeliest first; at least one.

    The others are: Taiwan's words as the mainland's (計程車 is 出租车); the second name of ``《甲/乙》``; trailing
    digits as the year the site added (碟仙2019, with ``number_kind="year"`` and no number: valid only where the
    subject is of that year); a bare Chinese numeral at the end (无间道二).
    """
    narrowed = narrow(text)
    simple, taiwan = simplify(narrowed), simplify_taiwan(narrowed)
    found = []
    for writing in dict.fromkeys((simple, taiwan)):
        name, tail, year, others = _unwrap(writing)
        found += [_parse(each, tail, year, text) for each in (name, *others)]
    for parsed in tuple(found):
        if parsed.number_kind == "year" and parsed.number is not None:
            found.append(replace(parsed, number=None, year=parsed.number))
        match = words.BARE_CHINESE.search(parsed.base) if parsed.number is None else None
        if match is not None:
            value = numeral(match["n"])
            found.append(
                replace(parsed, base=parsed.base[: match.start()], name="", number=value, number_kind="sequel")
            )
    return tuple(dict.fromkeys(found))


def _parse(name: str, tail: str, year: int | None, raw: str) -> ParsedTitle:
    state = _Strip(name.strip(), year=year)
    if tail.strip(_SEPARATORS):
        outside = _Strip(tail, may_vanish=True).run()
        if outside.rest.isdecimal() and len(outside.rest) <= 2:
            state.rest += outside.rest
        elif outside.rest:
            # Words after 》 that nobody knows may well tell this work from another.
            state.rest += f" {outside.rest}"
        state.editions |= outside.editions
        state.year = state.year or outside.year
        state.number, state.number_kind = outside.number, outside.number_kind
        state.display_tail += outside.display_tail
    state.run()
    if state.number is not None:
        # 第一季 全集: all episodes of that season, not all seasons.
        state.editions.discard("collection")
    display_head = state.rest
    _inside(state)
    article = _ARTICLE_LAST.match(state.rest)
    if article is not None and script(state.rest) == "latin":
        state.rest = f"{article['a'] or article['b']} {article['name']}"
        display_head = state.rest
    return ParsedTitle(
        base=normalise(state.rest) or normalise(raw),
        number=state.number,
        number_kind=state.number_kind,
        editions=frozenset(state.editions),
        year=state.year,
        raw=raw,
        display="".join([display_head, *state.display_tail]).strip(),
        marks="".join(_MARKS.findall(state.rest)),
        name=state.rest,
    )


def parse_title(text: str) -> ParsedTitle:
    """Return the likeliest reading of a title."""
    return readings(text)[0]


@lru_cache(maxsize=65536)
def alias_readings(text: str) -> tuple[ParsedTitle, ...]:
    """Like :func:`readings`, for an alias: its ``(港/台)`` tail says where it is used and is dropped."""
    return readings(words.ALIAS_TAIL.sub("", narrow(text)) or text)


def clean_title(text: str) -> str:
    """Return a title for people and search engines: site junk gone, season and edition words kept."""
    return parse_title(text).display


def cache_key(title: str) -> str:
    """Return the part of a search cache's key that stands for the title: equal for titles searched alike."""
    parsed = parse_title(title)
    return "|".join([parsed.form, *sorted(parsed.distinct_editions), *([str(parsed.year)] if parsed.year else [])])
