"""The room that writes intros, on a small real library: linked videos, the replay upstream, runs of the asset."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import dagster as dg
import sqlalchemy as sa

from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.chain.sync import checks as syncing_checks
from douban_pipeline.douban.intros import checks
from douban_pipeline.douban.intros.assets import ai_intros
from douban_pipeline.douban.intros.jobs import redo_intros
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import Library, dead_owner
from douban_pipeline_tests.harness.fixtures.runs import function_of, new_run_id, results_of, shown_rows
from douban_pipeline_tests.harness.fixtures.scenario import FAST, row_of, subject
from douban_pipeline_tests.stand_ins.replay import ReplayServer

KEY = "sk-or-v1-only-for-tests"

BARE = subject(90_000_120, "无题之夜", genres=[])
"""A film of which too little is known to tell anything."""

UNTOLD = subject(90_000_121, "无言之城", summary="")
"""A film without a synopsis."""

TOLD = subject(
    90_000_122,
    "墙上的故事",
    summary="小镇上的说书人失去了嗓子，他把没有讲完的故事画在墙上。孩子们循着画找到了他年轻时藏起的信，替他讲完了结局。",
)
"""A film with a synopsis of 49 Chinese characters."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def linked(entry: Mapping[str, Any], vod_id: int, **columns: Any) -> dict[str, Any]:
    """Return the row of a video that is linked to ``entry``."""
    return row_of(entry, vod_id, vod_douban_id=entry["id"], **columns)


@dataclass
class Room:
    """A library whose videos are linked and synced, and a model to ask."""

    library: Library
    upstream: ReplayServer

    @property
    def clock(self) -> FakeClock:
        """The library's time."""
        assert isinstance(self.library.clock, FakeClock)
        return self.library.clock

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return self.upstream.requests.count("llm")

    def under(self, **options: Any) -> Room:
        """Return the same room under changed settings."""
        library = replace(self.library, options={**self.library.options, **options})
        library.engine, library.cms = self.library.engine, self.library.cms
        return Room(library, self.upstream)

    def run(self, *shards: int, run_id: str = "") -> dict[str, Any]:
        """Run `ai_intros` as a run of its own over ``shards`` (all that hold videos); return what it tells."""
        run_id = run_id or new_run_id()
        chosen = sorted({*(shards or map(shard_of, self.library.states()))})
        context = SimpleNamespace(
            run=SimpleNamespace(run_id=run_id, tags={}),
            partition_keys=[partition_key(shard) for shard in chosen],
            has_partition_key_range=False,
            log=logging.getLogger("room"),
        )
        try:
            metadata = function_of(ai_intros)(context, services=self.library.services).metadata
        finally:
            self.end_process(run_id)
        return {name: value.value if isinstance(value, dg.MetadataValue) else value for name, value in metadata.items()}

    def end_process(self, run_id: str) -> None:
        """Make it known that a run's process has ended: in production every run is a process of its own."""
        for table, column in ((self.library.tables.task, "lease_owner"), (self.library.tables.log, "owner")):
            mine = table.c[column] == owner_name(run_id)
            self.library.execute(sa.update(table).where(mine).values({column: dead_owner(run_id)}))

    def redo(self, *vod_ids: int, **config: Any) -> dg.ExecuteInProcessResult:
        """Launch `redo_intros` as a person would."""
        given = {"reviewer": "小王", "note": "原简介剧透", "dry_run": False, "vod_ids": list(vod_ids), **config}
        with dg.DagsterInstance.ephemeral() as instance:
            return redo_intros.execute_in_process(
                run_config={"ops": {"rewrite": {"config": given}}, **_QUIET},
                resources={"services": self.library.services},
                instance=instance,
                raise_on_error=False,
            )

    def failed_guards(self, only: Sequence[Any] = (*checks.checks, *syncing_checks.checks)) -> dict[str, list[str]]:
        """Return what the guards on writes find, by guard; those that find nothing are left out."""
        found: dict[str, list[str]] = {}
        for guards in only:
            for result in results_of(guards, self.library.services):
                if not result.passed:
                    found[result.check_name] = shown_rows(str(result.metadata["videos"].value))
        return found

    def intros(self, vod_id: int | None = None) -> list[dict[str, Any]]:
        """Return the ledger, of one video or all, the oldest first."""
        intro = self.library.tables.intro
        query = sa.select(intro).order_by(intro.c.intro_id)
        return self.library.query(query if vod_id is None else query.where(intro.c.vod_id == vod_id))

    def content(self, vod_id: int) -> str:
        """Return the synopsis that the CMS holds."""
        return str(self.library.row(vod_id)["vod_content"])

    def changes(self) -> list[dict[str, Any]]:
        """Return the changes that wrote intros."""
        return [change for change in self.library.log() if change["action"] == "intro"]


def room_of(library: Library, upstream: ReplayServer, videos: Iterable[Mapping[str, Any]], **options: Any) -> Room:
    """Fill ``library`` with linked ``videos`` that were synced an hour ago, the intros switched on."""
    upstream.faults.clear()
    upstream.requests.clear()
    upstream.invent = upstream.read = None
    wanted = {
        "douban_url": upstream.douban_url,
        "search_url": upstream.search_url,
        "llm_url": upstream.llm_url,
        "llm_requests_per_minute": 60_000,
        "llm_tokens_per_minute": 100_000_000,
        "llm_tokens_per_day": 1_000_000_000,
        "llm_concurrency": 1,
        "openrouter_api_key": KEY,
        "ai_intros": True,
        **FAST,
        **options,
    }
    room = Room(library.renewed(videos, **wanted), upstream)
    for vod_id in room.library.states():
        mark_synced(room.library, vod_id)
    return room


def mark_synced(library: Library, vod_id: int, hours_ago: float = 1) -> None:
    """Note that a video's fields were synced, and that its next visit is ahead."""
    now = library.clock.now()
    video = library.tables.video
    library.execute(
        sa.update(video)
        .where(video.c.vod_id == vod_id)
        .values(
            douban_review_status="CONFIRMED",
            douban_last_sync_at=now - timedelta(hours=hours_ago),
            douban_next_sync_at=now + timedelta(days=30),
        )
    )
