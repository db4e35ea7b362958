"""Previews rules of the order by heat on a section, activates and retires them; for jobs and the moderators' page."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from douban_pipeline.comments.heat.experiments import Policies
from douban_pipeline.comments.heat.ranking import HeatRanking, Policy, columns_to_read, rank
from douban_pipeline.comments.heat.rules import Rule
from douban_pipeline.comments.heat.what_if import WhatIf, what_if
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.actions import note
from douban_pipeline.comments.store.comment_lists import shown_ids
from douban_pipeline.comments.store.tables import section
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError

_FIRST = 20
"""Places that a preview shows."""
_READ = 500
"""Number of first comments among which those that are shown are looked up: others have no place."""


@dataclass(frozen=True, slots=True)
class RulePreview:
    """What a rule would move in a section, and the first comments without and with it."""

    effect: WhatIf
    before: list[int]
    after: list[int]


def preview_rule(services: CommentsServices, section_id: int, saved: Rule) -> RulePreview:
    """Return the effect of activating a rule, in place of the one of its name if there is one.

    Raises:
        ProblemsError: There is no such section, or the rule has faults.
    """
    weights = services.settings.heat_weights
    with reading(services.engine) as connection:
        rules, experiments = policies.rules_in_force(connection), policies.running(connection)
        kind = connection.execute(select(section.c.type).where(section.c.section_id == section_id)).scalar()
    if kind is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区；请在 try_on 中写明用哪个评论区试算"])
    before = Policies(weights, rules, experiments).of(section_id, kind)
    after = Policies(weights, policies.with_rule(rules, saved), experiments).of(section_id, kind)
    with reading(services.engine) as connection:
        first, second = _ranked(connection, services, section_id, before, after)
        both = [[int(number) for number in ranking.ids[:_READ]] for ranking in (first, second)]
        shown = shown_ids(connection, {*both[0], *both[1]})
    before_ids, after_ids = ([number for number in ids if number in shown][:_FIRST] for ids in both)
    return RulePreview(what_if(first, second), before_ids, after_ids)


def _ranked(
    connection: Connection, services: CommentsServices, section_id: int, before: Policy, after: Policy
) -> tuple[HeatRanking, HeatRanking]:
    wanted = columns_to_read(before) | columns_to_read(after)
    columns = read_columns(connection, section_id, wanted, services.clock.now())
    return rank(columns.ids, columns.read, before), rank(columns.ids, columns.read, after)


def activate_rule(services: CommentsServices, saved: Rule, effect: WhatIf, author: str) -> int:
    """Activate a rule that was previewed, and note who did it; return its revision."""
    now = services.clock.now()

    def work(connection: Connection) -> int:
        revision = policies.save_rule(connection, saved, effect, author, now)
        detail = {"revision": revision, "decision": saved.decision.value, "amount": saved.amount}
        detail |= {"expression": saved.expression}
        note(connection, author, "rule", f"rule:{saved.name}", now, detail, saved.reason)
        return revision

    return run_transaction(services.engine, work)


def retire_rule(services: CommentsServices, name: str, author: str, *, dry_run: bool) -> None:
    """Retire a rule, and note who did it.

    Raises:
        ProblemsError: It is not active, or another rule or an experiment refers to it.
    """
    with reading(services.engine) as connection:
        rules, experiments = policies.rules_in_force(connection), policies.running(connection)
    if name not in {rule.name for rule in rules}:
        raise ProblemsError([f"没有启用中的规则「{name}」"])
    Policies(services.settings.heat_weights, [rule for rule in rules if rule.name != name], experiments)
    if dry_run:
        return
    now = services.clock.now()

    def work(connection: Connection) -> None:
        policies.retire_rule(connection, name, now)
        note(connection, author, "retire_rule", f"rule:{name}", now)

    run_transaction(services.engine, work)
