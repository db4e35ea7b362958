"""Stores rules and experiments: reading, activating, retiring, starting and ending them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from douban_pipeline.comments.heat.experiments import Experiment, Policies, Variant
from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope
from douban_pipeline.comments.heat.what_if import WhatIf
from douban_pipeline.comments.store.tables import experiment, rule, section
from douban_pipeline.core.errors import ProblemsError

ACTIVE, RETIRED = "active", "retired"
RUNNING = "running"
_KEPT_MOVES = 50


def rules_in_force(connection: Connection) -> list[Rule]:
    """Return the active rules, by name.

    Raises:
        ProblemsError: A stored rule cannot be read.
    """
    rows = connection.execute(select(rule).where(rule.c.state == ACTIVE).order_by(rule.c.name)).mappings()
    return [_rule(row) for row in rows]


def policies(connection: Connection, weights: Mapping[str, Any]) -> Policies:
    """Return the ranking policies of sections: active rules and running experiments.

    Raises:
        ProblemsError: A weight, a rule or an experiment has a fault; one sentence for each.
    """
    return Policies(weights, rules_in_force(connection), running(connection))


def policy_of(connection: Connection, section_id: int, weights: Mapping[str, Any]) -> Policy:
    """Return the ranking policy of a section.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    chosen = policies(connection, weights)
    kind = connection.execute(select(section.c.type).where(section.c.section_id == section_id)).scalar()
    if kind is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区"])
    return chosen.of(section_id, kind)


def running(connection: Connection) -> list[Experiment]:
    """Return the running experiments, by name."""
    query = select(experiment).where(experiment.c.state == RUNNING).order_by(experiment.c.name)
    return [_experiment(row) for row in connection.execute(query).mappings()]


def with_rule(rules: Sequence[Rule], changed: Rule) -> list[Rule]:
    """Return ``rules`` with ``changed`` added, or replacing the rule of the same name."""
    return [*(each for each in rules if each.name != changed.name), changed]


def save_rule(connection: Connection, saved: Rule, found: WhatIf, author: str, now: datetime) -> int:
    """Activate a rule in place of its previous revision, and store its preview; return the new revision.

    The caller has to validate it with `heat.rules.rule_set` together with the others.
    """
    last = connection.execute(select(func.max(rule.c.revision)).where(rule.c.name == saved.name)).scalar()
    retire_rule(connection, saved.name, now)
    revision = (last or 0) + 1
    shown: dict[str, Any] = {"comments": found.comments, "changed": found.changed, "moved": found.moved}
    shown |= {"hits": found.hits, "moves": [asdict(move) for move in found.moves[:_KEPT_MOVES]]}
    connection.execute(
        insert(rule).values(
            name=saved.name,
            revision=revision,
            expression=saved.expression,
            decision=saved.decision.value,
            amount=saved.amount,
            priority=saved.priority,
            stacks=saved.stacks,
            exempts=list(saved.exempts),
            scope={"types": list(saved.scope.types), "sections": list(saved.scope.sections)},
            state=ACTIVE,
            what_if=shown,
            author=author,
            reason=saved.reason,
            created_at=now,
            active_from=now,
        )
    )
    return revision


def retire_rule(connection: Connection, name: str, now: datetime) -> bool:
    """Retire a rule; return whether it was active."""
    statement = update(rule).where(rule.c.name == name, rule.c.state == ACTIVE)
    return connection.execute(statement.values(state=RETIRED, retired_at=now)).rowcount > 0


def save_experiment(connection: Connection, saved: Experiment, author: str, now: datetime) -> None:
    """Start an experiment; a running one of that name is ended and restarted with the new values."""
    end_experiment(connection, saved.name, now)
    values: dict[str, Any] = {
        "salt": saved.salt,
        "variants": [
            {"name": each.name, "share": each.share, "weights": dict(each.weights), "without": list(each.without)}
            for each in saved.variants
        ],
        "scope": {"types": list(saved.scope.types), "sections": list(saved.scope.sections)},
        "state": RUNNING,
        "author": author,
        "started_at": now,
        "ended_at": None,
    }
    known = update(experiment).where(experiment.c.name == saved.name).values(**values)
    if not connection.execute(known).rowcount:
        connection.execute(insert(experiment).values(name=saved.name, created_at=now, **values))


def end_experiment(connection: Connection, name: str, now: datetime) -> bool:
    """End an experiment; return whether it was running."""
    statement = update(experiment).where(experiment.c.name == name, experiment.c.state == RUNNING)
    return connection.execute(statement.values(state="ended", ended_at=now)).rowcount > 0


def find_experiment(connection: Connection, name: str) -> tuple[Experiment, datetime, str] | None:
    """Return an experiment by name with its start and its state, running or ended; None where there is none."""
    row = connection.execute(select(experiment).where(experiment.c.name == name)).mappings().one_or_none()
    return (_experiment(row), row["started_at"] or row["created_at"], row["state"]) if row is not None else None


def _rule(row: RowMapping) -> Rule:
    try:
        decision = RuleDecision(row["decision"])
    except ValueError as error:
        raise ProblemsError([f"规则「{row['name']}」的 decision「{row['decision']}」无法识别"]) from error
    return Rule(
        row["name"],
        row["expression"],
        decision,
        row["amount"],
        row["priority"],
        row["stacks"],
        tuple(row["exempts"]),
        _scope(row["scope"]),
        row["reason"],
    )


def _experiment(row: RowMapping) -> Experiment:
    variants = tuple(
        Variant(each["name"], each["share"], each.get("weights", {}), tuple(each.get("without", ())))
        for each in row["variants"]
    )
    return Experiment(row["name"], row["salt"], variants, _scope(row["scope"]))


def _scope(stored: Mapping[str, Any]) -> RuleScope:
    return RuleScope(tuple(stored.get("types", ())), tuple(stored.get("sections", ())))
