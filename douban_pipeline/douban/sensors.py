"""What launches runs by itself. A sensor makes indexed queries and nothing else; the decisions are pure functions.

Skip reasons are the operator's view: they say why nothing runs.
"""

from datetime import timedelta

import dagster as dg

from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.runs import JobRuns, failing_guard
from douban_pipeline.douban.chain.due.demand import Demand, choose_shards
from douban_pipeline.douban.chain.due.due_videos import DueVideos
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.chain.due.jobs import take_in_changes
from douban_pipeline.douban.checks import CHAIN_GUARDS
from douban_pipeline.douban.jobs import SYNC_TAGS, chain_job, chain_runs_under_way, paused_shards
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN

INTERVAL_SECONDS = 30
INTAKE_INTERVAL_SECONDS = 60


@dg.sensor(
    job=chain_job,
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def due_videos_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[Services]
) -> dg.SensorResult | dg.SkipReason:
    """Launches the chain for shards with enough due videos, or with one that has waited long enough.

    Not while that shard is running, and never more runs than `DOUBAN_PIPELINE_MAX_SYNC_RUNS`. A shard whose run failed
    is paused for a minute, for ten if it fails again; while a guard fails, which would stop every run, one is tried
    every ten minutes. Correctness rests on the tasks' leases, so a run launched by hand at the same time does no harm.
    """
    refusal = _setup_refusal(services)
    if refusal:
        return dg.SkipReason(refusal)
    now = services.clock.now()
    for gate in services.gate.status():
        # Without Douban nothing can be done. Without a search, or a language model, links are still synced, and what
        # needs them is deferred.
        if gate.source == DOUBAN and gate.open_until and gate.open_until > now:
            return dg.SkipReason(_closed(gate, services))
    guard = failing_guard(context.instance, CHAIN_GUARDS, now)
    if guard:
        key, until = guard
        return dg.SkipReason(
            f"the guard {key.name} of {key.asset_key.to_user_string()} failed and would stop every run: the next one "
            f"is tried at {local_time(until, services.settings.zone)}; a run launched by hand does not wait"
        )
    due = DueVideos(services.engine, services.tables, services.settings, services.clock).overview()
    location = _location(context)
    under_way = chain_runs_under_way(context.instance, location)
    settings = services.settings
    demand = Demand(settings.min_due_per_run, timedelta(minutes=settings.max_due_wait_minutes), settings.max_sync_runs)
    running = {shard for covered in under_way for shard in covered}
    paused = paused_shards(context.instance, now, location)
    chosen, why_not = choose_shards(due, running, paused, len(under_way), demand, now)
    if not chosen:
        return dg.SkipReason(why_not)
    window = int(now.timestamp()) // INTERVAL_SECONDS
    requests = [
        # The window in the key: a repeated tick asks for the same run, a later one for a new run.
        dg.RunRequest(
            run_key=f"{partition_key(shard)}:{window}", partition_key=partition_key(shard), tags=dict(SYNC_TAGS)
        )
        for shard in chosen
    ]
    return dg.SensorResult(run_requests=requests)


@dg.sensor(
    job=take_in_changes,
    minimum_interval_seconds=INTAKE_INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def intake_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[Services]
) -> dg.RunRequest | dg.SkipReason:
    """Launches `take_in_changes` when the CMS has rows that are new or whose `vod_time` changed."""
    refusal = _setup_refusal(services)
    if refusal:
        return dg.SkipReason(refusal)
    if JobRuns(context.instance, _location(context), take_in_changes.name).under_way():
        return dg.SkipReason("an intake run is under way")
    intake = Intake(services.engine, services.tables, services.cms, services.clock)
    if not intake.has_begun():
        return dg.SkipReason("the library was not taken in yet: launch the job initialise_library")
    if not intake.waiting():
        return dg.SkipReason("no new or changed rows in the CMS")
    window = int(services.clock.now().timestamp()) // INTAKE_INTERVAL_SECONDS
    return dg.RunRequest(run_key=f"intake:{window}")


def _setup_refusal(services: Services) -> str | None:
    """Return why nothing can run before the database is set up, or None.

    A database that does not answer raises, so that the tick fails.
    """
    try:
        services.ready()
    except DatabaseError as error:
        return str(error)
    return None


def _location(context: dg.SensorEvaluationContext) -> str | None:
    """Return the name of the code location that a sensor is evaluated in; None in a test."""
    origin = context.code_location_origin
    return origin.location_name if origin is not None else None


def _closed(gate: GateStatus, services: Services) -> str:
    until = gate.open_until.astimezone(services.settings.zone) if gate.open_until else None
    return f"the gate of {gate.source} is closed until {until:%H:%M:%S}: {gate.reason}"


sensors = [due_videos_sensor, intake_sensor]
