"""Dagster's processes on the library of a measure, with videos that are due and the upstream that knows their works."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any, Self

import dagster as dg
from pydantic import SecretStr
from sqlalchemy import Connection, MetaData, Table, delete, func, insert, select, update

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.douban.jobs import CHAIN, SYNC_TAGS, shard_range_tags
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline.douban.store.videos import cms_locked
from douban_pipeline_tests.harness.benchmarks.measuring import World
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import known, subject_id_of, work_of
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION, REPOSITORY, DagsterStack, Storage
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.stand_ins.replay import ReplayServer

Rows = list[dict[str, Any]]


@contextmanager
def left_as_found(services: Services, vod_ids: Collection[int]) -> Iterator[None]:
    """Put back, after the block, all that work on ``vod_ids`` changes: their CMS rows and states, and our other tables.

    What is added to a table by then that only grows is told by its ids; small tables are put back whole.
    """
    tables = services.tables
    lately = tables.person.c.seen_at >= services.clock.now() - timedelta(seconds=1)  # times are kept in whole seconds
    growing = {
        table: next(iter(table.primary_key.columns)) for table in tables.metadata.tables.values() if _counts(table)
    }
    small = [tables.gate, tables.brake, tables.health, tables.subject]
    cms = Table(services.cms.vod.name, MetaData(), autoload_with=services.engine)
    of_videos = [(cms, cms.c.vod_id), (tables.video, tables.video.c.vod_id)]
    with reading(services.engine) as connection:
        last = {table: connection.execute(select(func.max(key))).scalar() or 0 for table, key in growing.items()}
        whole = {table: _rows(connection, table) for table in small}
        people = _rows(connection, tables.person, lately)
        parts = {
            table: [row for some in chunks(sorted(vod_ids)) for row in _rows(connection, table, key.in_(some))]
            for table, key in of_videos
        }
    try:
        yield
    finally:
        with services.engine.begin() as connection:
            for table, key in growing.items():
                connection.execute(delete(table).where(key > last[table]))
            for table, rows in whole.items():
                connection.execute(delete(table))
                _insert(connection, table, rows)
            for table, key in of_videos:
                for some in chunks(sorted(vod_ids)):
                    connection.execute(delete(table).where(key.in_(some)))
                _insert(connection, table, parts[table])
            mark, intro = tables.intro_mark, tables.intro
            connection.execute(delete(tables.person).where(lately))
            _insert(connection, tables.person, people)
            connection.execute(delete(mark).where(mark.c.intro_id > last[intro]))


def _counts(table: Table) -> bool:
    keys = list(table.primary_key.columns)
    return len(keys) == 1 and keys[0].autoincrement is True


def _rows(connection: Connection, table: Table, *conditions: Any) -> Rows:
    return [dict(row) for row in connection.execute(select(table).where(*conditions)).mappings()]


def _insert(connection: Connection, table: Table, rows: Rows) -> None:
    for start in range(0, len(rows), 500):
        connection.execute(insert(table), rows[start : start + 500])


Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the upstream saw it."""

    path: str
    target: str
    began: float
    ended: float


class TimedReplay(ReplayServer):
    """A replay upstream that remembers how long each request took it."""

    seen: list[Request]
    delay: Callable[[str], float] | None = None
    _seen_lock: threading.Lock

    def __enter__(self) -> Self:
        """Start serving, with nothing remembered."""
        self.seen, self._seen_lock = [], threading.Lock()
        return super().__enter__()

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to one request, and remember it."""
        began = time.time()
        answer = super().respond(method, target, body, headers)
        if self.delay is not None:
            time.sleep(self.delay(target))
        with self._seen_lock:
            self.seen.append(Request(target.partition("?")[0], target, began, time.time()))
        return answer


def busy_seconds(spans: Iterable[Span]) -> float:
    """Return for how long at least one of ``spans`` lasted."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return the most of ``moments`` that any window of ``seconds`` holds; its end does not belong to it."""
    ordered = sorted(moments)
    return max((bisect_left(ordered, began + seconds) - index for index, began in enumerate(ordered)), default=0)


def used_share(moments: Sequence[float], began: float, ended: float, per_minute: float) -> float:
    """Return the share of the allowed requests from ``began`` to ``ended`` that were made, from 0 to about 1.

    Raises:
        ValueError: The window is empty.
    """
    if ended <= began:
        raise ValueError(f"from {began} to {ended} is no window")
    ordered = sorted(moments)
    made = bisect_right(ordered, ended) - bisect_left(ordered, began)
    return made / ((ended - began) / 60 * per_minute)


FREE = {
    "douban_requests_per_minute": 60_000,
    "search_requests_per_minute": 60_000,
    "douban_concurrency": 5,
    "search_concurrency": 3,
}
"""Settings under which the gate lets everything through at once."""

_INSTIGATORS = """
    query Instigators($selector: RepositorySelector!) {
      repositoryOrError(repositorySelector: $selector) {
        __typename
        ... on Repository {
          sensors { name sensorState { id status } }
          schedules { name scheduleState { id status } }
        }
      }
    }"""
_STOP_SENSOR = "mutation Stop($id: String!) { stopSensor(id: $id) { __typename } }"
_STOP_SCHEDULE = "mutation Stop($id: String!) { stopRunningSchedule(id: $id) { __typename } }"


def pipeline_environment(settings: Settings, home: Path, **changes: Any) -> dict[str, str]:
    """Return the variables under which another process works with ``settings``, in a home of its own."""
    values = {name: getattr(settings, name) for name in settings.model_fields_set} | changes | {"home": home}
    values["database_url"] = SecretStr(settings.library_url)
    return {variable(name): _written(value) for name, value in values.items()}


def _written(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, (tuple, frozenset)):
        return ",".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    return str(value)


@contextmanager
def quiet_stack(
    home: Path, environment: Mapping[str, str], *, storage: Storage, changes: Mapping[str, Any] | None = None
) -> Iterator[DagsterStack]:
    """Run a stack whose sensors and schedules are switched off, so that only what is asked for is launched."""
    with DagsterStack(home, environment, storage=storage, changes=changes, daemon=False) as stack:
        stop_instigators(stack)
        try:
            stack.daemon.start()
            yield stack
        finally:
            stack.daemon.stop()


def stop_instigators(stack: DagsterStack, but: Collection[str] = ()) -> None:
    """Switch off every sensor and schedule that runs, as people do in the UI; those named in ``but`` go on."""
    selector = {"repositoryLocationName": LOCATION, "repositoryName": REPOSITORY}
    found = stack.ask(_INSTIGATORS, {"selector": selector})["repositoryOrError"]
    for kind, state, mutation in (
        ("sensors", "sensorState", _STOP_SENSOR),
        ("schedules", "scheduleState", _STOP_SCHEDULE),
    ):
        for item in found[kind]:
            if item[state]["status"] == "RUNNING" and item["name"] not in but:
                stack.ask(mutation, {"id": item[state]["id"]})


CHAIN_ASSETS = ("due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros")
_RUN_SECONDS = 900.0


def launch_chain(stack: DagsterStack, first: int, last: int) -> str:
    """Launch one run of the chain over the shards ``first`` to ``last``, both included; return its id."""
    return stack.launch(CHAIN, tags={**SYNC_TAGS, **shard_range_tags(first, last)})


def wait_for_runs(stack: DagsterStack, *run_ids: str, seconds: float = _RUN_SECONDS) -> None:
    """Wait until runs have ended well.

    Raises:
        RigError: One failed, or goes on after ``seconds``.
    """
    with stack.instance() as instance:
        for run_id in run_ids:

            def ended(run_id: str = run_id) -> dg.DagsterRun | None:
                run = instance.get_run_by_id(run_id)
                return run if run is not None and run.is_finished else None

            run = wait_for(ended, seconds=seconds)
            if run is None or not run.is_success:
                state = run.status.value if run else "goes on"
                raise RigError(f"run {run_id}: {state}; {stack.code.last_words()}")


LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
"""Whoever is due since then comes before all others."""


def videos_of_shard(world: World, shard: int, count: int, *, unmatched: bool = False) -> list[int]:
    """Return the first ``count`` videos of a shard that are visited at all, fewer if it has no more.

    The CMS's own lock keeps the chain from a video: whoever counted one of those would wait for it in vain.
    """
    video = world.services.tables.video
    query = select(video.c.vod_id).where(
        video.c.shard == shard,
        video.c.douban_next_sync_at.is_not(None),
        ~cms_locked(world.services.tables, world.services.settings.table_prefix),
    )
    if unmatched:
        query = query.where(video.c.vod_douban_id == 0)
    with reading(world.services.engine) as connection:
        return list(connection.execute(query.order_by(video.c.vod_id).limit(count)).scalars())


def make_due(world: World, vod_ids: Sequence[int], since: datetime = LONG_AGO) -> None:
    """Let videos be due ``since``."""
    video = world.services.tables.video
    with world.services.engine.begin() as connection:
        for some in chunks(vod_ids):
            connection.execute(update(video).where(video.c.vod_id.in_(some)).values(douban_next_sync_at=since))


def subjects_of(world: World, vod_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the subjects of the videos' works, as far as Douban knows them, in the replay upstream's form."""
    works = {work_id_of(vod_id, world.seed) for vod_id in vod_ids}
    subjects = {subject_id_of(work): work_of(work, world.seed) for work in works if known(work, world.seed)}
    return [subjects[number] for number in sorted(subjects)]


@contextmanager
def due_at_upstream(
    world: World, vod_ids: Sequence[int], home: Path, **changes: Any
) -> Iterator[tuple[TimedReplay, dict[str, str]]]:
    """Let videos be due and an upstream know their works; all is as before after the block.

    Yields:
        The upstream, and the variables under which other processes work on the videos; they write.
    """
    with left_as_found(world.services, vod_ids), TimedReplay(subjects_of(world, vod_ids)) as upstream:
        make_due(world, vod_ids)
        yield (
            upstream,
            pipeline_environment(
                world.services.settings,
                home,
                douban_url=upstream.douban_url,
                search_url=upstream.search_url,
                search_provider="searxng",
                dry_run=False,
                **changes,
            ),
        )
