"""The asset of the lane in which people's decisions are applied."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import dagster as dg

from douban_pipeline.core.language import page_docstring
from douban_pipeline.core.ui.presentation import counted
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.douban.chain.assets import figures_of
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.match.assets import scored_matches
from douban_pipeline.douban.chain.session import Session, open_session
from douban_pipeline.douban.chain.sync.assets import decision_metadata, synced_fields
from douban_pipeline.douban.chain.sync.writer import FieldWriter
from douban_pipeline.douban.decisions.application import apply_decisions, decisions_of_run, pending_count
from douban_pipeline.douban.resources import DECISIONS_POOL
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage
from douban_pipeline.douban.store.tables import SHARDS

LANE_TIME = timedelta(seconds=25)
"""After how long a run of the lane looks again at what waits, so that what asks no source goes first."""

_MOST_SYNCS = 100


def open_lane(context: dg.AssetExecutionContext, services: Services) -> Session:
    """Begin a step that does nothing but what people ordered, over all shards; raises as `open_session` does."""
    session = open_session(services, context.run.run_id, range(SHARDS), context.log)
    return replace(session, ordered_only=True)


def apply_waiting(session: Session) -> int:
    """Apply what people decided until nothing ready waits or the run's time is used; return how many were looked at."""
    services, handled, found = session.services, 0, 1
    while found and services.clock.now() < session.deadline:
        deadline = min(session.deadline, services.clock.now() + LANE_TIME)
        found = apply_decisions(
            services, session.queue, session.change_log, session.shards, deadline=deadline, lane=True
        )
        handled += found
    return handled


@dg.asset(
    # Verdicts whose candidates were chosen, and the ids, fields and log that decisions are about.
    deps=[scored_matches, synced_fields],
    group_name="chain",
    kinds={"mysql", "python"},
    pool=DECISIONS_POOL,
)
@page_docstring
def applied_decisions(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Applies what people decided, over all shards, whatever else runs.

    Each pending decision of `mac_douban_decision` is applied or refused with its reason, those that ask no source
    first; one whose source cannot be asked waits. Then the syncs that decisions ordered are made. A call to Douban goes
    before all that automation queued at the gate. Nothing is searched or judged here.

    Launched by `decisions_sensor` within seconds of a decision, in a lane of its own: its tag `pipeline: decisions`
    has places that no other run takes (`dagster.yaml`), its priority is above all others, its pool is its own. A run
    of it looks every 25 seconds for decisions that were recorded since, until none waits or the time of a run is used.
    What is chosen on the served sheet the service applies itself, and reports here. Nobody applies one decision twice:
    it is leased. Runs of the chain that meet decisions apply them first, too. With `DOUBAN_PIPELINE_DRY_RUN=true`
    nothing is written and decisions wait.
    """
    session = open_lane(context, services)
    if services.settings.dry_run:
        waiting = pending_count(services, session.shards)
        context.log.warning("dry run: decisions wait (DOUBAN_PIPELINE_DRY_RUN)")
        return dg.MaterializeResult(data_version=TABLES, metadata=session.metadata(decision_metadata([], waiting)))
    handled = apply_waiting(session)
    tasks = session.lease(TaskStage.SYNC, limit=_MOST_SYNCS)
    attempts = Attempts(services, session.queue, min(session.deadline, services.clock.now() + LANE_TIME))
    results = list(FieldWriter(services, session.queue, session.change_log, attempts).sync(tasks))
    kinds = Counter(result.result for result in results)
    decided = decisions_of_run(services, session.queue, tasks)
    context.log.info(f"{handled} decisions looked at; {counted('ordered syncs', kinds)}")
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(
            {
                **decision_metadata(decided),
                "synced": len(results),
                "batch": session.change_log.batch_id,
                **figures_of(context, session, attempts.videos()),
                **attempts.counts(),
            }
        ),
    )
