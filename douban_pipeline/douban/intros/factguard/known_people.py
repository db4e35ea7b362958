"""People in a text whom our library knows but the fact sheet does not name: found with a dictionary of names.

A name of three or more characters counts anywhere. A name of two may be a word (黎明, 安静, 成功): then it counts only
beside a role word, like a single Latin word. Or it may span the boundary of two words (公司|文员), so one without a
surname (海涛) counts only at the start of a clause. The longest match wins: 王力 within 王力宏 does not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from douban_pipeline.douban.intros.factguard.name_words import (
    ORDINARY_LONG,
    ORDINARY_NAMES,
    SURNAMES,
    WORD_TAILS,
)
from douban_pipeline.douban.intros.factguard.plain_text import folded, name_form
from douban_pipeline.matching.text import HAN

MAX_CANDIDATES = 2_000
"""Most substrings that are looked up: a text of 300 characters has some 1,400; further ones are left out."""

_LETTERS = rf"{HAN}\u3040-\u30ff\uac00-\ud7af"
_RUN = re.compile(f"[{_LETTERS}]+")
_DOTTED = re.compile(rf"[{_LETTERS}a-z.'-]+(?:·[{_LETTERS}a-z.'-]+)+")
_LATIN = re.compile(
    r"[a-z\u00c0-\u024f][a-z\u00c0-\u024f0-9.'’-]*(?: [a-z\u00c0-\u024f0-9][a-z\u00c0-\u024f0-9.'’-]*)*"
)
_LATIN_WORD = re.compile(r"[a-z\u00c0-\u024f0-9.'’-]+")
_HAN_RUN = re.compile(f"[{HAN}]+")
_LONGEST_RUN = 6  # 佐佐木藏之介
_LONGEST_PART = 8
_LATIN_WORDS = 4

_ROLE_BEFORE = re.compile(
    r"(?:导演|编剧|主演|演员|领衔|监制|出品人|制片人?|配音|旁白|主持人?|嘉宾|执导|饰演|扮演|饰|由|影帝|影后|歌手|巨星|明星|艺人|男星|女星|影星|作曲|摄影师?|携手|搭档|联手|联袂)(?:[:为是有]|包括)?$"
)
_ROLE_AFTER = re.compile(
    r"(?:执导|导演|编剧|主演|领衔|饰演|扮演|饰|出演|自编自导|监制|配音|联袂|加盟|携手|客串|参演|献声|担任|担纲|搭档|等(?:人|众|主演|演员|联|出|领|共|明|实))"
)
_BETWEEN = re.compile(r"(?:、|和|与|及|以及|跟|携手|搭档|/|&| )")


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    name: str
    own: bool

    def covers(self, other: _Span) -> bool:
        """Return whether ``other`` lies within this longer one."""
        return self.start <= other.start and other.end <= self.end and len(self.name) > len(other.name)

    def meets(self, other: _Span) -> bool:
        """Return whether the two share a character."""
        return self.start < other.end and other.start < self.end


def candidates_for_people(text: str) -> set[str]:
    """Return the substrings of ``text`` that may be names, in the form in which the dictionary stores them.

    These are runs of two to six characters, transliterated names around their dots, and one to four Latin words; at
    most `MAX_CANDIDATES`.
    """
    found: dict[str, None] = {}
    for candidate in _candidates(folded(text)):
        found.setdefault(candidate)
        if len(found) >= MAX_CANDIDATES:
            break
    return set(found)


def _candidates(text: str) -> Iterator[str]:
    for match in _DOTTED.finditer(text):
        first, *middle, last = match[0].split("·")
        inner = "".join(f"{part}·" for part in middle)
        for start in range(max(0, len(first) - _LONGEST_PART), len(first)):
            for end in range(1, min(_LONGEST_PART, len(last)) + 1):
                yield f"{first[start:]}·{inner}{last[:end]}"
    for match in _LATIN.finditer(text):
        words = match[0].split()
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LATIN_WORDS, len(words)) + 1):
                name = " ".join(words[start:end]).rstrip(".'’-")
                if len(name) > 1:
                    yield name
    for match in _RUN.finditer(text):
        run = match[0]
        for start in range(len(run) - 1):
            for end in range(start + 2, min(start + _LONGEST_RUN, len(run)) + 1):
                yield run[start:end]


def foreign_people(text: str, known: Iterable[str], own: Collection[str], story: str) -> list[str]:
    """Return the known people whom ``text`` names but the fact sheet does not.

    Args:
        text: The introduction, `folded`.
        known: Names of the dictionary, at least those that are in ``text``.
        own: People of the fact sheet in the form of `name_form`.
        story: The rest of the fact sheet, `folded`: a name in it is a fact.
    """
    spans = [span for name in own for span in _spans(text, name, own=True)]
    for name in {name_form(name) for name in known} - set(own):
        spans += _spans(text, name, own=name in story)
    longest = [span for span in spans if not any(other.covers(span) for other in spans)]
    ours = [span for span in longest if span.own]
    aliens = [
        span
        for span in longest
        if not span.own and not any(span.meets(other) for other in ours) and _is_person(text, span, longest)
    ]
    return list(dict.fromkeys(span.name for span in sorted(aliens, key=lambda span: span.start)))


def _spans(text: str, name: str, *, own: bool) -> Iterator[_Span]:
    start = text.find(name) if len(name) > 1 else -1
    while start >= 0:
        end = start + len(name)
        if not (name[0].isascii() and text[start - 1 : start].isascii() and text[start - 1 : start].isalnum()) and not (
            name[-1].isascii() and text[end : end + 1].isascii() and text[end : end + 1].isalnum()
        ):
            yield _Span(start, end, name, own)
        start = text.find(name, start + 1)


def _is_person(text: str, span: _Span, others: Iterable[_Span]) -> bool:
    """Return whether a candidate is used as a name in its context."""
    name = span.name
    if not _HAN_RUN.fullmatch(name):
        return not _LATIN_WORD.fullmatch(name) or _has_role(text, span, others)
    if len(name) > 2:
        return name not in ORDINARY_LONG or _has_role(text, span, others)
    if name not in ORDINARY_NAMES:
        before = text[max(0, span.start - 1) : span.start]
        if not before.isalnum() or (name[0] in SURNAMES and before + name[0] not in WORD_TAILS):
            return True
    return _has_role(text, span, others)


def _has_role(text: str, span: _Span, others: Iterable[_Span]) -> bool:
    """Return whether a role word is beside the name, or another person in the same list."""
    if _ROLE_BEFORE.search(text[max(0, span.start - 6) : span.start]) or _ROLE_AFTER.match(text[span.end :]):
        return True
    return any(
        (other.own or len(other.name) > 2)
        and _BETWEEN.fullmatch(
            text[other.end : span.start] if other.end <= span.start else text[span.end : other.start]
        )
        for other in others
        if other is not span
    )
