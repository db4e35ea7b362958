"""Rows as earlier runs and people would have left them, and lists as people get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import dagster as dg
import sqlalchemy as sa
import yaml

from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.lists.list_page import Figures, Row, Table
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.reports.lists.assets import assets
from douban_pipeline.douban.reports.lists.catalogue import LISTS, list_page
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import ListSpec, rows_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.runs import function_of

ASSETS = {asset.key.to_user_string(): asset for asset in assets if asset.key.to_user_string() != "overview"}
"""The assets that publish lists."""

OF_ASSETS = {
    "review_list": ("review",),
    "missing_douban_ids": ("missing",),
    "duplicate_reports": ("duplicates",),
    "locked_douban_ids": ("locked",),
    "intro_reports": ("intros",),
    "tasks_and_log": ("tasks", "decisions", "log"),
}
"""The lists of each of them."""

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


def listed(services: Services, name: str, asked: ListFilter | None = None) -> list[Row]:
    """Return the rows of a list, in its order."""
    return list(rows_of(services, LISTS[name](services), asked or ListFilter()))


def figures(services: Services, name: str) -> Figures:
    """Return what stands around a list."""
    return LISTS[name](services).figures()


def shown_page(services: Services, name: str, **asked: str) -> str:
    """Return a list's page as the service shows it."""
    return list_page(services, name, asked)[0]


def rows_in(tables: Sequence[Table], key: str) -> list[Row]:
    """Return the rows of one of the tables."""
    [table] = [table for table in tables if table.key == key]
    return list(table.rows)


def opened(table: ListSpec | Table, row: Row, key: str) -> tuple[str, dict[str, Any]]:
    """Return the job that a link of a row opens, and the config that it fills in."""
    [given] = [given for name, *given in row["links"] if name == key]
    return launched(table.links[key].filled(*given))


def publish_asset(services: Services, name: str) -> Mapping[str, Any]:
    """Publish by the function of an asset; return its metadata as plain values."""
    return _plain(function_of(ASSETS[name])(services=services).metadata)


def materialize(services: Services, name: str) -> Mapping[str, Any]:
    """Publish as `publish_asset` does, but by a run of Dagster's, which takes most of the time."""
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = dg.materialize([ASSETS[name]], resources={"services": services}, run_config=quiet)
    [materialization] = result.asset_materializations_for_node(name)
    return _plain(materialization.metadata)


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, dg.MetadataValue) else value for key, value in metadata.items()}


def launched(address: str | Launchpad) -> tuple[str, dict[str, Any]]:
    """Return the job that a link opens, and the config that it fills in."""
    address = address if isinstance(address, str) else address.path(LOCATION)
    path, _, config = address.partition("/setup?config=")
    return path.split("/")[-2], yaml.safe_load(unquote(config))


def days_before(days: float, now: datetime = START) -> datetime:
    """Return a moment that lies ``days`` back."""
    return now - timedelta(days=days)
