"""Rows as earlier runs would have left them, planted without these runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from douban_pipeline.douban.reports.health.metrics import TaskOutcomes
from douban_pipeline.douban.reports.health.samples import HealthSample, keep
from douban_pipeline.douban.store.states import IntroState, TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import OPEN, shard_of
from douban_pipeline_tests.harness.fixtures.library import Library


def tasks(library: Library, count: int, status: TaskStatus, *, ago: timedelta = timedelta(0), **columns: Any) -> None:
    """Plant ``count`` tasks of videos 1 to ``count``: closed ``ago``, or open and queued then."""
    at = library.clock.now() - ago
    task_type = columns.get("task_type", TaskType.SYNC_DOUBAN)
    still_open = status in OPEN
    first = columns.pop("first", 1)
    rows = [
        {
            "vod_id": vod_id,
            "shard": shard_of(vod_id),
            "task_type": task_type,
            "stage": TaskStage.SYNC,
            "status": status,
            "open_key": f"{vod_id}:{task_type}" if still_open else None,
            "run_after": at,
            "created_at": at,
            "started_at": None if still_open else at - timedelta(seconds=10),
            "finished_at": None if still_open else at,
            "attempts": 0,
            **columns,
        }
        for vod_id in range(first, first + count)
    ]
    library.insert(library.tables.task, rows)


def verdicts(library: Library, *, at: datetime | None = None, **counts: int) -> None:
    """Plant verdicts, so many of each status."""
    rows = [
        {
            "vod_id": 1,
            "shard": 1,
            "task_id": 1,
            "verdict": status,
            "complete": True,
            "source_healthy": True,
            "rule_version": "test",
            "state": "applied",
            "run_id": "planted",
            "created_at": at or library.clock.now(),
        }
        for status, count in counts.items()
        for _ in range(count)
    ]
    library.insert(library.tables.verdict, rows)


def intro(library: Library, state: IntroState, cost_usd: float, *, at: datetime | None = None) -> None:
    """Plant one answer of the language model."""
    row = {
        "vod_id": 1,
        "shard": 1,
        "run_id": "planted",
        "state": state,
        "prompt_version": "test",
        "fact_sheet_hash": "0",
        "cost_usd": cost_usd,
        "created_at": at or library.clock.now(),
    }
    library.execute(sa.insert(library.tables.intro).values(row))


def failing(library: Library, vod_ids: list[int], reason: str, failures: int = 5, **columns: Any) -> None:
    """Plant videos that just failed at being synced, and their tasks that were put back."""
    now = library.clock.now()
    for vod_id in vod_ids:
        library.set_state(
            vod_id,
            douban_sync_fail_count=failures,
            douban_last_fail_at=now,
            douban_last_fail_reason=reason,
            douban_next_sync_at=now + timedelta(days=1),
        )
        tasks(library, 1, TaskStatus.PENDING, first=vod_id, attempts=failures, last_error=reason, **columns)


def sample(library: Library, ago: timedelta, **columns: Any) -> HealthSample:
    """Plant a measurement that was made ``ago``; return it."""
    plain: dict[str, Any] = {
        "due": 0,
        "open_tasks": 0,
        "in_review": 0,
        "last_hour": TaskOutcomes(),
        "gates": {"douban": "closed", "searxng": "closed"},
        "spent_usd": 0.0,
    }
    planted = HealthSample(at=library.clock.now() - ago, **{**plain, **columns})
    keep(library.services, planted)
    return planted
