"""Worker that applies events: shard by shard, in order, one transaction per batch; then it updates caches.

A step that is interrupted at any point is repeated by the next owner of the shard: before the commit nothing of a batch
is stored, after it the events are marked as applied, and events that are applied but not finished are passed to the
caches again.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from douban_pipeline.comments.event_handlers.state import Findings, PendingEvent
from douban_pipeline.comments.event_handlers.steps import apply_events
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.scoring.touched import TouchedHeat
from douban_pipeline.comments.store import batches, events, shards
from douban_pipeline.comments.text_judge import TextJudge
from douban_pipeline.comments.types import SHARDS
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, run_transaction

_LOG = logging.getLogger(__name__)
_BEAT_EVERY = timedelta(seconds=1)
_OUTAGE_PAUSE, _OUTAGE_PAUSE_MOST = 1.0, 15.0
"""Seconds until a database that failed is used again; doubled by every failure, up to the second."""
_OUTAGES = (OperationalError, InterfaceError, InternalError, PoolTimeoutError)
"""Errors of the database that may pass by themselves: it restarts, is full, or refuses connections."""


Wait = Callable[[Event, float], object]
"""Waits for a number of seconds, or until a wake-up arrives or the event is set."""


class Follower(Protocol):
    """A consumer of committed events, such as a cache."""

    def follow(self, applied: Sequence[PendingEvent]) -> None:
        """Process applied events; called again after a crash, so it must be idempotent."""
        ...

    def work(self) -> int:
        """Process requests queued by others; return their number."""
        ...


class Worker:
    """Applies events until it is stopped.

    Args:
        owner: Owner of the shard leases; `core.owner` names processes.
        batch: Maximum number of events per transaction.
        heat: Computes the heat of new and touched comments; without it they keep theirs until a sweep.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        owner: str,
        review: SafetyReview,
        followers: Sequence[Follower] = (),
        *,
        lease: timedelta = timedelta(seconds=30),
        batch: int = 500,
        threads: int = 1,
        reports_to_review: int = 0,
        heat: TouchedHeat | None = None,
    ) -> None:
        self._engine, self._clock, self._owner = engine, clock, owner
        self._judge, self._followers = TextJudge(engine, clock, review), followers
        self._lease, self._batch, self._threads = lease, batch, threads
        self._reports_to_review, self._heat = reports_to_review, heat
        self._held: dict[int, int] = {}
        self._renew_at = self._beat_at = datetime.min.replace(tzinfo=clock.now().tzinfo)
        self._name = hashlib.sha1(owner.encode(), usedforsecurity=False).hexdigest()[:32]

    def run(self, stopped: Event, pause: float, wait: Wait = Event.wait) -> None:
        """Work until ``stopped`` is set, then release the shards. While the database fails, wait for it and try again.

        Args:
            pause: Minimum seconds between two polls, unless a batch was full; events that arrive within it share one
                transaction. A poll that found nothing is followed by a longer wait, where there are wake-ups.
            wait: Waits for wake-ups; returns after ``pause`` seconds if none arrives.
        """
        failures = 0
        with ThreadPoolExecutor(self._threads, "comments") as pool:
            while not stopped.is_set():
                begun = time.monotonic()
                try:
                    asked = sum(follower.work() for follower in self._followers)
                    done = self.turn(pool)
                except _OUTAGES as error:
                    self._forget()
                    again = min(_OUTAGE_PAUSE * 2**failures, _OUTAGE_PAUSE_MOST)
                    failures += 1
                    _LOG.warning("the database fails, events wait; next attempt in %.0f s: %s", again, error)
                    stopped.wait(again)
                    continue
                if failures:
                    _LOG.warning("the database answers again after %d failures", failures)
                    failures = 0
                if not done and not asked:
                    wait(stopped, pause)
                if done < self._batch:
                    stopped.wait(max(0.0, begun + pause - time.monotonic()))
        try:
            self.stop()
        except _OUTAGES as error:
            _LOG.warning("the shards are not released; their leases expire after %s: %s", self._lease, error)

    def stop(self) -> None:
        """Release the shards, so that other workers need not wait for the leases to expire."""
        shards.release_shards(self._engine, self._owner)
        self._forget()

    def _forget(self) -> None:
        """Claim the shards anew at the next turn, which also passes events to caches that were only applied so far."""
        self._held, self._renew_at = {}, datetime.min.replace(tzinfo=self._renew_at.tzinfo)

    def turn(self, pool: ThreadPoolExecutor | None = None) -> int:
        """Poll the held shards once; return the number of events applied."""
        self._keep_leases()
        with reading(self._engine) as connection:
            waiting = events.waiting_shards(connection, self._held)
        if pool is None or len(waiting) < 2:
            return sum(self._work_on(shard) for shard in waiting)
        working = [pool.submit(self._work_on, shard) for shard in waiting]
        wait_for(working)  # also where one failed: the others work with the leases of this turn
        return sum(each.result() for each in working)

    def _work_on(self, shard: int) -> int:
        try:
            return self.apply(shard)
        except shards.LostShardError:
            _LOG.warning("shard %s was taken over by another worker", shard)
            self._held.pop(shard, None)
            return 0

    def _keep_leases(self) -> None:
        now = self._clock.now()
        if now >= self._beat_at:
            run_transaction(self._engine, lambda connection: shards.beat(connection, self._name, now))
            self._beat_at = now + _BEAT_EVERY
        if now < self._renew_at:
            return
        with reading(self._engine) as connection:
            workers = max(1, shards.working(connection, now - 5 * _BEAT_EVERY))
        before = set(self._held)
        self._held = shards.claim_shards(self._engine, self._owner, now, self._lease, most=-(-SHARDS // workers))
        self._renew_at = now + self._lease / 3
        self._finish_others(set(self._held) - before)

    def _finish_others(self, taken: Iterable[int]) -> None:
        """Pass events to the caches that previous owners of the shards applied but may not have passed on."""
        taken = sorted(taken)
        while taken:
            with reading(self._engine) as connection:
                rows = events.unfinished(connection, taken)
            if not rows:
                return
            applied = [batches.event_of(row) for row in rows]
            for event in applied:
                event.touched = {event.comment_id} if event.comment_id else set()
            self._follow(applied)

    def apply(self, shard: int) -> int:
        """Apply a batch of a shard's events; return their number.

        Raises:
            LostShardError: Another worker holds the shard now; nothing was changed.
        """
        with reading(self._engine) as connection:
            found = batches.select_pending(connection, shard, self._batch)
        return self._apply(found, self._held[shard], shard) if found else 0

    def _apply(self, found: Sequence[PendingEvent], token: int, shard: int) -> int:
        """Apply events in order; one that cannot be applied is refused, so that it does not stop those after it."""
        try:
            applied = self._apply_together(found, token, shard, self._judge.findings(found))
        except Exception as error:
            if not _is_of_event(error):
                raise
            if len(found) > 1:
                middle = len(found) // 2
                return self._apply(found[:middle], token, shard) + self._apply(found[middle:], token, shard)
            _LOG.exception("event %d cannot be applied", found[0].event_id)
            refused = replace(
                found[0], comment_id=0, payload={}, refusal=f"{events.UNEXPECTED}：{type(error).__name__}"
            )
            applied = self._apply_together([refused], token, shard, {})
        self._follow(applied)
        return len(applied)

    def _apply_together(
        self, found: Sequence[PendingEvent], token: int, shard: int, findings: Mapping[int, Findings]
    ) -> list[PendingEvent]:
        def work(connection: Connection) -> list[PendingEvent]:
            shards.lock_shard(connection, shard, token)
            pending = batches.still_pending(connection, found)
            applied = [
                replace(event, findings=findings.get(event.event_id), touched=set())
                for event in found
                if event.event_id in pending
            ]
            now = self._clock.now()
            batch = batches.load_batch(connection, applied, now, reports_to_review=self._reports_to_review)
            apply_events(batch, applied)
            if self._heat is not None:
                touched = {number for event in applied if not event.refusal for number in event.touched}
                self._heat.score(connection, batch, touched)
            batches.write_batch(connection, batch, applied)
            return applied

        return run_transaction(self._engine, work)

    def _follow(self, applied: Sequence[PendingEvent]) -> None:
        for follower in self._followers:
            follower.follow(applied)
        ids = [event.event_id for event in applied]
        run_transaction(self._engine, lambda connection: events.finish(connection, ids))


def _is_of_event(error: Exception) -> bool:
    """Return whether an error was caused by an event itself, and not by the database or the lease of the shard."""
    if isinstance(error, StatementError):
        return isinstance(error, DataError | IntegrityError) or not isinstance(error, DBAPIError)
    return isinstance(error, LookupError | TypeError | ValueError | ArithmeticError)
