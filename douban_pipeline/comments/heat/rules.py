"""Ranking rules written by operators: a condition over factors, and a decision for the comments it matches."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from douban_pipeline.comments.heat.expressions import Condition, compile_condition
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.heat.graph import FactorGraph
from douban_pipeline.core.errors import ProblemsError

MOST_RULES = 50
MOST_AMOUNT = 20.0
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class RuleDecision(StrEnum):
    """Decision of a rule about the comments that it matches."""

    BOOST = "boost"
    SINK = "sink"
    PIN = "pin"
    EXEMPT = "exempt"


@dataclass(frozen=True, slots=True)
class RuleScope:
    """Sections to which a rule or an experiment applies; all if neither is given.

    Attributes:
        types: Types of sections, see `types.SectionType`.
    """

    types: tuple[int, ...] = ()
    sections: tuple[int, ...] = ()

    def covers(self, section_id: int, section_type: int) -> bool:
        """Return whether a section is in the scope."""
        if not self.types and not self.sections:
            return True
        return section_type in self.types or section_id in self.sections


EVERYWHERE = RuleScope()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is stored.

    Attributes:
        name: Lower-case letters, digits and underscores; used in other rules and in messages.
        expression: The condition, see `expressions`.
        amount: Points that a boost adds or a sink subtracts; 0 for the others.
        priority: Higher priorities come first; ties are sorted by name.
        stacks: Whether its points are added to those of other rules. Of all boosts that do not stack only the strongest
            counts, on a tie the first one; likewise for sinks.
        reason: Why the rule exists, in a sentence; shown where a rank is explained.
    """

    name: str
    expression: str
    decision: RuleDecision
    amount: float = 0.0
    priority: int = 0
    stacks: bool = False
    exempts: tuple[str, ...] = ()
    scope: RuleScope = EVERYWHERE
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule and its compiled condition."""

    rule: Rule
    condition: Condition


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Valid rules, highest priority first."""

    compiled: tuple[CompiledRule, ...] = ()

    @property
    def factors(self) -> frozenset[str]:
        """The names of the factors that the rules use."""
        return frozenset(name for each in self.compiled for name in each.condition.factors)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, highest priority first."""
        return tuple(each.rule for each in self.compiled)

    def in_section(self, section_id: int, section_type: int) -> RuleSet:
        """Return the rules that apply to a section."""
        return RuleSet(tuple(each for each in self.compiled if each.rule.scope.covers(section_id, section_type)))


def rule_set(rules: Sequence[Rule], graph: FactorGraph = GRAPH) -> RuleSet:
    """Compile and validate ``rules``.

    Raises:
        ProblemsError: Some rules have faults; one sentence for each, with the rule, the expression and the remedy.
    """
    problems: list[str] = []
    if len(rules) > MOST_RULES:
        problems.append(f"共 {len(rules)} 条规则，超过上限 {MOST_RULES}；请合并或删除不再需要的规则")
    names = Counter(rule.name for rule in rules)
    problems += [f"规则「{name}」定义了 {count} 次；请改名或删去多余的" for name, count in names.items() if count > 1]
    compiled: list[CompiledRule] = []
    for rule in rules:
        faults = _faults(rule, set(names))
        try:
            condition = compile_condition(rule.expression, graph)
        except ProblemsError as error:
            faults += error.problems
        else:
            compiled.append(CompiledRule(rule, condition))
        problems += [f"规则「{rule.name}」（{rule.expression}）：{fault}" for fault in faults]
    if problems:
        raise ProblemsError(problems)
    return RuleSet(tuple(sorted(compiled, key=lambda each: (-each.rule.priority, each.rule.name))))


def _faults(rule: Rule, names: set[str]) -> list[str]:
    faults: list[str] = []
    if not _NAME.fullmatch(rule.name):
        faults.append("名称应以小写字母开头，只含小写字母、数字和下划线，至多 40 个字符")
    moves = rule.decision in (RuleDecision.BOOST, RuleDecision.SINK)
    if moves and not (math.isfinite(rule.amount) and 0 < rule.amount <= MOST_AMOUNT):
        faults.append(
            f"amount 应大于 0 且不超过 {MOST_AMOUNT:g}，现为 {rule.amount:g}；降权也写正数，由 decision 决定方向"
        )
    if not moves and rule.amount:
        faults.append(f"{rule.decision.value} 不使用 amount；请删去，或改用 boost、sink")
    if not moves and rule.stacks:
        faults.append(f"{rule.decision.value} 不使用 stacks；请删去")
    if rule.decision is RuleDecision.EXEMPT and not rule.exempts:
        faults.append("exempt 须在 exempts 中写明豁免哪些规则或决策（boost、sink、pin）")
    if rule.decision is not RuleDecision.EXEMPT and rule.exempts:
        faults.append("只有 exempt 可以写 exempts；请删去，或改用 exempt")
    known = names | {each.value for each in RuleDecision if each is not RuleDecision.EXEMPT}
    faults += [f"exempts 中的「{each}」既不是规则也不是决策" for each in rule.exempts if each not in known]
    if rule.name in rule.exempts:
        faults.append("规则不能豁免自己；请从 exempts 中删去")
    return faults
