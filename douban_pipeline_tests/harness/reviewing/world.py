"""What a sitting needs: a library in which videos wait, the upstream, Dagster as in production, and the service."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import dagster as dg
import httpx
import sqlalchemy as sa

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.partitions import shards
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import PREFIX, load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline_tests.harness.benchmarks.stack import CHAIN_ASSETS
from douban_pipeline_tests.harness.fixtures.runs import STEPS, play
from douban_pipeline_tests.harness.generated.filling import fill
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import subject_id_of, subjects_of
from douban_pipeline_tests.harness.rig.dagster_stack import HOST, DagsterStack, free_port
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database
from douban_pipeline_tests.harness.rig.processes import Part, Process, RigError, only_these
from douban_pipeline_tests.harness.soak.upstream import DistantReplay

SEED = 1
START_SECONDS = 60.0
MOST_JUDGED = 30
"""Videos that come to wait by being judged; further ones get copies of their verdicts, with their own subject first."""
_LATER = timedelta(days=3000)
_TOGETHER = 8
_DELAY_SECONDS = (0.005, 0.02)

_SETTINGS = {
    "SEARCH_PROVIDER": "searxng",
    # What a site with proxies of its own may ask: the backfill has to last as long as the sitting does.
    "DOUBAN_REQUESTS_PER_MINUTE": "120",
    "SEARCH_REQUESTS_PER_MINUTE": "120",
    "DRY_RUN": "false",
    "AI_INTROS": "false",
}
_JUDGING = {
    "douban_requests_per_minute": 60_000,
    "search_requests_per_minute": 60_000,
    "batch_size": 500,
    "search_concurrency": 5,
}


@dataclass(frozen=True, slots=True)
class Size:
    """Videos in the library, and how many of them wait for a person."""

    videos: int
    waiting: int


class ReviewWorld(Part):
    """A library of which some videos wait, the service, and Dagster where it is wanted; see `Part`."""

    services: Services
    service: Process

    def __init__(self, size: Size, scratch: Path, *, dagster: bool, say: Callable[[str], None]) -> None:
        self.size, self.scratch, self._say, self._dagster = size, scratch, say, dagster
        self.stack: DagsterStack | None = None
        self._port = free_port()
        self.url = f"http://{HOST}:{self._port}/review/"
        self._closing = ExitStack()

    def start(self) -> Self:
        """Make the library and start everything.

        Raises:
            RigError: A part did not start, or too few videos came to wait.
        """
        enter = self._closing.enter_context
        database = enter(scratch_database(MARIADB, "reviewing")).update_query_dict({"charset": "utf8mb4"})
        self._say(f"a library of {self.size.videos:,} videos and the upstream that knows them")
        replay = enter(
            DistantReplay(subjects_of(self.size.videos, SEED), caller_timeout=10, seed=SEED, delay=_DELAY_SECONDS)
        )
        environment = {
            PREFIX + name: value
            for name, value in {
                **_SETTINGS,
                "HOME": str(self.scratch / "home"),
                "DATABASE_URL": database.render_as_string(hide_password=False),
                "DOUBAN_URL": replay.douban_url,
                "SEARCH_URL": replay.search_url,
            }.items()
        }
        stack = DagsterStack(self.scratch / "dagster", environment, storage="postgres")
        environment |= {PREFIX + "UI_URL": stack.url, PREFIX + "GRAPHQL_URL": f"{stack.url}/graphql"}
        stack.environment.update(environment)
        enter(only_these(environment))
        self.services = open_services(load_settings())
        self._closing.callback(self.services.close)
        self._fill()
        if self._dagster:
            self._say("starting Dagster: webserver, code server and daemon over PostgreSQL")
            self.stack = enter(stack)
        command = [sys.executable, "-m", "douban_pipeline", "serve", "--port", str(self._port)]
        self.service = Process(
            "service",
            command,
            log=self.scratch / "service.log",
            environment=stack.environment,
            directory=self.scratch,
        )
        self._closing.callback(self.service.stop)
        self.serve()
        return self

    def serve(self) -> None:
        """Start the service, or start it again, and wait until the sheet answers.

        Raises:
            RigError: It does not.
        """
        self.service.start()
        self.service.wait_until(self._answers, seconds=START_SECONDS)

    def kill_service(self) -> None:
        """End the service as a crash does."""
        for process in self.service.family():
            process.kill()
        self.service.stop()

    def launch_backfill(self) -> str:
        """Have the chain do all videos that are due, over every shard; return the backfill's id."""
        if self.stack is None:
            raise RigError("no Dagster was wanted")
        return self.stack.launch_backfill(CHAIN_ASSETS, shards.get_partition_keys())

    def backfill_runs(self, backfill: str) -> str:
        """Return how many runs of a backfill there are, by their state."""
        if self.stack is None:
            raise RigError("no Dagster was wanted")
        with self.stack.instance() as instance:
            runs = instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))
        counts = Counter(run.status.value for run in runs)
        return ", ".join(f"{state} {count}" for state, count in sorted(counts.items())) or "none"

    def stop(self) -> None:
        """Stop everything and drop the databases; safe to repeat."""
        self._closing.close()

    def _answers(self) -> bool:
        try:
            return httpx.get(self.url, timeout=30).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def waiting(self) -> list[int]:
        """Return the videos that wait for a person."""
        video = self.services.tables.video
        query = sa.select(video.c.vod_id).where(video.c.douban_review_status == ReviewStatus.REVIEW)
        with reading(self.services.engine) as connection:
            return list(connection.execute(query.order_by(video.c.vod_id)).scalars())

    def _fill(self) -> None:
        size, services = self.size, self.services
        fill(services.engine, size.videos, seed=SEED, now=SystemClock().now(), prefix=services.settings.table_prefix)
        migrations.tree_of(services.settings.table_prefix).upgrade(services.engine)
        Intake(services.engine, services.tables, services.cms, services.clock).initialise(spread=True)
        self._judge(min(size.waiting, MOST_JUDGED))
        if size.waiting > MOST_JUDGED:
            self._copy(size.waiting - MOST_JUDGED)

    def _judge(self, wanted: int) -> None:
        services, video = self.services, self.services.tables.video
        later = services.clock.now() + _LATER
        with services.engine.begin() as connection:
            connection.execute(sa.update(video).values(douban_next_sync_at=later))
        judging = open_services(load_settings(confirm_score=100.0, **_JUDGING))
        for first in range(0, SHARDS, _TOGETHER):
            if len(self.waiting()) >= wanted:
                break
            these = range(first, first + _TOGETHER)
            due = sa.update(video).where(video.c.shard.in_(these), video.c.vod_douban_id == 0)
            with services.engine.begin() as connection:
                connection.execute(due.values(douban_next_sync_at=services.clock.now()))
            play(judging, these, STEPS[:3])
            self._say(f"{len(self.waiting()):,} of {wanted:,} videos wait, {these.stop} shards judged")
        judging.close()
        if len(self.waiting()) < wanted:
            raise RigError(f"only {len(self.waiting())} of {wanted} videos came to wait: give more videos")
        # The others are what the backfill is at.
        due = sa.update(video).where(video.c.douban_next_sync_at == later, video.c.vod_douban_id == 0)
        with services.engine.begin() as connection:
            connection.execute(due.values(douban_next_sync_at=services.clock.now()))

    def _copy(self, count: int) -> None:
        """Let further videos wait with the verdicts of those that were judged."""
        services = self.services
        video, verdict, candidate = services.tables.video, services.tables.verdict, services.tables.candidate
        with services.engine.begin() as connection:
            free = sa.select(video.c.vod_id).where(
                video.c.douban_review_status != ReviewStatus.REVIEW, video.c.vod_douban_id == 0
            )
            others = list(connection.execute(free.order_by(video.c.vod_id.desc()).limit(count)).scalars())
            verdicts = {row["vod_id"]: dict(row) for row in connection.execute(sa.select(verdict)).mappings()}
            candidates: dict[int, list[dict[str, Any]]] = {}
            for row in connection.execute(sa.select(candidate)).mappings():
                candidates.setdefault(row["verdict_id"], []).append(dict(row))
            judged = sorted(vod_id for vod_id, row in verdicts.items() if row["verdict_id"] in candidates)
            for some in chunks(others):
                rows = services.cms.rows(connection, some)
                for place, vod_id in enumerate(some):
                    made = dict(verdicts[judged[place % len(judged)]])
                    belonging = candidates.get(made.pop("verdict_id"), [])
                    about = {"vod_id": vod_id, "shard": shard_of(vod_id), "fingerprint": fingerprint(rows[vod_id])}
                    inserted = connection.execute(sa.insert(verdict).values({**made, **about}))
                    key = (inserted.inserted_primary_key or (0,))[0]
                    copies = [{**row, "vod_id": vod_id, "verdict_id": key} for row in belonging]
                    for copy in copies:
                        del copy["candidate_id"]
                        if copy["rank"] == 1:
                            copy["douban_id"] = subject_id_of(work_id_of(vod_id, SEED))
                    if copies:
                        connection.execute(sa.insert(candidate), copies)
                state = sa.update(video).where(video.c.vod_id.in_(some))
                connection.execute(state.values(douban_review_status=ReviewStatus.REVIEW))
