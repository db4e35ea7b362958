"""The sensors that launch runs.

A sensor makes indexed queries and nothing else; the decisions are pure functions. Skip reasons are the
operator's view: they say why nothing runs.
"""

from datetime import datetime, timedelta
from random import Random

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.language import language, page_text, read_in
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.runs import (
    PAUSE,
    JobRuns,
    code_location_of_sensor,
    failing_guard,
    pause_after_failures,
)
from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.chain.due.demand import Demand, Pace, choose_shards
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.chain.due.jobs import TakeInConfig, take_in_changes
from douban_pipeline.douban.chain.due.newcomers import Newcomers
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.checks import CHAIN_GUARDS
from douban_pipeline.douban.jobs import (
    LANE_JOBS,
    SYNC_TAGS,
    chain_job,
    chain_runs_under_way,
    decisions_job,
    ordered_intros_job,
    paused_shards,
    shard_range_tags,
)
from douban_pipeline.douban.pace import shards_at_once
from douban_pipeline.douban.partitions import SHARDS_PER_RUN, partition_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN

DUE_JITTER = timedelta(seconds=120)
"""The plan's jitter: maximum random addition to the interval between selections."""

MAX_SYNC_RUNS = 2
"""Maximum number of concurrent chain runs of the due sensor: the sources' rates feed no more."""

MIN_DUE_PER_RUN = 10
"""Number of due videos in a shard from which a run is launched: a process for each would cost more than its work."""

INTERVAL_SECONDS = 30
QUEUED_RUNS = 1
"""Runs that wait in Dagster's queue beside those that may be at work: an interval without any would be wasted."""
INTAKE_INTERVAL_SECONDS = 60
DECISIONS_INTERVAL_SECONDS = 10
"""A person waits. The daemon's own pace, the queue and the start of a process add up to as much again."""


@dg.sensor(
    job=chain_job,
    minimum_interval_seconds=INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text(
        "Launches douban_chain for shards with enough due videos, or with one that has waited long "
        "enough; ticks without a launch show the reason."
    ),
)
def due_videos_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[Services]
) -> dg.SensorResult | dg.SkipReason:
    """Launches the chain for shards with enough due videos, or with one that has waited long enough.

    Not while that shard is running, and never more runs than `MAX_SYNC_RUNS` and one that waits in the
    queue, so that the next begins when one ends. Where sources allow many requests a run covers several neighbouring
    shards, so that it has work for minutes. A shard whose run failed
    is paused for a minute, for ten if it fails again; while a guard fails, which would stop every run, one is tried
    every ten minutes. With `DOUBAN_PIPELINE_DUE_INTERVAL_SECONDS` selections keep that distance, and outside
    `DOUBAN_PIPELINE_ACTIVE_HOURS` there are none: only shards in which a person ordered a recheck are run then. What
    people decide is not this sensor's: see `decisions_sensor`. Runs of a backfill are not counted.

    Correctness depends on the tasks' leases, so a run launched by hand at the same time is harmless.
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
        asset, when = key.asset_key.to_user_string(), local_time(until, services.settings.zone)
        return dg.SkipReason(
            page_text(
                "the check {key} of {asset} failed and would stop every run: the next attempt is at "
                "{when}; runs launched by hand are not delayed"
            ).format(key=key.name, asset=asset, when=when)
        )
    due = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
    waits_until = _waits_until(context, now)
    reason = _quiet_reason(services.settings, now, waits_until)
    if reason:
        due = [shard for shard in due if shard.ordered]
        if not due:
            return dg.SkipReason(reason)
    location = code_location_of_sensor(context)
    under_way = chain_runs_under_way(context.instance, location)
    settings = services.settings
    rate = max(settings.douban_requests_per_minute, settings.search_requests_per_minute)
    demand = Demand(
        MIN_DUE_PER_RUN,
        timedelta(minutes=settings.max_due_wait_minutes),
        MAX_SYNC_RUNS + QUEUED_RUNS,
        shards_at_once(rate, settings.batch_size, SHARDS_PER_RUN),
    )
    running = {shard for covered in under_way.shards for shard in covered}
    own = len(under_way.shards) - under_way.backfills
    paused = paused_shards(context.instance, now, location)
    chosen, idle_reason = choose_shards(due, running, paused, own, demand, now)
    if not chosen:
        return dg.SkipReason(idle_reason)
    requests = [_chain_run(covered) for covered in chosen]
    pace = Pace(timedelta(seconds=settings.due_interval_seconds), DUE_JITTER)
    again = pace.next_selection(now, Random()) if not reason else waits_until
    if again:
        context.update_cursor(again.isoformat())
    return dg.SensorResult(run_requests=requests)


def _waits_until(context: dg.SensorEvaluationContext, now: datetime) -> datetime:
    """Return when the next selection is due: the cursor. One that is no time, as people may set it, means now."""
    if not context.cursor:
        return now
    try:
        until = datetime.fromisoformat(context.cursor)
    except ValueError:
        until = None
    if until is not None and until.tzinfo is not None:
        return until
    context.log.warning("the cursor %.50r is no time with a zone: starting afresh", context.cursor)
    context.update_cursor(now.isoformat())  # so that this is said once
    return now


@dg.sensor(
    jobs=[decisions_job, ordered_intros_job],
    minimum_interval_seconds=DECISIONS_INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text(
        "Launches apply_decisions within seconds of a person's decision, and write_ordered_intros "
        "for intros that people requested."
    ),
)
def decisions_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[Services]
) -> dg.SensorResult | dg.SkipReason:
    """Launches what people ordered within seconds: `apply_decisions`, and `write_ordered_intros` for intros.

    At most one run of each at a time, counting no others: whatever the chain, a backfill or a sweep is at, people do
    not wait for it. Decisions that wait for a source launch nothing until their time has come. After a run that failed
    there is a pause of one minute, after a second one of ten.
    """
    refusal = _setup_refusal(services)
    if refusal:
        return dg.SkipReason(refusal)
    if services.settings.dry_run:
        return dg.SkipReason(page_text("dry run: decisions wait (DOUBAN_PIPELINE_DRY_RUN)"))
    found = open_orders(services)
    wanted = {decisions_job.name: found.decisions + found.syncs, ordered_intros_job.name: found.intros}
    requests, reasons = [], []
    for job, count in wanted.items():
        if not count:
            continue
        runs = JobRuns(context.instance, code_location_of_sensor(context), job, frozenset({LANE_JOBS[job]}))
        now = services.clock.now()
        until = pause_after_failures([ended for _, ended in runs.failed_since(now - PAUSE)], now)
        if runs.under_way():
            reasons.append(page_text("a run of {job} is in progress").format(job=job))
        elif until is not None:
            when = local_time(until, services.settings.zone)
            reasons.append(page_text("{job} failed; the next attempt is at {when}").format(job=job, when=when))
        else:
            requests.append(dg.RunRequest(job_name=job))
    if requests:
        return dg.SensorResult(run_requests=requests)
    idle = page_text("no requested decision or intro can be processed now")
    return dg.SkipReason(page_text("; ").join(reasons) or idle)


def _chain_run(covered: range) -> dg.RunRequest:
    """Return the request of a run over the shards ``covered``."""
    first, last = covered[0], covered[-1]
    if first == last:
        return dg.RunRequest(partition_key=partition_key(first), tags=dict(SYNC_TAGS))
    return dg.RunRequest(tags={**SYNC_TAGS, **shard_range_tags(first, last)})


def _quiet_reason(settings: Settings, now: datetime, waits_until: datetime) -> str:
    """Return why only what people ordered is done at present; empty if due videos may be selected."""
    if not settings.works_at(now):
        hours = ", ".join(str(hour) for hour in sorted(settings.active_hours))
        return page_text("outside the active hours ({hours}): only requests of people are processed").format(
            hours=hours
        )
    if settings.due_interval_seconds and now < waits_until:
        when = local_time(waits_until, settings.zone)
        return page_text("paced: the next due videos are selected at {when}").format(when=when)
    return ""


@dg.sensor(
    job=take_in_changes,
    minimum_interval_seconds=INTAKE_INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text(
        "Launches take_in_changes when the CMS has new or changed rows, or a followed resource site "
        "added or changed a title of the library."
    ),
)
def intake_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[Services]
) -> dg.RunRequest | dg.SkipReason:
    """Launches `take_in_changes` when the CMS has rows that are new or whose `vod_time` changed.

    Also when a resource site that the feeds follow added or changed a video whose title the library has.
    """
    refusal = _setup_refusal(services)
    if refusal:
        return dg.SkipReason(refusal)
    if JobRuns(context.instance, code_location_of_sensor(context), take_in_changes.name).under_way():
        return dg.SkipReason(page_text("an intake run is in progress"))
    intake = Intake.of(services)
    if not intake.has_begun():
        return dg.SkipReason(
            page_text("the library is not initialised: launch the job initialise_library with dry_run: false")
        )
    if not intake.waiting():
        try:
            told_of = Newcomers(services).any_in_library()
        except (DatabaseError, SQLAlchemyError) as error:
            reason = str(getattr(error, "orig", None) or error)
            return dg.SkipReason(
                page_text("no new or changed rows in the CMS; the feeds' new titles cannot be read: {reason}").format(
                    reason=reason
                )
            )
        if not told_of:
            return dg.SkipReason(page_text("no new or changed rows in the CMS"))
    return dg.RunRequest(run_config=dg.RunConfig(ops={"take_in": TakeInConfig(dry_run=False)}))


def _setup_refusal(services: Services) -> str | None:
    """Return why nothing can run before the database is set up, or None.

    A database that does not answer raises, so that the tick fails.
    """
    try:
        with read_in(language()):
            services.ready()
    except DatabaseError as error:
        return str(error)
    return None


def _closed(gate: GateStatus, services: Services) -> str:
    until = gate.open_until.astimezone(services.settings.zone) if gate.open_until else None
    return page_text("the gate of {source} is closed until {until:%H:%M:%S}: {reason}").format(
        source=gate.source, until=until, reason=failure_text(gate.reason, wanted=language())
    )


sensors = [due_videos_sensor, decisions_sensor, intake_sensor]
