"""The job that sends the outbox, and the job by which people resend messages."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time, panel
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.outbox import Notification
from douban_pipeline.digest.push.rules import PushState, PushType
from douban_pipeline.digest.push.sender import Sender
from douban_pipeline.digest.resources import PERSON_TAGS, tags_of
from douban_pipeline.digest.services import LOCATION, DigestServices

PUSH_TAGS = {**tags_of("digest_push"), "dagster/priority": "5"}
"""Messages are not queued behind slots."""
_MOST_SHOWN = 100
_STATES = {
    PushState.PENDING: page_text("to send"),
    PushState.SENDING: page_text("being sent"),
    PushState.SENT: page_text("delivered"),
    PushState.FAILED: page_text("failed, to be tried again", "push"),
    PushState.UNKNOWN: page_text("unknown whether delivered"),
    PushState.DEAD: page_text("given up"),
}
_TYPES = {
    PushType.FINDING: page_text("opportunity"),
    PushType.REPORT: page_text("daily report"),
    PushType.ALERT: page_text("alert"),
    PushType.UNDELIVERED: page_text("daily report not delivered"),
}


class PushConfig(LaunchpadConfig):
    """Parameters of sending."""

    dry_run: bool = Field(True, description=page_text("true: only list what would be sent; false: send it."))


def push(context: dg.OpExecutionContext, config: PushConfig, services: dg.ResourceParam[DigestServices]) -> None:
    """Send the due messages of the outbox, each channel independently."""
    services.ready()
    sender = Sender(services, context.run_id)
    report = sender.preview() if config.dry_run else sender.run()
    counts = report.counts()
    context.log.info(("dry run: " if config.dry_run else "") + ", ".join(f"{n} {what}" for what, n in counts.items()))
    for row in (*report.unknown, *report.dead):
        context.log.warning(
            f"message {row.id} ({row.push_type} on {row.channel}) may not have arrived and is not retried"
        )
    rows = [*report.sent, *report.failed, *report.unknown, *report.dead, *report.lost]
    with reading(services.engine) as connection:
        ids = [row.id for row in rows]
        shown = outbox.select_notifications(connection, ids=ids, most=_MOST_SHOWN) if ids else []
    context.add_output_metadata(
        {"dry_run": config.dry_run, **counts, "messages": dg.MetadataValue.md(messages_table(shown, services))}
    )


_PUSH = page_text(
    """\
Send the due messages of the outbox: findings at most once, the report at least once.

Launched by `push_sensor` when a message is due; depends on no asset, so that no upstream failure can prevent it.
"""
)


push_notifications = person_job(
    push,
    name="push_notifications",
    manual=_PUSH,
    writes=page_text(
        "Sends messages to their channels and records it in `notification_log`. A dry run (the "
        "default) only lists what would be sent."
    ),
    when=page_text("By itself, as `push_sensor` finds messages due; by hand when the sensor is off."),
    examples={"": {"dry_run": False}},
    nothing_done=page_text("No message was sent"),
    location=LOCATION,
    tags=PUSH_TAGS,
)


def messages_table(rows: Sequence[Notification], services: DigestServices) -> str:
    """Return messages as a Markdown table for people."""
    zone = services.settings.zone
    shown = [
        {
            "id": row.id,
            page_text("date"): row.report_date,
            page_text("slot"): row.slot,
            page_text("type"): _TYPES[row.push_type],
            page_text("channel"): row.channel,
            page_text("status"): _STATES[row.state],
            page_text("attempts"): row.attempts,
            page_text("delivered at"): local_time(row.sent_at, zone),
            page_text("title", "column"): row.title,
            page_text("reason", "column"): row.error,
        }
        for row in rows
    ]
    return panel(shown, most=_MOST_SHOWN, in_dialog=True)


class ResendConfig(LaunchpadConfig):
    """Messages to send again."""

    dry_run: bool = Field(True, description=page_text("true: only list them; false: send them."))
    ids: list[int] = Field(default_factory=list, description=page_text("Ids of messages."))
    report_date: str = Field("", description=page_text("All messages of a day."))
    slot: str = Field("", description=page_text("Only messages of this slot."))
    push_type: str = Field("", description=page_text("Only messages of this type."))
    channels: list[str] = Field(default_factory=list, description=page_text("Only messages of these channels."))
    include_sent: bool = Field(False, description=page_text("true: also resend delivered messages."))


def resend(context: dg.OpExecutionContext, config: ResendConfig, services: dg.ResourceParam[DigestServices]) -> None:
    """Make messages due again."""
    services.ready()
    rows = _chosen(config, services)
    settled = [row for row in rows if row.state is not PushState.SENT or config.include_sent]
    left = len(rows) - len(settled)
    if not config.dry_run:
        ids = [row.id for row in settled]
        now = services.now()
        changed = run_transaction(services.engine, lambda connection: outbox.requeue(connection, ids, now))
        settled = [row for row in settled if row.id in changed]
    verb = "would be" if config.dry_run else "are"
    context.log.info(f"{len(settled)} messages {verb} sent again; {left} were delivered and are left out")
    shown = dg.MetadataValue.md(messages_table(settled, services))
    context.add_output_metadata({"dry_run": config.dry_run, "messages": len(settled), "left_out": left, "rows": shown})


def _chosen(config: ResendConfig, services: DigestServices) -> list[Notification]:
    problems: list[str] = []
    day: date | None = None
    if not config.ids and not config.report_date:
        problems.append(page_text("Write the messages' ids (ids) or a date (report_date)"))
    try:
        day = date.fromisoformat(config.report_date) if config.report_date else None
    except ValueError:
        problems.append(
            page_text("report_date: “{day}” is no date; write it as 2026-11-20").format(day=config.report_date)
        )
    if config.push_type and config.push_type not in list(PushType):
        problems.append(
            page_text("push_type: there is no type {given}; use one of {known}").format(
                given=config.push_type, known="、".join(PushType)
            )
        )
    if problems:
        raise ProblemsError(problems)
    with reading(services.engine) as connection:
        rows = outbox.select_notifications(
            connection,
            ids=config.ids,
            report_date=day,
            slot=config.slot,
            push_type=config.push_type,
            channels=config.channels,
        )
    missing = sorted(set(config.ids) - {row.id for row in rows})
    if missing or not rows:
        raise ProblemsError(
            [
                page_text("There are no such messages: {missing}").format(
                    missing=", ".join(map(str, missing)) or page_text("none meets the conditions")
                )
            ]
        )
    return rows


resend_notifications = person_job(
    resend,
    name="resend_notifications",
    manual=page_text("Resend messages that did not arrive or whose outcome is unknown."),
    writes=page_text("Makes messages in `notification_log` due again. A dry run (the default) only lists them."),
    when=page_text("When you know that a message did not arrive."),
    examples={"": {"dry_run": False, "report_date": "2026-11-20", "slot": "22:00", "push_type": "report"}},
    nothing_done=page_text("No message was sent again"),
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs: list[Any] = [push_notifications, resend_notifications]
