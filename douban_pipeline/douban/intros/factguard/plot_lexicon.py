"""Splits texts into the words of `plot_words`, and says which of them a text backs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from douban_pipeline.douban.intros.factguard.plain_text import sentences_of
from douban_pipeline.douban.intros.factguard.plot_words import COMMENTARY, PLAIN, SYNONYMS
from douban_pipeline.matching.text import HAN

HALF = 0.5
"""Weight of a character that the source has in another word."""

CLAUSE = re.compile(r"[^,、:\"“”‘’「」『』()《》〈〉—\s]+")
_NOT_HAN = re.compile(f"[^{HAN}]+")
GAP = "|"
"""Placeholder for names, numbers and punctuation, which need no backing."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, the notions that back it, and whether each of them is strict."""

    text: str
    notions: frozenset[int] = frozenset()
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of `plot_words`.

    Attributes:
        asks: Notions that a word of a text needs backed.
        backs: Notions that a word of a source backs.
        strict: Notions that no text may add.
        tells_nothing: Words that are skipped.
        known: All words that are recognised in a text.
        longest: Number of characters of the longest word.
    """

    asks: dict[str, frozenset[int]]
    backs: dict[str, frozenset[int]]
    strict: frozenset[int]
    tells_nothing: frozenset[str]
    known: frozenset[str]
    longest: int


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    asks: dict[str, set[int]] = {}
    backs: dict[str, set[int]] = {}
    strict: set[int] = set()
    for notion, line in enumerate(SYNONYMS.replace("\n    ", " ").splitlines()):
        if line.startswith("!"):
            strict.add(notion)
        for word in line.removeprefix("!").split():
            if not word.startswith("?"):
                asks.setdefault(word, set()).add(notion)
            backs.setdefault(word.removeprefix("?"), set()).add(notion)
    tells_nothing = frozenset((*COMMENTARY, *PLAIN))
    return Vocabulary(
        {word: frozenset(found) for word, found in asks.items()},
        {word: frozenset(found) for word, found in backs.items()},
        frozenset(strict),
        tells_nothing,
        tells_nothing | set(asks),
        max(map(len, (*asks, *backs, *tells_nothing))),
    )


@dataclass(frozen=True, slots=True)
class Backing:
    """A source, or a clause of one with the preceding clause of its sentence, prepared for look-ups."""

    text: str
    notions: frozenset[int]
    characters: frozenset[str]
    before: str = ""

    @classmethod
    def of(cls, text: str, before: str = "") -> Backing:
        lexicon, notions = vocabulary(), set[int]()
        for at in range(len(text)):
            for end in range(at + 1, min(at + lexicon.longest, len(text)) + 1):
                notions |= lexicon.backs.get(text[at:end], frozenset())
        return cls(text, frozenset(notions), frozenset(text), before)

    def backs(self, word: Word) -> float:
        """Return how much of a word the source has, 0 to 1."""
        if word.text in self.text or word.notions & self.notions:
            return 1.0
        known = sum(char in self.characters for char in word.text)
        return 0.0 if word.strict else HALF * known / len(word.text)


def clauses_of(text: str) -> list[str]:
    return [clause for sentence in sentences_of(text) for clause in CLAUSE.findall(sentence)]


def share_of(words: Collection[Word], source: Backing) -> float:
    """Return the share of words that a source backs, weighted by their length."""
    size = sum(len(word.text) for word in words)
    return sum(source.backs(word) * len(word.text) for word in words) / size if size else 1.0


def words_of(clause: str, names: Sequence[str], backing: Backing) -> Iterator[Word]:
    """Yield the telling words of a clause: words of the lexicon, pairs that the source has, single characters."""
    for name in names:
        clause = clause.replace(name, GAP)
    clause, lexicon, at = _NOT_HAN.sub(GAP, clause), vocabulary(), 0
    while at < len(clause):
        word = _longest_known(clause, at) or _pair(clause, at, backing) or clause[at]
        at += len(word)
        if word in lexicon.asks:
            notions = lexicon.asks[word]
            yield Word(word, notions, strict=notions <= lexicon.strict)
        elif word not in lexicon.tells_nothing and word != GAP:
            yield Word(word)


def _longest_known(clause: str, at: int) -> str:
    lexicon = vocabulary()
    for length in range(min(lexicon.longest, len(clause) - at), 1, -1):
        word = clause[at : at + length]
        if word in lexicon.known:
            return word
    return ""


def _pair(clause: str, at: int, source: Backing) -> str:
    """Return the two characters at a position if the source has them, "" if not or if a lexicon word starts within."""
    pair = clause[at : at + 2]
    whole = len(pair) == 2 and GAP not in pair and pair in source.text
    return pair if whole and _longest_known(clause, at + 1) not in vocabulary().asks else ""
