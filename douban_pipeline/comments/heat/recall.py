"""Combines the decisions of many rules about the same comments ("recall centre").

1. Exemptions: a comment that matches an exempting rule is exempted from the rules and decisions that it names, unless
   their priority is higher. An exemption cannot be exempted.
2. Boosts and sinks: stacking ones are added; of boosts that do not stack only the strongest counts, likewise of sinks.
   Their sum is limited to `MOST_MOVED` points either way.
3. Pins: comments that match a pinning rule come before all others, highest priority first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from douban_pipeline.comments.heat.graph import Column, Columns
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleSet

MOST_MOVED = 40.0
"""Maximum sum of points that rules may move a comment by."""
PIN_STEP = 100.0
"""Points between pinned comments and others: more than the parts of a score can differ by."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Effect of rules on comments.

    Attributes:
        silenced: By rule, the comments that it matched without counting: exempted, or superseded by another rule.
        exempted: By rule, the comments that it matched but that were exempted; a subset of `silenced`.
    """

    moved: Column
    pinned: Column
    counted: dict[str, Column] = field(default_factory=dict)
    silenced: dict[str, Column] = field(default_factory=dict)
    exempted: dict[str, Column] = field(default_factory=dict)


def recall(rules: RuleSet, columns: Columns, length: int) -> Recalled:
    """Return the effect of ``rules`` on ``length`` comments."""
    hits = {each.rule.name: each.condition.holds(columns, length) for each in rules.compiled}
    exempted = _exempted(rules, hits)
    counted = {name: hit & ~exempted[name] if name in exempted else hit for name, hit in hits.items()}
    _stack(rules, counted, length)
    moved = np.zeros(length)
    pinned = np.zeros(length)
    pins = [each.rule for each in rules.compiled if each.rule.decision is RuleDecision.PIN]
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
    """Return the points that a rule adds to a score, negative for a sink; 0 for pins and exemptions."""
    signs = {RuleDecision.BOOST: 1.0, RuleDecision.SINK: -1.0}
    return signs.get(rule.decision, 0.0) * rule.amount


def _exempted(rules: RuleSet, hits: dict[str, Column]) -> dict[str, Column]:
    """Return by rule which of its matches are exempted; rules that no exemption names are left out."""
    exempted: dict[str, Column] = {}
    for exempting in rules.rules:
        if exempting.decision is not RuleDecision.EXEMPT:
            continue
        for rule in rules.rules:
            named = rule.name in exempting.exempts or rule.decision.value in exempting.exempts
            if named and rule.decision is not RuleDecision.EXEMPT and rule.priority <= exempting.priority:
                both = hits[rule.name] & hits[exempting.name]
                exempted[rule.name] = exempted[rule.name] | both if rule.name in exempted else both
    return exempted


def _stack(rules: RuleSet, counted: dict[str, Column], length: int) -> None:
    """Remove from ``counted`` the boosts and the sinks that do not stack and are not a comment's strongest."""
    for decision in (RuleDecision.BOOST, RuleDecision.SINK):
        alone = [rule for rule in rules.rules if rule.decision is decision and not rule.stacks]
        if len(alone) < 2:
            continue
        taken = np.zeros(length, dtype=bool)
        # The sort is stable: rules of equal points stay in order of priority.
        for rule in sorted(alone, key=lambda each: -each.amount):
            counted[rule.name] = counted[rule.name] & ~taken
            taken |= counted[rule.name]
