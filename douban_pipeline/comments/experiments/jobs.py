"""Job with which operators manage experiments."""

from typing import Any, Literal

import dagster as dg
from pydantic import Field

from douban_pipeline.comments.experiments.results import evaluate
from douban_pipeline.comments.heat.experiments import Experiment, Policies, Variant
from douban_pipeline.comments.heat.rules import RuleScope
from douban_pipeline.comments.resources import LOCATION, PERSON_TAGS
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import table
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job

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
