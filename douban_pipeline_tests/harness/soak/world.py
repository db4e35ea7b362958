"""The world of a soak: a CMS on a MariaDB of its own, an upstream that can fail, Dagster as in production."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Self

from sqlalchemy import update

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import PREFIX, Settings, load_settings, variable
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.generated.filling import fill
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import known, work_of
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack
from douban_pipeline_tests.harness.rig.live_cms import LiveCms, cms_refusal
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.parts import Part
from douban_pipeline_tests.harness.rig.postgres_server import PostgresServer
from douban_pipeline_tests.harness.soak.people import REVIEWERS
from douban_pipeline_tests.harness.soak.upstream import DistantReplay
from douban_pipeline_tests.stand_ins.push_server import KEY, SECRET, PushServer

DATABASE = "library"
CALLER_TIMEOUT = 4.0
"""Seconds that the pipeline gives a request, so that a source that hangs costs a soak seconds, not minutes."""
VISITS_PER_MINUTE = 60
"""Videos of the library that come due a minute. Together with what arrives and changes, two cores get it done."""
LAST_VISIT_SHARE = 0.8
"""Share of the soak after which no more of them come due."""
ARRIVALS_PER_MINUTE, ARRIVALS_AT_LEAST = 40, 200

SETTINGS: Mapping[str, str] = {
    "SEARCH_PROVIDER": "searxng",
    # More than any public source stands, and allowed on this machine alone: the gate is to be busy, and work done.
    "DOUBAN_REQUESTS_PER_MINUTE": "600",
    "SEARCH_REQUESTS_PER_MINUTE": "600",
    "LLM_REQUESTS_PER_MINUTE": "240",
    "DOUBAN_CONCURRENCY": "5",
    "SEARCH_CONCURRENCY": "3",
    "LLM_CONCURRENCY": "4",
    "LLM_TOKENS_PER_MINUTE": "1000000",
    "LLM_TOKENS_PER_DAY": "100000000",
    "LLM_BUDGET_USD_PER_DAY": "1000",
    "REQUEST_TIMEOUT_SECONDS": f"{CALLER_TIMEOUT:g}",
    "AI_INTROS": "true",
    "INTRO_MIN_SOURCE_HAN": "4",  # generated synopses are short
    "DRY_RUN": "false",
    "RESTORE_LOCKED": "true",
    "BULK_UNLOCKERS": ",".join(REVIEWERS),
    # What a killed run held comes back while the soak lasts: a lease is twice the longest step.
    "RUN_SECONDS": "60",
    "MAX_DUE_WAIT_MINUTES": "1",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a soak is.

    Attributes:
        minutes: How long life and troubles go on.
        videos: Videos in the library at the beginning, with keys from 1.
        seed: What the library, life and troubles come from.
    """

    minutes: float
    videos: int
    seed: int

    @property
    def most_arrivals(self) -> int:
        """How many videos may come in; Douban knows of these too."""
        return math.ceil(ARRIVALS_PER_MINUTE * self.minutes) + ARRIVALS_AT_LEAST


class World(Part):
    """Everything that runs in a soak; use it as a context manager.

    Attributes:
        scale: How large it is.
        scratch: The folder of everything: data, logs, reports.
        server: The CMS's database server.
        postgres: The server that Dagster stores on.
        robots: Where alerts are sent.
        replay: Douban, the search and the language model.
        stack: Dagster.
        services: The pipeline's ground floor as this process uses it.
        filled_at: The moment for which the library was generated.

    Args:
        scale: How large it is.
        scratch: An empty folder.
        say: Told what is being done.
    """

    server: MariaDbServer
    postgres: PostgresServer
    robots: PushServer
    replay: DistantReplay
    stack: DagsterStack
    services: Services
    filled_at: datetime

    def __init__(self, scale: Scale, scratch: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.scale, self.scratch, self._say = scale, scratch, say
        self._closing = ExitStack()

    @property
    def settings(self) -> Settings:
        """The settings of every process in it."""
        return self.services.settings

    @property
    def limits(self) -> dict[str, tuple[float, int]]:
        """Requests a minute and at once that each source is allowed, by the name of its gate."""
        settings = self.settings
        search = settings.search_requests_per_minute, settings.search_at_once
        return {
            DOUBAN: (settings.douban_requests_per_minute, settings.douban_at_once),
            **dict.fromkeys(settings.search_urls, search),
            LLM: (settings.llm_requests_per_minute, settings.llm_concurrency),
        }

    def start(self) -> Self:
        """Fill the library and start everything; from then on the sensors launch runs.

        Raises:
            RigError: A part did not start.
        """
        scale, enter = self.scale, self._closing.enter_context
        self._say("starting a MariaDB of its own")
        self.server = enter(MariaDbServer(self.scratch / "mariadb"))
        url = self.server.create(DATABASE).update_query_dict({"charset": "utf8mb4"})
        refusal = cms_refusal(self.server.url)
        self._say("installing a real CMS, to use its tables" if refusal is None else f"no real CMS: {refusal}")
        if refusal is None:
            enter(LiveCms(self.scratch / "cms", self.server.url, DATABASE, keeps_database=True))
        self._say(f"the subjects of {scale.videos + scale.most_arrivals:,} videos")
        self.replay = enter(
            DistantReplay(
                subjects_of(scale.videos + scale.most_arrivals, scale.seed),
                caller_timeout=CALLER_TIMEOUT,
                seed=scale.seed,
            )
        )
        self._say("starting a PostgreSQL of its own")
        self.postgres = enter(PostgresServer(self.scratch / "postgres"))
        self.robots = enter(PushServer())
        addresses = {
            "HOME": str(self.scratch / "home"),
            "DATABASE_URL": url.render_as_string(hide_password=False),
            "DOUBAN_URL": self.replay.douban_url,
            "SEARCH_URL": self.replay.search_url,
            "LLM_URL": self.replay.llm_url,
            "ALERT_WEBHOOK_KIND": "generic",
            "ALERT_WEBHOOK_URL": f"{self.robots.base}/hook/{KEY}",
            "ALERT_WEBHOOK_SECRET": SECRET,
        }
        environment = {PREFIX + name: value for name, value in {**SETTINGS, **addresses}.items()}
        # The replayed model takes any key; a real one in the environment must not reach it.
        environment |= {variable("openrouter_api_key"): "soak"}
        self.stack = DagsterStack(self.scratch / "dagster", environment, server=self.postgres.url)
        environment[PREFIX + "UI_URL"] = self.stack.url
        self.stack.environment.update(environment)
        enter(only_these(environment))
        self.services = open_services(load_settings())
        self._closing.callback(self.services.close)
        self._fill()
        self._say("starting Dagster: webserver, code server and daemon over PostgreSQL")
        enter(self.stack)
        return self

    def _fill(self) -> None:
        scale, services = self.scale, self.services
        self.filled_at = SystemClock().now()
        self._say(f"filling the library with {scale.videos:,} videos")
        fill(services.engine, scale.videos, seed=scale.seed, now=self.filled_at, prefix=self.settings.table_prefix)
        migrations.tree_of(self.settings.table_prefix).upgrade(services.engine)
        report = Intake(services.engine, services.tables, services.cms, services.clock).initialise(spread=True)
        shards = visited_shards(scale)
        spread_visits(services, shards, timedelta(minutes=scale.minutes * LAST_VISIT_SHARE))
        self._say(f"{report.new:,} videos taken in; those of {len(shards)} of {SHARDS} shards come due, one by one")

    def stop(self) -> None:
        """Stop everything; safe to repeat."""
        self._closing.close()


def subjects_of(videos: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what Douban knows of the works behind videos 1 to ``videos``, each work once."""
    works = dict.fromkeys(work_id_of(vod_id, seed) for vod_id in range(1, videos + 1))
    return (work_of(work_id, seed) for work_id in works if known(work_id, seed))


def visited_shards(scale: Scale) -> list[int]:
    """Return the shards whose videos come due during the soak, in that order: as many as can be worked on."""
    wanted = VISITS_PER_MINUTE * scale.minutes * LAST_VISIT_SHARE
    count = min(SHARDS, max(1, round(SHARDS * wanted / max(scale.videos, 1))))
    return Random(f"visits {scale.seed}").sample(range(SHARDS), count)


def spread_visits(services: Services, shards: list[int], over: timedelta) -> None:
    """Let the videos of ``shards`` come due shard after shard within ``over``, the first at once."""
    video, now = services.tables.video, services.clock.now()
    with services.engine.begin() as connection:
        for place, shard in enumerate(shards):
            connection.execute(
                update(video)
                .where(video.c.shard == shard, video.c.douban_next_sync_at.is_not(None))
                .values(douban_next_sync_at=now + over * place / len(shards))
            )


@contextmanager
def only_these(values: Mapping[str, str]) -> Iterator[None]:
    """Put ``values`` into this process's environment for a while, in place of every setting that is there."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith(PREFIX):
            del os.environ[name]
    os.environ.update(values)
    try:
        yield
    finally:
        with contextlib.suppress(KeyError):
            for name in set(os.environ) - set(before):
                del os.environ[name]
        os.environ.update(before)
