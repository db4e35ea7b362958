"""The chain on a stage: a small real library, the replay upstream over real HTTP, and Dagster's own runs.

A test says which videos the site has and which subjects Douban knows, runs the chain, and looks at what became of
`mac_vod` and of our tables. Time is a `FakeClock`: what waits for the gate or for a breaker waits no time at all.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.core.owner import owner_name
from douban_pipeline.demo.replay import ReplayServer
from douban_pipeline.douban.chain.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskType, VerdictState
from douban_pipeline.douban.store.tasks import NewTask, shard_of
from douban_pipeline_tests.clocks import FakeClock
from douban_pipeline_tests.library import Library, build_library, dead_owner, video
from douban_pipeline_tests.runs import STEPS, Play, Run, play

GUARDS = "guards"
"""A job of the tests alone: every guard, and nothing else."""

WRITE_AND_REPORT = "write_and_report"
"""A job of the tests alone: the last step of the chain with the reports that rest on it."""

FAST = {"douban_requests_per_minute": 60_000, "search_requests_per_minute": 60_000}

_QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


def subject(douban_id: int, title: str, year: int = 2024, **facts: Any) -> dict[str, Any]:
    """Return a Douban entry as the replay upstream keeps it: an invented film, ``facts`` changed."""
    plain = {
        "id": douban_id,
        "title": title,
        "original_title": title,
        "aka": [],
        "year": year,
        "regions": ["中国大陆"],
        "languages": ["汉语普通话"],
        "directors": [f"{title[:2]}导"],
        "writers": [f"{title[:2]}编"],
        "actors": [f"{title[:2]}甲", f"{title[:2]}乙", f"{title[:2]}丙"],
        "genres": ["剧情"],
        "duration_min": 118,
        "episodes": None,
        "kind": "movie",
        "rating": 7.9,
        "votes": 1200,
        "pubdates": [f"{year}-05-01(中国大陆)"],
        "summary": f"关于{title}的故事。",
    }
    return {**plain, **facts}


def row_of(entry: Mapping[str, Any], vod_id: int, **columns: Any) -> dict[str, Any]:
    """Return the row that a site would have of ``entry``, good enough to be confirmed; ``columns`` changed."""
    known = {
        "vod_name": entry["title"],
        "vod_year": str(entry["year"]),
        "vod_area": "大陆",
        "vod_director": ",".join(entry["directors"]),
        "vod_actor": ",".join(entry["actors"][:2]),
        "vod_class": ",".join(entry["genres"]),
    }
    return video(vod_id, **{**known, **columns})


RIVER = subject(90_000_101, "长河落日记事", 2021)
WHALE = subject(90_000_102, "蓝鲸与灯塔守望者", 2022)
TRAM = subject(90_000_103, "午夜电车站台", 2023)
WHEAT = subject(90_000_104, "麦田尽处有回声", 2020)
KITE = subject(90_000_105, "纸鸢飞过旧城墙", 2019)
SNOW = subject(90_000_106, "雪线以上的村庄", 2018)
CLOCKS = subject(90_000_107, "深海钟楼谜案", 2017)
FILMS = (RIVER, WHALE, TRAM, WHEAT, KITE, SNOW, CLOCKS)
"""Invented films with nothing in common, each of them found by its name alone."""


@dataclass
class Scenario:
    """A library, an upstream and a Dagster instance, and the runs between them."""

    library: Library
    upstream: ReplayServer
    instance: dg.DagsterInstance = field(repr=False)

    @property
    def services(self) -> Services:
        """The ground floor over this library."""
        return self.library.services

    @property
    def clock(self) -> FakeClock:
        """The library's time."""
        assert isinstance(self.library.clock, FakeClock)
        return self.library.clock

    def under(self, **options: Any) -> Scenario:
        """Return the same scenario under changed settings."""
        library = replace(self.library, options={**self.library.options, **options})
        library.engine, library.cms = self.library.engine, self.library.cms
        return Scenario(library, self.upstream, self.instance)

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The code location over this library, with two jobs of the tests' own."""
        real = build_defs(settings=self.library.settings, resource_overrides={"services": self.services})
        written = dg.AssetSelection.assets("synced_fields")
        reports = dg.AssetSelection.assets("review_queue", "duplicate_reports")
        # The report on drift looks and checks in one.
        own_check = dg.AssetSelection.checks_for_assets("cms_drift")
        own = [
            dg.define_asset_job(GUARDS, selection=dg.AssetSelection.all_asset_checks() - own_check),
            dg.define_asset_job(WRITE_AND_REPORT, selection=written | reports),
        ]
        return dg.Definitions.merge(real, dg.Definitions(jobs=own))

    def run(
        self, first: int | None = None, last: int | None = None, *, steps: Sequence[str] = STEPS, **given: Any
    ) -> Run:
        """Run the chain, or only ``steps`` of it.

        Args:
            first: The first shard; by default the run covers all that have videos.
            last: The last shard; ``first`` by default.
            steps: The assets, each with its guards.
            given: ``run_id``, ``scope`` of `due_videos`, or ``job`` for another job over shards.
        """
        shards = self._shards(first, last)
        scope = given.pop("scope", None)
        job = given.pop("job", CHAIN)
        ops = {"due_videos": {"config": {"scope": scope}}} if scope else {}
        chosen = None if job != CHAIN or tuple(steps) == STEPS else [dg.AssetKey(step) for step in steps]
        return self.launch(job, ops, tags=shard_range_tags(shards[0], shards[-1]), asset_selection=chosen, **given)

    def play(self, first: int | None = None, last: int | None = None, *, steps: Sequence[str] = STEPS) -> Play:
        """Do what `run` does without Dagster's own work, which takes most of a run's time: see `runs.play`."""
        played = play(self.services, self._shards(first, last), steps)
        self._end_process(played.run_id)
        return played

    def _shards(self, first: int | None, last: int | None) -> range:
        held = [shard_of(vod_id) for vod_id in self.library.states()]
        start = min(held) if first is None else first
        return range(start, (last if last is not None else max(held) if first is None else first) + 1)

    def write_alone(self, **given: Any) -> Run:
        """Run `synced_fields` in a run of its own, as a person may: past every guard of the steps before."""
        return self.run(steps=["synced_fields"], **given)

    def check(self) -> Run:
        """Run every guard and nothing else."""
        return self.launch(GUARDS)

    def launch(self, job: str, ops: Mapping[str, Any] | None = None, **given: Any) -> Run:
        """Run any job; ``ops`` is its config as a person edits it in the launchpad."""
        config = {"loggers": _QUIET, **({"ops": ops} if ops else {})}
        found = self.definitions.resolve_job_def(job)
        run = Run(found.execute_in_process(run_config=config, instance=self.instance, raise_on_error=False, **given))
        self._end_process(run.run_id)
        return run

    def _end_process(self, run_id: str) -> None:
        """Make it known that the run's process has ended: in production every run is a process of its own."""
        task = self.library.tables.task
        self.library.execute(
            sa.update(task).where(task.c.lease_owner == owner_name(run_id)).values(lease_owner=dead_owner(run_id))
        )

    def verdicts(self, vod_id: int | None = None) -> list[dict[str, Any]]:
        """Return the verdicts, of one video or all, the oldest first."""
        return self._rows(self.library.tables.verdict, "verdict_id", vod_id)

    def candidates(self, vod_id: int | None = None) -> list[dict[str, Any]]:
        """Return the stored candidates, by verdict and rank."""
        return self._rows(self.library.tables.candidate, "candidate_id", vod_id)

    def decisions(self, vod_id: int | None = None) -> list[dict[str, Any]]:
        """Return the decisions, the oldest first."""
        return self._rows(self.library.tables.decision, "decision_id", vod_id)

    def task(self, vod_id: int) -> dict[str, Any]:
        """Return the newest task of a video."""
        return [task for task in self.library.tasks() if task["vod_id"] == vod_id][-1]

    def cms(self, vod_id: int, *columns: str) -> tuple[Any, ...]:
        """Return columns of a CMS row."""
        row = self.library.row(vod_id)
        return tuple(row[column] for column in columns)

    def plant_verdict(self, vod_id: int, douban_id: int, **columns: Any) -> int:
        """Put a CONFIRMED verdict before the writing step, with its task, as an earlier step would; return its id.

        It has no candidates: were it ever written, the step would fail instead.
        """
        queue = self.library.queue("planted")
        new = NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SYNC)
        tables = self.library.tables
        with self.library.engine.begin() as connection:
            queue.enqueue(connection, [new], run_id="planted")
            task_id = connection.execute(
                sa.select(tables.task.c.task_id).where(tables.task.c.vod_id == vod_id, tables.task.c.open_key != "")
            ).scalar_one()
            values = {
                "vod_id": vod_id,
                "shard": shard_of(vod_id),
                "task_id": task_id,
                "verdict": "CONFIRMED",
                "douban_id": douban_id,
                "score": 95.0,
                "lead": 30.0,
                "complete": True,
                "source_healthy": True,
                "rejects": [],
                "reasons": [],
                "explanation": "植入",
                "facts": {},
                "snapshots": [],
                "rule_version": "planted",
                "state": VerdictState.PENDING,
                "run_id": "planted",
                "created_at": self.clock.now(),
                **columns,
            }
            key = connection.execute(sa.insert(tables.verdict).values(values)).inserted_primary_key
            assert key is not None
            verdict_id = int(key[0])
            connection.execute(
                sa.update(tables.task)
                .where(tables.task.c.task_id == task_id)
                .values(payload={"verdict_id": verdict_id}, stage=TaskStage.SYNC)
            )
        return verdict_id

    def _rows(self, table: sa.Table, key: str, vod_id: int | None) -> list[dict[str, Any]]:
        query = sa.select(table).order_by(table.c[key])
        return self.library.query(query if vod_id is None else query.where(table.c.vod_id == vod_id))


def telling(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of ``rows``."""
    return [tuple(row[column] for column in columns) for row in rows]


class BlankLibraries:
    """Libraries without videos, in files that one test after another gets.

    Copying a file is quicker than making tables, and what SQLAlchemy has compiled for an engine stays compiled.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blank = folder / "blank.sqlite"
        with build_library(f"sqlite:///{self._blank}"):
            pass
        self._files: list[Library] = []

    def blank(self, number: int, options: Mapping[str, Any]) -> Library:
        """Return the library of file ``number``, which is empty again; whoever had it before must have closed it."""
        path = self._folder / f"library-{number}.sqlite"
        shutil.copyfile(self._blank, path.with_suffix(".new"))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.with_suffix(".new").replace(path)
        if number == len(self._files):
            self._files.append(Library(f"sqlite:///{path}"))
        kept = self._files[number]
        library = Library(kept.url, options=options)
        # The same engine, but with listeners of its own.
        library.engine = kept.engine.execution_options()
        library.tables, library.cms = kept.tables, kept.cms
        return library


@pytest.fixture(scope="session")
def blank_libraries(tmp_path_factory: pytest.TempPathFactory) -> BlankLibraries:
    """Libraries without videos."""
    return BlankLibraries(tmp_path_factory.mktemp("blank"))


@pytest.fixture(scope="session")
def dagster_instance() -> Iterator[dg.DagsterInstance]:
    """One instance for all runs of the tests: making one takes as long as a run."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def stage(
    blank_libraries: BlankLibraries, dagster_instance: dg.DagsterInstance, tmp_path: Path
) -> Iterator[Callable[..., Scenario]]:
    """Set a scenario: ``stage(videos, subjects, url=…, taken_in=…, **settings)``."""
    numbers = itertools.count()
    with ExitStack() as stack:

        def play(
            videos: Iterable[Mapping[str, Any]] = (),
            subjects: Iterable[Mapping[str, Any]] = (),
            *,
            url: str = "",
            taken_in: bool = True,
            **options: Any,
        ) -> Scenario:
            upstream = stack.enter_context(ReplayServer(subjects))
            urls = {"douban_url": upstream.douban_url, "search_url": upstream.search_url}
            wanted = {"home": tmp_path / "home", **urls, **FAST, **options}
            if wanted.get("search_provider") == "douban_suggest":
                wanted["search_url"] = upstream.suggest_url
            if url:
                library = build_library(url, videos, taken_in=taken_in, **wanted)
            else:
                library = blank_libraries.blank(next(numbers), wanted).filled(videos, taken_in)
            stack.enter_context(library)
            return Scenario(library, upstream, dagster_instance)

        yield play
