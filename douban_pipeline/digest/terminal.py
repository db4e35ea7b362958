"""What the commands ``digest …`` do; pages and Dagster show the rest."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

from douban_pipeline.core.console import console
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.core.interrupts import ends_at_once
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.digest import rubrics, wording
from douban_pipeline.digest.push.sender import Sender
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import PREFIX, load_settings
from douban_pipeline.digest.slot_run import EndedSlot, TooEarly, run_slot
from douban_pipeline.digest.slots import SKEW, SlotKey
from douban_pipeline.digest.store import items
from douban_pipeline.digest.types import AnalysedStatus, BodyState

_ALL = "all"
_MOST_SHOWN = 20


@contextmanager
def _opened(*, makes_file: bool = True, ready: bool = True) -> Iterator[DigestServices]:
    services = open_services(load_settings())
    try:
        yield services.ready(makes_file=makes_file) if ready else services
    finally:
        services.close()


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def run(given: str) -> bool:
    """Run a slot, by default the last due one, without Dagster; return whether it succeeded.

    Raises:
        ProblemsError: There is no such slot, or it is not due yet.
    """
    with _opened() as services:
        key = _named(services, given) if given else _last_due(services)
        stopped = terminal_text("stopped; the next run continues")
        try:
            with ends_at_once(stopped):
                ended = run_slot(services, key, f"terminal-{uuid.uuid4().hex[:8]}")
        except TooEarly as error:
            raise ProblemsError([str(error)]) from error
    if not isinstance(ended, EndedSlot):
        _say(f"{key}: {wording.CLAIMS[ended]}")
        return True
    status, findings = ended.status.value, len(ended.findings)
    line = terminal_text("{key} {status}: {findings} findings, {messages} messages for the outbox").format(
        key=key, status=status, findings=findings, messages=ended.messages
    )
    _say(line)
    for line in filter(None, (ended.error, ended.push_refusal)):
        _say(line)
    return ended.status.value == "success"


def explain(words: str) -> None:
    """Print the state of the articles whose titles contain ``words``: text, analysis, score, or why there is none.

    Raises:
        ProblemsError: There are none.
    """
    with _opened(makes_file=False) as services:
        zone = services.settings.zone
        with reading(services.engine) as connection:
            rows = items.by_title(connection, words, _MOST_SHOWN)
    if not rows:
        short = repr(words[:60])
        raise ProblemsError([terminal_text("no article's title holds {short}").format(short=short)])
    for row in rows:
        body, analysed = (
            wording.BODIES[BodyState(row.body_state)],
            wording.ANALYSED[AnalysedStatus(row.analyzed_status)],
        )
        facts = (body, row.body_reason, analysed, row.analysis_error, "" if row.score is None else str(row.score))
        _say(f"{row.content_item_id} {row.mp_name} {local_time(row.published_at, zone)} {row.title[:60]}")
        _say(f"    {' '.join(filter(None, facts))}")


def write_rubric() -> None:
    """Write the subject and rubric files for the operator to edit, and print the current version."""
    services = open_services(load_settings())
    for path in rubrics.write_defaults(services.rubric_folder):
        _say(terminal_text("wrote {path}").format(path=path))
    version = f"{services.rubric.hash[:12]} ({services.rubric.origin})"
    _say(terminal_text("in force: {version}").format(version=version))
    services.close()


def log_in() -> None:
    """Delete the stored token and refused logins of WeRSS, log in once now, and open its gate."""
    with _opened() as services:
        if not services.settings.werss_url:
            raise ProblemsError(
                [terminal_text("{werss_url} is not set").format(werss_url=services.settings.variable("werss_url"))]
            )
        try:
            count = services.log_in_to_werss()
        except SourceError as error:
            raise ProblemsError([terminal_text("not logged in: {reason}").format(reason=error.reason)]) from error
    _say(terminal_text("logged in; WeRSS follows {count} accounts").format(count=count))


def push() -> bool:
    """Send the due messages; return whether all were accepted."""
    with _opened() as services:
        stopped = terminal_text("stopped; the next run settles messages that had no answer yet")
        with ends_at_once(stopped):
            report = Sender(services, "terminal").run()
    for row in (*report.failed, *report.unknown, *report.dead):
        _say(f"{row.id} {row.channel} {row.state} {row.title} {row.error}")
    _say(", ".join(f"{count} {name}" for name, count in report.counts().items()))
    return not (report.failed or report.unknown or report.dead)


def test(channel: str) -> bool:
    """Send a test message to a channel, or to all of them; return whether all accepted it. Nothing is stored.

    Raises:
        ProblemsError: There is no such channel.
    """
    with _opened(ready=False) as services:
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
                _say(f"{name} ({found.kind}): {terminal_text('taken')}")
            except DeliveryError as error:
                good = False
                _say(f"{name} ({found.kind}): {error}")
        return good


def _named(services: DigestServices, given: str) -> SlotKey:
    try:
        key = SlotKey.parse(given)
    except ValueError as error:
        raise ProblemsError([str(error)]) from error
    if key.slot not in services.settings.schedule_slots:
        known = ", ".join(services.settings.schedule_slots)
        raise ProblemsError(
            [terminal_text("there is no slot {slot}; slots: {known}").format(slot=key.slot, known=known)]
        )
    return key


def _last_due(services: DigestServices) -> SlotKey:
    now, zone = services.now(), services.settings.zone
    today: date = now.astimezone(zone).date()
    keys = [
        SlotKey(day, slot) for day in (today - timedelta(days=1), today) for slot in services.settings.schedule_slots
    ]
    return max(key for key in keys if key.scheduled_at(zone) - SKEW <= now)
