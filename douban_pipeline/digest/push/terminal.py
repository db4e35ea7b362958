"""The commands ``digest push`` and ``digest messages``: send messages from a terminal, and show the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.markup import escape

from douban_pipeline.core.console import console
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.interrupts import ends_at_once
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.digest.push.outbox import Notification, select_notifications
from douban_pipeline.digest.push.sender import Sender
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import PREFIX, load_settings

_ALL = "all"


@contextmanager
def _opened() -> Iterator[DigestServices]:
    services = open_services(load_settings())
    try:
        yield services
    finally:
        services.close()


def push(*, dry_run: bool) -> bool:
    """Send the due messages, or show them; return whether all were accepted."""
    with _opened() as services:
        services.ready()
        sender = Sender(services, "terminal")
        if dry_run:
            report = sender.preview()
            _print(report.sent, services)
            sent, held = len(report.sent), len(report.held)
            console.print(
                terminal_text("{sent} would be sent, {held} wait for the end of quiet hours").format(
                    sent=sent, held=held
                )
            )
            return True
        stopped = terminal_text("stopped; the next run settles messages that had no answer yet")
        with ends_at_once(stopped):
            report = sender.run()
        _print([*report.sent, *report.failed, *report.unknown, *report.dead], services)
        console.print(", ".join(f"{count} {name}" for name, count in report.counts().items()))
        return not (report.failed or report.unknown or report.dead)


def test(channel: str) -> bool:
    """Send a test message to a channel, or to all of them; return whether all accepted it. Nothing is stored.

    Raises:
        ProblemsError: There is no such channel.
    """
    with _opened() as services:
        channels = services.push_channels
        if channel != _ALL and channel not in channels:
            known, setting = ", ".join(channels) or terminal_text("none"), f"{PREFIX}PUSH_CHANNELS"
            raise ProblemsError(
                [
                    terminal_text("{setting} names no channel {channel!r}; channels: {known}").format(
                        setting=setting, channel=channel, known=known
                    )
                ]
            )
        if not channels:
            problem = terminal_text("{setting} names no channel: there is nothing to send to")
            raise ProblemsError([problem.format(setting=f"{PREFIX}PUSH_CHANNELS")])
        now = services.now()
        message = Message(
            "【测试】douban_pipeline 推送",
            f"{local_time(now, services.settings.zone)} 的测试消息。",
            "test",
            "test",
            now,
        )
        good = True
        for name, found in channels.items():
            if channel not in (name, _ALL):
                continue
            try:
                for part in found.parts(message):
                    found.send(part, now=services.now())
                console.print(f"{name} ({found.kind}): {terminal_text('taken')}", highlight=False)
            except DeliveryError as error:
                good = False
                console.print(f"{name} ({found.kind}): [red]{escape(str(error))}[/red]", highlight=False)
        return good


def show(limit: int) -> None:
    """Print the newest messages."""
    with _opened() as services:
        with reading(services.ready(makes_file=False).engine) as connection:
            rows = select_notifications(connection, most=limit)
        _print(rows, services)


def _print(rows: Sequence[Notification], services: DigestServices) -> None:
    table = Table(
        terminal_text("id"),
        terminal_text("slot"),
        terminal_text("channel"),
        terminal_text("state"),
        terminal_text("message"),
    )
    for column in table.columns[:-1]:
        column.no_wrap = True
    for row in rows:
        table.add_row(
            str(row.id),
            f"{row.report_date.isoformat()} {row.slot}",
            escape(row.channel),
            row.state + ("" if row.attempts < 2 else terminal_text(", {attempts} tries").format(attempts=row.attempts)),
            "\n".join(
                filter(
                    None,
                    (
                        escape(row.title),
                        f"{terminal_text('sent')} {local_time(row.sent_at, services.settings.zone)}"
                        if row.sent_at
                        else "",
                        escape(row.error),
                    ),
                )
            ),
        )
    console.print(table)
