"""How alike the names of a video and a subject are, over all their forms."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz

from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.text import normalise, script
from douban_pipeline.matching.titles import ParsedTitle, alias_readings, parse_title, readings

NEAR_EXACT = 0.95
"""From here on two names are taken for one."""

_BELOW_NEAR_EXACT = 0.94
_DIGITS = re.compile(r"\d+")


class Numbers(enum.StrEnum):
    """What the season, part or sequel numbers of two works say."""

    AGREE = "agree"
    NEITHER = "neither"
    ONE_SIDED = "one-sided"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Form:
    """One name of a work, ready to be measured."""

    text: str
    parsed: ParsedTitle
    is_alias: bool


@dataclass(frozen=True, slots=True)
class TitleMatch:
    """The best pair of names and what goes with it.

    Attributes:
        similarity: 0 to 1; only equal or nearly equal names reach :data:`NEAR_EXACT`.
        local: The video's name of the best pair, as it came.
        subject: The subject's name of the best pair, as it came.
        via_alias: Whether one of the two is an alias, not a title.
        numbers: What the numbers say.
        local_number: The video's number, if any.
        subject_number: The subject's number, if any.
        editions_local: Distinct editions only the video names.
        editions_subject: Distinct editions only the subject names.
        local_years: Years the video's title states.
        same_base: Whether the names are equal apart from their numbers.
        marks_differ: Whether the names differ in ``!`` and ``?`` only.
    """

    similarity: float
    local: str
    subject: str
    via_alias: bool
    numbers: Numbers
    local_number: int | None
    subject_number: int | None
    editions_local: frozenset[str]
    editions_subject: frozenset[str]
    local_years: tuple[int, ...]
    same_base: bool
    marks_differ: bool

    @property
    def near_exact(self) -> bool:
        """Whether the names may be taken for one."""
        return self.similarity >= NEAR_EXACT

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of the match."""
        return {
            "similarity": round(self.similarity, 4),
            "local": self.local,
            "subject": self.subject,
            "via_alias": self.via_alias,
            "numbers": str(self.numbers),
            "local_number": self.local_number,
            "subject_number": self.subject_number,
            "editions_local": sorted(self.editions_local),
            "editions_subject": sorted(self.editions_subject),
        }


@lru_cache(maxsize=65536)
def _bigrams(text: str) -> frozenset[str]:
    return frozenset(text[i : i + 2] for i in range(len(text) - 1)) or frozenset({text})


@lru_cache(maxsize=131072)
def similarity(a: str, b: str) -> float:
    """Return how alike two normalised forms are, 0 to 1.

    A mix of edit ratio, Jaccard of character pairs and containment, never below the plain ratio. Equal digits are
    part of being equal: forms with different digits, or of which one merely contains the other, stay below
    :data:`NEAR_EXACT`.
    """
    if a == b:
        return 1.0
    ratio = fuzz.ratio(a, b) / 100
    pairs_a, pairs_b = _bigrams(a), _bigrams(b)
    shared = len(pairs_a & pairs_b)
    jaccard = shared / (len(pairs_a) + len(pairs_b) - shared)
    contained = 1.0 if min(len(a), len(b)) >= 2 and (a in b or b in a) else 0.0
    mixed = max(ratio, 0.6 * ratio + 0.25 * jaccard + 0.15 * contained)
    if contained or _DIGITS.findall(a) != _DIGITS.findall(b):
        return min(mixed, _BELOW_NEAR_EXACT)
    return mixed


def _expand(parsed: Iterable[ParsedTitle], is_alias: bool) -> Iterator[Form]:
    return (Form(reading.form, reading, is_alias) for reading in parsed if reading.base)


@lru_cache(maxsize=65536)
def _forms_of(title: str, original: str, aliases: tuple[str, ...]) -> tuple[Form, ...]:
    found = list(_expand(readings(title), False))
    if original and normalise(original) != normalise(title):
        # 赛德克·巴莱(下)：彩虹桥 has 賽德克·巴萊 for its original: of one script, the shorter name is no title.
        found += _expand(readings(original), script(original) == script(title) == "han")
        if script(original) == "latin" and script(title) != "latin":
            # Sites write both names in one: 寻梦环游记 Coco.
            found += _expand(readings(f"{title} {original}"), False)
    for alias in aliases:
        found += _expand(alias_readings(alias), True)
    unique: dict[tuple[str, str | None], Form] = {}
    for form in found:
        unique.setdefault((form.text, form.parsed.number_kind), form)
    return tuple(unique.values())


def _claimed(title: str, original: str, aliases: tuple[str, ...]) -> frozenset[int]:
    """Numbers a work carries: its title's, else those its other names give to the same name."""
    parsed = parse_title(title)
    if parsed.number is not None:
        return frozenset({parsed.number})
    claimed = set()
    if original:
        other = parse_title(original)
        # 第2期 of the original says season 2; a sequel's digit there has its subtitle in the Chinese title.
        if other.number is not None and (other.number_kind == "season" or other.base == parsed.base):
            claimed.add(other.number)
    for alias in aliases:
        other = alias_readings(alias)[0]
        # 傲慢与偏见2005 is an alias that tells remakes apart, not a season.
        if other.number is not None and other.number_kind != "year" and other.base == parsed.base:
            claimed.add(other.number)
    return frozenset(claimed)


_claimed_cached = lru_cache(maxsize=65536)(_claimed)


def _numbers(video: Video, subject: Subject, mine: Form, theirs: Form, near: bool) -> Numbers:
    own, other = parse_title(video.title), parse_title(subject.title)
    left = _claimed_cached(video.title, "", video.aliases)
    right = _claimed_cached(subject.title, subject.original_title, subject.aliases)
    if mine.parsed.number_kind == "year" and mine.parsed.number is None and near:
        # The digits were the year of the subject, which is why this reading was let in.
        left = frozenset()
    if near and mine.parsed.number is not None and mine.parsed.number == theirs.parsed.number:
        clash = own.number is not None and other.number is not None and own.number != other.number
        return Numbers.CONFLICT if clash else Numbers.AGREE
    if not left and not right:
        return Numbers.NEITHER
    if not left or not right:
        return Numbers.ONE_SIDED
    if left & right:
        return Numbers.AGREE
    kinds = {own.number_kind, other.number_kind}
    # 歌手 第八季 and 歌手2020 may be one show counted in two ways.
    return Numbers.ONE_SIDED if "year" in kinds and len(kinds) == 2 else Numbers.CONFLICT


_KIND_EDITION = {
    Kind.FILM: frozenset({"movie"}),
    Kind.SERIES: frozenset({"tv"}),
    Kind.ANIMATION: frozenset({"animation"}),
}


def _editions(video: Video, subject: Subject, mine: Form, theirs: Form) -> tuple[frozenset[str], frozenset[str]]:
    left = parse_title(video.title).distinct_editions | mine.parsed.distinct_editions
    right = parse_title(subject.title).distinct_editions | theirs.parsed.distinct_editions
    # 剧场版 says no more than "film" does.
    left_known = left | _KIND_EDITION.get(video.kind, frozenset()) if video.kind else left
    right_known = right | _KIND_EDITION.get(subject.kind, frozenset()) if subject.kind else right
    return left - right_known, right - left_known


def match_titles(video: Video, subject: Subject) -> TitleMatch:
    """Find the pair of names that are most alike, titles before aliases."""
    left = _forms_of(video.title, "", video.aliases)
    right = _forms_of(subject.title, subject.original_title, subject.aliases)
    years = (subject.year,) if subject.year is not None else subject.release_years
    best: tuple[float, int, Form, Form] | None = None
    for mine in left:
        soft_year = mine.parsed.year if mine.parsed.number_kind == "year" and mine.parsed.number is None else None
        if soft_year is not None and not any(abs(soft_year - year) <= 1 for year in years):
            continue
        for theirs in right:
            if theirs.parsed.number_kind == "year" and theirs.parsed.number is None:
                continue
            value = similarity(mine.text, theirs.text)
            rank = -(mine.is_alias + theirs.is_alias)
            if best is None or (value, rank) > best[:2]:
                best = (value, rank, mine, theirs)
                if value == 1.0 and rank == 0:
                    break
        if best is not None and best[0] == 1.0 and best[1] == 0:
            break
    if best is None:
        own = parse_title(video.title)
        return TitleMatch(
            0.0,
            video.title,
            subject.title,
            False,
            Numbers.NEITHER,
            own.number,
            None,
            frozenset(),
            frozenset(),
            (),
            False,
            False,
        )
    value, rank, mine, theirs = best
    near = value >= NEAR_EXACT
    own, other = parse_title(video.title), parse_title(subject.title)
    editions_local, editions_subject = _editions(video, subject, mine, theirs)
    stated = own.year if own.year is not None else mine.parsed.year
    bases = {form.parsed.base for form in right}
    return TitleMatch(
        similarity=value,
        local=mine.parsed.raw,
        subject=theirs.parsed.raw,
        via_alias=rank < 0,
        numbers=_numbers(video, subject, mine, theirs, near),
        local_number=mine.parsed.number if mine.parsed.number is not None else own.number,
        subject_number=theirs.parsed.number if theirs.parsed.number is not None else other.number,
        editions_local=editions_local,
        editions_subject=editions_subject,
        local_years=() if stated is None else (stated,),
        same_base=any(form.parsed.base in bases for form in left),
        marks_differ=near and mine.parsed.marks != theirs.parsed.marks,
    )
