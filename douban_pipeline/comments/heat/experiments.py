"""Experiments: a salted hash of a section's id assigns it one of several ranking policies.

Sections are assigned, not users: everybody sees a section in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.heat.rules import EVERYWHERE, Rule, RuleScope, rule_set
from douban_pipeline.comments.heat.score import HeatWeights
from douban_pipeline.core.errors import ProblemsError

BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of an experiment.

    Attributes:
        share: Share of the sections in the experiment's scope, 0 to 1.
    """

    name: str
    share: float
    weights: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """Variants for a part of the sections; the others keep the default order.

    Attributes:
        salt: Salt of the hash; another salt selects other sections.
        variants: The variants; their shares sum up to at most 1.
    """

    name: str
    salt: str
    variants: tuple[Variant, ...]
    scope: RuleScope = EVERYWHERE


def bucket_of(salt: str, section_id: int) -> int:
    """Return the bucket of a section, 0 to ``BUCKETS - 1``: uniform over sections, independent between salts."""
    digest = hashlib.blake2b(f"{salt}:{section_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % BUCKETS


def variant_of(experiment: Experiment, section_id: int, section_type: int) -> Variant | None:
    """Return the variant assigned to a section; None if the experiment does not change it."""
    if not experiment.scope.covers(section_id, section_type):
        return None
    bucket = bucket_of(experiment.salt, section_id)
    reached = 0.0
    for variant in experiment.variants:
        reached += variant.share
        if bucket < round(reached * BUCKETS):
            return variant
    return None


class Policies:
    """Ranking policies of sections; each policy is compiled once.

    A section is in at most one experiment: the first by name that has a variant for it.
    """

    def __init__(
        self,
        weights: Mapping[str, Any],
        rules: Sequence[Rule],
        experiments: Sequence[Experiment] = (),
    ) -> None:
        """Compile the default policy and the policy of each variant.

        Raises:
            ProblemsError: A weight, a rule or an experiment has a fault; one sentence for each.
        """
        self._experiments = sorted(experiments, key=lambda each: each.name)
        self._default = Policy(HeatWeights.of(weights), rule_set(rules))
        self._variants: dict[tuple[str, str], Policy] = {}
        problems: list[str] = []
        for experiment in self._experiments:
            problems += experiment_faults(experiment, {rule.name for rule in rules})
            for variant in experiment.variants:
                kept = [rule for rule in rules if rule.name not in variant.without]
                try:
                    own = Policy(
                        HeatWeights.of({**weights, **variant.weights}),
                        rule_set([_without(rule, variant) for rule in kept]),
                        f"{experiment.name}/{variant.name}",
                    )
                except ProblemsError as error:
                    problems += [f"实验「{experiment.name}」的「{variant.name}」组：{each}" for each in error.problems]
                else:
                    self._variants[experiment.name, variant.name] = own
        if problems:
            raise ProblemsError(problems)

    def of(self, section_id: int, section_type: int) -> Policy:
        """Return the policy of a section, with the rules that apply to it."""
        found = self._default
        for experiment in self._experiments:
            variant = variant_of(experiment, section_id, section_type)
            if variant is not None:
                found = self._variants[experiment.name, variant.name]
                break
        return replace(found, rules=found.rules.in_section(section_id, section_type))


def _without(rule: Rule, variant: Variant) -> Rule:
    """Return a rule whose exemptions do not name rules that a variant omits."""
    return replace(rule, exempts=tuple(each for each in rule.exempts if each not in variant.without))


def experiment_faults(experiment: Experiment, rules: set[str]) -> list[str]:
    """Return the faults of an experiment, one sentence each; ``rules`` are the names of the existing rules."""
    faults: list[str] = []
    names = [variant.name for variant in experiment.variants]
    shares = [variant.share for variant in experiment.variants]
    if not names:
        faults.append("没有任何分组")
    if len(set(names)) != len(names):
        faults.append("分组重名")
    if not experiment.salt:
        faults.append("缺少 salt；请写一段任意文字，换 salt 即重新抽取评论区")
    if any(share <= 0 for share in shares) or sum(shares) > 1 + 1e-9:
        faults.append("各组 share 应大于 0 且总和不超过 1")
    for variant in experiment.variants:
        faults += [
            f"「{variant.name}」组的 without 中没有名为「{each}」的规则"
            for each in variant.without
            if each not in rules
        ]
    return [f"实验「{experiment.name}」：{fault}" for fault in faults]
