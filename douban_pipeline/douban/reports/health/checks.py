"""Warnings on `pipeline_health`. They block nothing; each makes its own queries, so that it can be run alone."""

import math
from datetime import timedelta

import dagster as dg
from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.core.gate import GateState
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.reports.health import metrics, samples
from douban_pipeline.douban.reports.health.assets import pipeline_health
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStatus

BACKLOG_GROWTH = 0.25
"""Relative growth of the backlog in a day above which a warning is raised."""

FAILURE_SHARE = 0.3
"""Share of failed tasks in an hour above which a warning is raised."""

NO_SUCCESS_HOURS = 6
"""Hours without a successful task, while tasks wait, that raise a warning."""

LEAST_GROWTH = 200
"""Least growth of the backlog, in videos, for a warning: a small backlog doubles easily."""
LEAST_TASKS = 20
"""Least number of tasks in an hour from which a failure rate is computed."""
WAITED = timedelta(hours=1)
"""How long work must have waited before a missing success counts."""
LEAST_VERDICTS = 50
LEAST_POINTS = 0.10
STANDARD_ERRORS = 3.0
_NEAR = timedelta(hours=2)
_MOST_SHARDS = 8


def _result(passed: bool, said: str, **numbers: float | None) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=said,
        metadata={name: round(value, 4) for name, value in numbers.items() if value is not None},
    )


@dg.asset_check(
    asset=pipeline_health,
    description=page_text("The number of due videos did not grow by more than 25 % in a day."),
)
def backlog_steady(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Compare the due videos with those of 24 hours ago; passes if there is no measurement from that time."""
    services.ready()
    then = samples.newest_before(services, services.clock.now() - metrics.DAY, within=_NEAR)
    with reading(services.engine) as connection:
        due = metrics.due_count(connection, services)
    if then is None:
        return _result(
            True,
            page_text("{due:,} videos are due; there is no record of 24 hours ago to compare with").format(due=due),
            due=due,
        )
    growth = due - then.due
    allowed = BACKLOG_GROWTH
    if growth > LEAST_GROWTH and growth > allowed * then.due:
        share = f" (+{growth / then.due:.0%})" if then.due else ""
        said = page_text(
            "The backlog grows: due videos rose from {before:,} to {due:,} in 24 hours{share}, limit "
            "+{allowed:.0%}. See whether sources are closed or fail often; if not, allow more "
            "requests, lengthen the intervals of visits, or exclude categories"
        ).format(before=then.due, due=due, share=share, allowed=allowed)
        return _result(False, said, due=due, due_a_day_ago=then.due)
    return _result(
        True,
        page_text("{due:,} videos are due, {before:,} were 24 hours ago").format(due=due, before=then.due),
        due=due,
        due_a_day_ago=then.due,
    )


@dg.asset_check(
    asset=pipeline_health,
    description=page_text(
        "At most 30 % of the last hour's tasks failed; tasks requeued after a failure count, tasks "
        "that wait for an unavailable source do not."
    ),
)
def failures_rare(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Check the failure share of the last hour; passes if too few tasks ended in it."""
    services.ready()
    with reading(services.engine) as connection:
        by_type = metrics.outcomes_since(connection, services, services.clock.now() - metrics.HOUR)
    hour = metrics.total(by_type)
    share, allowed = hour.failure_share, FAILURE_SHARE
    if share is None or hour.judged < LEAST_TASKS:
        return _result(
            True,
            page_text("Only {judged} tasks ended in the last hour, fewer than {least}").format(
                judged=hour.judged, least=LEAST_TASKS
            ),
            failed=hour.failed,
        )
    said = page_text("{failed} of {judged} tasks failed in the last hour ({share:.0%})").format(
        failed=hour.failed, judged=hour.judged, share=share
    )
    if share <= allowed:
        return _result(True, said, failed=hour.failed, failure_share=share)
    worst = max(by_type.items(), key=lambda item: item[1].failed)
    said += page_text(
        ", limit {allowed:.0%}, most of {kind} ({count}). See why sources fail in source_gates, "
        "and the table put_back of recent runs"
    ).format(allowed=allowed, kind=worst[0], count=worst[1].failed)
    return _result(False, said, failed=hour.failed, failure_share=share)


@dg.asset_check(
    asset=pipeline_health,
    description=page_text(
        "While tasks wait, a task succeeded within 6 hours. In a dry run skipped tasks count, too. "
        "Passes while a person has stopped calls to a source."
    ),
)
def work_succeeds(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Check that a task succeeded; passes if nothing has waited for an hour, or a person closed a source."""
    services.ready()
    hours = NO_SUCCESS_HOURS
    if _has_succeeded(services, timedelta(hours=hours)):
        return _result(True, page_text("A task succeeded in the last {hours} hours").format(hours=hours))
    due, waiting = _waiting(services)
    if not due and not waiting:
        return _result(True, page_text("No work has waited for long"))
    closed = [gate for gate in services.gate.status() if gate.state is not GateState.CLOSED]
    by_people = [gate for gate in closed if gate.changed_by]
    if by_people:
        named = ", ".join(f"{gate.source} ({gate.changed_by})" for gate in by_people)
        return _result(
            True,
            page_text("No task succeeded in the last {hours} hours; sources closed by people: {named}").format(
                hours=hours, named=named
            ),
            due=due,
            open_tasks=waiting,
        )
    named = ", ".join(gate.source for gate in closed)
    why = (
        page_text("Closed sources: {named}; see source_gates").format(named=named)
        if closed
        else page_text("See whether schedules and sensors run, and why recent runs had no result")
    )
    said = page_text(
        "No task succeeded in the last {hours} hours, while {due:,} due videos and {waiting:,} tasks wait. {why}"
    ).format(hours=hours, due=due, waiting=waiting, why=why)
    return _result(False, said, due=due, open_tasks=waiting)


@dg.asset_check(
    asset=pipeline_health,
    description=page_text(
        "Today's share of verdicts that go to review is close to that of the last 14 days: it does "
        "not differ by both 10 percentage points and 3 standard errors."
    ),
)
def review_share_usual(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Compare today with the days before; passes if either has too few verdicts."""
    services.ready()
    with reading(services.engine) as connection:
        *before, today = metrics.verdict_days(connection, services)
    past = [day for day in before if day.judged]
    judged = sum(day.judged for day in past)
    share = today.review_share
    if share is None or today.judged < LEAST_VERDICTS or judged < LEAST_VERDICTS:
        return _result(
            True,
            page_text("{today} verdicts today and {before} before are too few to compare").format(
                today=today.judged, before=judged
            ),
            review_share=share,
        )
    usual = sum(day.counts.get("REVIEW", 0) for day in past) / judged
    # A test of two proportions: today against all earlier days together.
    both = (usual * judged + share * today.judged) / (judged + today.judged)
    error = math.sqrt(both * (1 - both) * (1 / today.judged + 1 / judged))
    far = abs(share - usual) >= LEAST_POINTS and abs(share - usual) > STANDARD_ERRORS * error
    said = page_text(
        "Today {share:.1%} of {count:,} verdicts go to review; the mean of {days} days before is {usual:.1%}"
    ).format(share=share, count=today.judged, days=len(past), usual=usual)
    if far:
        said += page_text(
            ". More usually means worse records or search results, or incomplete answers; fewer may "
            "mean looser rules. Look into the reasons of some of today's verdicts, and stop writes if "
            "need be (DOUBAN_PIPELINE_DRY_RUN)"
        )
    return _result(not far, said, review_share=share, usual_review_share=usual)


@dg.asset_check(
    asset=pipeline_health,
    description=page_text(
        "No executable task has waited for more than a day: tasks are done by the run that queues them or the next."
    ),
)
def tasks_taken_up(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Check for open tasks that no run holds and that could have been done for more than a day."""
    services.ready()
    with reading(services.engine) as connection:
        left = metrics.tasks_left(connection, services, services.clock.now() - metrics.DAY)
    if not left:
        return _result(True, page_text("No executable task has waited for more than a day"), tasks=0)
    count = sum(item.count for item in left)
    kinds: dict[str, int] = {}
    for item in left:
        kinds[item.task_type] = kinds.get(item.task_type, 0) + item.count
    named = ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items()))
    shards = sorted({item.shard for item in left})
    shown = ", ".join(map(partition_key, shards[:_MOST_SHARDS])) + (
        page_text(", …") if len(shards) > _MOST_SHARDS else ""
    )
    oldest = local_time(min(item.oldest for item in left), services.settings.zone)
    said = page_text(
        "{count:,} executable tasks have waited for more than a day ({named}), the oldest since "
        "{oldest}, in {shards} shards: {shown}. See whether due_videos_sensor is on, why it "
        "launched no runs lately, and whether recent runs of these shards failed; or launch "
        "douban_chain for these shards (backfill)"
    ).format(count=count, named=named, oldest=oldest, shards=len(shards), shown=shown)
    return _result(False, said, tasks=count, shards=len(shards))


def _has_succeeded(services: Services, within: timedelta) -> bool:
    task = services.tables.task
    good = [TaskStatus.SUCCESS, *([TaskStatus.SKIP] if services.settings.dry_run else [])]
    query = select(task.c.task_id).where(
        task.c.finished_at >= services.clock.now() - within, task.c.open_key.is_(None), task.c.status.in_(good)
    )
    with reading(services.engine) as connection:
        return connection.execute(query.limit(1)).first() is not None


def _waiting(services: Services) -> tuple[int, int]:
    """Return the numbers of due videos and of open tasks; each is 0 if its oldest has waited less than `WAITED`."""
    long_ago = services.clock.now() - WAITED
    with reading(services.engine) as connection:
        oldest = metrics.oldest_due(connection, services)
        due = metrics.due_count(connection, services) if oldest is not None and oldest.since <= long_ago else 0
        tasks = metrics.open_tasks(connection, services)
    return due, sum(item.count for item in tasks) if any(item.created <= long_ago for item in tasks) else 0


checks = [backlog_steady, failures_rare, work_succeeds, review_share_usual, tasks_taken_up]
