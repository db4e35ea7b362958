"""The step of the chain that writes to the CMS: decisions, ids and fields."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import counted, subject_link
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.dagster_kit.metadata import counts_table, shown_table
from douban_pipeline.douban.chain.assets import begin_step, chain_asset, figures_of, tables_with_rows
from douban_pipeline.douban.chain.match.assets import scored_matches
from douban_pipeline.douban.chain.sync.guards import changes_of_run
from douban_pipeline.douban.chain.sync.sync_items import SyncResult
from douban_pipeline.douban.chain.sync.task_closure import DRY_RUN_VISIT
from douban_pipeline.douban.chain.sync.writer import FieldWriter
from douban_pipeline.douban.decisions.application import apply_decisions, decisions_of_run, defer_decisions
from douban_pipeline.douban.resources import DOUBAN_POOL
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import TaskStage
from douban_pipeline.douban.wording import ACTIONS

_DECISIONS = 200


@chain_asset(
    deps=[scored_matches],
    pool=DOUBAN_POOL,
)
@page_docstring
def synced_fields(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Writes confirmed ids and refreshed fields to the CMS, through the change log only.

    What reviewers decided while the run searched and judged comes first, each applied or refused with its reason; one
    whose source cannot be asked waits. What the run's first step applied is reported here too. Then every confirmed
    verdict is asked the guards' predicate once more and written; linked videos whose visit has come are refreshed from
    their subject. Empty answers never overwrite, each column has its policy, locked means locked, and what a person
    chose is linked to nothing else. Every write is in `mac_douban_log` before it happens and can be reverted by the job
    `revert_changes`. With `DOUBAN_PIPELINE_DRY_RUN=true` nothing is written and decisions wait: the table shows what
    would be.
    """
    session = begin_step(context, services)
    dry_run = services.settings.dry_run
    deferred = 0
    if dry_run:
        deferred = defer_decisions(services, session.shards, services.clock.now() + DRY_RUN_VISIT)
        context.log.warning("dry run: nothing is written to the CMS (DOUBAN_PIPELINE_DRY_RUN)")
    else:
        apply_decisions(services, session.queue, session.change_log, session.shards, deadline=session.deadline)
    tasks = session.lease(TaskStage.SYNC)
    attempts = session.attempts("sync")
    writer = FieldWriter(services, session.queue, session.change_log, attempts)
    results: list[SyncResult] = list(writer.sync(tasks))
    decided = decisions_of_run(services, session.queue, tasks)
    kinds = Counter(result.result for result in results)
    columns = Counter(column for result in results for column in result.columns)
    with reading(services.engine) as connection:
        logged = changes_of_run(services.tables, connection, session.run_id)
    context.log.info(counted("videos handled", kinds))
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(
            {
                "dry_run": dry_run,
                **figures_of(
                    context,
                    session,
                    {
                        "handled": [result.vod_id for result in results],
                        "linked": [
                            result.vod_id
                            for result in results
                            if result.linked and result.result in ("written", "planned")
                        ],
                        **{
                            name: [result.vod_id for result in results if result.result == kind]
                            for name, kind in _FIGURES.items()
                        },
                        **attempts.videos(),
                    },
                ),
                **decision_metadata(decided, deferred),
                "changes_logged": sum(logged.values()),
                "batch": session.change_log.batch_id,
                "columns": counts_table(page_text("column"), page_text("video"), columns.most_common()),
                "most_telling": shown_table([_shown(result) for result in sorted(results, key=_telling)]),
                **attempts.counts(),
                **attempts.pace(),
                **tables_with_rows({"put_back": attempts.requeued(services.settings.zone)}),
            }
        ),
    )


def decision_metadata(decided: Sequence[Decision], deferred: int = 0) -> dict[str, Any]:
    """Return what became of a run's decisions: their numbers, and a table of the refused ones and of those that wait.

    Args:
        decided: The decisions.
        deferred: How many more wait, because nothing is written at present.
    """
    statuses = Counter(decision.status for decision in decided)
    refused = [_decision(decision) for decision in decided if decision.status is DecisionStatus.REFUSED]
    waiting = [_decision(decision) for decision in decided if decision.pending]
    return {
        "decisions_applied": statuses[DecisionStatus.APPLIED],
        "decisions_refused": statuses[DecisionStatus.REFUSED],
        "decisions_queued": statuses[DecisionStatus.QUEUED],
        "decisions_waiting": len(waiting) + deferred,
        **tables_with_rows({"refused_decisions": refused, "waiting_decisions": waiting}, most=_DECISIONS),
    }


def _decision(decision: Decision) -> dict[str, object]:
    return {
        page_text("video"): decision.vod_id,
        page_text("decision"): ACTIONS[decision.action],
        page_text("subject"): subject_link(decision.douban_id),
        page_text("reviewer"): decision.reviewer,
        page_text("reason", "column"): decision.reason,
    }


_FIGURES = {
    "written": "written",
    "planned": "planned",
    "unchanged": "unchanged",
    "refused": "refused",
    "sent_to_review": "review",
}
_RESULTS = {
    "refused": page_text("refused"),
    "review": page_text("sent to review", "column"),
    "written": page_text("written"),
    "planned": page_text("dry run"),
    "skipped": page_text("skipped"),
    "unchanged": page_text("unchanged"),
}
_ORDER = tuple(_RESULTS)


def _telling(result: SyncResult) -> tuple[int, bool, int]:
    """Sort what went wrong first, then new links, then the widest writes."""
    return _ORDER.index(result.result), not result.linked, -len(result.columns)


def _shown(result: SyncResult) -> dict[str, object]:
    return {
        page_text("video"): f"{result.vod_id} {result.title}".rstrip(),
        page_text("result"): _RESULTS[result.result] + (page_text(" (newly linked)") if result.linked else ""),
        page_text("subject"): subject_link(result.douban_id),
        page_text("column"): "、".join(result.columns),
        page_text("reason", "column"): result.reason,
        page_text("change"): result.change_id,
    }
