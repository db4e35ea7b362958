"""What a person wants reverted, as typed: read, checked against the log, and described in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, select, update

from douban_pipeline.core.clock import moment_in
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState, TaskStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline.douban.writes.revert_selection import ChangeSelection, count

MOST_NAME = 64
"""Characters that the log keeps of a person's name."""

_CHUNK = 500
_NAMED = 20


class RevertError(ProblemsError):
    """The launch is wrong; nothing was reverted."""


@dataclass(frozen=True, slots=True)
class RevertRequest:
    """A launch as typed; see `ChangeSelection` for the filters, whose times are text here."""

    operator: str
    reason: str
    change_ids: Sequence[int] = ()
    vod_ids: Sequence[int] = ()
    batch_id: str = ""
    run_id: str = ""
    decision_ids: Sequence[int] = ()
    reviewer: str = ""
    rule_version: str = ""
    since: str = ""
    until: str = ""
    max_changes: int = 10_000
    dry_run: bool = False


def selection_of(services: Services, request: RevertRequest) -> ChangeSelection:
    """Return what ``request`` selects.

    Raises:
        RevertError: Something is missing, malformed or unknown; all of it is reported at once.
    """
    zone = services.settings.zone
    problems = list(_plain_problems(request))
    moments: dict[str, datetime | None] = {}
    for name in ("since", "until"):
        try:
            moments[name] = moment_in(getattr(request, name), zone)
        except ValueError as error:
            problems.append(f"{name}：{error}")
    since, until = moments.get("since"), moments.get("until")
    if since is not None and until is not None and since >= until:
        problems.append(f"since（{request.since.strip()}）必须早于 until（{request.until.strip()}，不含）")
    selection = ChangeSelection(
        change_ids=tuple(request.change_ids),
        batch_id=request.batch_id.strip(),
        run_id=request.run_id.strip(),
        vod_ids=tuple(request.vod_ids),
        decision_ids=tuple(request.decision_ids),
        reviewer=request.reviewer.strip(),
        rule_version=request.rule_version.strip(),
        since=since,
        until=until,
    )
    if selection.is_empty and len(moments) == 2:
        problems.append(
            "请至少填写一项：change_ids、vod_ids、batch_id 或 run_id、decision_ids、reviewer、rule_version、since/until"
        )
    with reading(services.engine) as connection:
        problems += _unknown(connection, services.tables, selection)
        empty = not problems and not count(connection, services.tables, selection, applied_only=False)
        if empty and not waiting_decisions(services.tables, connection, selection):
            problems.append(f"没有同时符合以下全部条件的变更：{looked_for(selection, zone)}")
    if problems:
        raise RevertError(problems)
    return selection


def looked_for(selection: ChangeSelection, zone: ZoneInfo) -> str:
    """Return the filters of ``selection`` in words."""
    parts = []
    for words, values in (
        ("变更", selection.change_ids),
        ("每部影片的上一步，影片", selection.vod_ids),
        ("决定", selection.decision_ids),
    ):
        if values:
            parts.append(f"{words} {listed(values)}")
    for words, value in (
        ("批次", selection.batch_id),
        ("运行", selection.run_id),
        ("审核员", selection.reviewer),
        ("规则版本", selection.rule_version),
    ):
        if value:
            parts.append(f"{words} {value}")
    if selection.since is not None:
        parts.append(f"自 {_to_the_second(selection.since, zone)}")
    if selection.until is not None:
        parts.append(f"{_to_the_second(selection.until, zone)} 之前")
    return "；".join(parts)


def _plain_problems(request: RevertRequest) -> Iterator[str]:
    for name in ("operator", "reason"):
        # Who only looks signs nothing.
        if not request.dry_run and not getattr(request, name).strip():
            yield f"请填写 {name}：撤销会以此记入日志"
    if request.operator.strip().casefold() == PIPELINE:
        yield f"operator 不能是 {PIPELINE}：撤销是人的决定，请填写您的名字"
    if len(request.operator.strip()) > MOST_NAME:
        yield f"operator 最多 {MOST_NAME} 个字符"
    for name in ("change_ids", "vod_ids", "decision_ids"):
        wrong = [value for value in getattr(request, name) if value < 1]
        if wrong:
            yield f"{name} 中有不可能的编号：{listed(wrong)}"
    if request.max_changes < 1:
        yield "max_changes 至少为 1"


def _unknown(connection: Connection, tables: OwnTables, selection: ChangeSelection) -> Iterator[str]:
    """Yield what ``selection`` names but does not exist."""
    log, decision, video = tables.log, tables.decision, tables.video
    lists: tuple[tuple[str, Collection[int], tuple[Column[int], ...]], ...] = (
        ("change_ids 中没有这些变更", selection.change_ids, (log.c.change_id,)),
        ("decision_ids 中没有这些决定", selection.decision_ids, (decision.c.decision_id,)),
        ("vod_ids 中没有这些影片", selection.vod_ids, (video.c.vod_id, log.c.vod_id)),
    )
    for words, values, columns in lists:
        missing = {value for value in values if value > 0}
        for column in columns:
            missing -= _present(connection, column, sorted(missing))
        if missing:
            yield f"{words}：{listed(sorted(missing))}"
    for name, value, found_in in (
        ("批次", selection.batch_id, (log.c.batch_id, decision.c.batch_id)),
        ("运行", selection.run_id, (log.c.run_id,)),
        ("审核员", selection.reviewer, (log.c.operator, decision.c.reviewer)),
        ("规则版本", selection.rule_version, (log.c.rule_version,)),
    ):
        if value and not any(
            connection.execute(select(column).where(column == value).limit(1)).first() for column in found_in
        ):
            yield f"没有找到{name} {value} 的任何变更"


def _present(connection: Connection, column: Column[int], values: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(values), _CHUNK):
        query = select(column).where(column.in_(values[start : start + _CHUNK])).distinct()
        found.update(connection.execute(query).scalars())
    return found


def listed(values: Sequence[int]) -> str:
    """Return numbers as a sentence names them: the first ones, and how many there are."""
    named = "、".join(str(value) for value in values[:_NAMED])
    return named if len(values) <= _NAMED else f"{named} 等 {len(values)} 个"


def _to_the_second(moment: datetime, zone: ZoneInfo) -> str:
    return f"{local_time(moment, zone)}:{moment.astimezone(zone):%S}"


def waiting_decisions(tables: OwnTables, connection: Connection, selection: ChangeSelection) -> list[RowMapping]:
    """Return the decisions of ``selection`` that still wait for a run, or for the task that was queued for them.

    Only where decisions are meant: by their batch, their keys or their reviewer, and by nothing that only a write has.
    """
    of_decisions = selection.batch_id or selection.decision_ids or selection.reviewer
    of_writes = selection.change_ids or selection.run_id or selection.rule_version
    if of_writes or not of_decisions:
        return []
    decision = tables.decision
    conditions: list[ColumnElement[bool]] = [decision.c.state.in_([DecisionState.PENDING, DecisionState.QUEUED])]
    if selection.batch_id:
        conditions.append(decision.c.batch_id == selection.batch_id)
    if selection.reviewer:
        conditions.append(decision.c.reviewer == selection.reviewer)
    if selection.since is not None:
        conditions.append(decision.c.created_at >= selection.since)
    if selection.until is not None:
        conditions.append(decision.c.created_at < selection.until)
    rows = connection.execute(select(decision).where(*conditions).order_by(decision.c.decision_id)).mappings().all()
    keys, videos = set(selection.decision_ids), set(selection.vod_ids)
    return [row for row in rows if (not keys or row["decision_id"] in keys) and (not videos or row["vod_id"] in videos)]


def withdraw(
    services: Services, decisions: Sequence[RowMapping], *, operator: str, reason: str, run_id: str
) -> list[RowMapping]:
    """Withdraw decisions that still wait; return those that no run applied first."""
    table, task = services.tables.decision, services.tables.task
    queue = services.queue(run_id)
    why = f"尚未执行即由 {operator} 撤回：{reason}"[:500]

    def withdraw_one(connection: Connection, row: RowMapping) -> bool:
        this = (table.c.decision_id == row["decision_id"], table.c.state == row["state"])
        if row["state"] == DecisionState.QUEUED:
            idle = (task.c.task_id == row["task_id"], task.c.status == TaskStatus.PENDING)
            # Locked until the end: a run that leased the task in between would write all the same.
            if connection.execute(select(task.c.task_id).where(*idle).with_for_update()).first() is None:
                return False
            queue.cancel(connection, row["task_id"], why)
        settled = {"state": DecisionState.REFUSED, "state_reason": why, "pending_key": None}
        done = connection.execute(update(table).where(*this).values(**settled, settled_at=services.clock.now()))
        return bool(done.rowcount) or row["state"] == DecisionState.QUEUED

    def withdraw_some(connection: Connection, rows: Sequence[RowMapping]) -> list[RowMapping]:
        return [row for row in rows if withdraw_one(connection, row)]

    withdrawn: list[RowMapping] = []
    for chunk in chunks(decisions):
        withdrawn += run_transaction(services.engine, partial(withdraw_some, rows=chunk))
    return withdrawn
