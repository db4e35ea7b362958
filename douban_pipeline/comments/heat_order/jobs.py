"""Jobs with which operators manage the order by heat: rules, and rescoring one section."""

from typing import Any, Literal

import dagster as dg
from pydantic import Field

from douban_pipeline.comments import rule_changes
from douban_pipeline.comments.assets import sweep_metadata
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope
from douban_pipeline.comments.resources import LOCATION, PERSON_TAGS
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store import search_index
from douban_pipeline.comments.sweep import rebuild
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table

_SHOWN = 200


class RuleConfig(LaunchpadConfig):
    """Config of a ranking rule to preview or to activate."""

    dry_run: bool = Field(True, description=page_text("true: only show the moves; false: save."))
    name: str = Field("", description=page_text("Name of the rule.", "comments"))
    expression: str = Field("", description=page_text("Condition over factors."))
    decision: Literal["boost", "sink", "pin", "exempt"] = Field("boost", description=page_text("Effect of the rule."))
    amount: float = Field(0.0, description=page_text("Points of a boost or a sink."))
    priority: int = Field(0, description=page_text("Priority; higher ones go first."))
    stacks: bool = Field(False, description=page_text("Whether its points are added to others'."))
    exempts: list[str] = Field(default_factory=list, description=page_text("Rules or decisions that do not apply."))
    types: list[int] = Field(default_factory=list, description=page_text("Only for these types."))
    sections: list[int] = Field(default_factory=list, description=page_text("Only for these sections."))
    reason: str = Field("", description=page_text("Reason, shown in explanations of ranks."))
    try_on: int = Field(0, description=page_text("Id of the section for the preview."))
    operator: str = Field("", description=page_text("Name of the operator."))

    def rule(self) -> Rule:
        """Return the rule of this config."""
        return Rule(
            self.name,
            self.expression,
            RuleDecision(self.decision),
            self.amount,
            self.priority,
            self.stacks,
            tuple(self.exempts),
            RuleScope(tuple(self.types), tuple(self.sections)),
            self.reason,
        )


def save_rule(context: dg.OpExecutionContext, config: RuleConfig, services: dg.ResourceParam[CommentsServices]) -> None:
    """Preview what a rule would move in a section and, unless it is a dry run, activate it."""
    services.ready()
    if not config.dry_run and not config.operator.strip():
        raise ProblemsError(["保存规则需要写明操作人（operator）"])
    saved = config.rule()
    found = rule_changes.preview_rule(services, config.try_on, saved).effect
    revision = 0
    if not config.dry_run:
        revision = rule_changes.activate_rule(services, saved, found, config.operator.strip())
    for sentence in found.sentences()[:20]:
        context.log.info(sentence)
    rows = [
        {"评论": move.comment_id, "原名次": move.before, "新名次": move.after, "得分": f"{move.points:+.3f}"}
        for move in found.moves
    ]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "revision": revision,
            "changed": found.changed,
            "moved": found.moved,
            "moves": run_table(rows, most=_SHOWN),
        }
    )


_SAVE_RULE = page_text(
    """\
Preview a rule on a section, or activate it.

With `dry_run: true` only the moves are shown. A rule of the same name gets a new revision; the previous is retired.
"""
)

save_comment_rule = person_job(
    save_rule,
    name="save_comment_rule",
    manual=_SAVE_RULE,
    writes=page_text(
        "A revision of the rule; sections are ordered by it at their next score. A dry run (the "
        "default) only shows the moves."
    ),
    when=page_text("When some kind of comment should stand higher or lower."),
    examples={
        "沉底": {
            "name": "disliked",
            "expression": "dislikes > likes * 2 and dislikes >= 3",
            "decision": "sink",
            "amount": 2.0,
            "reason": "踩远多于赞",
            "try_on": 1,
        },
        "豁免": {"name": "featured", "expression": "featured", "decision": "exempt", "exempts": ["sink"], "try_on": 1},
    },
    nothing_done="未保存规则",
    location=LOCATION,
    tags=PERSON_TAGS,
)


class RetireConfig(LaunchpadConfig):
    """Config of retiring a rule."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: retire it."))
    name: str = Field("", description=page_text("Name of the rule."))


def retire_rule(
    context: dg.OpExecutionContext, config: RetireConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Retire a rule; the next sweep ranks without it."""
    services.ready()
    rule_changes.retire_rule(services, config.name, "job", dry_run=config.dry_run)
    context.add_output_metadata({"dry_run": config.dry_run, "rule": config.name})


_RETIRE = page_text(
    """\
Retire a rule.

A rule that another rule exempts, or that a running experiment leaves out, cannot be retired until that is changed.
"""
)

retire_comment_rule = person_job(
    retire_rule,
    name="retire_comment_rule",
    manual=_RETIRE,
    writes=page_text("The end of the rule. A dry run (the default) only checks."),
    when=page_text("When a rule does more harm than good."),
    examples={"": {"dry_run": False, "name": "disliked"}},
    nothing_done="未停用规则",
    location=LOCATION,
    tags=PERSON_TAGS,
)


class SectionRescoreConfig(LaunchpadConfig):
    """Config of rescoring one section."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: rescore it."))
    section: int = Field(0, description=page_text("Id of the section."))


def rebuild_section(
    context: dg.OpExecutionContext, config: SectionRescoreConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Score one section and publish its list now."""
    services.ready()
    if config.dry_run:
        with reading(services.engine) as connection:
            policies.policy_of(connection, config.section, services.settings.heat_weights)
            comments, _ = search_index.count_texts(connection, config.section)
        context.log.info(f"dry run: {comments} comments would be scored")
        context.add_output_metadata({"dry_run": True, "comments": comments})
        return
    scored = rebuild(services, config.section)
    context.log.info(f"{scored.comments} comments scored, {scored.published} published")
    context.add_output_metadata({"dry_run": False, **sweep_metadata([scored], 0)})


_REBUILD = page_text(
    """\
Rescore one section now, and replace its lists.

The list is replaced as a whole: readers never see a partial list.
"""
)

rebuild_comment_section = person_job(
    rebuild_section,
    name="rebuild_comment_section",
    manual=_REBUILD,
    writes=page_text(
        "The scores and the lists of one section. A dry run (the default) only says how many comments it has."
    ),
    when=page_text("When a section's list looks wrong and you do not want to wait for the next sweep."),
    examples={"": {"dry_run": False, "section": 1}},
    nothing_done="未重算",
    location=LOCATION,
    tags=PERSON_TAGS,
)


jobs: list[Any] = [save_comment_rule, retire_comment_rule, rebuild_comment_section]
