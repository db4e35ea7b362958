"""The recall centre: what becomes of the decisions of many rules about the same comments.

1. Exemptions: a comment that an exempting rule is true of is let off the rules and decisions that it names, as far as
   their priority is not higher. An exemption cannot be exempted.
2. Boosts and sinks: those that stack are added; of boosts that do not stack the strongest counts, and so of sinks.
   Their sum is at most `MOST_MOVED` points either way.
3. Pins: the comments that a pinning rule is true of come before all others, the highest priority first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from douban_pipeline.comments.heat.graph import Column, Columns
from douban_pipeline.comments.heat.rules import Decision, Rule, RuleSet

MOST_MOVED = 40.0
"""Points that rules may move a comment by, in sum."""
PIN_STEP = 100.0
"""Points between comments that are pinned and those that are not: more than the parts of a score can differ by."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What rules did to the comments.

    Attributes:
        moved: Points of boosts and sinks of each comment.
        pinned: Points of pins of each comment.
        counted: By rule, of which comments its decision counted.
        silenced: By rule, of which comments it was true without counting: exempted, or behind another rule.
        exempted: By rule, of which comments it was true but exempted; a part of `silenced`.
    """

    moved: Column
    pinned: Column
    counted: dict[str, Column] = field(default_factory=dict)
    silenced: dict[str, Column] = field(default_factory=dict)
    exempted: dict[str, Column] = field(default_factory=dict)


def recall(rules: RuleSet, columns: Columns, length: int) -> Recalled:
    """Return what ``rules`` decide of ``length`` comments.

    Args:
        rules: In order of priority.
        columns: At least the factors that they ask for.
        length: How many comments.
    """
    hits = {each.rule.name: each.condition.holds(columns, length) for each in rules.compiled}
    exempted = _exempted(rules, hits)
    counted = {name: hit & ~exempted[name] if name in exempted else hit for name, hit in hits.items()}
    _stack(rules, counted, length)
    moved = np.zeros(length)
    pinned = np.zeros(length)
    pins = [each.rule for each in rules.compiled if each.rule.decision is Decision.PIN]
    for step, rule in enumerate(reversed(pins), start=1):
        pinned[counted[rule.name]] = PIN_STEP * step
    for each in rules.compiled:
        points = points_of(each.rule)
        if points:
            moved[counted[each.rule.name]] += points
    np.clip(moved, -MOST_MOVED, MOST_MOVED, out=moved)
    silenced = {name: hit & ~counted[name] for name, hit in hits.items()}
    return Recalled(moved, pinned, counted, silenced, exempted)


def points_of(rule: Rule) -> float:
    """Return the points that a rule adds to a score, less than 0 for a sink; 0 for pins and exemptions."""
    signs = {Decision.BOOST: 1.0, Decision.SINK: -1.0}
    return signs.get(rule.decision, 0.0) * rule.amount


def _exempted(rules: RuleSet, hits: dict[str, Column]) -> dict[str, Column]:
    """Return by rule which of its hits are exempted; rules that no exemption reaches are left out."""
    exempted: dict[str, Column] = {}
    for exempting in rules.rules:
        if exempting.decision is not Decision.EXEMPT:
            continue
        for rule in rules.rules:
            named = rule.name in exempting.exempts or rule.decision.value in exempting.exempts
            if named and rule.decision is not Decision.EXEMPT and rule.priority <= exempting.priority:
                both = hits[rule.name] & hits[exempting.name]
                exempted[rule.name] = exempted[rule.name] | both if rule.name in exempted else both
    return exempted


def _stack(rules: RuleSet, counted: dict[str, Column], length: int) -> None:
    """Take from ``counted`` the boosts and the sinks that do not stack and are not the strongest of a comment."""
    for decision in (Decision.BOOST, Decision.SINK):
        alone = [rule for rule in rules.rules if rule.decision is decision and not rule.stacks]
        if len(alone) < 2:
            continue
        taken = np.zeros(length, dtype=bool)
        # Sorting keeps the order of priority among rules of equal points.
        for rule in sorted(alone, key=lambda each: -each.amount):
            counted[rule.name] = counted[rule.name] & ~taken
            taken |= counted[rule.name]
