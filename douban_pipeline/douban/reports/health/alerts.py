"""Alerts to people: one per cause for as long as it lasts, however many runs meet it.

An alert is open in our table from when its cause is first met until the cause is gone, and is sent once in that time.
An alert that could not be sent is tried again at the next call. Two calls at the same moment may both send an alert:
a duplicate does less harm than a lost alert.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from pydantic import SecretStr
from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import insert_missing, reading, run_statement, run_transaction
from douban_pipeline.core.messages.robots import post_alert
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.reports.health.causes import RUN, SHARED, Cause, job_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings

QUIET = timedelta(hours=30)
"""The cause of a failed run counts as gone when it was not met for this long: longer than a day, so that a nightly job
that fails every night is reported once."""
SHARED_QUIET = timedelta(hours=1)
_QUERY = re.compile(r"(https?://[^\s?#]+)[?#]\S*")
_LEAST_SECRET = 6
"""Least length of a secret that is removed from texts: a shorter value may occur in a text by chance."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An open alert: its cause lasts.

    Attributes:
        first_at: When the cause was first met (UTC).
        last_at: When the cause was last met (UTC).
        sent_at: When it was sent (UTC); None while it waits.
        send_error: Why the last try to send it failed.
    """

    alert_id: int
    cause: str
    kind: str
    title: str
    detail: str
    times: int
    first_at: datetime
    last_at: datetime
    sent_at: datetime | None
    send_error: str


@dataclass(frozen=True, slots=True)
class Sending:
    """How many alerts a call sent, and how many it could not send."""

    sent: int = 0
    failed: int = 0


def raise_alert(services: Services, cause: Cause) -> None:
    """Record that ``cause`` was met: open an alert, or count it if its alert is open already."""
    _note(services, _clean(services.settings, cause), again=1)


def end_alert(services: Services, name: str) -> None:
    """Close the alert of the cause ``name``; the next time the cause is met, a new alert is opened."""
    table = services.tables.alert
    ended = update(table).where(table.c.open_key == name).values(open_key=None, ended_at=services.clock.now())
    run_statement(services.engine, ended)


def settle(services: Services, kinds: Collection[str], causes: Iterable[Cause]) -> None:
    """Make the open alerts of ``kinds`` those of ``causes``: open new ones, close the others.

    A cause whose alert is open already is not counted again.
    """
    present = {cause.name: cause for cause in (_clean(services.settings, cause) for cause in causes)}
    lasting = {alert.cause for alert in open_alerts(services) if alert.kind in kinds}
    for name, cause in present.items():
        _note(services, cause, again=0 if name in lasting else 1)
    for name in lasting - present.keys():
        end_alert(services, name)


def end_quiet_runs(services: Services) -> None:
    """Close the alerts of failed runs whose cause was not met for `QUIET`, `SHARED_QUIET` if many jobs share it."""
    for alert in open_alerts(services):
        quiet = SHARED_QUIET if alert.kind == RUN and job_of(alert.cause) == SHARED else QUIET
        if alert.kind == RUN and services.clock.now() - alert.last_at > quiet:
            end_alert(services, alert.cause)


def open_alerts(services: Services) -> list[Alert]:
    """Return the open alerts, the oldest first."""
    table = services.tables.alert
    columns = (table.c[each.name] for each in fields(Alert))
    query = select(*columns).where(table.c.open_key.is_not(None)).order_by(table.c.alert_id)
    with reading(services.engine) as connection:
        return [Alert(*row) for row in connection.execute(query)]


def send_waiting(services: Services, *, most: int) -> Sending:
    """Send up to ``most`` alerts that were not sent yet; without a webhook none is sent.

    Alerts that were never tried come first. If the webhook cannot be reached, the rest are left for the next call.
    """
    if not services.settings.alert_webhook_url.get_secret_value():
        return Sending()
    waiting = [alert for alert in open_alerts(services) if alert.sent_at is None]
    sent = failed = 0
    for alert in sorted(waiting, key=lambda alert: bool(alert.send_error))[:most]:
        try:
            send(services, _message(services.settings, alert))
        except DeliveryError as error:
            failed += 1
            _mark(services, alert, None, str(error))
            if not error.reached:
                break
        else:
            sent += 1
            _mark(services, alert, services.clock.now(), "")
    return Sending(sent, failed)


def send(services: Services, message: Message) -> None:
    """Send a message to the webhook of the settings, which must be set.

    Raises:
        DeliveryError: The webhook did not accept it.
    """
    settings = services.settings
    post_alert(
        settings.alert_webhook_kind,
        settings.alert_webhook_url.get_secret_value(),
        settings.alert_webhook_secret.get_secret_value(),
        message,
        now=services.clock.now(),
    )


def without_secrets(settings: Settings, text: str) -> str:
    """Return ``text`` without the values of secret settings and without the queries of addresses."""
    values = [getattr(settings, name) for name in type(settings).model_fields]
    secrets = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
    passwords = [urlsplit(secret).password or "" for secret in secrets]
    for secret in (*secrets, *passwords):
        if len(secret) >= _LEAST_SECRET:
            text = text.replace(secret, "…")
    return _QUERY.sub(r"\1", text)


def _clean(settings: Settings, cause: Cause) -> Cause:
    name, title, detail = (without_secrets(settings, text) for text in (cause.name, cause.title, cause.detail))
    return Cause(name, cause.kind, title, detail)


def _note(services: Services, cause: Cause, *, again: int) -> None:
    table, now = services.tables.alert, services.clock.now()
    text = {"title": cause.title[:200], "detail": cause.detail}
    named = {"cause": cause.name, "open_key": cause.name, "kind": cause.kind}
    row = {**named, "times": 0, "first_at": now, "last_at": now, **text}
    counted = update(table).where(table.c.open_key == cause.name)

    def note(connection: Connection) -> None:
        # Two processes may meet it at once: the unique key admits one row, and both are counted.
        insert_missing(connection, table, [row], key="open_key")
        connection.execute(counted.values(times=table.c.times + again, last_at=now, **text))

    run_transaction(services.engine, note)


def _mark(services: Services, alert: Alert, sent_at: datetime | None, error: str) -> None:
    table = services.tables.alert
    unsent = update(table).where(table.c.alert_id == alert.alert_id, table.c.sent_at.is_(None))
    run_statement(services.engine, unsent.values(sent_at=sent_at, send_error=error[:500]))


def _message(settings: Settings, alert: Alert) -> Message:
    zone = settings.zone
    when = f"开始于 {local_time(alert.first_at, zone)}".replace("\u00a0", " ")
    times = f"，已出现 {alert.times} 次" if alert.times > 1 else ""
    return Message(alert.title, f"{alert.detail}\n{when}{times}", alert.kind, alert.cause, alert.first_at)
