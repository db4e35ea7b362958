"""Who does something to whom in a clause, by the order of names and the words before them.

Chinese marks it by position: who acts stands first, except behind 被 and 由, and whom it happens to stands behind the
verb or behind 把. What this cannot tell is left open: nobody is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from douban_pipeline.douban.intros.factguard.story_people import Cast

_PASSIVE = re.compile("(?:被|遭到?|由).{0,3}$")
_ON_WHOM = re.compile(
    "(?:把|将|替|为|向|对|给|从|跟|与|和|了|着|过|到|见)[^的]{0,6}的$"
    "|(?:把|将|替|为|向|对|给|从)[^了]{0,4}$|(?:请|派|叫|命令?|劝|求|问|教会?|逼|雇|让|使|帮助?|陪|找|等|救|了|着|过|到|见|中|上|靠|凭|按|代)$"
)
_IS = re.compile("是(?![替为被由把给])")
_PIVOT = re.compile("(?:请求?|让|要求?|叫|派|命令?|劝说?|交给|留给|逼|教会?|雇|帮助?|说服了?).{0,3}$")
_WITH = re.compile("(?:和|与|跟|同|及)$")
_TITLE_BEFORE = re.compile("[员长师者手匠工兵将生警夫人农商客民官妇女子妻]$")
_WHEN_BEFORE = re.compile(
    "[时后前间日天夜际里中上下年月初末]$"
    "|(?:因为|由于|如果|原来|其实|后来|最后|最终|终于|于是|但是|可是|然而|却|而|当|直到|等到|等|随后)$"
)
_WHEN_BEHIND = re.compile("^.{1,6}?之?[后前](?!来)")
_ATTRIBUTE = re.compile("(?<=[把将替为向对给从跟与和了着过到见救]).{2,8}的$")
_OWNING = re.compile("^[^在从把被将对向给和与跟替为了着]{0,3}(?:的|之(?![夜后前中间下上时]))|^(?:家|全家|一家)(?!里)")
_PRONOUN = re.compile("他们|她们|它们|二人|两人|双方|对方|[他她它](?!人)")
_REPORTED = re.compile(
    "认为|认定|怀疑|疑心|发现|发觉|察觉|觉得|看见|看到|看出|得知|查出|查明|听说|承认|知道|以为|坚称|断定"
    "|自称|声称|(?<!传)说(?!服|好)"
)
_RECEIVED = re.compile("得知|听说|听|被|遭|受|由|从")
_MOST_BEFORE = 4
"""Most characters before a subject that may be its designation; what is longer holds a verb."""


@dataclass(frozen=True, slots=True)
class Act:
    """An action, or what somebody says or finds of one.

    Attributes:
        words: The words that tell it.
        agents: Who acts, "" for a pronoun; empty if that is not told.
        patients: Whom it happens to.
        taken_over: Whether who acts is named in a clause before, not in this one.
        pivot: Whether the patients are made to act too: A asks B to do it.
        unknown: Whether something else than a person stands where who acts is named.
        when: Who acts in its time, as in 父亲死后.
    """

    words: str
    agents: tuple[str, ...] = ()
    patients: tuple[str, ...] = ()
    taken_over: bool = False
    pivot: bool = False
    unknown: bool = False
    when: tuple[str, ...] = ()

    @property
    def received(self) -> bool:
        """Whether who stands first is at the receiving end: 听说, 被."""
        return bool(_RECEIVED.search(self.words))


def acts_of(sentences: Sequence[Sequence[str]], cast: Cast) -> list[tuple[Act, ...]]:
    """Return the acts of each clause, in order; who is left out goes on from the clause before in the sentence."""
    acts: list[tuple[Act, ...]] = []
    for clauses in sentences:
        topic: tuple[str, ...] = ()
        for clause in clauses:
            first, *others = _parts(clause)
            act = _act(first, cast)
            if not act.agents and topic and not act.unknown:
                act = replace(act, agents=topic, taken_over=True)
            topic = act.when if act.unknown else act.agents or topic
            acts.append((act, *(_act(part, cast) for part in others)))
    return acts


def _parts(clause: str) -> Iterator[str]:
    """Yield a clause, split behind each word of saying or finding: what is said has a subject of its own."""
    at = 0
    for match in _REPORTED.finditer(clause):
        if match.start() > at and match.end() < len(clause):
            yield clause[at : match.end()]
            at = match.end()
    yield clause[at:]


def _act(words: str, cast: Cast) -> Act:
    agents: list[str] = []
    patients: list[str] = []
    pivot = passive = companion = unknown = False
    cuts: list[tuple[int, int]] = []
    last_end = begin = 0
    when: tuple[str, ...] = ()
    for start, end, names in _groups(words, cast):
        between, rest = words[last_end:start], words[end:]
        if _IS.search(between) and between != "是":
            unknown = unknown or not agents
            break
        if _OWNING.search(rest):
            unknown = unknown or not agents
            continue
        if not agents and _IS.match(rest):
            unknown = True
            break
        if not agents and _WHEN_BEHIND.search(rest):
            unknown, when = True, names
            continue
        if _PASSIVE.search(between):
            patients, agents, passive = [*patients, *agents], list(names), True
        elif _WITH.fullmatch(between) and agents and not patients:
            agents += names
        elif _WITH.search(between) and not agents:
            companion = True
            agents += names
        elif between.endswith("的") and agents and not passive and not _ON_WHOM.search(between) and len(rest) > 2:
            agents, patients, begin = list(names), [], start
        elif _ON_WHOM.search(between) or agents or passive:
            pivot = pivot or bool(_PIVOT.search(between))
            patients += names
            attribute = _ATTRIBUTE.search(between)
            if attribute:
                cuts.append((last_end + attribute.start(), start))
        elif rest and _may_precede(words[:start]):
            agents += names
            begin = start if between.endswith("的") else begin
        else:
            patients += names
        last_end = end
    if "" in agents and (companion or len(agents) > 1):
        agents, unknown = [], True
    for start, end in reversed(cuts):
        words = words[:start] + words[end:]
    told = words[begin:]
    return Act(told, tuple(agents), tuple(patients), companion, pivot, unknown and not agents, when)


def _may_precede(before: str) -> bool:
    """Return whether what stands before a name may stand before a subject: an attribute, a designation, a time."""
    if re.search("[把将给向了着]", before):
        return False
    described = before.rsplit("的", 1)[-1]
    return len(described) <= _MOST_BEFORE or bool(_TITLE_BEFORE.search(before) or _WHEN_BEFORE.search(before))


def _groups(words: str, cast: Cast) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return start, end and names of the people in a clause; adjacent names are one group, a pronoun is ""."""
    found = cast.mentions(words)
    taken = [(start, end) for start, end, _ in found]
    for match in _PRONOUN.finditer(words):
        if not any(start <= match.start() < end for start, end in taken):
            found.append((match.start(), match.end(), ""))
    groups: list[tuple[int, int, tuple[str, ...]]] = []
    for start, end, name in sorted(found):
        if groups and groups[-1][1] == start:
            groups[-1] = (groups[-1][0], end, (*groups[-1][2], name))
        else:
            groups.append((start, end, (name,)))
    return groups
