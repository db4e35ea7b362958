"""All checks of a text against its fact sheet.

All violations are reported, each once, in the order of the checks: length, addresses and contacts, markup, emoji,
numbers, titles, people, claims, copies. A sentence names the offending piece, so that the model can correct it. What
happens in the plot is the second reading's concern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from douban_pipeline.cms.people import name_keys
from douban_pipeline.douban.intros.factguard import claims, copies
from douban_pipeline.douban.intros.factguard.known_people import foreign_people
from douban_pipeline.douban.intros.factguard.number_mentions import Number, numbers_of, ungrounded_numbers
from douban_pipeline.douban.intros.factguard.plain_text import count_han, folded, name_form, plain, shown
from douban_pipeline.douban.intros.factguard.title_mentions import foreign_titles, unpaired
from douban_pipeline.douban.intros.factguard.unknown_people import unknown_people
from douban_pipeline.douban.intros.facts import FactSheet


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a check.

    Attributes:
        code: The check: length, address, contact, markup, emoji, number, title, person, claim, advert, meta, copy,
            near_copy; or ``reading`` for the second reading.
        text: A Chinese sentence that names the offending piece; the piece is untrusted text.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LengthLimits:
    """Length limits of an introduction in Chinese characters, both inclusive."""

    min_han: int
    max_han: int


@dataclass(frozen=True, slots=True)
class _Ground:
    """The facts of a fact sheet, in the forms for comparison with a text.

    Attributes:
        numbers: All numbers.
        people: People's names in the form of `name_form`, with the parts of those that have dots.
        story: Titles, genres, regions and synopsis, folded.
        everything: The story and the people, folded.
        own: Whole names and titles, folded.
    """

    numbers: tuple[Number, ...]
    people: frozenset[str]
    story: str
    everything: str
    own: frozenset[str]


@lru_cache(maxsize=256)
def _ground(sheet: FactSheet) -> _Ground:
    names = [key for name in sheet.people for key in (name_form(name), *map(name_form, name_keys(name)))]
    parts = [part for name in names for part in name.split("·") if len(part) > 1]
    texts = (*sheet.titles, *sheet.genres, *sheet.regions, sheet.synopsis)
    story = folded("\n".join(texts))
    people = frozenset((*names, *parts))
    return _Ground(
        numbers=tuple(numbers_of(sheet, texts)),
        people=people,
        story=story,
        everything="\n".join((story, *people)),
        own=frozenset((*names, *map(folded, sheet.titles))),
    )


def inspect(
    text: str, sheet: FactSheet, *, known_people: Collection[str], others: Iterable[str], limits: LengthLimits
) -> list[Violation]:
    """Return the violations of an introduction, empty if there are none.

    Args:
        text: The introduction as plain text.
        sheet: The facts it may use.
        known_people: Names of our library, at least those among `candidates_for_people`.
        others: Introductions of other videos to compare with, ideally those that share `marks`.
        limits: Its length limits.
    """
    return list(dict.fromkeys(_violations(text, sheet, known_people, others, limits)))


def _violations(
    text: str, sheet: FactSheet, known_people: Collection[str], others: Iterable[str], limits: LengthLimits
) -> Iterator[Violation]:
    ground = _ground(sheet)
    simple, small = plain(text), folded(text)
    length = count_han(text)
    if not limits.min_han <= length <= limits.max_han:
        yield Violation("length", f"共{length}个汉字，应在{limits.min_han}至{limits.max_han}之间")
    yield from _on_the_face(_without(text, sheet), ground)
    for piece in ungrounded_numbers(text, ground.numbers, sheet.duration_minutes):
        yield Violation("number", f"数字“{shown(piece)}”不在资料中")
    for title in foreign_titles(simple, sheet.titles, sheet.synopsis):
        yield Violation("title", f"作品名《{shown(title)}》不是本片的片名或别名")
    for piece in unpaired(simple):
        yield Violation("title", f"书名号不成对：“{shown(piece)}”")
    aliens = foreign_people(small, known_people, ground.people, ground.story)
    strangers = unknown_people(simple, ground.own, ground.story, ground.everything)
    for name in dict.fromkeys((*aliens, *(name for name in strangers if name.casefold() not in aliens))):
        yield Violation("person", f"人名“{shown(name)}”不在资料中")
    for piece in claims.claims(small, ground.everything):
        yield Violation("claim", f"资料中没有的评价、奖项、平台或来源说法：“{shown(piece)}”")
    for piece in claims.adverts(small, ground.everything):
        yield Violation("advert", f"推广用语：“{shown(piece)}”")
    for piece in claims.talk_of_itself(small, ground.everything):
        yield Violation("meta", f"谈论简介本身或资料的话：“{shown(piece)}”")
    yield from _copies(text, sheet, others)


def _on_the_face(text: str, ground: _Ground) -> Iterator[Violation]:
    """Yield the violations that do not depend on the text's subject: addresses, contacts, markup, emoji."""
    addresses = claims.addresses(text)
    for piece in addresses:
        yield Violation("address", f"含有网址或域名：“{shown(piece)}”")
    for piece in claims.contacts(text):
        if piece not in ground.everything and not any(piece in address for address in addresses):
            yield Violation("contact", f"含有联系方式：“{shown(piece)}”")
    for piece in claims.markup(text):
        yield Violation("markup", f"含有标记或代码：“{shown(piece)}”")
    for piece in claims.hidden(text):
        yield Violation("markup", f"含有不可见字符：{piece}")
    for piece in claims.emoji(text):
        yield Violation("emoji", f"含有表情或图形符号：“{shown(piece)}”")


def _without(text: str, sheet: FactSheet) -> str:
    """Return ``text`` without the sheet's titles and people, whose special characters (M*A*S*H) are no violation."""
    for name in sorted((*sheet.titles, *sheet.people), key=len, reverse=True):
        if not name.isalpha():
            text = text.replace(name, " ")
    return text


def _copies(text: str, sheet: FactSheet, others: Iterable[str]) -> Iterator[Violation]:
    names = (*sheet.titles, *sheet.people)
    said = copies.bare(text, names)
    source = copies.bare(sheet.synopsis, names)
    run = copies.longest_copied_run(said, source)
    if run:
        yield Violation("copy", f"照抄原简介连续{len(run)}字：“{shown(run)}”")
    share = copies.copied_share(said, source)
    if share >= copies.COPIED_SHARE:
        yield Violation("copy", f"与原简介重复的文字达{share:.0%}，应改写")
    for other in others:
        likeness = copies.similarity(text, other, names)
        if likeness >= copies.NEAR_COPY:
            yield Violation("near_copy", f"与另一部作品的简介雷同{likeness:.0%}：“{shown(plain(other), 20)}”")


def marks(text: str, sheet: FactSheet) -> tuple[int, ...]:
    """Return the marks of an introduction: at most 12 integers from 0 to 2**63 - 1, ascending.

    Introductions that are near copies of each other share some of them, independent of the names in them.
    """
    return copies.text_marks(copies.bare(text, (*sheet.titles, *sheet.people)))
