"""The last step of the chain: synced videos get an intro. Assets that call the language model belong here."""

from collections import Counter
from typing import Any

import dagster as dg

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import counted, local_time
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.chain.assets import begin_step, chain_asset, figures_of, tables_with_rows
from douban_pipeline.douban.chain.decision_lane.assets import applied_decisions, open_lane
from douban_pipeline.douban.chain.session import Session
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.intros.attempts import IntroAttempts
from douban_pipeline.douban.intros.author import NO_SOURCE, ledger_of
from douban_pipeline.douban.intros.due import INTROS_PER_RUN, DueIntro, DueIntros
from douban_pipeline.douban.intros.ledger import IntroLedger, costs_of, violation_texts
from douban_pipeline.douban.intros.writer import IntroResult, IntroWriter, revert_strayed_intros
from douban_pipeline.douban.resources import LLM_POOL, ORDERED_INTROS_POOL
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import TaskStage

SWITCHED_OFF = page_text("AI intros are not enabled")
_SHOWN = 60
"""Characters of a text in the table."""


@chain_asset(
    deps=[synced_fields],
    pool=LLM_POOL,
)
@page_docstring
def ai_intros(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Rewrites the synopses of linked videos with a language model, and locks the new texts.

    Intros that reviewers requested come first, even for locked ones; then videos synced in this run, then those not
    tried for 30 days. The model gets only a fact sheet, and is not called if Douban's
    synopsis is shorter than `DOUBAN_PIPELINE_INTRO_MIN_SOURCE_HAN`: it would invent a plot. Its text must pass a guard
    without a model (length, names, numbers, titles, links, claims, copies), with a second try if it fails, and is then
    written to `vod_content` and `vod_blurb` through the change log. An intro whose video has another subject by now is
    reverted. Every call and its price is in `mac_douban_intro`; no calls are made after the day's budget
    (`DOUBAN_PIPELINE_LLM_BUDGET_USD_PER_DAY`) is spent.
    Makes no calls unless `DOUBAN_PIPELINE_AI_INTROS=true`. With `DOUBAN_PIPELINE_DRY_RUN=true` it makes none either,
    and the table shows which videos are due.
    """
    session = begin_step(context, services)
    due = DueIntros(services)
    if not services.settings.ai_intros:
        # Tasks from before would look like work that nobody does.
        dropped = due.drop(session.queue, session.shards, SWITCHED_OFF)
        context.log.info("AI intros are switched off (DOUBAN_PIPELINE_AI_INTROS)")
        withdrawn = 0 if services.settings.dry_run else _withdrawn(session)
        return dg.MaterializeResult(
            data_version=TABLES,
            metadata=session.metadata({"switched_off": True, "dropped": dropped, "withdrawn": withdrawn}),
        )
    ledger = ledger_of(services)
    if services.settings.dry_run:
        found = [item for shard in session.shards for item in due.find(shard, limit=INTROS_PER_RUN)]
        context.log.warning("dry run: the model is not asked (DOUBAN_PIPELINE_DRY_RUN)")
        return dg.MaterializeResult(
            data_version=TABLES,
            metadata=session.metadata(
                {
                    "switched_off": False,
                    "dry_run": True,
                    "planned": len(found),
                    "texts": shown_table([_planned(item, services.settings) for item in found]),
                    **_money(ledger, services),
                }
            ),
        )
    return dg.MaterializeResult(data_version=TABLES, metadata=session.metadata(_written(context, session, due, ledger)))


@dg.asset(
    deps=[applied_decisions, synced_fields],
    group_name="chain",
    kinds={"mysql", "python"},
    pool=ORDERED_INTROS_POOL,
)
@page_docstring
def ordered_intros(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Writes the intros that people requested (`redo_intro`), over all shards, independent of other runs.

    It works like `ai_intros`, in the lane of people's decisions: launched by `decisions_sensor` within seconds, in a
    pool of its own. The day's budget and the model's limits apply to it too.
    """
    session = open_lane(context, services)
    if not services.settings.ai_intros or services.settings.dry_run:
        return dg.MaterializeResult(
            data_version=TABLES,
            metadata=session.metadata(
                {"switched_off": not services.settings.ai_intros, "dry_run": services.settings.dry_run}
            ),
        )
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(_written(context, session, DueIntros(services), ledger_of(services))),
    )


def _written(
    context: dg.AssetExecutionContext, session: Session, due: DueIntros, ledger: IntroLedger
) -> dict[str, Any]:
    services, log = session.services, session.log
    limit = INTROS_PER_RUN
    if ledger.spent_today() >= services.settings.llm_budget_usd_per_day:
        log.warning("the budget of the day is spent: no intros are begun (DOUBAN_PIPELINE_LLM_BUDGET_USD_PER_DAY)")
    elif not session.ordered_only:
        due.take(session.queue, session.shards, limit=limit, run_id=session.run_id)
    tasks = session.lease(TaskStage.INTRO, limit=limit * len(session.shards))
    attempts = IntroAttempts(services, session.queue, session.deadline, progress=session.progress("intros"))
    writer = IntroWriter(services, session.queue, session.change_log, attempts)
    results: list[IntroResult] = list(writer.write(tasks))
    kinds = Counter(result.result for result in results)
    answers = ledger.of_run(session.run_id)
    taken = costs_of(answers)
    log.info(f"{counted('intros handled', kinds)}, {taken.cost_usd:.4f} US dollars")
    return {
        "switched_off": False,
        "dry_run": False,
        **figures_of(
            context,
            session,
            {
                "asked": [row["vod_id"] for row in answers],
                "written": [result.vod_id for result in results if result.result == "written"],
                "refused_by_guard": [result.vod_id for result in results if result.result == "refused"],
                "skipped": [result.vod_id for result in results if result.result == "skipped"],
                "without_source": [result.vod_id for result in results if result.reason.startswith(NO_SOURCE)],
                "ordered": [result.vod_id for result in results if result.reviewer],
                **attempts.videos(),
            },
        ),
        # Last, so that links that changed while the model wrote are included.
        "withdrawn": _withdrawn(session),
        "cost_usd": round(taken.cost_usd, 6),
        "tokens": taken.tokens,
        "batch": session.change_log.batch_id,
        "texts": shown_table([_shown(result) for result in sorted(results, key=_refused_first)]),
        **_money(ledger, services),
        **attempts.counts(),
        **attempts.pace(),
        **tables_with_rows({"put_back": attempts.requeued(services.settings.zone)}),
    }


def _withdrawn(session: Session) -> int:
    if session.ordered_only:
        return 0
    withdrawn = revert_strayed_intros(session.services, session.change_log, session.shards)
    if withdrawn:
        session.log.warning(f"{withdrawn} intros reverted: their videos have another subject by now")
    return withdrawn


_RESULTS = {"refused": page_text("failed its checks"), "written": page_text("written"), "skipped": page_text("skipped")}
_ORDER = tuple(_RESULTS)


def _refused_first(result: IntroResult) -> tuple[int, int]:
    """Return a sort key that puts refused texts first."""
    return _ORDER.index(result.result), result.vod_id


def _shown(result: IntroResult) -> dict[str, object]:
    return {
        page_text("video"): f"{result.vod_id} {result.title}".rstrip(),
        page_text("result"): _RESULTS[result.result],
        page_text("ordered by"): result.reviewer,
        page_text("intro"): result.text[:_SHOWN],
        page_text("failed checks"): violation_texts(result.violations),
        page_text("reason", "column"): "" if result.violations else result.reason,
        page_text("change"): result.change_id,
    }


def _planned(item: DueIntro, settings: Settings) -> dict[str, object]:
    return {
        page_text("video"): item.vod_id,
        page_text("result"): page_text("dry run"),
        page_text("synced at"): local_time(item.synced_at, settings.zone),
    }


def _money(ledger: IntroLedger, services: Services) -> dict[str, float]:
    return {
        "cost_today_usd": round(ledger.spent_today(), 6),
        "budget_today_usd": services.settings.llm_budget_usd_per_day,
    }


assets = [ai_intros, ordered_intros]
