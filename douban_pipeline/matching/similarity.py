"""Compares the names of a video and a subject, over all their forms."""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from operator import add
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from douban_pipeline.matching import kinds
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.forms import Form, TitleForms, names_of
from douban_pipeline.matching.subtitles import has_subtitle, is_misspelt, is_original, is_subtitled, is_tail
from douban_pipeline.matching.text import normalise, ratios

NEAR_EXACT = 0.95
"""Similarity from which two names count as the same."""

ALMOST = 0.65
"""Similarity from which two names may be spellings of one."""

FILM_MINUTES = 30
"""Minutes from which a work of one part may be called a film: 剧场版 are often short."""

TAIL = 0.8
"""Least similarity of a name that is the tail of another."""

_BELOW_NEAR_EXACT = 0.94
_HOPELESS = 0.4
_ALMOST_ALL = 0.85
_DIGITS = re.compile(r"\d+")


class NumberMatch(enum.StrEnum):
    """Result of comparing the season, part or sequel numbers of two works."""

    AGREE = "agree"
    NEITHER = "neither"
    ONE_SIDED = "one-sided"
    CONFLICT = "conflict"


class TitleMatch(NamedTuple):
    """The best pair of names, with its properties.

    Attributes:
        similarity: 0 to 1; only equal or nearly equal names reach :data:`NEAR_EXACT`.
        by_title: The similarity among pairs with at least one title: the plan compares no alias with an alias.
        local: The video's name of the best pair, unchanged.
        subject: The subject's name of the best pair, unchanged.
        via_alias: Whether one of the two is an alias, not a title.
        numbers: Result for the numbers.
        local_number: The video's number, if any.
        subject_number: The subject's number, if any.
        editions_local: Distinct editions only the video names.
        editions_subject: Distinct editions only the subject names.
        local_years: Years the video's title states.
        same_base: Whether the names are equal apart from their numbers.
        marks_differ: Whether the names differ in ``!`` and ``?`` only.
        names: Number of common names, compared with their numbers; spellings of one name count once.
        contained: Whether one of the two names of the best pair is a piece of the other, not all or almost all of it.
        only_alias: Whether the subject has the name of the best pair only as an alias: 又名 are shared by many works.
        same_original: Whether a long name in a script of its own is common to both: unlike translations it is fixed.
        tail: Whether one of the two names of the best pair is all that follows a mark in the other: 龙行天下 of
            黄飞鸿之龙行天下. The tail distinguishes works of a series; the people have to agree, too.
        subtitled: Whether the common name is a long one with a subtitle, in any script.
        same_subtitled: Whether a long name in a script of its own that has a subtitle is common to both, with the
            same editions: stronger evidence than a translated name.
        own_name: Whether the common name has no number and differs from the numbered title's name: a sequel's own name.
        originals_differ: Whether both have a name in a script of its own (kana, hangul …) and no two are similar.
        misspelt: Whether the names of the best pair differ in one mistyped letter.
    """

    similarity: float
    by_title: float
    local: str
    subject: str
    via_alias: bool
    numbers: NumberMatch
    local_number: int | None
    subject_number: int | None
    editions_local: frozenset[str]
    editions_subject: frozenset[str]
    local_years: tuple[int, ...]
    same_base: bool
    marks_differ: bool
    names: int = 0
    contained: bool = False
    only_alias: bool = False
    same_original: bool = False
    originals_differ: bool = False
    own_name: bool = False
    tail: bool = False
    subtitled: bool = False
    same_subtitled: bool = False
    misspelt: bool = False

    @property
    def near_exact(self) -> bool:
        """Whether the names count as the same."""
        return self.similarity >= NEAR_EXACT

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the match."""
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
            "names": self.names,
        }


def similarity(a: str, b: str, at_least: float = 0.0) -> float:
    """Return the similarity of two normalised forms, 0 to 1; 0 for those under 0.4 or ``at_least``.

    A mix of edit ratio, Jaccard of character pairs and containment, never below the plain ratio. Digits must be equal:
    forms with different digits, or of which one merely contains the other, stay below :data:`NEAR_EXACT`.
    """
    ratio = 1.0 if a == b else fuzz.ratio(a, b, score_cutoff=100 * _HOPELESS) / 100
    return _mixed(a, b, ratio, at_least) if ratio else 0.0


def _mixed(a: str, b: str, ratio: float, at_least: float) -> float:
    """Return the similarity of two forms, given their edit ratio, 0 to 1."""
    if ratio == 1.0:
        return 1.0
    if 0.6 * ratio + 0.4 < at_least:
        return 0.0  # It cannot be more than that.
    contained = min(len(a), len(b)) >= 2 and (a in b or b in a)
    pairs_a, pairs_b = _bigrams(a), _bigrams(b)
    shared = len(pairs_a & pairs_b)
    jaccard = shared / (len(pairs_a) + len(pairs_b) - shared)
    mixed = max(ratio, 0.6 * ratio + 0.25 * jaccard + 0.15 * contained)
    if contained or (mixed > _BELOW_NEAR_EXACT and _DIGITS.findall(a) != _DIGITS.findall(b)):
        return min(mixed, _BELOW_NEAR_EXACT)
    return mixed


@lru_cache(maxsize=65536)
def _bigrams(text: str) -> frozenset[str]:
    return frozenset(map(add, text, text[1:])) or frozenset({text})


def _numbers(left: TitleForms, right: TitleForms, mine: Form, theirs: Form, near: bool, tail: bool) -> NumberMatch:
    own, other = left.title, right.title
    if near and mine.parsed.number == theirs.parsed.number:
        clash = own.number is not None and other.number is not None and own.number != other.number
        if mine.parsed.number is not None:
            # Star Wars: Episode V is also 星球大战2: both have the same title with the same number.
            of_titles = mine.text == theirs.text and not (mine.is_alias or theirs.is_alias)
            return NumberMatch.CONFLICT if clash and not of_titles else NumberMatch.AGREE
        if not clash and is_original(mine):
            # フルメタル・パニック? ふもっふ is 全金属狂潮2 in one translation and has no number in another.
            return NumberMatch.NEITHER
    said = {mine.parsed.number, theirs.parsed.number}
    if (near or tail) and None in said and (mine.parsed.subtitled or theirs.parsed.subtitled):
        # 猪猪侠之变身战队 and 猪猪侠8之变身战队: the subtitle decides, even if one name consists of nothing else.
        # But a second season may have the subtitle and the year of the first: 辅佐官2：改变世界的人们. Another name may
        # have its number, too: 国家宝藏：夺宝秘笈 is also 国家宝藏2.
        of_part = "part" in (mine.parsed.number_kind, theirs.parsed.number_kind)
        if (
            2 not in said
            or of_part
            or all(any(form.parsed.number == 2 for form in each.forms) for each in (left, right))
        ):
            return NumberMatch.NEITHER
    # The digits may have been the year of the subject, which is why that reading was admitted.
    claimed = frozenset() if mine.soft_year is not None and near else left.claimed
    if not claimed and not right.claimed:
        return NumberMatch.NEITHER
    if not claimed or not right.claimed:
        return NumberMatch.ONE_SIDED
    if claimed & right.claimed:
        return NumberMatch.AGREE
    counted = {own.number_kind, other.number_kind}
    # 歌手 第八季 and 歌手2020 may be one show numbered in two ways.
    return NumberMatch.ONE_SIDED if "year" in counted and len(counted) == 2 else NumberMatch.CONFLICT


def _known_editions(work: Video | Subject, names: TitleForms) -> frozenset[str]:
    """Return the editions that any name of a work states or its kind implies: 剧场版 means no more than "film"."""
    known = names.editions
    episodes = kinds.serial(work)
    if episodes is not None:
        # 叛逆者 全集 is a series with all its episodes.
        # A work of a quarter of an hour is no 剧场版.
        long = (work.duration_minutes or kinds.FEATURE_MINUTES) >= FILM_MINUTES
        known |= {"tv", "complete"} if episodes else {"movie"} if long else set()
    return known | {"animation"} if kinds.animated(work.kind, kinds.read_genres(work.genres)) else known


def _editions(
    video: Video, subject: Subject, left: TitleForms, right: TitleForms, mine: Form, theirs: Form
) -> tuple[frozenset[str], frozenset[str]]:
    """Return for each side the editions that its names state and neither name nor kind of the other side confirms."""
    if not left.editions and not right.editions:
        return left.editions, right.editions
    own = left.title.distinct_editions | mine.parsed.distinct_editions
    # 戏剧性谋杀 is a series and an OVA; only the original title of the OVA says so.
    other = right.title.distinct_editions | theirs.parsed.distinct_editions | right.aside
    return own - _known_editions(subject, right), other - _known_editions(video, left)


def _common_names(left: TitleForms, right: TitleForms) -> int:
    """Return the number of common names: title and original title together are stronger evidence than either alone."""
    common = left.by_text.keys() & right.by_text.keys()
    if len(common) < 2:
        return len(common)
    mine = {normalise(left.by_text[text].parsed.raw) for text in common}
    theirs = {normalise(right.by_text[text].parsed.raw) for text in common}
    return min(len(mine), len(theirs))


def _is_own_name(names: TitleForms, form: Form) -> bool:
    """Return whether a name without a number differs from the title without its number; never for a season."""
    if form.parsed.number is not None or names.title.number_kind == "season":
        return False
    return names.title.number is None or form.parsed.base != names.title.base


_UNLIKE = 60.0


def _originals_differ(left: TitleForms, right: TitleForms) -> bool:
    pairs = [
        (a, b) for writing in left.own.keys() & right.own.keys() for a in left.own[writing] for b in right.own[writing]
    ]
    return bool(pairs) and not any(a in b or b in a or fuzz.ratio(a, b) >= _UNLIKE for a, b in pairs)


def _measurable(form: Form, names: TitleForms) -> list[tuple[Form, float]]:
    """Return the names of the other side that are not hopelessly different, in order, with their edit ratio."""
    found = ratios(form.text, names.texts, 100 * _HOPELESS)
    return [(names.measured[place], ratio / 100) for place, ratio in found] if found else []


def _most_alike(left: TitleForms, right: TitleForms, years: tuple[int, ...]) -> tuple[float, Form, Form]:
    """Return the most similar pair of names; of equals the one with fewer aliases, then the first.

    Among equal names with one alias, the pair with the subject's own title is preferred.
    """

    def admitted(form: Form) -> bool:
        return form.soft_year is None or any(abs(form.soft_year - year) <= 1 for year in years)

    by_text = right.by_text
    equal = [
        (mine.is_alias + by_text[mine.text].is_alias, by_text[mine.text].is_alias, place, mine)
        for place, mine in enumerate(left.forms)
        if mine.text in by_text and admitted(mine)
    ]
    if equal:
        *_, mine = min(equal)
        return 1.0, mine, by_text[mine.text]
    if not left.forms or not right.forms:
        nothing = Form("", left.title, is_alias=False), Form("", right.title, is_alias=False)
        return 0.0, *nothing
    best = (0.0, 0, left.forms[0], right.forms[0])
    for mine in left.forms:
        if mine.equal_only or not admitted(mine):
            continue
        for theirs, ratio in _measurable(mine, right):
            value = _mixed(mine.text, theirs.text, ratio, best[0])
            rank = -(mine.is_alias + theirs.is_alias)
            if (value, rank) > best[:2]:
                best = (value, rank, mine, theirs)
    return best[0], best[2], best[3]


def _is_piece(short: str, long: str) -> bool:
    return len(short) < _ALMOST_ALL * len(long) and short in long


def _said(form: Form, names: TitleForms, numbers: NumberMatch) -> int | None:
    """Return the number of a work: that of the matched name, of its title, else the one its names claim.

    Where numbers conflict although a name is common, the titles' numbers are the conflicting ones.
    """
    own = names.title.number
    if form.parsed.number is not None and (own is None or numbers is not NumberMatch.CONFLICT):
        return form.parsed.number
    return own if own is not None else min(names.claimed, default=None)


def _with_a_title(left: TitleForms, right: TitleForms) -> float:
    """Return the similarity of the names over pairs with at most one alias."""
    return max(
        (
            _mixed(mine.text, theirs.text, ratio, 0.0)
            for mine in left.forms
            for theirs, ratio in _measurable(mine, right)
            if not ((mine.is_alias and theirs.is_alias) or mine.equal_only)
        ),
        default=0.0,
    )


_NO_EDITIONS: frozenset[str] = frozenset()


def _unlike(local: str, subject: str, local_years: tuple[int, ...]) -> TitleMatch:
    """Return the result for names with too little in common for a further comparison."""
    return TitleMatch(
        similarity=0.0,
        by_title=0.0,
        local=local,
        subject=subject,
        via_alias=False,
        numbers=NumberMatch.NEITHER,
        local_number=None,
        subject_number=None,
        editions_local=_NO_EDITIONS,
        editions_subject=_NO_EDITIONS,
        local_years=local_years,
        same_base=False,
        marks_differ=False,
    )


def match_titles(video: Video, subject: Subject) -> TitleMatch:
    """Return the most similar pair of names, titles before aliases."""
    left, right = names_of(video), names_of(subject)
    years = (subject.year,) if subject.year is not None else subject.release_years
    value, mine, theirs = _most_alike(left, right, years)
    own = left.title
    stated = own.year if own.year is not None else mine.parsed.year
    years_said = () if stated is None else (stated,)
    if not value:
        return _unlike(mine.parsed.raw, theirs.parsed.raw, years_said)
    near = value >= NEAR_EXACT
    tail = not near and is_tail(mine, theirs)
    if tail:
        value = max(value, TAIL)
    numbers = _numbers(left, right, mine, theirs, near, tail)
    editions_local, editions_subject = _editions(video, subject, left, right, mine, theirs)
    ours, others = mine.parsed.base, theirs.parsed.base
    common = left.by_text.keys() & right.by_text.keys() if near else frozenset()
    return TitleMatch(
        similarity=value,
        by_title=_with_a_title(left, right) if mine.is_alias and theirs.is_alias else value,
        local=mine.parsed.raw,
        subject=theirs.parsed.raw,
        via_alias=mine.is_alias or theirs.is_alias,
        numbers=numbers,
        local_number=_said(mine, left, numbers),
        subject_number=_said(theirs, right, numbers),
        editions_local=editions_local,
        editions_subject=editions_subject,
        local_years=years_said,
        same_base=not left.bases.isdisjoint(right.bases),
        marks_differ=near and mine.parsed.marks != theirs.parsed.marks,
        names=_common_names(left, right),
        contained=_is_piece(*sorted((ours, others), key=len)),
        only_alias=theirs.is_alias,
        same_original=near and any(is_original(left.by_text[text]) for text in common),
        subtitled=near and is_subtitled(theirs),
        same_subtitled=near
        and any(
            has_subtitle(left.by_text[text])
            and left.by_text[text].parsed.distinct_editions == right.by_text[text].parsed.distinct_editions
            for text in common
        ),
        tail=tail,
        originals_differ=near and _originals_differ(left, right),
        misspelt=ALMOST <= value < 1.0 and is_misspelt(mine.parsed, theirs.parsed),
        own_name=value == 1.0 and _is_own_name(left, mine) and _is_own_name(right, theirs),
    )
