"""Simulated readers of the second reading, and the cases that they are measured with.

`statements.jsonl` holds seventy stories, each with five faithful texts and five inventions, statement by statement:
the passages that say it, who acts on whom in the source's words, whether it is denied there, and whether it is a fact.
Sixty were written before the rules; of these every other one was kept aside until the rules were done. What was found
with those was corrected, and the last ten were written then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.second_reading import Reading, messages, read

_CASES = Path(__file__).with_name("statements.jsonl")
_CLAUSE = re.compile(r"[^，。、：；！？\s“”「」《》]{4,}")
_SIGNS = re.compile(r"\W")
NOT_SAID = {"basis": "none", "passages": [], "problem": "原简介没有讲到"}


@dataclass(frozen=True, slots=True)
class Told:
    """A statement of a case: its text, and what a truthful reader finds of it in the source."""

    text: str
    passages: tuple[str, ...] = ()
    actor: str = ""
    target: str = ""
    negated: bool = False
    modality: str = "fact"
    ends: bool = False
    invented: bool = False

    @property
    def proof(self) -> dict[str, Any]:
        """The truthful answer: the passages with their people; the action is what is left of them."""
        action = self.passages[-1] if self.passages else ""
        for name in (self.actor, self.target):
            action = action.rpartition(name)[2] if name and action.rpartition(name)[2] else action
        return {
            "basis": "synopsis",
            "passages": list(self.passages),
            "actor": self.actor,
            "target": self.target,
            "action": action,
            "negated": self.negated,
            "modality": self.modality,
        }


@dataclass(frozen=True, slots=True)
class Case:
    """A text with its source; ``kind`` names the invention in it, "" for a faithful text."""

    story: int
    source: str
    kind: str
    statements: tuple[Told, ...]

    @property
    def kept(self) -> bool:
        """Whether it was kept aside, or written when the rules were done."""
        return self.story % 2 == 0 or self.story > 60

    @property
    def text(self) -> str:
        """The text."""
        last = len(self.statements) - 1
        return "".join(
            each.text + ("。" if each.ends or at == last else "，") for at, each in enumerate(self.statements)
        )

    @property
    def sheet(self) -> FactSheet:
        """Its facts."""
        return FactSheet("无名之作", genres=("剧情",), synopsis=self.source)


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases: of each story the faithful texts, then the inventions."""
    return tuple(case for line in _CASES.read_text("utf-8").splitlines() for case in _of_story(json.loads(line)))


def _of_story(story: Mapping[str, Any]) -> Iterator[Case]:
    faithful = [[_told(item) for item in listed] for listed in story["faithful"]]
    for told in faithful:
        yield Case(story["story"], story["synopsis"], "", tuple(told))
    for item in story["inventions"]:
        told, place = list(faithful[item["of"] - 1]), item.get("replaces") or item["after"]
        before = told[place - 1]
        new = replace(_told(item), ends=before.ends, invented=True)
        told[place - 1 : place] = [new] if "replaces" in item else [replace(before, ends=False), new]
        yield Case(story["story"], story["synopsis"], item["kind"], tuple(told))


def _told(item: Mapping[str, Any]) -> Told:
    given = {name: item[name] for name in ("actor", "target", "negated", "modality", "ends") if name in item}
    return Told(item["text"], tuple(item["passages"]), **given)


Reader = Callable[[Case, str, Random], dict[str, Any]]
"""Returns the answer on one part, a statement of the case or a false one that was put among them."""


def honest(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Reads and judges: proves what the source says, and says so of what it does not say."""
    told = next((each for each in case.statements if each.text == part), None)
    return NOT_SAID if told is None or told.invented else told.proof


def literal(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Reports passages and people truthfully, but leaves the comparison to the code."""
    told = next((each for each in case.statements if each.text == part), None)
    return NOT_SAID if told is None or not told.passages else told.proof


def yes(case: Case, part: str, random: Random) -> dict[str, Any]:
    """The lazy one: says of everything that it is fine."""
    return {"basis": "general", "passages": []}


def one(case: Case, part: str, random: Random) -> dict[str, Any]:
    """The lazy one that quotes: the first passage of the source for everything."""
    return _quoting(case, part, _CLAUSE.findall(case.source)[:1])


def sloppy(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Quotes one or two passages at random."""
    clauses = _CLAUSE.findall(case.source)
    return _quoting(case, part, random.sample(clauses, min(len(clauses), random.choice([1, 1, 2]))))


def nearest(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Cannot judge: quotes the passage most like the statement, whoever does what in it."""
    clauses = _CLAUSE.findall(case.source)
    return _quoting(case, part, [max(clauses, key=lambda each: (len(_pieces(each) & _pieces(part)), -len(each)))])


def everything(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Quotes the whole source for every statement."""
    return _quoting(case, part, _CLAUSE.findall(case.source))


def careless(case: Case, part: str, random: Random) -> dict[str, Any]:
    """Sees what is false on purpose, but else never objects and quotes the passage most like the statement."""
    mine = any(each.text == part for each in case.statements)
    return nearest(case, part, random) if mine else NOT_SAID


READERS: dict[str, Reader] = {
    each.__name__: each for each in (honest, literal, yes, one, sloppy, nearest, everything, careless)
}


def _quoting(case: Case, part: str, passages: list[str]) -> dict[str, Any]:
    """Return an answer that finds whoever the statement names in the source, in the statement's order."""
    people = {name for each in case.statements for name in (each.actor, each.target) if name}
    named = sorted((name for name in people if name in part), key=part.index)
    actor, target = (*named, "", "")[:2]
    return {"basis": "synopsis", "passages": passages, "actor": actor, "target": target, "action": passages[0]}


def _pieces(text: str) -> set[str]:
    bare = _SIGNS.sub("", text)
    return {*bare, *(bare[at : at + 2] for at in range(len(bare) - 1))}


def answer(case: Case, reader: Reader, random: Random) -> dict[str, Any]:
    """Return a reader's answer to the message about a case."""
    asked = json.loads(messages(case.text, case.sheet)[1]["content"])
    empty = {"actor": "", "target": "", "action": "", "negated": False, "amount": "", "modality": "fact", "problem": ""}
    said = ({**empty, **reader(case, item["text"], random), **item} for item in asked["parts"])
    return {"statements": [{name: value for name, value in item.items() if name != "sentence"} for item in said]}


def reading(case: Case, reader: Reader, random: Random) -> Reading:
    """Return what a reader's answer proves of a case."""
    return read(case.text, case.sheet, answer(case, reader, random))


def written(case: Case, found: Reading) -> str:
    """Return the text that is written after a reading, "" if it is refused."""
    return found.shortened if found.violations else case.text


def holds_invention(case: Case, text: str) -> bool:
    """Return whether the invention of a case is in a text."""
    return any(each.invented and each.text in text for each in case.statements)
