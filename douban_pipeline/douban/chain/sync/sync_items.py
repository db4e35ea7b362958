"""Types of the writing step: a task with everything it needs, the planned write, and the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from douban_pipeline.cms.values import readable
from douban_pipeline.douban.store.tasks import DECISION, FRESH, OVERRIDE_CMS_LOCK, Task
from douban_pipeline.douban.writes.changes import Change


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result for one video, as the run's report shows it.

    Attributes:
        douban_id: The subject.
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
class SyncItem:
    """One task with its video's rows.

    Attributes:
        task: The task.
        row: The CMS row.
        state: Our state row.
        undone: Values that people reverted, by column.
        verdict: The verdict to be written; None for a sync.
        braked: Strata in which nothing is confirmed for now.
        chosen: The subject that a person chose for the video.
        accepted: Whether that person chose the current id knowing its conflicts.
    """

    task: Task
    row: RowMapping
    state: RowMapping
    undone: Mapping[str, Sequence[Any]]
    verdict: RowMapping | None = None
    braked: Collection[str] = ()
    chosen: int | None = None
    accepted: bool = False

    @property
    def decision_id(self) -> int | None:
        """The decision of a person that requested the task, or that it follows."""
        decision_id: int | None = self.task.payload.get(DECISION)
        return decision_id

    @property
    def ordered(self) -> bool:
        """Whether a person requested this sync, so that Douban's current answer is needed."""
        return bool(self.task.payload.get(FRESH))

    @property
    def override_cms_lock(self) -> bool:
        """Whether that person meant it although the site locked the row."""
        return bool(self.task.payload.get(OVERRIDE_CMS_LOCK))


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """The write planned for a task; its change is empty if nothing differs.

    Attributes:
        item: The task.
        douban_id: The subject.
        title: What Douban calls it.
        change: What is written.
        linked: Whether the id is new.
    """

    item: SyncItem
    douban_id: int
    title: str
    change: Change
    linked: bool


def sync_result(
    item: SyncItem,
    douban_id: int,
    result: str,
    columns: tuple[str, ...] = (),
    linked: bool = False,
    reason: str = "",
    change_id: int | None = None,
) -> SyncResult:
    """Return the result of ``item``; see `SyncResult`."""
    title = readable(item.row["vod_name"])
    return SyncResult(item.task.vod_id, item.task.shard, title, douban_id, result, columns, linked, reason, change_id)
