"""Replays push times through the shipped system: its poller, planner, review and tables; only the network is replaced.

A source's client returns what the feed would show at the replay's time; a run is launched when the sensor would, and
the review every hour. The first days are not measured: in them the correction of the plan settles.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select

from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.feeds.cadence_review import review
from douban_pipeline.feeds.clients.further_pages import Reach
from douban_pipeline.feeds.clients.source_client import SourceClient
from douban_pipeline.feeds.intensity import DAY, HOUR, Floats
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.scheduler import stagger
from douban_pipeline.feeds.sensors import INTERVAL_SECONDS, idle_reason
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store import sources, stats
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import entry, poll
from douban_pipeline.feeds.types import Entry, FetchedFeed, Source, SourceKind
from douban_pipeline_tests.harness.feeds.replay import SHOWN, Course, Trial

SETTLING = 2
"""Days before the test, in which the system runs and is not measured."""


@dataclass
class ReplayClock:
    """A clock that is set by the replay."""

    at: float

    def now(self) -> datetime:
        """Return its time."""
        return datetime.fromtimestamp(self.at, UTC)

    def sleep(self, seconds: float) -> None:
        """Move it on."""
        self.at += max(seconds, 0.0)


@dataclass(frozen=True)
class ReplayedFeed:
    """A client that returns what a feed shows at a moment; see `clients.fetching.SourceClient`."""

    pushes: Floats

    def fetch(self, source: Source, now: int, _reach: Reach) -> FetchedFeed:
        """Return its newest entries."""
        known = int(np.searchsorted(self.pushes, now, side="right"))
        shown = self.pushes[max(known - SHOWN, 0) : known]
        body = f"{known}"
        if body == source.body_hash:
            return FetchedFeed(unchanged=True, body_hash=body)
        return FetchedFeed([entry_of(moment) for moment in shown[::-1]], body_hash=body)


def entry_of(moment: float) -> Entry:
    """Return the entry of a push."""
    return Entry(f"{moment:.0f}", "", f"push {moment:.0f}", published_at=int(moment))


@dataclass(frozen=True)
class ReplayServices(FeedsServices):
    """The shipped services with clients of recorded feeds."""

    feeds: dict[str, Floats] = field(default_factory=dict)

    @contextmanager
    def client(self, source: Source) -> Iterator[SourceClient]:
        """Yield the client of a recorded feed."""
        yield ReplayedFeed(self.feeds[source.source_id])


def replay_shipped(profile: str, trial: Trial, budget: float = 0.0, settling: int = SETTLING) -> Course:
    """Return what an operator gets who sets profile ``plan``, or ``budget`` with so many polls a source and day."""
    settings: dict[str, Any] = {"profile": profile, **({"polls_per_source_per_day": budget} if budget else {})}
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        # No limits: what is measured is when polls are made, not how fast.
        given = FeedsSettings(_env_file=None, home=Path(folder), **settings)
        engine = open_engine(f"sqlite:///{folder}/feeds.sqlite")
        TREE.upgrade(engine)
        clock = ReplayClock(trial.start - settling * DAY)
        feeds = [np.unique(np.concatenate(parts)) for parts in zip(trial.history, trial.tests, strict=True)]
        ids = [f"rss-{number:05}" for number in range(len(feeds))]
        services = ReplayServices(engine=engine, clock=clock, settings=given, feeds=dict(zip(ids, feeds, strict=True)))
        follow_feeds(services, ids, int(clock.at))
        _live(services, clock, trial.end)
        course = _course(services, trial, ids)
        engine.dispose()
    return course


def follow_feeds(services: ReplayServices, ids: Sequence[str], now: int) -> None:
    """Follow the feeds, with the history that each showed until now."""
    added = [Source(each, SourceKind.RSS, f"http://{each}.example/feed") for each in ids]
    with services.engine.begin() as connection:
        sources.insert_sources(connection, added, stagger(ids, now, HOUR), now)
        for each in ids:
            known = services.feeds[each]
            store_entries(connection, each, [entry_of(moment) for moment in known[known < now]], now - HOUR)


def _live(services: ReplayServices, clock: ReplayClock, end: float) -> None:
    """Launch polls as the sensor does, and the review every hour, until the end."""
    start, reviewed = clock.at, -np.inf
    while clock.at < end:
        if clock.at - reviewed >= HOUR:
            review(services)
            reviewed = clock.at
        now = services.now()
        with reading(services.engine) as connection:
            due, since = stats.count_due(connection, now)
            coming = None if due else stats.next_due(connection)
        if idle_reason(due, now - since if since is not None else 0) is None:
            Poller(services, seconds=np.inf).run()
        # The sensor's ticks at which nothing can be due are passed over.
        following = max(min(coming or clock.at, reviewed + HOUR) - start, clock.at - start + 1)
        clock.at = start + math.ceil(following / INTERVAL_SECONDS) * INTERVAL_SECONDS


def _course(services: ReplayServices, trial: Trial, ids: Sequence[str]) -> Course:
    with reading(services.engine) as connection:
        counts = connection.execute(
            select(poll.c.source_id, func.count()).where(poll.c.at >= trial.start).group_by(poll.c.source_id)
        ).all()
        found = {
            (source_id, guid): found_at
            for source_id, guid, found_at in connection.execute(
                select(entry.c.source_id, entry.c.guid, entry.c.found_at).where(entry.c.published_at >= trial.start)
            )
        }
    rows = {each: row for row, each in enumerate(ids)}
    polls = np.zeros(len(ids))
    for source_id, count in counts:
        polls[rows[source_id]] = count
    delays = [
        np.array([max(found.get((each, f"{moment:.0f}"), trial.end) - moment, 0.0) for moment in times])
        for each, times in zip(ids, trial.tests, strict=True)
    ]
    return Course(polls, delays)
