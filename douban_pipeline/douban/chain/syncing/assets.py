"""The end of the chain: decisions, ids and fields reach the CMS."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.presentation import counted, subject_link, table
from douban_pipeline.douban.chain.linking.assets import scored_matches
from douban_pipeline.douban.chain.session import open_session
from douban_pipeline.douban.chain.syncing.decisions import Carried, carry_out, let_wait, outcomes
from douban_pipeline.douban.chain.syncing.guards import changes_of_run
from douban_pipeline.douban.chain.syncing.work import Synced
from douban_pipeline.douban.chain.syncing.writer import DRY_RUN_VISIT, Writer
from douban_pipeline.douban.partitions import shard_backfill, shards
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import WORDS
from douban_pipeline.douban.store.states import DecisionAction, DecisionState, TaskStage

DOUBAN_POOL = "douban_api"

_DECISIONS = 200


@dg.asset(
    deps=[scored_matches],
    partitions_def=shards,
    backfill_policy=shard_backfill,
    group_name="chain",
    kinds={"mysql", "python"},
    pool=DOUBAN_POOL,
)
def synced_fields(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Writes confirmed ids and refreshed fields to the CMS, through the change log only.

    Reviewers' pending decisions come first, each applied or refused with its reason; one whose source cannot be
    asked waits. Then every confirmed verdict is asked the guards' predicate once more and written; linked videos
    whose visit has come are refreshed from their subject. Empty answers never overwrite, each column has its policy,
    locked means locked, and what a person chose is linked to nothing else. Every write is in `mac_douban_log` before
    it happens and can be taken back by the job `revert_changes`. With `DOUBAN_PIPELINE_DRY_RUN=true` nothing is
    written and decisions wait: the table shows what would be.
    """
    session = open_session(context, services)
    dry_run = services.settings.dry_run
    carried: list[Carried] = []
    if dry_run:
        waiting = let_wait(services, session.shards, services.clock.now() + DRY_RUN_VISIT)
        context.log.warning("dry run: nothing is written to the CMS (DOUBAN_PIPELINE_DRY_RUN)")
    else:
        carried = carry_out(services, session.queue, session.change_log, session.shards, deadline=session.deadline)
        waiting = sum(item.state is DecisionState.PENDING for item in carried)
    tasks = session.queue.lease(session.shards, TaskStage.SYNC, limit=session.limit)
    attempts = session.attempts()
    writer = Writer(services, session.queue, session.change_log, attempts)
    results: list[Synced] = []
    for result in writer.sync(tasks):
        results.append(result)
        if len(results) % 25 == 0:
            context.log.info(f"{len(results)} of {len(tasks)} videos handled")
    decided = outcomes(services, carried, tasks)
    states = Counter(item.state for item in decided)
    kinds = Counter(result.result for result in results)
    columns = Counter(column for result in results for column in result.columns)
    with reading(services.engine) as connection:
        logged = changes_of_run(services, connection, session.run_id)
    context.log.info(counted("videos handled", kinds))
    return session.result(
        {
            "dry_run": dry_run,
            "handled": len(results),
            "linked": sum(result.linked for result in results if result.result in ("written", "planned")),
            "written": kinds["written"],
            "planned": kinds["planned"],
            "unchanged": kinds["unchanged"],
            "refused": kinds["refused"],
            "sent_to_review": kinds["review"],
            "decisions_applied": states[DecisionState.APPLIED],
            "decisions_refused": states[DecisionState.REFUSED],
            "decisions_queued": states[DecisionState.QUEUED],
            "decisions_waiting": waiting,
            **_told_of_decisions(decided),
            "changes_logged": sum(logged.values()),
            "batch": session.change_log.batch_id,
            "columns": dg.MetadataValue.md(
                table([{"column": column, "videos": count} for column, count in columns.most_common()])
            ),
            "most_telling": dg.MetadataValue.md(table([_shown(result) for result in sorted(results, key=_telling)])),
            **session.attempts_metadata(attempts),
        }
    )


def _told_of_decisions(decided: Sequence[Carried]) -> dict[str, Any]:
    """Return a table of the decisions that were refused, and one of those that wait, where there are any."""
    tables = {"refused_decisions": DecisionState.REFUSED, "waiting_decisions": DecisionState.PENDING}
    rows = {name: [_decision(item) for item in decided if item.state is state] for name, state in tables.items()}
    return {name: dg.MetadataValue.md(table(found, most=_DECISIONS)) for name, found in rows.items() if found}


def _decision(item: Carried) -> dict[str, object]:
    return {
        "影片": item.vod_id,
        "决定": WORDS[DecisionAction(item.action)],
        "条目": subject_link(item.douban_id),
        "审核员": item.reviewer,
        "原因": item.reason,
    }


_ORDER = ("refused", "review", "written", "planned", "skipped", "unchanged")


def _telling(result: Synced) -> tuple[int, bool, int]:
    """Sort what went wrong first, then new links, then the widest writes."""
    return _ORDER.index(result.result), not result.linked, -len(result.columns)


def _shown(result: Synced) -> dict[str, object]:
    return {
        "vod_id": result.vod_id,
        "shard": result.shard,
        "title": result.title,
        "subject": subject_link(result.douban_id),
        "result": result.result + (" (new link)" if result.linked else ""),
        "change": result.change_id,
        "columns": ", ".join(result.columns),
        "why": result.reason,
    }
