"""The sensor that launches polls. It makes two indexed queries; its skip reasons state why nothing runs."""

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.runs import PAUSE, JobRuns, code_location_of_sensor
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.assets import feed_entries, feed_polls
from douban_pipeline.feeds.jobs import POLL_TAGS, poll_job
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import stats

INTERVAL_SECONDS = 30
WORTH_A_RUN = 20
"""This many due sources start a run at once; fewer wait until one of them has waited `LONGEST_WAIT`."""
LONGEST_WAIT = 60
_MOST_FAILED = 2


@dg.sensor(
    job=poll_job,
    minimum_interval_seconds=INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=described(
        "到期的来源够多、或有来源等了一分钟时启动 poll_feeds，同时只有一次运行；连续失败两次后停十分钟。",
        "Launches poll_feeds when enough sources are due, or one has waited a minute; one run at a time.",
    ),
)
def due_feeds_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[FeedsServices]
) -> dg.RunRequest | dg.SkipReason:
    """Launches `poll_feeds` when enough sources are due, or one has waited a minute; one run at a time.

    After two failed runs within ten minutes it pauses for ten minutes.
    """
    now = services.now()
    try:
        services.ready()
        with reading(services.engine) as connection:
            due, since = stats.count_due(connection, now)
            coming = stats.next_due(connection) if not due else None
    except DatabaseError as error:
        return dg.SkipReason(str(error))
    except SQLAlchemyError as error:
        problem = str(getattr(error, "orig", None) or error)
        context.log.error(f"the feeds' database cannot be read: {problem}")
        return dg.SkipReason(
            described(
                f"来源系统的数据库无法读取，没有启动抓取；恢复后自动继续：{problem}",
                f"the feeds' database cannot be read, so nothing is polled until it answers again: {problem}",
            )
        )
    location = code_location_of_sensor(context)
    runs = JobRuns(context.instance, location, poll_job.name, frozenset({feed_polls.key, feed_entries.key}))
    if runs.under_way():
        return dg.SkipReason(
            described(
                f"{due} 个来源到期；正在进行的运行会抓取它们",
                f"{due} sources are due; a run is in progress and will poll them",
            )
        )
    reason = idle_reason(due, now - since if since is not None else 0)
    if reason:
        when = wording.moment_text(coming, services.settings.zone) if coming else ""
        following = described(f"；下一个在 {when} 到期", f"; the next is due at {when}") if when else ""
        return dg.SkipReason(reason + following)
    if len(runs.failed_since(services.clock.now() - PAUSE)) >= _MOST_FAILED:
        return dg.SkipReason(
            described(
                f"{due} 个来源到期，但最近的运行失败了：十分钟后再试",
                f"{due} sources are due, but the last runs failed: the next is tried after ten minutes",
            )
        )
    return dg.RunRequest(tags={**POLL_TAGS, "feeds/due": str(due)})


def idle_reason(due: int, waited: int) -> str | None:
    """Return why no run is started for ``due`` sources, the first of which has waited ``waited`` seconds; or None."""
    if not due:
        return described("没有到期的来源", "no source is due")
    if due < WORTH_A_RUN and waited < LONGEST_WAIT:
        return described(
            f"{due} 个来源到期，最早的已等 {max(waited, 0)} 秒：等够一批再启动，至多等 {LONGEST_WAIT} 秒",
            f"{due} sources are due, the first for {max(waited, 0)} s: waiting for more, {LONGEST_WAIT} s at most",
        )
    return None


sensors = [due_feeds_sensor]
