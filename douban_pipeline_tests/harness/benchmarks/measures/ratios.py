"""What must not get worse, of every system, as ratios of counted steps: a busy machine changes none of them.

Each compares a thing with itself: on many rows and on few, far down and at the top, in a batch and one by one. What it
was when it was written is its baseline; 30 % above that is a regression, and fails.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, insert

from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import comment_lists, events
from douban_pipeline.comments.store import tables as comment_tables
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.migrations import TREE as COMMENTS
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.database import open_engine
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.store.migrations import TREE as DIGEST
from douban_pipeline.digest.store.tables import slot_run
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline.feeds.scheduler import get_due_sources
from douban_pipeline.feeds.store.migrations import TREE as FEEDS
from douban_pipeline.feeds.store.tables import stats
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.verdicts import judge
from douban_pipeline.tmdb.projection import project
from douban_pipeline.tmdb.types import EntityType
from douban_pipeline.tmdb.values import graph_hash
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, StandingClock, Target, World

_STEP = 5
"""Instructions of SQLite's virtual machine between two notes of it."""


@dataclass(slots=True)
class Counted:
    """A number that is known when the block has ended."""

    number: int = 0


def calls(work: Callable[[], object]) -> int:
    """Return how many functions, Python's and C's, ``work`` calls on this thread."""
    counted = 0

    def note(_frame: Any, what: str, _given: Any) -> None:
        nonlocal counted
        if what in ("call", "c_call"):
            counted += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


@contextmanager
def statements(engine: Engine) -> Iterator[Counted]:
    """Count the statements that are executed within the block."""
    counted = Counted()

    def note(*_: Any) -> None:
        counted.number += 1

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield counted
    finally:
        event.remove(engine, "before_cursor_execute", note)


@contextmanager
def sqlite_steps(engine: Engine) -> Iterator[Counted]:
    """Count the instructions that SQLite executes within the block, in steps of five."""
    counted = Counted()

    def note() -> int:
        counted.number += 1
        return 0

    def watch(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(note, _STEP)

    def leave(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(None, 0)

    event.listen(engine, "checkout", watch)
    event.listen(engine, "checkin", leave)
    try:
        yield counted
    finally:
        event.remove(engine, "checkout", watch)
        event.remove(engine, "checkin", leave)


WORSE = 1.3
"""How often its baseline a ratio may be."""
_NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
_SECONDS = int(_NOW.timestamp())


def ratios(world: World) -> list[Figure]:
    """Count what each system does in two ways, and compare."""
    return all_ratios(world.scratch)


def all_ratios(folder: Path) -> list[Figure]:
    """Return every ratio; ``folder`` is for files of SQLite."""
    return [
        _ratio("douban: judging 40 candidates against 10", 3.9, _judging(40), _judging(10), "calls"),
        _ratio("feeds: choosing the due of 20,000 sources against 2,000", 1.0, *_choosing(folder), "steps of SQLite"),
        _ratio("digest: a day's slots of ten years against of one", 1.0, *_listing(folder), "steps of SQLite"),
        _ratio("tmdb: projecting 200 credits against 50", 3.9, _projecting(200), _projecting(50), "calls"),
        *_comments(folder),
    ]


def _ratio(name: str, baseline: float, ours: int, other: int, unit: str) -> Figure:
    note = f"{ours:,} {unit} against {other:,}; no more than {WORSE:g} times what it was"
    limit = Target(most=baseline * WORSE)
    return Figure(name, ours / max(other, 1), "", limit, baseline, "when it was written", note)


def _judging(count: int) -> int:
    video = Video(1, "繁花", year=2023)
    subjects = [Subject(number, f"繁花{number}", year=1990 + number % 30) for number in range(1, count + 1)]
    judge(video, subjects)  # what is kept in memory is kept before it is counted
    return calls(lambda: judge(video, subjects))


def _projecting(credits: int) -> int:
    cast = [
        {"id": number, "name": f"Person {number}", "credit_id": f"{number:x}", "character": f"Role {number}"}
        for number in range(1, credits + 1)
    ]
    film = {"id": 1, "title": "繁花", "genres": [], "credits": {"cast": cast, "crew": []}}
    graph_hash(project(EntityType.MOVIE, film))
    return calls(lambda: graph_hash(project(EntityType.MOVIE, film)))


def _choosing(folder: Path) -> tuple[int, int]:
    found = []
    for count in (20_000, 2_000):
        engine = open_engine(f"sqlite:///{folder / f'feeds{count}.sqlite'}")
        FEEDS.upgrade(engine)
        rows = [
            {"source_id": f"s{number:06}", "next_due_at": _SECONDS - 60 + number // 20 * 60} for number in range(count)
        ]
        with engine.begin() as connection:
            connection.execute(insert(stats), rows)
        with sqlite_steps(engine) as counted, engine.connect() as connection:
            assert len(get_due_sources(connection, _SECONDS, limit=20)) == 20
        engine.dispose()
        found.append(counted.number)
    return found[0], found[1]


def _listing(folder: Path) -> tuple[int, int]:
    found = []
    day = date(2026, 10, 31)
    for years in (10, 1):
        engine = open_engine(f"sqlite:///{folder / f'digest{years}.sqlite'}")
        DIGEST.upgrade(engine)
        rows: list[dict[str, Any]] = [
            {
                "run_date": day - timedelta(days=number),
                "slot": slot,
                "scheduled_at": _NOW,
                "status": SlotStatus.SUCCESS.value,
                "error": "",
                "counters": {},
                "started_at": _NOW,
                "updated_at": _NOW,
            }
            for number in range(365 * years)
            for slot in ("07:00", "12:00", "14:00", "18:00", "22:00")
        ]
        with engine.begin() as connection:
            connection.execute(insert(slot_run), rows)
        with sqlite_steps(engine) as counted, engine.connect() as connection:
            assert len(slots.of_day(connection, day)) == 5
        engine.dispose()
        found.append(counted.number)
    return found[0], found[1]


def _comments(folder: Path) -> list[Figure]:
    engine = open_engine(f"sqlite:///{folder / 'comments.sqlite'}")
    COMMENTS.upgrade(engine)
    try:
        section = _talk(engine, object_id=1, comments=1500)
        with statements(engine) as batch:
            many = _apply(engine, 500)
        _talk(engine, object_id=2, comments=50)
        with statements(engine) as single:
            few = _apply(engine, 1)
        name = "comments: statements of an event in a batch against one alone"
        shares = batch.number * few, single.number * many
        return [_ratio(name, _BATCHED, *shares, "statements"), *_pages(engine, section)]
    finally:
        engine.dispose()


_BATCHED = 0.075
"""A batch is to save nine statements of ten; it saves more, and how many depends on how often leases are renewed."""
_ORDERS = {Order.NEW: 1.0, Order.FLOOR: 1.0, Order.LIKES: 1.0, Order.HEAT: 1.0}
"""What a page far down costs, as a multiple of one at the top."""


def _pages(engine: Engine, section: int) -> list[Figure]:
    figures = []
    for order, baseline in _ORDERS.items():
        with engine.connect() as connection:
            every = comment_lists.list_roots(connection, section, order, None, 1500)
        found = []
        for after in (every[1300], None):
            with sqlite_steps(engine) as counted, engine.connect() as connection:
                assert len(comment_lists.list_roots(connection, section, order, after, 20)) == 20
            found.append(counted.number)
        name = f"comments: a page by {order} far down against the first"
        figures.append(_ratio(name, baseline, found[0], found[1], "steps of SQLite"))
    return figures


def _talk(engine: Engine, *, object_id: int, comments: int) -> int:
    ids = IdGenerator(object_id, _passing())
    given = []
    with engine.begin() as connection:
        section = ensure_section(connection, 1, object_id, _NOW)
        for number in range(comments):
            comment, actor = ids.next(), Actor(f"u:{number + 1}", number + 1)
            payload = {"content": f"第 {number} 条"}
            given.append(EventInput(section, EventKind.PUBLISH, actor, f"{object_id}p{number}", comment, payload))
            given.append(EventInput(section, EventKind.VOTE, actor, f"{object_id}v{number}", comment, {"value": 1}))
        events.append(connection, given, _NOW)
    return section


def _passing() -> Callable[[], datetime]:
    seconds = itertools.count()
    return lambda: _NOW + timedelta(seconds=next(seconds))


def _apply(engine: Engine, batch: int) -> int:
    worker = Worker(engine, StandingClock(_NOW), "ratios@here:1", SafetyReview(), batch=batch)
    applied = 0
    while turn := worker.turn():
        applied += turn
    worker.stop()
    with engine.connect() as connection:
        assert not connection.execute(
            comment_tables.event.select().where(comment_tables.event.c.applied_at.is_(None))
        ).first()
    return applied


MEASURES = (Measure("ratios", "what must not get worse, counted in steps, over all systems", ratios, ()),)
