"""Normalisation of texts for comparison in the guard, and counting of Chinese characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from douban_pipeline.cms.people import name_key
from douban_pipeline.matching.text import HAN, narrow, simplify

HAN_CHARACTER = re.compile(f"[{HAN}]")
_NOT_HAN = re.compile(f"[^{HAN}]+")
# A full stop between Chinese characters can only be the dot of a name.
_DOTS = re.compile(rf"\s*[·・•‧∙⋅･]\s*|(?<=[{HAN}])\.(?=[{HAN}])")
# Its signs close with it, those inside of a title (《孤独摇滚！》) do not end it.
_SENTENCE = re.compile(r"(?P<said>(?:《[^《》\n]*》|[^。！!？?；;…\n])+)[。！!？?；;…\n”’」』》）)]*")
CLAUSE = re.compile(r"[^,、:\"“”‘’「」『』()《》〈〉—\s]+")
"""A clause of a sentence in the form of `plain`."""
_SIGNS = re.compile(r"[\W_]+")
_SPACED_HAN = re.compile(rf"(?<=[{HAN}]) (?=[{HAN}])")


def plain(text: str) -> str:
    """Return ``text`` in simplified characters and half width, with uniform dots in names; case is kept."""
    return _SPACED_HAN.sub("", _DOTS.sub("·", simplify(narrow(text))))


@lru_cache(maxsize=65536)
def name_form(name: str) -> str:
    """Return a name in the form that it has in a `folded` text."""
    return name_key(plain(name))


def folded(text: str) -> str:
    """Return ``text`` as `plain` does, case-folded: the form in which names and words are searched."""
    return plain(text).casefold()


def letters_of(text: str) -> str:
    """Return only the letters and digits of a text, by which quotes are compared."""
    return _SIGNS.sub("", folded(text))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text in order, without their end punctuation; each has letters."""
    return [match["said"].strip() for match in _sentences(text)]


def whole_sentences_of(text: str) -> list[str]:
    """Return the same sentences with the signs that end them."""
    return [match[0] for match in _sentences(text)]


def _sentences(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _SENTENCE.finditer(text) if letters_of(match["said"]))


def clauses_of(text: str) -> list[str]:
    """Return the clauses of a text in the form of `plain`, in order."""
    return [clause for sentence in sentences_of(text) for clause in CLAUSE.findall(sentence)]


def count_han(text: str) -> int:
    """Return the number of Chinese characters, including those of the supplementary planes."""
    return sum(1 for _ in HAN_CHARACTER.finditer(text))


def han_only(text: str) -> str:
    """Return only the Chinese characters of ``text``."""
    return _NOT_HAN.sub("", text)


def shown(piece: str, longest: int = 40) -> str:
    """Return an offending piece as one short line."""
    line = " ".join(piece.split())
    return line if len(line) <= longest else f"{line[:longest]}…"
