"""Sends the outbox: claim, send outside any transaction, store the outcome."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import stamina
from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.interrupts import call_threads
from douban_pipeline.core.messages.types import Channel, DeliveryError
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.outbox import Notification, NotificationClaim
from douban_pipeline.digest.push.rules import LEASE, PushOutcome, PushState, after_failure, may_go_out
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.settings import PREFIX

logger = logging.getLogger(__name__)

_MOST = 500
_MOST_CHANNELS = 16
_GRACE_SECONDS = 1.5
"""How long an interrupted pass waits for the calls under way."""
_Result = TypeVar("_Result")


@dataclass(slots=True)
class PushReport:
    """Result of one pass.

    Attributes:
        sent: Messages that were accepted.
        failed: Messages that will be retried.
        unknown: Findings with an unknown outcome, including those of dead senders.
        dead: Messages that were given up.
        held: Messages that wait for the end of quiet hours or of a platform's rate limit.
        lost: Attempts whose outcome was not stored because another sender had taken over the message.
    """

    sent: list[Notification] = field(default_factory=list)
    failed: list[Notification] = field(default_factory=list)
    unknown: list[Notification] = field(default_factory=list)
    dead: list[Notification] = field(default_factory=list)
    held: list[Notification] = field(default_factory=list)
    lost: list[Notification] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return the number of messages by result."""
        names = ("sent", "failed", "unknown", "dead", "held", "lost")
        return {name: len(getattr(self, name)) for name in names}


class Sender:
    """Sends due messages, each channel in a thread of its own, so that a hanging channel does not delay others.

    Args:
        services: Database, clock and settings.
        run_id: Run that holds the claims, for people.
    """

    def __init__(self, services: DigestServices, run_id: str = "") -> None:
        self._services = services
        self._run_id = run_id or uuid.uuid4().hex[:12]
        self._report = PushReport()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def run(self) -> PushReport:
        """Send the due messages once, and return the result. May be run concurrently.

        Raises:
            OperationalError: The database became unavailable and did not return. Messages in progress are settled by
                the next pass, as they are after an interruption.
        """
        services = self._services
        now = services.now()
        keyed = [name for name, channel in services.push_channels.items() if channel.keyed]
        for row in run_transaction(
            services.engine, lambda connection: outbox.release_abandoned(connection, now, keyed)
        ):
            if row.state in (PushState.UNKNOWN, PushState.DEAD):
                logger.warning("message %s (%s, %s): %s", row.id, row.push_type, row.channel, row.error)
                self._note(row.state.value, row)
        with reading(services.engine) as connection:
            found = outbox.due(connection, now, _MOST)
        by_channel = self._by_channel(found)
        with call_threads(_MOST_CHANNELS, "push") as pool:
            calls = [pool.submit(self._send_all, name, rows) for name, rows in by_channel.items()]
            try:
                for done in calls:
                    done.result()
            finally:
                self._stopping.set()
                # Where the pass was interrupted: most calls under way return, so that their outcomes are known.
                wait(calls, timeout=_GRACE_SECONDS)
        return self._report

    def preview(self) -> PushReport:
        """Return what a pass would send (as ``sent``) and hold back, without sending or changing anything."""
        services = self._services
        with reading(services.engine) as connection:
            rows = self._by_channel(outbox.due(connection, services.now(), _MOST))
        self._report.sent += [row for each in rows.values() for row in each]
        return self._report

    def _by_channel(self, rows: Sequence[Notification]) -> Mapping[str, list[Notification]]:
        settings, now = self._services.settings, self._services.now()
        found: defaultdict[str, list[Notification]] = defaultdict(list)
        for row in rows:
            if may_go_out(row.push_type, now, settings.quiet, settings.zone):
                found[row.channel].append(row)
            else:
                self._note("held", row)
        return found

    def _send_all(self, name: str, rows: Sequence[Notification]) -> None:
        channel = self._services.push_channels.get(name)
        for place, row in enumerate(rows):
            if self._stopping.is_set():
                return
            now = self._services.now()
            if channel is not None:
                with reading(self._services.engine) as connection:
                    tried = outbox.attempts_of_minute(connection, name, now)
                if tried >= channel.per_minute:
                    for each in rows[place:]:
                        self._note("held", each)
                    return
            held = self._transaction(partial(self._claim, row=row))
            if held is not None and not self._send(channel, held):
                return  # the channel does not answer: its other messages wait, uncounted

    def _claim(self, connection: Connection, row: Notification) -> NotificationClaim | None:
        return outbox.claim(connection, row.id, self._run_id, self._services.now())

    def _send(self, channel: Channel | None, held: NotificationClaim) -> bool:
        """Send a message and store the outcome; return whether the channel answers."""
        if channel is None:
            missing = f"没有名为 {held.row.channel} 的渠道，请检查 {PREFIX}PUSH_CHANNELS"
            self._settle(held, DeliveryError(missing, reached=True), keyed=False)
            return True
        try:
            if not self._send_parts(channel, held):
                self._note("lost", held.row)
                return True
        except DeliveryError as error:
            self._settle(held, error, keyed=channel.keyed)
            return error.reached
        self._settle(held, None, keyed=channel.keyed)
        return True

    def _send_parts(self, channel: Channel, held: NotificationClaim) -> bool:
        """Send the parts not yet accepted; return False if another sender took over the message during that time."""
        row, clock = held.row, self._services.clock
        parts = self._called(lambda: channel.parts(row.message))
        begin = row.parts_sent if row.parts == len(parts) else 0
        for number, part in enumerate(parts[begin:], begin + 1):
            if number > begin + 1:
                clock.sleep(60 / channel.per_minute)
            said = self._called(partial(channel.send, part, now=clock.now()))
            noted = partial(self._note_part, held=held, sent=number, count=len(parts), said=said)
            if not self._persist(noted):
                return False
        return True

    def _called(self, call: Callable[[], _Result]) -> _Result:
        """Return what a channel returns; any error of its own is one of the delivery, such as a password that a
        protocol cannot send. It is not quoted: it may contain the address or the password."""
        try:
            return call()
        except DeliveryError:
            raise
        except Exception as error:  # noqa: BLE001 (its text may hold a secret, so it is not logged)
            reason = f"渠道出错（{type(error).__name__}），请检查 {PREFIX}PUSH_CHANNELS"
            raise DeliveryError(reason, reached=True, uncertain=True) from None

    def _note_part(self, connection: Connection, held: NotificationClaim, sent: int, count: int, said: str) -> bool:
        return outbox.renew(connection, held, sent, count, said, self._services.clock.now())

    def _settle(self, held: NotificationClaim, error: DeliveryError | None, *, keyed: bool) -> None:
        row, now = held.row, self._services.now()
        if error is None:
            outcome = PushOutcome(PushState.SENT, None, "")
        else:
            outcome = after_failure(
                row.push_type,
                row.attempts,
                str(error),
                uncertain=error.uncertain and not keyed,
                retry_after=error.retry_after,
                now=now,
            )
            logger.warning("message %s (%s, %s): %s", row.id, row.push_type, row.channel, outcome.error)
        if self._persist(lambda connection: outbox.finish(connection, held, outcome, now)):
            self._note(outcome.state.value, row)
        else:
            self._note("lost", row)

    def _persist(self, work: Callable[[Connection], _Result]) -> _Result:
        """Store the result of a call, waiting for a restarting database as long as the lease allows."""
        seconds = 0.9 * LEASE.total_seconds()
        for attempt in stamina.retry_context(
            on=(OperationalError, InterfaceError), attempts=None, timeout=seconds, wait_initial=0.2, wait_max=5.0
        ):
            with attempt:
                return self._transaction(work)
        raise AssertionError("the last attempt returns or raises")

    def _transaction(self, work: Callable[[Connection], _Result]) -> _Result:
        return run_transaction(self._services.engine, work)

    def _note(self, what: str, row: Notification) -> None:
        with self._lock:
            getattr(self._report, what).append(row)
