"""The job that rewrites intros on a person's request: every default is safe."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.intros.author import ledger_of
from douban_pipeline.douban.intros.ledger import costs_of
from douban_pipeline.douban.intros.rewrites import RewriteResult, rewrite_intros
from douban_pipeline.douban.resources import OVERRIDE, PERSON_TAGS, SomeVideoIds
from douban_pipeline.douban.services import Services

RESULTS = {"written": "已写入", "shown": "仅预览", "refused": "未通过核对", "failed": "调用失败", "skipped": "跳过"}


class RedoConfig(LaunchpadConfig):
    """Which intros are rewritten, on whose request and why."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded with every write."))
    note: str = Field("", description=page_text("Reason, in one sentence."))
    dry_run: bool = Field(True, description=page_text("true: only show the texts of the model; false: write them."))
    override_cms_lock: bool = Field(False, description=OVERRIDE)
    vod_ids: SomeVideoIds = Field(default_factory=list, description=page_text("Videos (mac_vod.vod_id)."))


def rewrite(context: dg.OpExecutionContext, config: RedoConfig, services: dg.ResourceParam[Services]) -> None:
    """Rewrite intros, or only show the new texts."""
    services.ready()
    results = rewrite_intros(
        services,
        config.vod_ids,
        reviewer=config.reviewer,
        note=config.note,
        run_id=context.run_id,
        dry_run=config.dry_run,
        override_cms_lock=config.override_cms_lock,
    )
    taken = costs_of(ledger_of(services).of_run(context.run_id))
    context.log.info(f"{len(results)} intros handled, {taken.calls} calls, {taken.cost_usd:.4f} US dollars")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            **{name: sum(item.result == name for item in results) for name in RESULTS},
            "asked": taken.calls,
            "cost_usd": round(taken.cost_usd, 6),
            "tokens": taken.tokens,
            "intros": run_table([_shown(item) for item in results], most=200),
        }
    )


def _shown(item: RewriteResult) -> dict[str, object]:
    return {
        "影片": item.vod_id,
        "片名": item.title,
        "结果": RESULTS[item.result],
        "变更": item.change_id,
        "简介": item.text,
        "说明": item.reason,
    }


_REDO_INTROS = page_text(
    """\
Rewrite the intros of selected videos with the language model, and lock them again.

Requires `DOUBAN_PIPELINE_AI_INTROS=true`. A dry run calls the model and shows its texts. If the job is launched again
with `dry_run: false` within a day, it writes exactly these texts, even over locked intros, and locks them again.
"""
)

redo_intros = person_job(
    rewrite,
    name="redo_intros",
    manual=_REDO_INTROS,
    writes=page_text(
        "The column `vod_content`, through the change log, and its lock. A dry run calls the model, "
        "which costs money, and writes nothing to the CMS."
    ),
    when=page_text("When an intro is bad: it tells the ending, or says what is not so."),
    examples={"": {"reviewer": "小王", "note": "原简介剧透", "dry_run": False, "vod_ids": [1024, 2048]}},
    nothing_done="未重写任何简介",
    tags=PERSON_TAGS,
)


jobs = [redo_intros]
