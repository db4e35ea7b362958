"""Checks whether the plot in a text is backed by the source, word by word and clause by clause.

A clause is split into words of `plot_words` and single characters. A word is backed if the source has it or a synonym.
A sentence is refused if too little of it is backed, if it adds a strict notion (kin, death, a place), or if it
attributes to one person what the source attributes to another. A sentence in which nobody acts and no reason is given
is about the work itself: it is only checked for strict notions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from douban_pipeline.douban.intros.factguard.plain_text import plain, sentences_of
from douban_pipeline.douban.intros.factguard.plot_actors import actors_of, subjects
from douban_pipeline.douban.intros.factguard.plot_lexicon import (
    CLAUSE,
    GAP,
    Backing,
    Word,
    clauses_of,
    share_of,
    vocabulary,
    words_of,
)
from douban_pipeline.douban.intros.factguard.plot_words import AGENTS, COMMENTARY

LEAST_SHARE = 0.4
"""Least share of a sentence's words that the source must back."""
LEAST_CLAUSE_SHARE = 0.3
"""The same for one clause; lower, since a clause is short."""
MOST_NEW = 5
"""Number of characters that may be new in any case: a paraphrase uses other verbs."""
SAME_CLAUSE = 0.7
"""Share of a clause's words in one clause of the source from which both count as the same statement."""
LEAST_TOLD = 3
"""Least number of telling characters in a clause, apart from its subjects, for a search in the source."""
_WHY = re.compile("因为|由于|为了|是为|是想|目的是|源于|原因是")
_ANYBODY_TEXT = """
老人 男人 女人 男子 女子 男孩 女孩 少年 少女 青年 孩子 姑娘 小伙 主人公 主角 男主 女主
"""
_ANYBODY = frozenset(_ANYBODY_TEXT.split())
"""General designations that may refer to a person whom the source names."""


@dataclass(frozen=True, slots=True)
class Unbacked:
    """A statement that no sentence of the source backs.

    Attributes:
        sentence: The sentence of the text.
        words: Its words that are not backed, in order; if swapped, the person in the text and the one in the source.
        swapped: Whether the source attributes the action to another person.
    """

    sentence: str
    words: tuple[str, ...]
    swapped: bool = False


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts that a text is compared with.

    Attributes:
        source: The source of the plot.
        clauses: The same, clause by clause.
        names: Names and titles that need no backing, the longest first.
    """

    source: Backing
    clauses: tuple[Backing, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=256)
def _facts(source: str, names: tuple[str, ...], words: tuple[str, ...]) -> _Facts:
    text = plain(source)
    forms = {form for name in names if len(form := plain(name)) > 1}
    sentences = map(CLAUSE.findall, sentences_of(text))
    clauses = tuple(
        Backing.of(clause, before) for each in sentences for before, clause in zip(("", *each), each, strict=False)
    )
    whole = Backing.of("\n".join((text, *map(plain, words))))
    return _Facts(whole, clauses, tuple(sorted(forms, key=len, reverse=True)))


def unbacked_statements(text: str, source: str, names: Iterable[str], words: Iterable[str] = ()) -> list[Unbacked]:
    """Return the statements of plot in a text that its source does not back.

    Args:
        text: The text.
        source: The source of the plot.
        names: People and titles of the fact sheet, which need no backing.
        words: Further texts that back a word: titles, genres, regions.
    """
    facts, said = _facts(source, tuple(names), tuple(words)), plain(text)
    people = actors_of([clause.text for clause in facts.clauses], said, vocabulary().known)
    judged = (_judge(sentence, facts, people) for sentence in sentences_of(said))
    return [problem for problem in judged if problem is not None]


def tells_plot(sentence: str, source: str, names: Iterable[str]) -> bool:
    """Return whether somebody acts in a sentence, or a reason is given; other sentences are about the work itself.

    Args:
        sentence: The sentence.
        source: The source of the plot.
        names: People and titles of the fact sheet, who belong to the making of the work and not to its plot.
    """
    facts, said = _facts(source, tuple(names), ()), plain(sentence)
    for name in facts.names:
        said = said.replace(name, GAP)
    return _acted(said, actors_of([clause.text for clause in facts.clauses], said, vocabulary().known))


def _acted(sentence: str, people: Sequence[str]) -> bool:
    if any(agent in sentence for agent in (*people, *AGENTS)):
        return True
    return bool(_WHY.search(sentence)) and not any(word in sentence for word in COMMENTARY)


def _judge(sentence: str, facts: _Facts, people: Sequence[str]) -> Unbacked | None:
    """Return the problem of a sentence, None if it has none."""
    acted = _acted(sentence, people)
    all_words: list[Word] = []
    for clause in clauses_of(sentence):
        words = list(words_of(clause, facts.names, facts.source))
        all_words += words
        new = [word for word in words if facts.source.backs(word) < 1]
        strict = [word for word in new if word.strict]
        if strict:
            return Unbacked(sentence, _joined(strict))
        if acted and _too_new(words, facts.source, LEAST_CLAUSE_SHARE):
            return Unbacked(sentence, _joined(new))
        others = _given_to_another(clause, facts, people)
        if others:
            return Unbacked(sentence, others, swapped=True)
    if acted and _too_new(all_words, facts.source, LEAST_SHARE):
        return Unbacked(sentence, _joined(word for word in all_words if facts.source.backs(word) < 1))
    return None


def _too_new(words: Collection[Word], source: Backing, least: float) -> bool:
    new = sum(len(word.text) for word in words if not source.backs(word))
    return new > MOST_NEW and share_of(words, source) < least


def _joined(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.text for word in words))


def _given_to_another(clause: str, facts: _Facts, people: Sequence[str]) -> tuple[str, ...]:
    """Return who acts in a clause and who acts in the source, if these are different people; else nothing."""
    acting, rest = subjects(clause, people, vocabulary().tells_nothing)
    who = [name for name in acting if name not in _ANYBODY]
    telling = [
        word for word in words_of(rest, facts.names, facts.source) if not any(word.text in name for name in people)
    ]
    if not who or sum(len(word.text) for word in telling) < LEAST_TOLD:
        return ()
    same = max(facts.clauses, key=lambda part: share_of(telling, part), default=None)
    if same is None or share_of(telling, same) < SAME_CLAUSE:
        return ()
    acting, _ = subjects(same.text, people, None)
    if not acting and same.before:
        acting, _ = subjects(same.before, people, vocabulary().tells_nothing)
    others = [name for name in acting if name not in _ANYBODY]
    pairs = [pair for one in who for other in others for pair in ((one, other), (other, one))]
    if not others or any(one in other for one, other in pairs):
        return ()
    if any(f"{one}{link}{other}" in facts.source.text for one, other in pairs for link in ("", "是")):
        return ()
    return who[-1], others[-1]
