"""Job with which operators manage experiments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import dagster as dg
import numpy as np
from pydantic import Field
from sqlalchemy import Connection, func, select

from douban_pipeline.comments.heat.experiments import Experiment, Policies, Variant, variant_of
from douban_pipeline.comments.heat.factors import wilson
from douban_pipeline.comments.heat.rules import RuleScope
from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.resources import LOCATION, PERSON_TAGS
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.tables import comment, impression, section
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import table
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job

USUAL = "—"
"""Name for the sections in an experiment's scope that have none of its variants."""


@dataclass(slots=True)
class VariantResult:
    """Result of one variant.

    Attributes:
        name: Name of the variant; `USUAL` for sections with the default order.
    """

    name: str
    sections: int = 0
    shown: int = 0
    liked: int = 0
    comments: int = 0

    @property
    def rate(self) -> float:
        """Likes per impression; 0 without any."""
        return self.liked / self.shown if self.shown else 0.0

    @property
    def bound(self) -> float:
        """Lower bound of that rate, as in the score: few impressions are weak evidence."""
        liked = np.array([max(self.liked, 0)])
        return float(wilson(liked, np.maximum(self.shown - liked, 0))[0])


def assigned(connection: Connection, experiment: Experiment) -> dict[int, str]:
    """Return the name of the variant of each section in an experiment's scope, `USUAL` where it has none."""
    found: dict[int, str] = {}
    for row in connection.execute(select(section.c.section_id, section.c.type)):
        if experiment.scope.covers(row.section_id, row.type):
            variant = variant_of(experiment, row.section_id, row.type)
            found[row.section_id] = variant.name if variant is not None else USUAL
    return found


def evaluate(connection: Connection, experiment: Experiment, since: datetime) -> list[VariantResult]:
    """Return the results of the variants since a moment, rounded down to the hour; the default order comes first."""
    names = assigned(connection, experiment)
    results = {name: VariantResult(name) for name in (USUAL, *(each.name for each in experiment.variants))}
    for name in names.values():
        results[name].sections += 1
    hour = since.replace(minute=0, second=0, microsecond=0)
    seen = select(impression.c.section_id, func.sum(impression.c.shown), func.sum(impression.c.liked))
    for number, shown, liked in connection.execute(
        seen.where(impression.c.hour >= hour).group_by(impression.c.section_id)
    ):
        if number in names:
            results[names[number]].shown += int(shown)
            results[names[number]].liked += int(liked)
    written = select(comment.c.section_id, func.count()).where(comment.c.comment_id >= first_of(since))
    for number, count in connection.execute(written.group_by(comment.c.section_id)):
        if number in names:
            results[names[number]].comments += count
    return list(results.values())


_SHOWN = 200


class VariantConfig(LaunchpadConfig):
    """One variant of an experiment."""

    name: str = Field("", description=page_text("Name of the variant."))
    share: float = Field(0.5, description=page_text("Share of the sections, 0 to 1."))
    weights: dict[str, float] = Field(
        default_factory=dict, description=page_text("Weights that differ from the defaults.")
    )
    without: list[str] = Field(default_factory=list, description=page_text("Rules that are not applied."))


class ExperimentConfig(LaunchpadConfig):
    """Config of starting, evaluating or ending an experiment."""

    action: Literal["start", "evaluate", "end"] = Field("evaluate", description=page_text("Action."))
    dry_run: bool = Field(True, description=page_text("true: only preview; false: start or end it."))
    name: str = Field("", description=page_text("Name of the experiment."))
    salt: str = Field("", description=page_text("Any text; another text assigns sections anew."))
    variants: list[VariantConfig] = Field(default_factory=list, description=page_text("The variants."))
    types: list[int] = Field(default_factory=list, description=page_text("Only for these types."))
    sections: list[int] = Field(default_factory=list, description=page_text("Only for these sections."))
    operator: str = Field("", description=page_text("Name of the operator."))

    def experiment(self) -> Experiment:
        """Return the experiment of this config."""
        variants = [Variant(each.name, each.share, dict(each.weights), tuple(each.without)) for each in self.variants]
        return Experiment(self.name, self.salt, tuple(variants), RuleScope(tuple(self.types), tuple(self.sections)))


def change_experiment(
    context: dg.OpExecutionContext, config: ExperimentConfig, services: dg.ResourceParam[CommentsServices]
) -> None:
    """Start an experiment, report its results, or end it."""
    services.ready()
    if not config.dry_run and config.action != "evaluate" and not config.operator.strip():
        raise ProblemsError(["开始或结束实验需要写明操作人（operator）"])
    now, engine = services.clock.now(), services.engine
    with reading(engine) as connection:
        known = policies.find_experiment(connection, config.name)
        if config.action == "start":
            wanted, since = config.experiment(), now
            others = [each for each in policies.running(connection) if each.name != wanted.name]
            Policies(services.settings.heat_weights, policies.rules_in_force(connection), [*others, wanted])
        elif known is None:
            raise ProblemsError([f"没有名为「{config.name}」的实验"])
        else:
            wanted, since, state = known
            if config.action == "end" and state != policies.RUNNING:
                raise ProblemsError([f"实验「{config.name}」已经结束"])
        results = evaluate(connection, wanted, since)
    if not config.dry_run and config.action == "start":
        author = config.operator.strip()
        run_transaction(engine, lambda connection: policies.save_experiment(connection, wanted, author, now))
    if not config.dry_run and config.action == "end":
        run_transaction(engine, lambda connection: policies.end_experiment(connection, wanted.name, now))
    rows = [
        {
            "组": each.name,
            "评论区": each.sections,
            "曝光": each.shown,
            "点赞": each.liked,
            "点赞率": f"{100 * each.rate:.2f}%",
            "下界": f"{100 * each.bound:.2f}%",
            "新评论": each.comments,
        }
        for each in results
    ]
    for row in rows:
        context.log.info("，".join(f"{name} {value}" for name, value in row.items()))
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "since": since.isoformat(),
            "sections": sum(each.sections for each in results),
            "variants": dg.MetadataValue.md(table(rows, most=_SHOWN)),
        }
    )


_EXPERIMENT = page_text(
    """\
Start, evaluate or end an experiment with the order by heat.

A salted hash assigns sections to variants; all visitors of a section see the same order. With `start` and
`dry_run: true` only the assignment is shown. `evaluate` shows impressions and like rates since the start; after `end`,
sections return to the default order.
"""
)

comment_experiment = person_job(
    change_experiment,
    name="comment_experiment",
    manual=_EXPERIMENT,
    writes=page_text(
        "The experiment's row; sections change their order at their next score. A dry run (the "
        "default) and `evaluate` write nothing."
    ),
    when=page_text("When you want to know whether another order is liked better."),
    examples={
        "开始": {
            "action": "start",
            "name": "slow_decay",
            "salt": "2026-11",
            "variants": [VariantConfig(name="slower", share=0.5, weights={"decay": 0.06})],
        },
        "评估": {"action": "evaluate", "name": "slow_decay"},
        "结束": {"action": "end", "name": "slow_decay"},
    },
    nothing_done="实验没有变化",
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs: list[Any] = [comment_experiment]
