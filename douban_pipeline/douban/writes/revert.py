"""Reverts writes through the change log; `revert_selection` selects them.

A value is reverted only if it is still as it was written, and no later change wrote it. Values that a person or the CMS
changed, or that were locked, are left alone and listed. Reverting a link also reverts the fields and the intro written
from its subject; restoring a link restores the intro that was reverted with it. A revert is itself a logged batch that
can be reverted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import RESTORE, REVERT, SYNC, Change
from douban_pipeline.douban.writes.intro_changes import current_intros, withdrawn_intros
from douban_pipeline.douban.writes.revert_plan import RevertedChange, RevertStep, VideoRows, plan_revert
from douban_pipeline.douban.writes.revert_selection import ChangeSelection, SelectedChange, TooManyError, select_changes

WITH_ITS_LINK = "所依据的豆瓣关联已撤销，简介一并撤销"
"""Why an intro is reverted that nobody named."""

FIELDS_WITH_THEIR_LINK = "所依据的豆瓣关联已撤销，字段一并撤销"
"""Why fields are reverted that nobody named: a later sync wrote them from the subject of the link that goes."""

BACK_WITH_ITS_LINK = "所依据的豆瓣关联已恢复，简介一并恢复"
"""Why an intro comes back that nobody named."""

_CHUNK = 200
"""Changes whose texts are held at once; one video's are never torn apart."""

__all__ = [
    "BACK_WITH_ITS_LINK",
    "FIELDS_WITH_THEIR_LINK",
    "WITH_ITS_LINK",
    "ChangeSelection",
    "RevertedChange",
    "TooManyError",
    "revert",
    "select_changes",
]


@dataclass(frozen=True, slots=True)
class _RevertOrder:
    """Who reverts, and why.

    Attributes:
        change_log: The log to write through.
        operator: The person.
        reason: A sentence.
        decision_id: The decision of which this is a part, if it is.
        override_cms_lock: Whether rows that the site locked are written, too.
    """

    change_log: ChangeLog
    operator: str
    reason: str
    decision_id: int | None
    override_cms_lock: bool

    def plan(self, row: RowMapping, current: VideoRows) -> RevertStep:
        """Return the step for a change; see `plan_revert`."""
        respect = self.change_log.respect_vod_lock and not self.override_cms_lock
        now = self.change_log.clock.now()
        return plan_revert(row, current, reason=self.reason, now=now, respect_vod_lock=respect)


@dataclass(slots=True)
class _VideoChanges:
    """The changes of one video to revert, newest first, and the reasons for those that were not selected."""

    rows: list[RowMapping]
    along: dict[int, str] = field(default_factory=dict)


def revert(
    change_log: ChangeLog,
    selection: ChangeSelection,
    *,
    operator: str,
    reason: str,
    dry_run: bool,
    decision_id: int | None = None,
    override_cms_lock: bool = False,
    most: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[RevertedChange]:
    """Revert the applied changes of ``selection``, and the fields and intros that go with their links.

    Args:
        change_log: The log to write through; its batch names the revert.
        selection: Which changes.
        operator: Who reverts them.
        reason: Why, in a sentence.
        dry_run: Return what would happen, and write nothing.
        decision_id: The decision of which this is a part; stored with every change.
        override_cms_lock: Also write to rows that the site locked.
        most: Maximum number of selected changes.
        progress: Called with the number of completed changes and of all selected ones.

    Returns:
        One entry a change, the newest first.

    Raises:
        ValueError: The selection is empty; reverting everything is not possible.
        TooManyError: More than ``most`` are selected; nothing was reverted.
    """
    with reading(change_log.engine) as connection:
        chosen = select_changes(connection, change_log.tables, selection, most=most)
    order = _RevertOrder(change_log, operator, reason, decision_id, override_cms_lock)
    results: list[RevertedChange] = []
    done = 0
    for chunk in _chunks(chosen):
        work = _work(change_log, chunk)
        with reading(change_log.engine) as connection:
            current = _current_rows(connection, change_log, list(work))
            _add_what_goes_along(connection, order, work, current)
        results += _revert_all(order, work, current, dry_run=dry_run)
        done += len(chunk)
        progress(done, len(chosen))
    return sorted(results, key=lambda result: result.change_id, reverse=True)


def _chunks(chosen: Sequence[SelectedChange]) -> Iterator[list[SelectedChange]]:
    """Split the selected changes into chunks that keep each video's changes together."""
    by_video: dict[int, list[SelectedChange]] = {}
    for each in chosen:
        by_video.setdefault(each.vod_id, []).append(each)
    chunk: list[SelectedChange] = []
    for of_video in by_video.values():
        chunk += of_video
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _work(change_log: ChangeLog, chunk: Sequence[SelectedChange]) -> dict[int, _VideoChanges]:
    log = change_log.tables.log
    work: dict[int, _VideoChanges] = {}
    query = select(log).where(log.c.change_id.in_([each.change_id for each in chunk]))
    with reading(change_log.engine) as connection:
        for row in connection.execute(query.order_by(log.c.change_id.desc())).mappings():
            work.setdefault(row["vod_id"], _VideoChanges([])).rows.append(row)
    return work


def _current_rows(connection: Connection, change_log: ChangeLog, vod_ids: Sequence[int]) -> dict[int, VideoRows]:
    """Return the current rows of the videos that exist."""
    rows = change_log.cms.rows(connection, vod_ids)
    states = state_rows(connection, change_log.tables, vod_ids)
    writers = _writers(connection, change_log, list(rows))
    return {
        vod_id: VideoRows(rows[vod_id], states[vod_id], writers.get(vod_id, {})) for vod_id in rows if vod_id in states
    }


def _writers(
    connection: Connection, change_log: ChangeLog, vod_ids: Sequence[int]
) -> dict[int, dict[str, frozenset[int]]]:
    """Return, by video and column, the changes that wrote it and that no revert undid.

    A restore writes again what an earlier change wrote, so that the earlier one counts.
    """
    log = change_log.tables.log
    wanted = (log.c.change_id, log.c.vod_id, log.c.action, log.c.reverts_change_id, log.c.old_values, log.c.new_values)
    query = select(*wanted).where(log.c.vod_id.in_(vod_ids), log.c.state == ChangeState.APPLIED)
    found: dict[int, dict[str, frozenset[int]]] = {}
    undone: list[tuple[int, str, int]] = []
    for change_id, vod_id, action, target, old, new in connection.execute(query):
        of_video = found.setdefault(vod_id, {})
        for column in (column for column, value in new.items() if old.get(column) != value):
            if target is not None:
                undone.append((vod_id, column, target))
            elif action != RESTORE:
                of_video[column] = of_video.get(column, frozenset()) | {change_id}
    for vod_id, column, target in undone:
        found[vod_id][column] = found[vod_id].get(column, frozenset()) - {target}
    return found


def _add_what_goes_along(
    connection: Connection, order: _RevertOrder, work: Mapping[int, _VideoChanges], current: Mapping[int, VideoRows]
) -> None:
    """Add the changes that go with a link: what wrote fields and the intro under it, or withdrew the former intro.

    Whether a link can be restored may depend on what goes before it, so it is tried out.
    """
    gone: set[tuple[int, int]] = set()
    back: set[tuple[int, int, str]] = set()
    since: dict[int, int] = {}
    for vod_id, found in current.items():
        rows = work[vod_id].rows
        if not any("vod_douban_id" in row["new_values"] for row in rows):
            continue
        for step in _steps(order, rows, found):
            if "vod_douban_id" in step.result.restored:
                gone.add((vod_id, step.old["vod_douban_id"]))
                since[vod_id] = min(step.result.change_id, since.get(vod_id, step.result.change_id))
                back.add((vod_id, step.new["vod_douban_id"], step.row["batch_id"]))
    if not gone:
        return
    tables, vod_ids = order.change_log.tables, sorted({vod_id for vod_id, _ in gone})
    along = {
        intro.change_id: WITH_ITS_LINK
        for intro in current_intros(connection, tables, vod_ids)
        if (intro.vod_id, intro.douban_id) in gone
    }
    # The link still stands, so that every sync after it wrote from its subject.
    synced = select(tables.log.c.change_id, tables.log.c.vod_id).where(
        tables.log.c.vod_id.in_(vod_ids), tables.log.c.action == SYNC, tables.log.c.state == ChangeState.APPLIED
    )
    for change_id, vod_id in connection.execute(synced).tuples():
        if change_id > since[vod_id]:
            along[change_id] = FIELDS_WITH_THEIR_LINK
    for withdrawal, batch_id in withdrawn_intros(connection, tables, vod_ids):
        if (withdrawal.vod_id, withdrawal.douban_id, batch_id) in back:
            along[withdrawal.change_id] = BACK_WITH_ITS_LINK
    for vod_id in vod_ids:
        for row in work[vod_id].rows:
            along.pop(row["change_id"], None)
    if not along:
        return
    log = tables.log
    for row in connection.execute(select(log).where(log.c.change_id.in_(along))).mappings():
        item = work[row["vod_id"]]
        item.along[row["change_id"]] = along[row["change_id"]]
        item.rows = sorted([*item.rows, row], key=lambda each: each["change_id"], reverse=True)


def _steps(order: _RevertOrder, rows: Sequence[RowMapping], current: VideoRows) -> Iterator[RevertStep]:
    """Yield the planned step of each change, assuming that those before it are reverted as planned."""
    for row in rows:
        step = order.plan(row, current)
        current = current.after(step)
        yield step


def _revert_all(
    order: _RevertOrder, work: Mapping[int, _VideoChanges], current: dict[int, VideoRows], *, dry_run: bool
) -> list[RevertedChange]:
    """Revert the changes of each video one after the other, those of several videos together.

    After a write that was refused at the last moment, the remaining changes of its video are planned again.
    """
    results: list[RevertedChange] = []
    left = {vod_id: list(item.rows) for vod_id, item in work.items()}
    while left:
        steps: list[RevertStep] = []
        for vod_id, rows in left.items():
            found = current.get(vod_id)
            if found is None:
                results += [_gone(row) for row in rows]
                rows.clear()
                continue
            step = order.plan(rows.pop(0), found)
            current[vod_id] = found.after(step)
            steps.append(step)
        results += _write(order, steps, current) if not dry_run else [step.result for step in steps]
        left = {vod_id: rows for vod_id, rows in left.items() if rows}
    return [_with_reason(result, work[result.vod_id].along) for result in results]


def _write(order: _RevertOrder, steps: Sequence[RevertStep], current: dict[int, VideoRows]) -> list[RevertedChange]:
    """Write the planned steps, one of each video; return their outcomes."""
    results = {step.result.change_id: step.result for step in steps}
    refused: list[int] = []
    for outcome in order.change_log.write([_change(order, step) for step in steps if step.writes]):
        if outcome.state is not ChangeState.APPLIED:
            change, change_id = outcome.change, outcome.change.reverts_change_id or 0
            left = tuple(change.new) or results[change_id].state
            results[change_id] = RevertedChange(change_id, change.vod_id, (), left, outcome.reason)
            refused.append(change.vod_id)
    if refused:
        with reading(order.change_log.engine) as connection:
            anew = _current_rows(connection, order.change_log, refused)
        for vod_id in refused:
            current.pop(vod_id)
        current.update(anew)
    return list(results.values())


def _change(order: _RevertOrder, step: RevertStep) -> Change:
    return Change(
        vod_id=step.result.vod_id,
        action=REVERT,
        old=step.old,
        new=step.new,
        state=step.state,
        seen=step.seen,
        operator=order.operator,
        reason=order.reason,
        automatic=False,
        override_cms_lock=order.override_cms_lock,
        decision_id=order.decision_id,
        reverts_change_id=step.result.change_id,
    )


def _gone(row: RowMapping) -> RevertedChange:
    return RevertedChange(row["change_id"], row["vod_id"], (), tuple(row["new_values"]), "影片已不存在")


def _with_reason(result: RevertedChange, along: Mapping[int, str]) -> RevertedChange:
    why = along.get(result.change_id, "")
    return replace(result, reason=why) if why and not result.reason else result
