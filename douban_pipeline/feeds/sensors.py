"""The sensor that launches polls. It makes two indexed queries; its skip reasons state why nothing runs."""

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import page_text
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
MOST_COUNTED = 1000
"""Due sources are counted no further, which no decision needs, so that a tick costs the same for any number."""
_MOST_FAILED = 2


@dg.sensor(
    job=poll_job,
    minimum_interval_seconds=INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text(
        "Launches poll_feeds when enough sources are due, or one has waited a minute; one run at a time."
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
            due, since = stats.count_due(connection, now, MOST_COUNTED)
            coming = stats.next_due(connection) if not due else None
    except DatabaseError as error:
        return dg.SkipReason(str(error))
    except SQLAlchemyError as error:
        problem = str(getattr(error, "orig", None) or error)
        context.log.error(f"the feeds' database cannot be read: {problem}")
        return dg.SkipReason(
            page_text(
                "the feeds' database cannot be read, so nothing is polled until it answers again: {problem}"
            ).format(problem=problem)
        )
    shown = f"{due}+" if due == MOST_COUNTED else str(due)
    location = code_location_of_sensor(context)
    runs = JobRuns(context.instance, location, poll_job.name, frozenset({feed_polls.key, feed_entries.key}))
    if runs.under_way():
        return dg.SkipReason(
            page_text("{due} sources are due; a run is in progress and will poll them").format(due=shown)
        )
    reason = idle_reason(due, now - since if since is not None else 0)
    if reason:
        when = wording.moment_text(coming, services.settings.zone) if coming else ""
        following = page_text("; the next is due at {when}").format(when=when) if when else ""
        return dg.SkipReason(reason + following)
    if len(runs.failed_since(services.clock.now() - PAUSE)) >= _MOST_FAILED:
        return dg.SkipReason(
            page_text("{due} sources are due, but the last runs failed: the next is tried after ten minutes").format(
                due=shown
            )
        )
    return dg.RunRequest(tags={**POLL_TAGS, "feeds/due": shown})


def idle_reason(due: int, waited: int) -> str | None:
    """Return why no run is started for ``due`` sources, the first of which has waited ``waited`` seconds; or None."""
    if not due:
        return page_text("no source is due")
    if due < WORTH_A_RUN and waited < LONGEST_WAIT:
        return page_text(
            "{due} sources are due, the first for {waited} s: waiting for more, {longest_wait} s at most"
        ).format(due=due, waited=max(waited, 0), longest_wait=LONGEST_WAIT)
    return None


sensors = [due_feeds_sensor]
