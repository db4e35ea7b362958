"""Parses titles into name, number, editions and year.

A site writes ``2019年惊悚《寄生虫2》BD中字``, Douban ``寄生虫2``. Removing junk finds matches; keeping numbers and
editions prevents wrong ones. Junk is therefore removed only from the ends and only by tables, and every number removed
from the name is kept as a number. A missing number is *unknown*, never 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from douban_pipeline.matching import title_numbers as numbers
from douban_pipeline.matching import title_words as words
from douban_pipeline.matching.numerals import numeral
from douban_pipeline.matching.text import HAN, is_settled, narrow, normalise, script, simplify, simplify_taiwan
from douban_pipeline.matching.title_editions import DISTINCT_EDITIONS
from douban_pipeline.matching.title_numbers import NumberKind
from douban_pipeline.matching.title_strip import SEPARATORS, Strip, says_nothing

__all__ = [
    "NumberKind",
    "ParsedTitle",
    "alias_readings",
    "cache_key",
    "clean_title",
    "lone_mark",
    "parse_title",
    "readings",
]

_ARTICLE = r"the|an?|le|la|les|l'|el|los|las|il|lo|gli|i|der|die|das|un|une"
_ONE_ARTICLE = re.compile(_ARTICLE, re.IGNORECASE)
_BOOK_TITLE = re.compile(r"^(?P<before>[^《》]*)《(?P<inside>[^《》]+)》(?P<after>[^《》]*)$")
_ARTICLE_LAST = words.Words(
    rf"^(?P<name>[^\u3000-\U0003ffff]+?)(?:,\s*(?P<a>{_ARTICLE})"
    r"|\s+(?P<b>the|les|la|le|el|il|gli|der|die|das))$",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[!?@☆★♪♥♡♀♂]+")
_SLASH_OF_TWO_NAMES = re.compile(rf"(?<=[{HAN}\d])\s*/\s*(?=[{HAN}])")
_TWO_SCRIPTS = re.compile(r"(?<=\S) / (?=\S)")
_YEAR = r"(?:19|20)\d{2}"
_EPISODE = words.Words(
    rf"^(?:(?P<aired>{_YEAR})年\d{{1,2}}月新番\s+)?(?:[\[【](?P<group>[^\]】]+)[\]】]\s*)?"
    rf"(?P<name>[^\[\]【】]+?)(?P<gap>[\s._-]+(?P<before>{_YEAR}))?[\s._-]*"
    r"(?:(?<![a-z0-9])(?P<season>s\d{1,2})\s?e(?P<a>\d{1,4})"
    r"|(?<=\s)第\s*(?P<b>0*[1-9]\d{0,3}(?=\s*话)|0*[1-9]\d{1,3}|0+[1-9])\s*[话集](?=\s*[\[【(*])"
    r"|(?(group)(?<=\s)(?:(?:episode|ep)\s*|-\s)(?P<c>\d{2,4})(?:v\d)?|(?!)))"
    rf"(?![a-z0-9])(?:[\s._]+(?P<after>{_YEAR})(?!\d|年))?(?P<tail>.*)$",
    re.IGNORECASE,
)
"""A file or broadcast of one episode; what follows the mark is the episode's own title, or says how it was recorded."""
_MAYBE_EPISODE = re.compile(
    r"s\d{1,2}\s?e\d|第\s*\d+\s*[话集]\s*[\[【(*]|^[\[【].*(?:ep|episode|-)\s*\d", re.IGNORECASE
)
_LETTERS = re.compile(r"[A-Za-z]")
_TWO_LANGUAGES = words.Words(
    rf"^(?P<han>[^A-Za-z\u3040-\u30ff\uac00-\ud7af]*[{HAN}][^A-Za-z\u3040-\u30ff\uac00-\ud7af]*?)[\s.]+"
    rf"(?P<other>[^\W\d{HAN}][^{HAN}]+|[{HAN}]*[\u3040-\u30ff\uac00-\ud7af].*)$"
)
_HAN_LAST = words.Words(rf"^[^{HAN}]*[A-Za-z][^{HAN}]*\.(?P<han>[{HAN}]+[^A-Za-z]*)$")
_INDEX_LETTER = re.compile(rf"^[A-Z][\s.]+(?=[{HAN}])")
_WRAPPED = re.compile(r"[\[【「『](?P<name>[^\[\]【】「」『』]+)[\]】」』]")
_CENTURIES = ("1", "2")
_SUBTITLE = 2
"""Letters from which the text after a number counts as a subtitle."""

_MAYBE_MARK = re.compile(r"第|part|pt\b|vol|cour|season|series|s\d", re.IGNORECASE)
"""Beginning of a mark that states a season or part."""
_LONGEST_MARK = 100
"""Letters of a text that states a season or part alone; the time to read one grows with their square."""

_FIRST_BRACKET = re.compile(r"^[\[【][^\]】]*[\]】]\s*(?=\S)")


class ParsedTitle(NamedTuple):
    """One reading of one title.

    Attributes:
        base: The name without number, editions and junk, normalised.
        number: Season, part, sequel or year brand; None is unknown.
        number_kind: What ``number`` counts. ``"year"`` without a number: a year was removed from an end of the name.
        editions: Codes of :data:`~douban_pipeline.matching.title_editions.EDITIONS`, and ``part-2`` of a season.
        year: A year the title states as such.
        raw: The unchanged input.
        display: The text for people and search engines, in simplified characters, without junk, with season words.
        marks: Punctuation that may distinguish seasons (``？？``), in order.
        name: Like ``display``, but without number and editions; empty where the reading has no such text.
        episodes: First and last episode the title states: 更新至12集 is the twelfth, 全30集 is 1 to 30.
        complete: Whether it states that those are all.
        subtitled: Whether a subtitle follows the number; it too identifies the work: 猪猪侠8之变身战队.
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
    episodes: tuple[int, int] | None = None
    complete: bool = False
    subtitled: bool = False

    @property
    def form(self) -> str:
        """Base and number as one string for similarity: ``战狼#2``."""
        return self.base if self.number is None else f"{self.base}#{self.number}"

    @property
    def distinct_editions(self) -> frozenset[str]:
        """Editions that have a Douban entry of their own."""
        if not self.editions:
            return self.editions
        return frozenset(code for code in self.editions if code in DISTINCT_EDITIONS or code.startswith("part-"))


def _unwrap(text: str) -> tuple[str, str, int | None, tuple[str, ...]]:
    """Split ``2019年惊悚《名/别名》BD中字`` into name, tail, year, other names."""
    match = _BOOK_TITLE.match(text) if "《" in text else None
    if match is None or not normalise(match["inside"]):
        return text, "", None, ()
    before, after = match["before"].strip(), match["after"]
    names = _SLASH_OF_TWO_NAMES.split(match["inside"])
    after = after.replace(match["inside"], " ")
    if before and not words.SITE_WORDS.pattern.search(before):
        # 走进《红楼梦》 and 红楼梦 are different works.
        return f"{before}《{match['inside']}》", after, None, ()
    year = words.FIRM_YEAR_BEFORE.pattern.search(before)
    return names[0], after, int(year["y"]) if year else None, tuple(names[1:])


def _episode(writing: str, raw: str) -> Iterator[ParsedTitle]:
    """Yield the readings of a title that names one episode, as ``[group] Name 2022 S01E07 2160p``; else none."""
    match = _EPISODE.pattern.match(writing) if _MAYBE_EPISODE.search(writing) else None
    if match is None or not normalise(match["name"]):
        return
    season = f" {match['season']}" if match["season"] else ""
    episode = int(match["a"] or match["b"] or match["c"])
    stated = match["after"] or match["before"] or match["aired"]
    editions = frozenset(Strip(match["tail"], may_vanish=True).run().editions)
    possible = [(match["name"], int(stated) if stated else None)]
    if match["before"]:
        # 歌手 2024 S01E02: the year may be the show's.
        possible.append((f"{match['name']}{match['gap']}", None))
    for name, year in possible:
        parsed = _parse(f"{name}{season}", "", year, raw)
        yield parsed._replace(episodes=(episode, episode) if episode else None, editions=parsed.editions | editions)


def _translations(parsed: ParsedTitle) -> list[ParsedTitle]:
    """Return the readings of the names in ``名字 / Name``: apart and in different scripts, each is the whole name."""
    names = _TWO_SCRIPTS.split(parsed.name)
    if len(names) < 2 or len({script(name) for name in names}) < len(names) or not all(map(_long_enough, names)):
        return []
    return [_piece(name, parsed) for name in names]


def _long_enough(name: str) -> bool:
    return len(normalise(name)) >= (2 if script(name) != "latin" else 4)


def _halves(text: str) -> tuple[str, ...]:
    """Return the names of a title like ``甲/乙/Name``, else nothing: Fate/Zero and 乱马1/2 are one name each."""
    if "/" not in text:
        return ()
    parts = [words.ALIAS_TAIL.pattern.sub("", part.strip()) for part in text.split("/")]
    if script(parts[0]) not in ("han", "kana", "hangul") or _LETTERS.search(parts[0]):
        return ()
    return tuple(parts) if all(map(_long_enough, parts)) else ()


@lru_cache(maxsize=65536)
def readings(text: str) -> tuple[ParsedTitle, ...]:
    """Return the possible readings of a title, the likeliest first; at least one.

    The others are: Taiwan's words replaced by the mainland's (計程車 is 出租车); the second name of ``《甲/乙》`` and
    ``名字 / Name``; digits at an end as a year added by the site (碟仙2019, 2018 邪不压正, with ``number_kind="year"``
    and no number: valid only if the subject has that year); a numeral that may also be part of the name (无间道二,
    天若有情3烽火佳人).
    """
    if is_settled(text) and says_nothing(text):
        return (ParsedTitle(base=text, raw=text, display=text, name=text),)
    narrowed = narrow(text)
    simple = simplify(narrowed)
    # Text that simplification leaves unchanged comes from the mainland and has none of Taiwan's words.
    writings = dict.fromkeys((simple, simplify_taiwan(narrowed) if simple != narrowed else simple))
    found: list[ParsedTitle] = []
    for writing in writings:
        whole = list(_episode(writing, text))
        if not whole:
            name, tail, year, others = _unwrap(writing)
            whole = [_parse(each, tail, year, text) for each in (name, *others)]
        for parsed in whole:
            found += [*_translations(parsed), parsed]
    for parsed in tuple(found):
        found += _more(parsed)
    return tuple(dict.fromkeys(found) if len(found) > 1 else found)


def _piece(name: str, whole: ParsedTitle) -> ParsedTitle:
    """Parse a piece of a title; number, editions and year of the whole title apply to the piece too."""
    parsed = _parse(name, "", None, whole.raw)
    if parsed.number is None and whole.number is not None:
        parsed = parsed._replace(number=whole.number, number_kind=whole.number_kind)
    return parsed._replace(
        editions=parsed.editions | whole.editions, year=parsed.year or whole.year, episodes=whole.episodes
    )


def _more(parsed: ParsedTitle) -> Iterator[ParsedTitle]:
    """Yield the less likely readings."""
    if parsed.number_kind == "year" and parsed.number is not None:
        yield parsed._replace(number=None, year=parsed.number)
    if parsed.number is not None:
        return
    name = parsed.name
    if name[:1] in _CENTURIES and (match := words.SOFT_YEAR_PREFIX.pattern.search(name)) is not None:
        rest = name[match.end() :]
        yield parsed._replace(base=normalise(rest), name=rest, number_kind="year", year=int(match["y"]))
    bare = numbers.BARE_ENDS.get(name[-1:])
    if bare is not None and (match := bare.pattern.search(name)) is not None:
        yield parsed._replace(
            base=normalise(name[: match.start()]),
            name="",
            number=numeral(match["n"]),
            number_kind="sequel",
        )
    if numbers.DIGIT_OF_PART.pattern.search(name) and (match := numbers.BARE_INSIDE.pattern.search(name)) is not None:
        rest = f"{name[: match.start()]} {name[match.end() :]}"
        yield parsed._replace(
            base=normalise(rest),
            name=rest,
            number=int(match["n"]),
            number_kind="sequel",
            subtitled=len(name) - match.end() >= _SUBTITLE,
        )


def _last_word(text: str) -> str:
    """Return what follows the last space or comma; the whole text if it has none."""
    return text[max(text.rfind(" "), text.rfind(",")) + 1 :]


def _read(name: str, tail: str, year: int | None) -> tuple[Strip, str]:
    """Parse a title; return the parser state and the beginning of the display text."""
    state = Strip(name.strip(), year=year)
    if tail.strip(SEPARATORS):
        outside = Strip(tail, may_vanish=True).run()
        if outside.rest.isdecimal() and len(outside.rest) <= 2:
            state.rest += outside.rest
        elif outside.rest:
            # Unknown words after 》 may distinguish this work from another.
            state.rest += f" {outside.rest}"
        state.editions |= outside.editions
        state.year = state.year or outside.year
        state.number, state.number_kind, state.weak = outside.number, outside.number_kind, outside.weak
        state.episodes, state.complete = outside.episodes, outside.complete
        state.display_tail += outside.display_tail
    if (listed := words.INDEX_PREFIX.pattern.match(state.rest)) is not None:
        state.rest = state.rest[listed.end() :]
    state.run()
    if (wrapped := _WRAPPED.fullmatch(state.rest)) is not None:
        state.rest = wrapped["name"]
        state.run()
    if state.number is not None:
        # 第一季 全集: all episodes of that season, not all seasons.
        state.editions -= {"collection", "complete"}
    head = state.rest
    state.inside()
    article = _ARTICLE_LAST.pattern.match(state.rest) if _ONE_ARTICLE.fullmatch(_last_word(state.rest)) else None
    if article is not None and (state.rest.isascii() or script(state.rest) == "latin"):
        state.rest = f"{article['a'] or article['b']} {article['name'].rstrip(SEPARATORS)}"
        # Godfather Part II, The: without the article, the number is at the end.
        head = state.run().rest
    return state, head


def _parse(name: str, tail: str, year: int | None, raw: str) -> ParsedTitle:
    state, head = _read(name, tail, year)
    return ParsedTitle(
        base=normalise(state.rest) or normalise(raw),
        number=state.number,
        number_kind=state.number_kind,
        editions=frozenset(state.editions),
        year=state.year,
        raw=raw,
        display="".join([head, *state.display_tail]).strip() or simplify(narrow(raw)),
        marks="".join(_MARKS.findall(state.rest)) if _MARKS.search(state.rest) else "",
        name=state.rest,
        episodes=state.episodes,
        complete=state.complete,
        subtitled=bool(state.head) and len(normalise(state.rest)) - len(normalise(state.head)) >= _SUBTITLE,
    )


def parse_title(text: str) -> ParsedTitle:
    """Return the likeliest reading of a title."""
    return readings(text)[0]


@lru_cache(maxsize=65536)
def wider_readings(text: str) -> tuple[ParsedTitle, ...]:
    """Return readings that omit words of the title, for searches and for finding related works.

    They omit the subtitle of a season (终极蜘蛛侠 第三季：蛛网勇士), the second language (寻梦环游记 Coco), one half of
    甲/乙, a list's letter or a release group's name in front. They never prove that two names are the same:
    奔跑吧 第四季：黄河篇 is not 奔跑吧 第四季, 工作细胞 BLACK not 工作细胞, 小森林/夏秋篇 not 小森林.
    """
    written = simplify(narrow(text))
    name, tail, year, _ = _unwrap(written)
    state, _ = _read(name, tail, year)
    main = parse_title(text)
    shorter = [state.head] if state.head else []
    if (both := _TWO_LANGUAGES.pattern.match(state.rest)) is not None:
        shorter.append(both["han"].strip(SEPARATORS))
    found = [main._replace(base=normalise(each), name=each, display=each) for each in shorter]
    pieces = [name[match.end() :] for start in (_INDEX_LETTER, _FIRST_BRACKET) if (match := start.match(name))]
    if (book := _BOOK_TITLE.match(written)) is not None and "/" not in book["inside"]:
        pieces.append(book["inside"])
    if (both := _HAN_LAST.pattern.match(state.rest)) is not None:
        pieces.append(both["han"])
    found += [_piece(each, main) for each in (*pieces, *_halves(state.rest))]
    bases = {reading.base for reading in readings(text)}
    return tuple(each for each in dict.fromkeys(found) if each.base not in bases and each.base in main.base)


@lru_cache(maxsize=65536)
def alias_readings(text: str) -> tuple[ParsedTitle, ...]:
    """Return the readings of an alias, as :func:`readings`, without the ``(港/台)`` tail that says where it is used."""
    if is_settled(text):
        return readings(text)
    name = narrow(text)
    if ":" in name:
        name = words.ALIAS_HEAD.pattern.sub("", name)
    if name.endswith(")"):
        name = words.ALIAS_TAIL.pattern.sub("", name)
    return readings(name or text)


@lru_cache(maxsize=65536)
def lone_mark(text: str) -> ParsedTitle | None:
    """Return the season or part of a text that states nothing else: Part 2, 第2クール, 第二季; None for a name."""
    written = simplify(narrow(text)).strip()
    if len(written) > _LONGEST_MARK or _MAYBE_MARK.match(written) is None:
        return None
    state = Strip(written, may_vanish=True).run()
    if normalise(state.rest) or state.number is None or state.number_kind not in ("season", "part"):
        return None
    return ParsedTitle("", number=state.number, number_kind=state.number_kind, raw=text)


def clean_title(text: str) -> str:
    """Return a title for people and search engines: without site junk, with season and edition words."""
    return parse_title(text).display


def cache_key(title: str) -> str:
    """Return the part of a search cache's key that represents the title: equal for titles searched alike."""
    parsed = parse_title(title)
    return "|".join([parsed.form, *sorted(parsed.distinct_editions), *([str(parsed.year)] if parsed.year else [])])
