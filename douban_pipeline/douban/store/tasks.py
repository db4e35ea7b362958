"""A piece of queued work: what it is about, what its payload holds, and how much it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import Row

from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS

FAILURES_FOR_A_PERSON = 5
"""From this failure in a row on, a person is asked to look."""

INTERNAL_ERROR = "内部错误"
"""Beginning of the reason of a failure that no source and no video caused, but our own code."""

OPEN = (TaskStatus.PENDING, TaskStatus.RUNNING)

LOCKED_ONLY = "豆瓣 ID 已锁定，但未同步："
"""Beginning of what is noted of an ordered sync that was not made, though the lock that goes with it was set."""

OUT_OF_SCOPE = "分类不在处理范围内"
"""Why a task is closed, or none queued."""

# What the payload of a task holds that a person's decision queued.
DECISION = "decision_id"
FRESH = "fresh"
"""A sync that was ordered: Douban is asked anew, whatever the archive holds."""
OVERRIDE_CMS_LOCK = "override_cms_lock"
"""An order that is meant although the site locked the row."""
REVIEWER = "reviewer"
NOTE = "note"

RECHECK_REASON = "why"
"""Why a link is judged again by itself."""
SEARCHED = "searched"
"""Whether it has to be searched for."""

ORDERED_PRIORITY = 1000
"""Priority of work that a person ordered: higher than that of any visit that is merely due."""

RECHECK_PRIORITY = 900
"""Priority of automatic rechecks of links: below orders, and above visits, whose backlog may hold more than runs do in
weeks. A daily allowance bounds their number."""

ORDERED_INTRO_PRIORITY = 2**30
"""Priority of an intro that a person ordered: higher than that of any that is merely due, which is a time in
minutes."""


def shard_of(vod_id: int) -> int:
    """Return the shard that holds video ``vod_id``."""
    return vod_id % SHARDS


@dataclass(frozen=True, slots=True)
class NewTask:
    """Work to be queued."""

    vod_id: int
    task_type: TaskType
    stage: TaskStage
    priority: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """A leased task."""

    task_id: int
    vod_id: int
    shard: int
    task_type: TaskType
    stage: TaskStage
    attempts: int
    payload: Mapping[str, Any]
    priority: int = 0
    last_error: str = ""

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """Return the task that a row of the table holds."""
        return cls(
            row.task_id,
            row.vod_id,
            row.shard,
            TaskType(row.task_type),
            TaskStage(row.stage),
            row.attempts,
            row.payload or {},
            row.priority,
            row.last_error,
        )

    @property
    def ordered(self) -> bool:
        """Whether a person ordered it."""
        return self.priority >= (ORDERED_INTRO_PRIORITY if self.stage is TaskStage.INTRO else ORDERED_PRIORITY)
