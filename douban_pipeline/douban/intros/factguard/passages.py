"""Compares a statement of an intro with the passages quoted for it: who does what to whom, how many, and whether.

A reader names the passages and, in the source's words, who acts, on whom, what is denied, how many, and whether it is a
fact. Its answer is not trusted: the passages and names must be in the source, the people of the statement must be those
of the passage in the same roles, and numbers, denials, outcomes and modality must agree. What the wording does not show
stays unseen: a motive or a mood, or who is meant by 她. `controls` are for readers that miss those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.douban.intros.factguard.number_mentions import (
    Number,
    number_mentions,
    numbers_of,
    ungrounded_numbers,
)
from douban_pipeline.douban.intros.factguard.plain_text import CLAUSE, letters_of, plain, sentences_of, shown
from douban_pipeline.douban.intros.factguard.plot_roles import Act, acts_of
from douban_pipeline.douban.intros.factguard.plot_words import COMMENTARY, PLAIN, PLAIN_CHARACTERS
from douban_pipeline.douban.intros.factguard.polarity import (
    FACT,
    LIKE_DENIAL,
    MARKS,
    MODALITIES,
    denies,
    denies_anything,
    opposite,
    opposite_sides,
)
from douban_pipeline.douban.intros.factguard.story_people import KIN, RELATIVES, ROLES, Cast, cast_of
from douban_pipeline.douban.intros.facts import FactSheet

_PART = re.compile(r"(?:《[^《》]*》|[^，,：:])+")
GAP = "|"
"""Placeholder for names, which tell nothing by themselves."""
LEAST_TOLD = 2
"""Number of telling characters that a statement and an action of the source have in common if they may be the same."""
LEAST_QUOTED = 4
"""Least number of characters of a clause in a quote that quotes the clause; a shorter clause must be whole."""
MOST_QUOTED = 90
"""Most characters that all passages of one statement may have: whoever quotes the whole source shows nothing."""
_EMPTY = frozenset("的了是在着过一")
MOST_UNTOLD = 4
"""Most characters that a clause may have beside names and plain words without telling a story."""


def parts_of(sentence: str) -> list[str]:
    """Return the parts of a sentence between commas and colons, in order: the least that a statement can be."""
    return [part.strip() for part in _PART.findall(sentence) if letters_of(part)]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a reader says of a statement, in the source's words; "" where it says nothing.

    Attributes:
        passages: The numbers of the quoted clauses.
        actor: Who does it.
        target: On whom.
        action: What is done.
        negated: Whether the source denies it.
        amount: How many.
        modality: One of `MODALITIES`.
    """

    passages: Sequence[int]
    actor: str = ""
    target: str = ""
    action: str = ""
    negated: bool = False
    amount: str = ""
    modality: str = "fact"


@dataclass(frozen=True, slots=True)
class Story:
    """A source and a text, prepared for the comparison of statements with passages.

    Attributes:
        source: The source.
        sentences: Its sentences, each as its clauses.
        clauses: All its clauses, in order.
        places: The number of the sentence of each clause.
        acts: Who does what in each clause.
        said: Who does what in the text, by sentence and part.
        cast: The people of both.
        names: People and titles of the fact sheet, which need no passage; the longest first.
        words: What needs none either: genres, regions.
        numbers: The numbers of the fact sheet apart from the synopsis.
        minutes: The work's duration.
    """

    source: str
    sentences: tuple[tuple[str, ...], ...]
    clauses: tuple[str, ...]
    places: tuple[int, ...]
    acts: tuple[tuple[Act, ...], ...]
    said: tuple[tuple[tuple[Act, ...], ...], ...]
    cast: Cast
    names: tuple[str, ...]
    words: tuple[str, ...]
    numbers: tuple[Number, ...]
    minutes: int | None

    @classmethod
    def of(cls, sheet: FactSheet, text: str, people: Iterable[str] = ()) -> Story:
        """Prepare the synopsis of a fact sheet and a text that was written from it.

        Args:
            sheet: The facts.
            text: The text.
            people: Names by which a reader calls people; those that the synopsis has are known from then on.
        """
        told, said = plain(sheet.synopsis), plain(text)
        sentences = tuple(tuple(CLAUSE.findall(each)) for each in sentences_of(told))
        # Cut before `plain` turns …… into full stops: the places are those of the text.
        said_parts = [[CLAUSE.findall(plain(part)) for part in parts_of(each)] for each in sentences_of(text)]
        cast = cast_of(told, said, {plain(name) for name in people})
        said_acts = iter(acts_of([[clause for part in parts for clause in part] for parts in said_parts], cast))
        forms = {form for name in (*sheet.people, *sheet.titles) if len(form := plain(name)) > 1}
        return cls(
            source=told,
            sentences=sentences,
            clauses=tuple(clause for clauses in sentences for clause in clauses),
            places=tuple(place for place, clauses in enumerate(sentences) for _ in clauses),
            acts=tuple(acts_of(sentences, cast)),
            said=tuple(tuple(tuple(act for _ in part for act in next(said_acts)) for part in p) for p in said_parts),
            cast=cast,
            names=tuple(sorted(forms, key=len, reverse=True)),
            words=tuple(sorted(map(plain, (*sheet.genres, *sheet.regions)), key=len, reverse=True)),
            numbers=tuple(numbers_of(sheet, (*sheet.titles, *sheet.genres, *sheet.regions))),
            minutes=sheet.duration_minutes,
        )

    def quoted(self, quotes: Sequence[str]) -> list[int] | None:
        """Return the numbers of the clauses that quotes hold, None if a quote is not in the source."""
        letters = [letters_of(clause) for clause in self.clauses]
        whole = "".join(letters)
        found: set[int] = set()
        for quote in map(letters_of, quotes):
            start = whole.find(quote)
            if start < 0:
                return None
            end, at = start + len(quote), 0
            for number, clause in enumerate(letters):
                shared = min(end, at + len(clause)) - max(start, at)
                if shared > 0 and shared >= min(LEAST_QUOTED, len(clause)):
                    found.add(number)
                at += len(clause)
        return sorted(found)

    def same(self, one: str, other: str) -> bool:
        """Return whether two names are one person's, also where one designates the other: 机器人七号."""
        return self.cast.same(one, other) or any(
            re.search(f"{re.escape(first)}.?{re.escape(second)}", self.source)
            for first, second in ((one, other), (other, one))
            if first in ROLES
        )


_HAPPENS = re.compile("[死杀尸亡沉炸毁烧劫盗捕逃婚孕火病]|突然|忽然|[天年月]后|当晚|当夜|夜里|次日|翌日")
"""What is said of an event, but not of a work as a whole."""


def is_plain(text: str) -> bool:
    """Return whether a text has only words that tell nothing by themselves."""
    return not _untold(plain(text))


def _untold(text: str) -> list[str]:
    for word in sorted(PLAIN, key=len, reverse=True):
        text = text.replace(word, GAP)
    return [char for char in letters_of(text) if not char.isdigit()]


def tells_story(part: str, sentence: str, story: Story) -> bool:
    """Return whether a part of a sentence tells what happens, so that it needs a passage, and not only of the work."""
    said, whole = plain(part), plain(sentence)
    for name in (*story.names, *story.words):
        said, whole = said.replace(name, GAP), whole.replace(name, GAP)
    if any(name in story.source and name not in COMMENTARY for _, _, name in story.cast.mentions(said)):
        return True
    return bool(_HAPPENS.search(said)) and not any(word in whole for word in COMMENTARY)


def statement_problem(statement: str, sentence: str, acts: Sequence[Act], story: Story, claim: Claim) -> str:
    """Return why the quoted clauses do not say what a statement says, in Chinese; "" if nothing speaks against it.

    Args:
        statement: The statement, a piece of the text.
        sentence: The sentence that it is from.
        acts: Who does what in the part of the text that it is from.
        story: The source and the text.
        claim: The reader's answer; its passages are in the source.
    """
    return next(_problems(statement, sentence, acts, story, claim), "")


def _problems(statement: str, sentence: str, acts: Sequence[Act], story: Story, claim: Claim) -> Iterator[str]:
    said, told = plain(statement), [story.clauses[each] for each in claim.passages]
    if sum(map(len, told)) > MOST_QUOTED:
        yield "所引原文太长，没有指明是哪一处"
    for named in (claim.actor, claim.target):
        if plain(named) not in story.source:
            yield f"原文没有“{shown(named)}”"
    if letters_of(claim.action) not in letters_of(GAP.join(told)):
        yield f"所引原文没有“{shown(claim.action)}”"
    if claim.amount and letters_of(claim.amount) not in letters_of(GAP.join(told)):
        yield f"所引原文没有“{shown(claim.amount)}”"
    around = {place for each in claim.passages for place in (story.places[each] - 1, story.places[each]) if place >= 0}
    context = "\n".join(clause for place in sorted(around) for clause in story.sentences[place])
    people = [plain(name) for name in (claim.actor, claim.target) if name]
    pronoun = any(_PRONOUN.search(each) for each in told)
    elsewhere = not claim.negated and not pronoun and not any(name in each for name in people for each in told)
    if elsewhere and len(said) > MOST_UNTOLD and not _telling(said) & _telling(GAP.join(told)):
        yield "所引原文讲的不是这件事"
    for name in _missing(said, told, people, story.source if pronoun else context, story):
        yield f"所引原文没有提到“{shown(name)}”"
    numbers = _nameless(said, story, people)
    for piece in ungrounded_numbers(numbers, (*story.numbers, *number_mentions(context)), story.minutes):
        if any(mention.kind for mention in number_mentions(piece)):
            yield f"所引原文没有数字“{shown(piece)}”"
    mine = [act for act in acts if _overlap(letters_of(act.words), letters_of(said))]
    yield from _role_problems(said, GAP.join(told), mine, claim, story)
    word = opposite(said, told, converse=len(people) > 1)
    if word:
        yield f"与所引原文相反：“{shown(word)}”"
    bare = [_nameless(each, story, people) for each in (said, *told)]
    if _denial_differs(bare[0], bare[1:], claim):
        yield f"与所引原文相反：“{shown(statement, 20)}”"
    if claim.modality != FACT and not MARKS[claim.modality].search(plain(sentence)):
        yield f"原文{MODALITIES[claim.modality]}，这里当成了事实"


_PRONOUN = re.compile("[他她它]")


def _overlap(one: str, other: str) -> bool:
    return one in other or other in one


def _telling(words: str) -> set[str]:
    """Return the characters of a text that tell something."""
    return set(letters_of(words)) - PLAIN_CHARACTERS


def _missing(said: str, told: Sequence[str], people: Sequence[str], context: str, story: Story) -> Iterator[str]:
    """Yield the people in a statement whom the source does not name there.

    Whoever a statement begins with must be in the passages or the reader's answer, others in the sentence of the
    passages or the one before. A relative may be told in other words (父女 for 女儿); a name that the source never has
    is the fact guard's concern.
    """
    at_hand = [*people, *(name for _, _, name in story.cast.mentions(GAP.join(told)))]
    around = [*people, *(name for _, _, name in story.cast.mentions(context))]
    for _, _, name in story.cast.mentions(said):
        if name in story.source:
            first = people and name not in ROLES and said.startswith(name)
            if name not in RELATIVES and not any(story.same(name, other) for other in (at_hand if first else around)):
                yield name
        elif name in KIN and not set(name) & set(story.source):
            yield name


def _role_problems(said: str, told: str, acts: Sequence[Act], claim: Claim, story: Story) -> Iterator[str]:
    """Yield that somebody else acts in the statement than the reader found in the source."""
    actor, target = plain(claim.actor), plain(claim.target)
    acting = _pointed_out(said, story) or [
        name for act in acts if not (act.taken_over or act.unknown) for name in act.agents if name
    ]
    suffering = [name for act in acts for name in act.patients if name]
    if not actor or any(story.same(actor, name) for name in acting):
        others = [name for name in suffering if target and name not in ROLES and not story.same(target, name)]
        if actor and others and len(suffering) == len(others) == 1 and target not in said:
            yield f"人物对不上：这里是“{shown(others[0])}”，原文是“{shown(target)}”"
        return
    if _PASSIVE.search(said) or len(_telling(said) & _telling(claim.action)) < LEAST_TOLD:
        # 收钱的是云开 for 云合寄钱给云开: another action has other roles.
        return
    first = next((name for name in acting if _begins(said, name) or said.endswith(name)), "")
    if first and (actor not in said or actor in suffering):
        yield f"人物对不上：这里是“{shown(first)}”，原文是“{shown(actor)}”"
        return
    opening = next((name for name in story.cast.names if said.startswith(name) and name not in ROLES), "")
    stranger = story.same(target, opening) if target else opening not in told
    if opening and stranger and not story.same(actor, opening) and not _SUFFERED.search(said[len(opening) :]):
        yield f"人物对不上：这里是“{shown(opening)}”，原文是“{shown(actor)}”"


_PASSIVE = re.compile("[被遭受由]|得到|获得")
_SUFFERED = re.compile("^[的和与跟同及家]|[让叫得听以]|是.*的$|^.{1,6}[时后前]")
"""What stands behind a name at the beginning of a statement if it is not who acts."""
_POINTED_OUT = re.compile(
    "^(?![被遭受说查听]|发现|得知|知道|认为|以为|看).*的(?:人|正|就|便|其实|却|仍|还)*是(?P<who>.+)$"
)


def _pointed_out(said: str, story: Story) -> list[str]:
    """Return who did it where a statement ends with that: 认出来的是老楚的徒弟易安."""
    match = _POINTED_OUT.search(said)
    return [name for _, end, name in story.cast.mentions(match["who"]) if end == len(match["who"])] if match else []


def _begins(said: str, name: str) -> bool:
    """Return whether a statement begins with a name, apart from a designation or a word that tells nothing."""
    before = said[: said.find(name)]
    return before in PLAIN or before in ROLES or not before


def _nameless(words: str, story: Story, people: Iterable[str] = ()) -> str:
    for name in (*people, *story.cast.names):
        words = words.replace(name, GAP)
    return words


def _denial_differs(said: str, told: Sequence[str], claim: Claim) -> bool:
    """Return whether a statement affirms what its passage denies, or the reverse, by our reading and the reader's."""
    passage = GAP.join(told)
    if opposite_sides(said, passage) or claim.negated == denies_anything(said):
        return False
    if any(denies(said, each) or denies(each, said) for each in told):
        return True
    same = len(_telling(said) & _telling(claim.action)) >= LEAST_TOLD
    return same and not (LIKE_DENIAL & set(said if claim.negated else passage))
