"""Names of invented works: what Douban calls them, and what they are called where they were made."""

from __future__ import annotations

from functools import cache

from douban_pipeline_tests.harness.generated import words
from douban_pipeline_tests.harness.generated.draws import Draw
from douban_pipeline_tests.harness.generated.people import pool

_DIGITS = "零一二三四五六七八九十"


def name(draw: Draw, kind: str, country: str) -> str:
    """Return a name for a work of a ``kind``; takes 6 numbers of ``draw``.

    Of 100,000 some three have a name of two characters that dozens of others have; most are alone with theirs.
    """
    form, a, b, c, d, e = draw() % 100, draw(), draw(), draw(), draw(), draw()
    first = _of(words.HEADS, a) + _of(words.TAILS, b)
    if kind == "variety":
        return f"{_of(words.TRAITS, c)}的{first}{_of(words.VARIETY, d)}" if form < 40 else first + _of(words.VARIETY, d)
    if kind == "short":
        return f"{_of(words.SHORT_DRAMAS, a)}{_of(words.SHORT_FATES, b)}之{_of(words.HEADS, c)}{_of(words.TAILS, d)}"
    second = _of(words.HEADS, c) + _of(words.TAILS, d)
    if country not in ("cn", "jp", "kr") and form >= 70:
        given = _of(pool(country), e).partition("·")[0]
        return f"{given}的{first}" if form < 80 else f"{given}与{first}{_of(words.NOUNS, c)}"
    if form < 2:
        return first
    if form < 30:
        return first + second
    if form < 45:
        return f"{first}的{_of(words.NOUNS, c)}"
    if form < 58:
        return _of(words.VERBS, e) + first + _of(words.NOUNS, c)
    if form < 70:
        return f"{_of(words.NOUNS, e)}与{second}"
    if form < 80:
        return f"{first}{_of(words.PLACES, e)}的{_of(words.PEOPLE, c)}"
    if form < 90:
        return f"{_of(words.TRAITS, e)}{_of(words.PEOPLE, c)}之{first}"
    return f"{_of(words.PEOPLE, e)}{second}{_of(words.NOUNS, a)}"


def subtitle(draw: Draw) -> str:
    """Return the second half of a sequel's name; takes 2 numbers of ``draw``."""
    return _of(words.VERBS, draw()) + _of(words.NOUNS, draw())


def latin(draw: Draw) -> str:
    """Return a name in English; takes 4 numbers of ``draw``."""
    form, a, b, c = draw() % 10, draw(), draw(), draw()
    trait, noun, other = _of(words.LATIN_TRAITS, a), _of(words.LATIN_NOUNS, b), _of(words.LATIN_NOUNS, c)
    if form < 3:
        return f"The {trait} {noun}"
    if form < 6:
        return f"{trait} {noun} of the {other}"
    if form < 8:
        return f"The {other}'s {trait} {noun}"
    return f"{trait} {noun} & {other}"


def native(draw: Draw, country: str) -> str:
    """Return the name in the country's own writing, empty for Chinese; takes 4 numbers of ``draw``."""
    if country == "jp":
        a, b, c, _ = draw(), draw(), draw(), draw()
        return f"{_of(words.TAILS, a)}{_of(words.KANA, b)}{_of(words.HEADS, c)}い{_of(words.TAILS, c ^ b)}"
    if country == "kr":
        a, b, c, _ = draw(), draw(), draw(), draw()
        return " ".join((_of(words.HANGUL, a), _of(words.HANGUL, b), _of(words.HANGUL, c)))
    return "" if country == "cn" else latin(draw)


def counted(number: int) -> str:
    """Return a season's number in Chinese, 1 to 10."""
    return _DIGITS[number]


def slug(title: str) -> str:
    """Return something like the pinyin that the CMS makes of a title."""
    return "".join(_syllable(character) for character in title)


@cache
def _syllable(character: str) -> str:
    if character.isascii():
        return character.lower() if character.isalnum() else ""
    return words.SYLLABLES[ord(character) % len(words.SYLLABLES)]


def _of(things: str | tuple[str, ...], number: int) -> str:
    return things[number * len(things) >> 16]
