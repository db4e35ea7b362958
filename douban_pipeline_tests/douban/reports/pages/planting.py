"""Rows as earlier runs and people would have left them, and reports as people get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import dagster as dg
import sqlalchemy as sa
import yaml

from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.reports.pages.assets import assets
from douban_pipeline.douban.reports.pages.report_page import VideoCell
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.runs import function_of

ASSETS = {asset.key.to_user_string(): asset for asset in assets}
HOSTILE = "甲<img src=x onerror=alert(1)>|`乙`*丙*[丁](javascript:alert(2))"
"""A title, name or reason as an enemy would write it."""


def linked(library: Library, vod_id: int, douban_id: int, **state: Any) -> None:
    """Let a video be linked in the CMS and in our state."""
    library.set_cms(vod_id, vod_douban_id=douban_id)
    plain = {"vod_douban_id": douban_id, "douban_review_status": "CONFIRMED", "douban_id_source": "auto"}
    library.set_state(vod_id, **{**plain, **state})


def verdict(library: Library, vod_id: int, *candidates: tuple[int, float], status: str = "REVIEW") -> int:
    """Plant a verdict with candidates (subject and score), the best first; return its id."""
    tables = library.tables
    values = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "task_id": 1,
        "verdict": status,
        "complete": True,
        "source_healthy": True,
        "rule_version": "test",
        "state": "applied",
        "run_id": "planted",
        "created_at": library.clock.now(),
    }
    with library.engine.begin() as connection:
        key = connection.execute(sa.insert(tables.verdict).values(values)).inserted_primary_key
        assert key is not None
        for rank, (douban_id, score) in enumerate(candidates, start=1):
            row = {"verdict_id": key[0], "vod_id": vod_id, "rank": rank, "douban_id": douban_id, "score": score}
            facts = {"title": f"条目{douban_id}", "year": 2020, "created_at": library.clock.now()}
            connection.execute(sa.insert(tables.candidate).values({**row, **facts}))
    return int(key[0])


def change(library: Library, vod_id: int, action: str = "sync", **columns: Any) -> None:
    """Plant a logged change; ``at`` is when it was prepared, and written if it was."""
    at = columns.pop("at", library.clock.now())
    plain = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "action": action,
        "old_values": {},
        "new_values": {},
        "state_old": {},
        "state_new": {},
        "reason": "按豆瓣条目更新字段",
        "operator": "pipeline",
        "batch_id": "batch1",
        "run_id": "planted",
        "rule_version": "test",
        "state": "applied",
        "prepared_at": at,
    }
    values = {**plain, **columns}
    values["applied_at"] = at if values["state"] in ("applied", "reverted") else None
    library.execute(sa.insert(library.tables.log).values(values))


def decision(library: Library, vod_id: int, action: str, **columns: Any) -> None:
    """Plant a decision."""
    at = columns.pop("at", library.clock.now())
    plain = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "action": action,
        "reviewer": "小王",
        "note": "海报一致",
        "state": DecisionState.APPLIED,
        "run_id": "planted",
        "batch_id": "decided1",
        "created_at": at,
    }
    library.execute(sa.insert(library.tables.decision).values({**plain, **columns}))


def task(library: Library, vod_id: int, task_type: str, stage: str, status: str, **columns: Any) -> None:
    """Plant a task: open, or closed at ``finished_at``."""
    closed = "finished_at" in columns
    plain = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "task_type": task_type,
        "stage": stage,
        "status": status,
        "open_key": None if closed else f"{vod_id}:{task_type}",
        "run_after": START,
        "created_at": START - timedelta(hours=5),
    }
    library.execute(sa.insert(library.tables.task).values({**plain, **columns}))


def intro(library: Library, vod_id: int, state: str, **columns: Any) -> None:
    """Plant an answer of the language model."""
    plain = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "run_id": "planted",
        "state": state,
        "prompt_version": "test",
        "fact_sheet_hash": "0",
        "created_at": library.clock.now(),
    }
    library.execute(sa.insert(library.tables.intro).values({**plain, **columns}))


@dataclass(frozen=True)
class Published:
    """A report as it was published."""

    metadata: Mapping[str, Any]
    sheet: str


def publish(services: Services, name: str, **config: Any) -> Published:
    """Publish a report by the function of its asset; return its metadata as plain values, and its sheet."""
    function = function_of(ASSETS[name])
    wanted = signature(function).parameters.get("config")
    given = {"config": wanted.annotation(**config)} if wanted else {}
    return published(services, name, function(services=services, **given).metadata)


def materialize(services: Services, name: str, config: Mapping[str, Any] | None = None) -> Published:
    """Publish a report as `publish` does, but by a run of Dagster's, which takes most of the time."""
    ops = {"ops": {name: {"config": dict(config)}}} if config else {}
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = dg.materialize([ASSETS[name]], resources={"services": services}, run_config={**quiet, **ops})
    [materialization] = result.asset_materializations_for_node(name)
    return published(services, name, materialization.metadata)


def published(services: Services, name: str, metadata: Mapping[str, Any]) -> Published:
    """Return what was published: metadata as plain values, and the sheet."""
    plain = {key: value.value if isinstance(value, dg.MetadataValue) else value for key, value in metadata.items()}
    path = services.settings.home / "reports" / f"{name}.html"
    return Published(plain, Path(path).read_text(encoding="utf-8"))


def launched(address: str | Launchpad) -> tuple[str, dict[str, Any]]:
    """Return the job that a link opens, and the config that it fills in."""
    address = address if isinstance(address, str) else address.path(LOCATION)
    path, _, config = address.partition("/setup?config=")
    return path.split("/")[-2], yaml.safe_load(unquote(config))


def days_before(days: float, now: datetime = START) -> datetime:
    """Return a moment that lies ``days`` back."""
    return now - timedelta(days=days)


def rows_of(chapters: Sequence[Any], key: str) -> list[dict[str, Any]]:
    """Return the rows of a chapter, videos by their names."""
    [chapter] = [chapter for chapter in chapters if chapter.key == key]
    return [
        {head: cell.name if isinstance(cell, VideoCell) else cell for head, cell in row.items()} for row in chapter.rows
    ]
