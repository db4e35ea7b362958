"""A run over all due sources: lease, fetch, store, and choose the next poll, host by host.

A source is fetched outside any transaction; the answer is stored in one, which first checks that the lease still
belongs to this run. So a run that dies leaves no partial results: its sources are due again when their leases expire.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import GateClosed, SourceError
from douban_pipeline.feeds.budget_plan import BudgetPlan, BudgetPlanner, make_plan, read_plan
from douban_pipeline.feeds.clients.further_pages import Reach
from douban_pipeline.feeds.clock_skew import Sighting, SourceClock
from douban_pipeline.feeds.failures import GONE, OTHER, FeedRefused, canonical_message, failure_of
from douban_pipeline.feeds.scheduler import update_source_stats
from douban_pipeline.feeds.services import HOST_CONCURRENCY, FeedsServices
from douban_pipeline.feeds.store import entries, polls, sources, stats
from douban_pipeline.feeds.types import Entry, FetchedFeed, Gap, PollOutcome, PollRecord, Source, SourceState

RUN_MINUTES = 10
"""Minutes after which a run starts no further sources, so that a run's log and its lease of the queue stay short."""

BATCH_SIZE = 500
"""Sources that a run leases at once: few enough that a run that dies holds back little."""

WORKERS = 8
"""Sources that one run polls concurrently: they mostly wait for answers."""

logger = logging.getLogger(__name__)

_DEFERRED_AT_MOST = 3600
_SET_ASIDE = 86_400
"""How long a source whose row is damaged is set aside before it is looked at again."""
_DAMAGED = "its options are no JSON: write them anew with follow_sources"
_DELAY_AT_MOST = 7 * 86_400
"""An entry older than this when first seen was published before the source was followed."""

_GAP_LASTS = 7 * 86_400
"""Seconds after which what was left unread is given up: what it was has changed since, or will not change again."""


@dataclass(slots=True)
class PollReport:
    """Result of a run.

    Attributes:
        outcomes: Number of polls by outcome.
        new: New entries.
        edited: Edited entries.
        handed_over: Videos reported to the library's intake.
        left: Sources that were leased but not polled for lack of time.
        lost: Polls whose lease had expired, so that nothing was stored.
        mended: Rows corrected because their times were ahead of the clock.
        gaps: Sources of which something remained unread.
        hosts: Polls by host.
        problems: Failures by canonical message.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    new: int = 0
    edited: int = 0
    handed_over: int = 0
    left: int = 0
    lost: int = 0
    mended: int = 0
    gaps: int = 0
    hosts: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def polled(self) -> int:
        """Number of sources polled."""
        return sum(self.outcomes.values()) - self.outcomes[PollOutcome.DEFERRED.value]

    def add(self, done: PollRecord, handed_over: int) -> None:
        """Count one poll."""
        self.outcomes[done.outcome.value] += 1
        self.new += done.new
        self.edited += done.updated
        self.handed_over += handed_over
        self.gaps += done.gap
        self.hosts[done.host] += 1
        if done.error:
            self.problems[canonical_message(done.error)] += 1


class Poller:
    """Polls due sources.

    Args:
        services: The services.
        seconds: After this time no further source is started.
        monotonic: Source of monotonic seconds.
    """

    def __init__(
        self, services: FeedsServices, *, seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._monotonic = monotonic
        self._end = monotonic() + seconds
        self._plan: BudgetPlan | None = None
        self._lease = services.lease

    def run(self, *, most: int = 1_000_000, only: Sequence[str] = ()) -> PollReport:
        """Poll due sources, or the sources ``only`` whether they are due or not, and return the result.

        Args:
            most: Maximum number of sources.
            only: Ids of sources.
        """
        report = PollReport()
        engine, now = self._services.engine, self._services.now()
        lease = self._lease
        if run_transaction(engine, lambda connection: stats.clock_went_back(connection, now)):
            report.mended = run_transaction(engine, lambda connection: stats.correct_clock(connection, now, lease))
        self._plan = self._current_plan(now)
        while most > 0 and self._monotonic() < self._end:
            token, began, limit = uuid.uuid4().hex, self._services.now(), min(BATCH_SIZE, most)
            claimed = self._claim(token, began, limit, only)
            if not claimed:
                break
            most -= len(claimed)
            self._poll_batch(claimed, token, began, report)
            if only:
                break
        return report

    def _current_plan(self, now: int) -> BudgetPlan | None:
        if self._services.settings.profile != "budget":
            return None
        with reading(self._services.engine) as connection:
            plan = read_plan(connection)
        return plan or make_plan(self._services.engine, self._services.settings, now)

    def _claim(self, token: str, now: int, limit: int, only: Sequence[str]) -> list[Source]:
        lease = self._lease

        def claim(connection: Connection) -> list[Source]:
            # A clock that is set ahead during a run is noted before its time is written.
            stats.clock_went_back(connection, now)
            ids = stats.claim(connection, now, token, lease, limit, only)
            known = sources.read_sources(connection, ids)
            # Statistics without a source belong to a source that was never added here; it cannot be polled.
            strange = [each for each in ids if each not in known or known[each].state is not SourceState.ACTIVE]
            stats.release(connection, strange, token, None if only else stats.NEVER_DUE)
            # One damaged row stops no other: it is looked at again in a day, and people are told of it.
            damaged = sources.damaged_sources(connection, [each for each in strange if each not in known])
            stats.set_aside(connection, damaged, _DAMAGED, OTHER, now + _SET_ASIDE)
            return [known[each] for each in ids if each not in strange]

        return run_transaction(self._services.engine, claim)

    def _poll_batch(self, batch: Sequence[Source], token: str, began: int, report: PollReport) -> None:
        queues: dict[str, deque[Source]] = {}
        for source in batch:
            queues.setdefault(self._services.host_of(source), deque()).append(source)
        settings = self._services.settings
        # One chain per place at the host's gate: more would only wait there and delay other hosts.
        chains = [(host, queue) for host, queue in queues.items() for _ in range(min(HOST_CONCURRENCY, len(queue)))]
        expires = began + self._lease - settings.request_timeout_seconds
        left: list[str] = []

        def work(chain: tuple[str, deque[Source]]) -> list[tuple[PollRecord, int] | None]:
            host, queue = chain
            done: list[tuple[PollRecord, int] | None] = []
            while True:
                try:
                    source = queue.popleft()
                except IndexError:
                    return done
                if self._monotonic() >= self._end or self._services.now() >= expires:
                    left.append(source.source_id)
                    continue
                done.append(self.poll(source, host, token, expires))

        with ThreadPoolExecutor(WORKERS, thread_name_prefix="poll") as pool:
            try:
                for found in pool.map(work, chains):
                    for each in found:
                        if each is None:
                            report.lost += 1
                        else:
                            report.add(*each)
            except BaseException:
                self._end = -math.inf  # who stops the run waits for the requests under way, not for whole chains
                raise
        report.left += len(left)
        if left:
            run_transaction(self._services.engine, lambda connection: stats.release(connection, left, token))

    def poll(self, source: Source, host: str, token: str, expires: float = math.inf) -> tuple[PollRecord, int] | None:
        """Fetch one source and store its answer; None if the lease was lost, so that nothing was stored.

        No further page is read after ``expires``.
        """
        began, asked_at = time.perf_counter(), self._services.now()

        def all_unread(found: Sequence[Entry], before: int | None) -> bool:
            with reading(self._services.engine) as connection:
                return entries.all_unread(connection, source.source_id, found, before)

        reach = Reach(all_unread, lambda: self._monotonic() < self._end and self._services.now() < expires)
        try:
            with self._services.client(source) as client:
                fetched: FetchedFeed | SourceError = client.fetch(source, asked_at, reach)
        except SourceError as error:
            fetched = error
        except Exception as error:
            logger.exception("source %s could not be read", source.source_id)
            fetched = FeedRefused(host, f"unexpected {type(error).__name__}: an internal error, see the log")
        took = int(1000 * (time.perf_counter() - began))
        now = self._services.now()

        def record(connection: Connection) -> tuple[PollRecord, int] | None:
            row = stats.lock_stats(connection, source.source_id)
            if row is None or row["lease_token"] != token:
                return None
            if isinstance(fetched, GateClosed):
                return self._defer(connection, source, host, token, fetched, now), 0
            if isinstance(fetched, SourceError):
                return self._failed(connection, source, host, fetched, now, took, row), 0
            return self._answered(connection, source, host, fetched, now, took, row)

        try:
            return run_transaction(self._services.engine, record)
        except (OperationalError, InterfaceError):
            raise  # the database's failure, not the source's
        except Exception as error:
            if isinstance(fetched, SourceError):
                raise
            # Such as a value that the database does not take: other sources are polled nevertheless.
            logger.exception("the answer of source %s could not be stored", source.source_id)
            fetched = FeedRefused(
                host, f"unexpected {type(error).__name__}: an answer that cannot be stored, see the log"
            )
            return run_transaction(self._services.engine, record)

    def _defer(
        self, connection: Connection, source: Source, host: str, token: str, error: GateClosed, now: int
    ) -> PollRecord:
        until = min(max(int(error.until.timestamp()) + 1, now + 60), now + _DEFERRED_AT_MOST)
        stats.release(connection, [source.source_id], token, until)
        stats.write_stats(connection, source.source_id, {"why": {"profile": "gate", "bound": "gate", "until": until}})
        done = PollRecord(source.source_id, host, now, PollOutcome.DEFERRED, error="")
        polls.add_poll(connection, done)
        return done

    def _failed(
        self,
        connection: Connection,
        source: Source,
        host: str,
        error: SourceError,
        now: int,
        took: int,
        before: Mapping[str, Any],
    ) -> PollRecord:
        kind, status, wait = failure_of(error)
        update_source_stats(
            connection,
            source.source_id,
            source.kind.source_type,
            False,
            kind,
            now=now,
            tz=self._services.settings.zone,
            raw_error=error.reason,
            floor=now + wait if wait else 0,
            locked=before,
        )
        if kind == GONE:
            sources.set_state(connection, source.source_id, SourceState.GONE, GONE, now)
        done = PollRecord(
            source.source_id, host, now, PollOutcome.FAILED, status, duration_ms=took, error=f"{kind}: {error.reason}"
        )
        polls.add_poll(connection, done)
        return done

    def _answered(
        self,
        connection: Connection,
        source: Source,
        host: str,
        fetched: FetchedFeed,
        now: int,
        took: int,
        before: Mapping[str, Any],
    ) -> tuple[PollRecord, int]:
        clock = SourceClock.from_json(source.clock)
        answered, known = entries.with_own_guids(connection, source.source_id, fetched.entries, clock.skew)
        stated = {each.guid_hash: each.published_at for each in reversed(answered)}
        # Nothing is published after it is found.
        given = [
            each if each.published_at is None else replace(each, published_at=min(each.published_at + clock.skew, now))
            for each in answered
        ]
        stored = entries.store_entries(connection, source.source_id, given, now, known)
        published = [*stored.new, *(each for each in stored.edited if each.edit_publishes)]
        told = 0
        if any(each.edit_publishes for each in given):
            told = entries.hand_over(connection, source.source_id, stored.new, stored.edited, now)
        gap = _gap_left(fetched, before, now)
        times = [stated[each.guid_hash] for each in published]
        learned = self._learned(source, fetched, gap) | self._learned_clock(
            connection, source, clock, times, before, now
        )
        if learned:
            sources.update_source(connection, source.source_id, learned, now)
        update_source_stats(
            connection,
            source.source_id,
            source.kind.source_type,
            bool(published),
            "",
            now=now,
            tz=self._services.settings.zone,
            floor=now + fetched.own_gap,
            floor_from=fetched.own_gap_from,
            locked=before,
            planner=None if self._plan is None else BudgetPlanner(self._plan, host, self._services.settings),
        )
        if fetched.moved_to and fetched.moved_to != source.url:
            other = sources.move_source(connection, source, fetched.moved_to, now)
            if other is not None:
                reason = f"moved permanently to the address of another source: {other.title or other.source_id}"
                sources.set_state(connection, source.source_id, SourceState.DUPLICATE, reason, now)
        dated = [each.published_at for each in published if each.published_at is not None]
        # For entries that existed at the first poll, the delay is unknown.
        fresh = [moment for moment in dated if before["last_check_at"] and now - moment <= _DELAY_AT_MOST]
        done = PollRecord(
            source.source_id,
            host,
            now,
            PollOutcome.HIT if published else PollOutcome.UNCHANGED if fetched.unchanged else PollOutcome.MISS,
            fetched.status,
            new=len(stored.new),
            updated=len(stored.edited),
            delay=max(now - min(fresh), 0) if fresh else None,
            duration_ms=took,
            gap=gap is not None,
        )
        polls.add_poll(connection, done)
        return done, told

    def _learned_clock(
        self,
        connection: Connection,
        source: Source,
        clock: SourceClock,
        stated: Sequence[int | None],
        before: Mapping[str, Any],
        now: int,
    ) -> dict[str, Any]:
        """Return what is learned of the source's clock from the newest of what was published, and correct what is
        stored by it."""
        newest = max((each for each in stated if each is not None), default=None)
        # After failures, or at the first poll, it is not known since when the entry could be seen.
        if newest is None or not before["hit_count"] or before["fail_count"]:
            return {}
        learned = clock.after(Sighting(now, newest, before["last_check_at"]))
        if learned.skew != clock.skew:
            entries.shift_times(connection, source.source_id, learned.skew - clock.skew, learned.since)
        return {"clock": learned.to_json()} if learned != clock else {}

    def _learned(self, source: Source, fetched: FetchedFeed, gap: Gap | None) -> dict[str, Any]:
        """Return the columns of a source that an answer changes."""
        learned: dict[str, Any] = {
            "etag": fetched.etag,
            "last_modified": fetched.last_modified,
            "body_hash": fetched.body_hash,
            "gap": gap.to_json() if gap is not None else None,
            "own_gap": fetched.own_gap or None,
            "own_gap_from": fetched.own_gap_from or None,
        }
        if not source.title and fetched.title:
            learned["title"] = fetched.title[:300]
        known: dict[str, Any] = {
            "etag": source.etag,
            "last_modified": source.last_modified,
            "body_hash": source.body_hash,
            "gap": source.gap.to_json() if source.gap is not None else None,
            "own_gap": source.own_gap or None,
            "own_gap_from": source.own_gap_from or None,
        }
        return {name: value for name, value in learned.items() if known.get(name) != value}


def _gap_left(fetched: FetchedFeed, before: Mapping[str, Any], now: int) -> Gap | None:
    """Return what remains unread: not of what a source had before it was followed, and not of more than a week ago."""
    if fetched.gap is None or not before["hit_count"] or now - fetched.gap.at > _GAP_LASTS:
        return None
    return fetched.gap
