"""What the writing step holds in hand: a task with everything it needs, the write it wants, what became of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from douban_pipeline.douban.store.tasks import DECISION, FRESH, Task
from douban_pipeline.douban.writes.change_log import Change


@dataclass(frozen=True, slots=True)
class Synced:
    """What became of one video, for the run's report.

    Attributes:
        result: ``written``, ``unchanged``, ``planned`` (dry run), ``refused``, ``review`` or ``skipped``.
        columns: CMS columns written or planned.
        linked: Whether the id is new.
    """

    vod_id: int
    shard: int
    title: str
    douban_id: int
    result: str
    columns: tuple[str, ...] = ()
    linked: bool = False
    reason: str = ""
    change_id: int | None = None


@dataclass(slots=True)
class Work:
    """One task with everything it needs."""

    task: Task
    row: RowMapping
    state: RowMapping
    undone: Mapping[str, Sequence[Any]]
    verdict: RowMapping | None = None
    braked: Collection[str] = ()
    chosen: int | None = None

    @property
    def decision_id(self) -> int | None:
        """The decision of a person that ordered the task, or that it follows."""
        decision_id: int | None = self.task.payload.get(DECISION)
        return decision_id

    @property
    def ordered(self) -> bool:
        """Whether a person asked for this very sync, and wants Douban's answer of now."""
        return bool(self.task.payload.get(FRESH))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A write that a task wants; its change is empty where nothing differs."""

    work: Work
    douban_id: int
    change: Change
    linked: bool
