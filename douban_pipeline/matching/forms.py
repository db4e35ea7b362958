"""The names of one work, parsed once: every reading of title, original title and aliases, ready for comparison."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.numerals import with_digits
from douban_pipeline.matching.text import normalise, script
from douban_pipeline.matching.titles import ParsedTitle, alias_readings, lone_mark, readings

_ARTICLE = re.compile(r"(?:the|a|an|le|la|les|l'|el|los|las|il|lo|gli|der|die|das|un|une)\s+(?=\w)", re.IGNORECASE)

_PARTICLE_MAY_GO = 6
"""Letters from which a name without its 之 or 的 counts as the same."""

_AND_IS_AND = 5
"""Letters from which 和 and 与 within a name count as equal."""

OWN_SCRIPTS = frozenset({"kana", "hangul", "other"})
"""Scripts in which a work has one name: not Latin, where pinyin, English and the original may differ."""


ASIDE = frozenset({"ova", "special", "recap", "pilot", "trailer", "upper", "middle", "lower"})
"""Editions that exist beside a main work of the same name, so that the original title alone suffices to state them."""


class Form(NamedTuple):
    """One name of a work, ready for comparison.

    Attributes:
        text: Base and number as one string, normalised.
        parsed: The reading it belongs to.
        is_alias: Whether it is an alias, not a title.
        soft_year: The year that the reading removed from the name; valid only for a work of about that year.
        equal_only: Whether it is an alternative spelling, which is compared only for equality, not for similarity.
    """

    text: str
    parsed: ParsedTitle
    is_alias: bool
    soft_year: int | None = None
    equal_only: bool = False


@dataclass(eq=False)
class TitleForms:
    """All names of one work. What only names in common lead to is computed on access: most works have none.

    Attributes:
        title: The likeliest reading of its title.
        forms: Every reading of every name, titles before aliases.
        by_text: The forms by text; of equal texts the first.
        measured: The forms that are compared for similarity, by text.
        texts: The texts of ``measured``.
        by_original: The readings of the original title, none if it is the title.
        by_alias: The readings of each alias.
    """

    title: ParsedTitle
    forms: tuple[Form, ...]
    by_text: dict[str, Form]
    measured: tuple[Form, ...]
    texts: tuple[str, ...]
    by_original: tuple[ParsedTitle, ...]
    by_alias: tuple[tuple[ParsedTitle, ...], ...]

    @cached_property
    def bases(self) -> frozenset[str]:
        """Names without their numbers."""
        return frozenset([each.base for each in self._parsed])

    @cached_property
    def claimed(self) -> frozenset[int]:
        """Numbers of the work: its title's, else those its other names give to the same name."""
        return _claimed(self.title, self.by_original, self.by_alias)

    @cached_property
    def editions(self) -> frozenset[str]:
        """Distinct editions that any name states."""
        return frozenset().union(*[each.distinct_editions for each in self._parsed if each.editions])

    @cached_property
    def own(self) -> dict[str, tuple[str, ...]]:
        """Names in a script of its own, by script."""
        return _own(self._parsed)

    @cached_property
    def aside(self) -> frozenset[str]:
        """Editions beside a main work (specials, halves) that only the original title states."""
        return self.by_original[0].distinct_editions & ASIDE if self.by_original else frozenset()

    @cached_property
    def _parsed(self) -> Collection[ParsedTitle]:
        return {id(form.parsed): form.parsed for form in self.forms}.values()


def names_of(work: Video | Subject) -> TitleForms:
    """Return the names of a video or a subject."""
    if isinstance(work, Subject):
        return _names(work.title, work.original_title, work.aliases, ())
    return _names_of_video(work.title, work.aliases)


@lru_cache(maxsize=64)
def _names_of_video(title: str, aliases: tuple[str, ...]) -> TitleForms:
    """Return a video's names; the latest are cached, since all its candidates are compared with them."""
    marks = tuple(alias for alias in aliases if lone_mark(alias) is not None)
    return _names(title, "", tuple(alias for alias in aliases if alias not in marks), marks)


@lru_cache(maxsize=32768)
def _names(title: str, original: str, aliases: tuple[str, ...], marks: tuple[str, ...]) -> TitleForms:
    by_title = _with_marks(readings(title), marks) if marks else readings(title)
    found: list[Form] = []
    for reading in by_title:
        _expand(reading, found, is_alias=False)
    by_original: tuple[ParsedTitle, ...] = ()
    if original and normalise(original) != normalise(title):
        by_original = readings(original)
        writing, of_title = script(original), script(title)
        # 赛德克·巴莱(下)：彩虹桥 has the original 賽德克·巴萊: in the same script, the shorter name is no title.
        for reading in by_original:
            _expand(reading, found, is_alias=writing == of_title == "han")
        if writing == "latin" and of_title != "latin":
            found.append(_joined(by_title[0], by_original[0]))
    by_alias = tuple([alias_readings(alias) for alias in aliases])
    for each in by_alias:
        for reading in each:
            _expand(reading, found, is_alias=True)
    forms: list[Form] = []
    by_text: dict[str, Form] = {}
    measured: dict[str, Form] = {}
    rare = set()
    for form in found:
        text, _, _, soft_year, equal_only = form
        if soft_year is None and not equal_only:
            if text in measured:
                continue
            measured[text] = form
        elif (kind := (text, soft_year is not None, equal_only)) in rare:
            continue
        else:
            rare.add(kind)
        forms.append(form)
        if soft_year is None:
            by_text.setdefault(text, form)
    return TitleForms(
        by_title[0], tuple(forms), by_text, tuple(measured.values()), tuple(measured), by_original, by_alias
    )


def _with_marks(found: tuple[ParsedTitle, ...], marks: Iterable[str]) -> tuple[ParsedTitle, ...]:
    """Return the readings of a title, completed by the seasons or parts that are separate aliases."""
    for mark in filter(None, map(lone_mark, marks)):
        if mark.number_kind == "part":
            # The alias Part 2 states which half of the season it is; the first half has the season's own name.
            halves = frozenset({f"part-{mark.number}"} if mark.number != 1 else ())
            found = tuple(each._replace(editions=each.editions | halves) for each in found)
        else:
            found = tuple(
                each if each.number is not None else each._replace(number=mark.number, number_kind=mark.number_kind)
                for each in found
            )
    return found


def _expand(reading: ParsedTitle, found: list[Form], *, is_alias: bool) -> None:
    """Add the forms of a reading to those that are ``found``."""
    base, number, kind = reading.base, reading.number, reading.number_kind
    if not base:
        return
    soft = reading.year if kind == "year" and number is None else None
    form = base if number is None else reading.form
    found.append(Form(form, reading, is_alias, soft))
    if reading.subtitled or (number == 1 and kind in ("season", "part")):
        # The first of several often has no number on the other side, nor does one with a subtitle. Numbers are
        # compared separately.
        found.append(Form(base, reading, is_alias, soft))
    name = reading.name
    if len(base) >= _PARTICLE_MAY_GO and "之" in base[1:-1]:
        # 福五鼠之三十六计 is 福五鼠三十六计; after a number the particle is already removed.
        found.append(Form(form.replace("之", ""), reading, is_alias, soft))
    if "的" in base or "和" in base:
        for written in _otherwise(base):
            found.append(Form(reading._replace(base=written).form, reading, is_alias, soft, equal_only=True))
    if (counted := with_digits(name)) != name:
        # 表错七日情 is 表错7日情, Twelve Years a Slave is 12 Years a Slave.
        digits = normalise(counted)
        found.append(Form(digits if number is None else f"{digits}#{number}", reading, is_alias, soft))
    if name.isascii() and (article := _ARTICLE.match(name)):
        bare = normalise(name[article.end() :])
        found.append(Form(bare if number is None else f"{bare}#{number}", reading, is_alias, soft))


def _otherwise(base: str) -> Iterator[str]:
    """Yield alternative spellings of a name: without its 的, and with 与 for 和.

    西伯利亚理发师 is 西伯利亚的理发师. In a short name the particle matters: 消失爱人 is not 消失的爱人.
    """
    inside = base[1:-1]
    if "的" in inside and len(base) >= _PARTICLE_MAY_GO:
        yield base[0] + inside.replace("的", "") + base[-1]
    if "和" in inside and len(base) >= _AND_IS_AND:
        yield base[0] + inside.replace("和", "与") + base[-1]


def _joined(title: ParsedTitle, original: ParsedTitle) -> Form:
    """Return both names joined, as sites write them: 寻梦环游记 Coco."""
    number = title.number if title.number is not None else original.number
    both = ParsedTitle(
        base=title.base + original.base,
        number=number,
        number_kind=title.number_kind or original.number_kind,
        editions=title.editions | original.editions,
        raw=f"{title.raw} {original.raw}",
        name=f"{title.name} {original.name}",
    )
    return Form(both.form, both, is_alias=False)


def _claimed(
    title: ParsedTitle, original: tuple[ParsedTitle, ...], aliases: Iterable[tuple[ParsedTitle, ...]]
) -> frozenset[int]:
    if title.number is not None:
        return frozenset({title.number})
    claimed = set()
    # 第2期 in the original means season 2; a sequel with a digit there has a subtitle in the Chinese title.
    if original and (original[0].number_kind == "season" or original[0].base == title.base):
        claimed.add(original[0].number)
    # 傲慢与偏见2005 is an alias that distinguishes remakes, not a season.
    claimed |= {each[0].number for each in aliases if each[0].number_kind != "year" and each[0].base == title.base}
    return frozenset(number for number in claimed if number is not None)


def _own(parsed: Iterable[ParsedTitle]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for each in parsed:
        writing = script(each.raw)
        if writing in OWN_SCRIPTS and any(map(str.isalpha, each.base)):
            found.setdefault(writing, {})[each.base] = None
    return {writing: tuple(names) for writing, names in found.items()}
