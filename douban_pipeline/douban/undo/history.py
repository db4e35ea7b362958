"""The history of a video, collected from all tables. `history_page` renders it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Column, Connection, RowMapping, Table, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import chosen_subjects
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.store.tasks import OPEN
from douban_pipeline.douban.store.videos import state_rows

CANDIDATES = 3
"""Candidates of a verdict that are shown."""

_HEAVY = {"facts", "fact_sheet", "fingerprint", "strata", "payload"}
"""Columns that are long and shown elsewhere."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a video.

    Attributes:
        at: When.
        kind: ``verdict``, ``decision``, ``change``, ``intro`` or ``failure``.
        row: The row that knows of it.
        candidates: The best candidates, of a verdict.
        reverted_by: Of a change: the changes that reverted it and were not reverted themselves.
    """

    at: datetime
    kind: str
    row: Mapping[Any, Any]
    candidates: tuple[Mapping[Any, Any], ...] = ()
    reverted_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A video now, and what happened to it, the newest first.

    Attributes:
        row: Its CMS row; None if it was deleted.
        state: Our state row.
        chosen: The subject that a person chose and that binds automation; 0 for none.
        tasks: What waits or is under way.
        events: What happened; of many only the newest.
        left_out: How many older ones there are.
    """

    vod_id: int
    row: Mapping[Any, Any] | None
    state: Mapping[Any, Any] | None
    chosen: int = 0
    tasks: tuple[Mapping[Any, Any], ...] = ()
    events: tuple[Event, ...] = field(default=())
    left_out: int = 0

    @property
    def known(self) -> bool:
        """Whether anything is known of such a video."""
        return bool(self.row or self.state or self.events)


def histories(services: Services, vod_ids: Sequence[int], *, most_events: int) -> Iterator[History]:
    """Yield the history of each video, of at most ``most_events`` events each."""
    with reading(services.engine) as connection:
        rows = services.cms.rows(connection, vod_ids)
        states = state_rows(connection, services.tables, vod_ids)
        chosen = chosen_subjects(connection, services.tables, vod_ids)
    for vod_id in vod_ids:
        with reading(services.engine) as connection:
            events, total = _events(services, connection, vod_id, most_events)
            task = services.tables.task
            open_ = (task.c.vod_id == vod_id, task.c.status.in_(OPEN))
            tasks = connection.execute(select(*_light(task)).where(*open_).order_by(task.c.task_id)).mappings().all()
        yield History(
            vod_id,
            rows.get(vod_id),
            states.get(vod_id),
            chosen.get(vod_id, 0),
            tuple(tasks),
            tuple(events),
            total - len(events),
        )


def _events(services: Services, connection: Connection, vod_id: int, most: int) -> tuple[list[Event], int]:
    """Return the newest events of a video, and how many there are in all."""
    tables = services.tables
    found: list[tuple[datetime, int, int, str, RowMapping]] = []
    total = 0
    failed = tables.task.c.status == TaskStatus.FAIL
    for rank, (kind, table, key, at, only) in enumerate(
        (
            # Of one moment: what was asked and judged comes before what was decided and written.
            ("failure", tables.task, "task_id", "finished_at", [failed]),
            ("verdict", tables.verdict, "verdict_id", "created_at", []),
            ("decision", tables.decision, "decision_id", "created_at", []),
            ("intro", tables.intro, "intro_id", "created_at", []),
            ("change", tables.log, "change_id", "prepared_at", []),
        )
    ):
        of_video = (table.c.vod_id == vod_id, *only)
        total += connection.execute(select(func.count()).select_from(table).where(*of_video)).scalar_one()
        query = select(*_light(table)).where(*of_video).order_by(table.c[key].desc()).limit(most)
        found += [(row[at], rank, row[key], kind, row) for row in connection.execute(query).mappings()]
    newest = sorted(found, key=lambda each: each[:3], reverse=True)[:most]
    of_kind: dict[str, list[int]] = {}
    for _, _, key_of_row, kind, _ in newest:
        of_kind.setdefault(kind, []).append(key_of_row)
    candidates = _candidates(connection, tables.candidate, of_kind.get("verdict", ()))
    reverted = _reverted_by(connection, tables.log, of_kind.get("change", ()))
    events = [
        Event(
            moment,
            kind,
            row,
            tuple(candidates.get(key_of_row, ())) if kind == "verdict" else (),
            tuple(reverted.get(key_of_row, ())) if kind == "change" else (),
        )
        for moment, _, key_of_row, kind, row in newest
    ]
    return events, total


def _light(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if column.name not in _HEAVY]


def _candidates(connection: Connection, table: Table, verdict_ids: Collection[int]) -> dict[int, list[RowMapping]]:
    if not verdict_ids:
        return {}
    names = ("verdict_id", "rank", "douban_id", "title", "year", "score", "conflicts", "fetched")
    query = (
        select(*(table.c[name] for name in names))
        .where(table.c.verdict_id.in_(verdict_ids), table.c.rank <= CANDIDATES)
        .order_by(table.c.verdict_id, table.c.rank)
    )
    found: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["verdict_id"], []).append(row)
    return found


def _reverted_by(connection: Connection, table: Table, change_ids: Collection[int]) -> dict[int, list[int]]:
    if not change_ids:
        return {}
    query = (
        select(table.c.reverts_change_id, table.c.change_id)
        .where(table.c.reverts_change_id.in_(change_ids), table.c.state == ChangeState.APPLIED)
        .order_by(table.c.change_id)
    )
    found: dict[int, list[int]] = {}
    for target, change_id in connection.execute(query):
        found.setdefault(target, []).append(change_id)
    return found


MOST_SHOWN = 60
"""Characters of a text that are shown."""

EMPTY = "（空）"


def shown(value: Any, zone: ZoneInfo, *, most: int = MOST_SHOWN) -> str:
    """Return a value in at most about ``most`` characters; a text that is cut says how long it is."""
    if value is None or value == "":
        return EMPTY
    if isinstance(value, datetime):
        return local_time(value, zone)
    if isinstance(value, bool):
        return "是" if value else "否"
    if isinstance(value, Decimal | int | float):
        return f"{value}"
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[:most]}…（共 {len(text)} 字）"


def described_changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    columns: Iterable[str],
    zone: ZoneInfo,
    *,
    most: int = MOST_SHOWN,
) -> list[str]:
    """Return ``column：before → after`` for each of ``columns``; where nothing changes, its value alone."""
    lines = []
    for column in columns:
        old, new = shown(before.get(column), zone, most=most), shown(after.get(column), zone, most=most)
        lines.append(
            f"{column}：{old} → {new}" if before.get(column) != after.get(column) else f"{column}：{new}（未变）"
        )
    return lines
