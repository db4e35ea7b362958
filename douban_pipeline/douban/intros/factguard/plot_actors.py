"""Who acts in a story, derived from its wording: roles, names, and the subjects of clauses."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from douban_pipeline.douban.intros.factguard.name_words import ORDINARY_NAMES, STRONG_SURNAMES, SURNAMES
from douban_pipeline.douban.intros.factguard.plot_words import AGENTS

_NOT_ACTING = frozenset("了着过把将被由让给替为向与和跟同对从帮助请教使派")
"""Characters before a person who is the object or companion of an action, not its subject."""
_BY = ("被", "由")
_JOINED = ("的", "和", "与", "及")
_WHEN_BEFORE = re.compile("[时后前间日天夜际]$")
_WHEN_BEHIND = re.compile("^.{1,6}?[时后前]")
_LONGEST_NAME = 5
_CALLED_BY = frozenset("阿老小")
_MANY_SURNAMES = SURNAMES | frozenset("格卓扎次丹")
_PEOPLE_END = frozenset("员长师者手匠工家兵官爷婶生将夫媳侯差客女童妇僧军人主")
_PARTICLES = frozenset("的了着过是在有和与他她它们这那其并却便就又也还只但而于从当每不没被把将为以里上下")
_NO_NAME = _PARTICLES | frozenset("一二三四五六七八九十两")


def actors_of(clauses: Sequence[str], text: str, ordinary: Container[str]) -> list[str]:
    """Return who acts in a source, the longest name first: roles, and repeated words with the form of a name.

    Args:
        clauses: The source's clauses.
        text: The text that is compared with it.
        ordinary: Words that are no names.
    """
    both = "\n".join((*clauses, text))
    roles = tuple(
        name
        for name in AGENTS
        if len(name) > 1 and name[0] not in _NO_NAME and any(name in clause for clause in clauses)
    )
    found = set(roles)
    for clause in clauses:
        for at in range(len(clause) - 1):
            name = _repeated(clause, at, both, ordinary)
            called = clause[:at].endswith(roles)
            if name and _is_person(name, initial=called or not at):
                found.add(name)
    return sorted(found, key=len, reverse=True)


def _repeated(clause: str, at: int, both: str, ordinary: Container[str]) -> str:
    """Return the word at a position of a clause that occurs again in the two texts, "" if none does."""
    head = clause[at : at + 2]
    if head in ordinary or head[0] in _NO_NAME or head[1:] in _PARTICLES:
        return ""
    count = both.count(head)
    if count < 2:
        return ""
    end = at + 2
    while end < len(clause) and end - at < _LONGEST_NAME and both.count(clause[at : end + 1]) == count:
        end += 1
    return clause[at:end]


def _is_person(name: str, *, initial: bool) -> bool:
    """Return whether a word has the form of a person's name, or ends like a designation of people."""
    surnames = _MANY_SURNAMES if initial else STRONG_SURNAMES
    if len(name) <= 3 and (name[0] in surnames or name[0] in _CALLED_BY) and name[:2] not in ORDINARY_NAMES:
        return True
    return name[-1] in _PEOPLE_END


def subjects(clause: str, people: Sequence[str], ordinary: Container[str] | None) -> tuple[tuple[str, ...], str]:
    """Return the subjects of a clause, with all adjacent names, and the rest of the clause.

    Both are empty if nobody is named, or if the clause is passive.

    Args:
        clause: The clause.
        people: Possible subjects, the longest name first.
        ordinary: Words that may precede the subject, apart from times; None for any.
    """
    mentions = _mentions(clause, people)
    if any(clause[:start].endswith(_BY) for start, _, _ in mentions):
        return (), ""
    for place, (start, end, name) in enumerate(mentions):
        before = clause[:start]
        if ordinary is not None and before and not (_WHEN_BEFORE.search(before) or before in ordinary):
            break
        together = [name]
        for next_start, next_end, other in mentions[place + 1 :]:
            if next_start != end:
                break
            together.append(other)
            end = next_end
        rest = clause[end:]
        if before[-1:] not in _NOT_ACTING and not rest.startswith(_JOINED) and not _WHEN_BEHIND.match(rest):
            return tuple(together), rest
        if ordinary is not None:
            break
    return (), ""


def _mentions(clause: str, people: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return start, end and name of the people in a clause, in order; of overlapping names the longer."""
    found: list[tuple[int, int, str]] = []
    for name in people:
        at = clause.find(name)
        while at >= 0:
            if not any(at < end and start < at + len(name) for start, end, _ in found):
                found.append((at, at + len(name), name))
            at = clause.find(name, at + 1)
    return sorted(found)
