"""Taking writes back: one change, one batch or one run, through the same door as every other write.

Only what still stands as it was written is put back. What a person or the CMS changed since, and what was locked
since, is left alone and listed. With a link goes the intro that was told from its subject. Taking back is itself a
logged batch that can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, select

from douban_pipeline.catalog.change_log import PIPELINE, SYNOPSIS_COLUMNS, Change, ChangeLog, decode
from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.intro_changes import INTRO, standing_intros
from douban_pipeline.catalog.states import ChangeState, ReviewStatus
from douban_pipeline.catalog.videos import state_rows

WITH_ITS_LINK = "所依据的豆瓣关联已撤销，简介一并撤销"
"""Why an intro is taken back that nobody named."""

_RHYTHM = frozenset({"douban_last_sync_at", "douban_next_sync_at", "intro_ai_last_at"})
"""State that says when work was done; a revert does not turn back time."""


_CHUNK = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """Which changes to take back; the filters that are set all apply, and at least one must be.

    Attributes:
        change_ids: These changes.
        batch_id: All of one batch.
        run_id: All of one Dagster run.
    """

    change_ids: tuple[int, ...] = ()
    batch_id: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class RevertedChange:
    """What became of one change: columns put back, columns left alone, and why."""

    change_id: int
    vod_id: int
    restored: tuple[str, ...]
    skipped: tuple[str, ...]
    reason: str = ""


def revert(
    change_log: ChangeLog, selection: Selection, *, operator: str, reason: str, dry_run: bool
) -> list[RevertedChange]:
    """Take back the applied changes of ``selection``, the newest first, and the intros under links that go.

    Args:
        change_log: The log to write through; its batch names the revert.
        selection: Which changes.
        operator: Who takes them back.
        reason: Why, in a sentence.
        dry_run: Say what would happen, and write nothing.

    Returns:
        One entry a change, the newest first. With ``dry_run`` several changes of one video are judged against what
        the reverts before them would leave.

    Raises:
        ValueError: The selection is empty: everything is never meant.
    """
    log = change_log.tables.log
    filters: list[ColumnElement[bool]] = []
    if selection.change_ids:
        filters.append(log.c.change_id.in_(selection.change_ids))
    if selection.batch_id:
        filters.append(log.c.batch_id == selection.batch_id)
    if selection.run_id:
        filters.append(log.c.run_id == selection.run_id)
    if not filters:
        raise ValueError("name a change, a batch or a run to take back")
    with reading(change_log.engine) as connection:
        query = select(log).where(*filters, log.c.state == ChangeState.APPLIED).order_by(log.c.change_id.desc())
        rows = connection.execute(query).mappings().all()
    intros = _intros_under(change_log, rows, operator, reason)
    named = {row["change_id"] for row in rows}
    every = sorted([*rows, *intros], key=lambda row: row["change_id"], reverse=True)
    results = _take_back(change_log, every, operator, reason, dry_run)
    return [
        result if result.change_id in named or result.reason else replace(result, reason=WITH_ITS_LINK)
        for result in results
    ]


def _intros_under(
    change_log: ChangeLog, rows: Sequence[RowMapping], operator: str, reason: str
) -> Sequence[RowMapping]:
    """Return the changes, not among ``rows``, that wrote an intro under a link which ``rows`` will put back."""
    linked = {row["vod_id"] for row in rows if "vod_douban_id" in row["new_values"]}
    if not linked:
        return []
    subjects = {row["change_id"]: decode(row["new_values"]).get("vod_douban_id") for row in rows}
    # Whether a link can be put back may hang on what goes before it, so it is tried out.
    of_linked = [row for row in rows if row["vod_id"] in linked]
    gone = {
        (result.vod_id, subjects[result.change_id])
        for result in _take_back(change_log, of_linked, operator, reason, dry_run=True)
        if "vod_douban_id" in result.restored
    }
    log = change_log.tables.log
    found: list[RowMapping] = []
    with reading(change_log.engine) as connection:
        for chunk in _pieces(sorted({vod_id for vod_id, _ in gone})):
            intros = standing_intros(connection, change_log.tables, chunk)
            wanted = [
                intro.change_id
                for intro in intros
                if (intro.vod_id, intro.douban_id) in gone and intro.change_id not in subjects
            ]
            found += connection.execute(select(log).where(log.c.change_id.in_(wanted))).mappings()
    return found


def _take_back(
    change_log: ChangeLog, rows: Sequence[RowMapping], operator: str, reason: str, dry_run: bool
) -> list[RevertedChange]:
    assumed: dict[int, dict[str, Any]] = {}
    results: list[RevertedChange] = []
    for chunk in _chunks(rows):
        results += _revert_chunk(change_log, chunk, operator, reason, dry_run, assumed)
    return results


def _pieces(vod_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(vod_ids), _CHUNK):
        yield vod_ids[start : start + _CHUNK]


def _chunks(rows: Sequence[RowMapping]) -> Iterator[list[RowMapping]]:
    """Cut ``rows`` into pieces that hold no video twice: a later piece sees what the ones before it restored."""
    chunk: list[RowMapping] = []
    seen: set[int] = set()
    for row in rows:
        if row["vod_id"] in seen or len(chunk) >= _CHUNK:
            yield chunk
            chunk, seen = [], set()
        chunk.append(row)
        seen.add(row["vod_id"])
    if chunk:
        yield chunk


def _revert_chunk(
    change_log: ChangeLog,
    rows: Sequence[RowMapping],
    operator: str,
    reason: str,
    dry_run: bool,
    assumed: dict[int, dict[str, Any]],
) -> list[RevertedChange]:
    vod_ids = [row["vod_id"] for row in rows]
    with reading(change_log.engine) as connection:
        found = change_log.cms.rows(connection, vod_ids)
        states = state_rows(connection, change_log.tables, vod_ids)
    results: dict[int, RevertedChange] = {}
    changes: list[Change] = []
    for row in rows:
        change_id, vod_id, new = row["change_id"], row["vod_id"], decode(row["new_values"])
        if vod_id not in found or vod_id not in states:
            results[change_id] = RevertedChange(change_id, vod_id, (), tuple(new), "影片已不存在")
            continue
        # What the dry run has put back so far, of the row and of our state alike.
        so_far = assumed.setdefault(vod_id, {})
        state = {**states[vod_id], **so_far}
        result = _what_can_be(row, state, {**found[vod_id], **so_far}, new)
        results[change_id] = result
        if new and not result.restored:
            continue
        old = decode(row["old_values"])
        state_before = _state_before(row, state, result.restored, reason)
        if dry_run:
            so_far.update({column: old[column] for column in result.restored} | state_before)
            continue
        changes.append(
            Change(
                vod_id=vod_id,
                action="revert",
                old={column: new[column] for column in result.restored},
                new={column: old[column] for column in result.restored},
                state=state_before,
                operator=operator,
                reason=reason,
                automatic=False,
                reverts_change_id=change_id,
            )
        )
    for outcome in change_log.write(changes):
        if outcome.state is not ChangeState.APPLIED:
            change_id = outcome.change.reverts_change_id or 0
            left = tuple(outcome.change.new)
            results[change_id] = RevertedChange(change_id, outcome.change.vod_id, (), left, outcome.reason)
    return list(results.values())


def _what_can_be(
    row: RowMapping, state: Mapping[Any, Any], current: Mapping[Any, Any], new: Mapping[str, Any]
) -> RevertedChange:
    """Say which columns of a change still stand as written and may be put back."""
    locked = _locked_since(row, state)
    restored = tuple(column for column in new if current[column] == new[column] and column not in locked)
    skipped = tuple(column for column in new if column not in restored)
    why = "之后已被锁定" if locked & set(skipped) else ("之后已被改动" if skipped else "")
    return RevertedChange(row["change_id"], row["vod_id"], restored, skipped, why)


def _locked_since(row: RowMapping, state: Mapping[Any, Any]) -> set[str]:
    """Return the columns that a lock set after the change protects."""
    by_itself = row["state_new"] or {}
    locked: set[str] = set()
    if state["douban_id_locked"] and not by_itself.get("douban_id_locked"):
        locked.add("vod_douban_id")
    if state["intro_locked"] and not by_itself.get("intro_locked"):
        locked |= SYNOPSIS_COLUMNS
    return locked


def _state_before(row: RowMapping, state: Mapping[Any, Any], restored: Sequence[str], reason: str) -> dict[str, object]:
    """Return our state as it was before the change, as far as it still is as the change left it."""
    decides = "vod_content" if row["action"] == INTRO else "vod_douban_id"
    if decides in row["new_values"] and decides not in restored:
        return {}
    before, after = decode(row["state_old"]), decode(row["state_new"])
    restorable = {
        name: value for name, value in before.items() if name not in _RHYTHM and state[name] == after.get(name)
    }
    if "vod_douban_id" in restored and row["operator"] == PIPELINE:
        # Back to how it was would mean that the next run links it again.
        subject = decode(row["new_values"])["vod_douban_id"]
        restorable["douban_review_status"] = ReviewStatus.REVIEW
        restorable["douban_review_reason"] = f"关联 {subject} 已被撤销：{reason}"[:500]
    return restorable
