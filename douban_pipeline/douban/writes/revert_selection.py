"""Selects the changes of the log to revert. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Column, ColumnElement, Connection, Select, exists, func, or_, select

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import BY_CMS, PIPELINE, SEEN_IN_CMS
from douban_pipeline.douban.writes.intro_changes import INTRO


@dataclass(frozen=True, slots=True)
class ChangeSelection:
    """Which changes to revert; the filters that are set all apply, and at least one must be.

    Attributes:
        change_ids: These changes.
        batch_id: All of one batch: of the log, or of decisions that were recorded together.
        run_id: All of one Dagster run.
        vod_ids: One step back for each of these videos: of the changes that the other filters let through, the newest
            that is still applied and is not itself a revert. What was reverted in part is behind it.
        decision_ids: All that these decisions wrote.
        reviewer: All that this person wrote, and what followed from the person's decisions.
        rule_version: All that was written under these rules; automatically, unless the filters name people's choices.
        intro_reader: The intros whose second reading was by this reader: its version with its model, or the version.
        intro_prompt: The intros that were written under this version of the prompt.
        intro_model: The intros that this model wrote.
        since: What was written from this moment on. What people did in the CMS itself is not of a time alone: a wrong
            link that somebody cleared there would be back.
        until: What was written before this moment, in the same sense.
    """

    change_ids: tuple[int, ...] = ()
    batch_id: str = ""
    run_id: str = ""
    vod_ids: tuple[int, ...] = ()
    decision_ids: tuple[int, ...] = ()
    reviewer: str = ""
    rule_version: str = ""
    intro_reader: str = ""
    intro_prompt: str = ""
    intro_model: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def automatic(self) -> bool:
        """Whether only automatic writes are meant: rules wrote them, and people's choices merely met these rules."""
        named = (self.change_ids, self.decision_ids, self.reviewer, self.batch_id, self.run_id)
        return bool(self.rule_version) and not any(named)

    @property
    def is_empty(self) -> bool:
        """Whether no filter is set; such a selection is refused."""
        return not any(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, slots=True)
class SelectedChange:
    """A change to be reverted: its key, and its video."""

    change_id: int
    vod_id: int


class TooManyError(Exception):
    """More changes are selected than allowed: their number, and the maximum."""

    def __init__(self, count: int, most: int) -> None:
        super().__init__(f"{count} changes are selected, more than {most}")
        self.count = count
        self.most = most


def select_changes(
    connection: Connection, tables: OwnTables, selection: ChangeSelection, *, most: int | None = None
) -> list[SelectedChange]:
    """Return the changes of ``selection`` that are applied, the newest first.

    If both a revert and the change that it reverted are selected, neither is touched.

    Raises:
        ValueError: The selection is empty.
        TooManyError: There are more than ``most``.
    """
    if selection.is_empty:
        raise ValueError(
            "name a change, a batch, a run, a video, a decision, a person, a rule version, an intro's origin, a window"
        )
    log = tables.log
    is_applied = log.c.state == ChangeState.APPLIED
    found: dict[int, SelectedChange] = {}
    reverts: dict[int, int] = {}
    if selection.vod_ids:
        newest = func.max(log.c.change_id)
        for query in _queries(tables, selection, newest, log.c.vod_id):
            steps = query.where(is_applied, log.c.reverts_change_id.is_(None), ~_reverted_in_part(tables))
            for change_id, vod_id in connection.execute(steps.group_by(log.c.vod_id)):
                before = found.get(vod_id)
                if before is None or change_id > before.change_id:
                    found[vod_id] = SelectedChange(change_id, vod_id)
    else:
        for query in _queries(tables, selection, log.c.change_id, log.c.vod_id, log.c.reverts_change_id):
            limited = query.where(is_applied) if most is None else query.where(is_applied).limit(most + 1)
            for change_id, vod_id, target in connection.execute(limited):
                found[change_id] = SelectedChange(change_id, vod_id)
                if target is not None:
                    reverts[change_id] = target
            if most is not None and len(found) > most:
                raise TooManyError(count(connection, tables, selection, applied_only=True), most)
        for change_id in _with_their_targets(connection, tables, selection, reverts):
            del found[change_id]
    if most is not None and len(found) > most:
        raise TooManyError(len(found), most)
    return sorted(found.values(), key=lambda chosen: chosen.change_id, reverse=True)


def count(connection: Connection, tables: OwnTables, selection: ChangeSelection, *, applied_only: bool) -> int:
    """Return how many changes the filters let through: those that are applied, or all that were ever logged."""
    log = tables.log
    found: set[int] = set()
    total = 0
    queries = list(_queries(tables, selection, log.c.change_id))
    for query in queries:
        wanted = query.where(log.c.state == ChangeState.APPLIED) if applied_only else query
        if len(queries) == 1:
            total = connection.execute(select(func.count()).select_from(wanted.subquery())).scalar_one()
        else:
            # A change may be found in two ways.
            found.update(connection.execute(wanted).scalars())
    return total or len(found)


def _with_their_targets(
    connection: Connection, tables: OwnTables, selection: ChangeSelection, reverts: dict[int, int]
) -> Iterator[int]:
    """Yield the reverts whose target is also selected, whatever its state."""
    log = tables.log
    selected: set[int] = set()
    for chunk in chunks(sorted(set(reverts.values()))):
        for query in _queries(tables, selection, log.c.change_id):
            selected.update(connection.execute(query.where(log.c.change_id.in_(chunk))).scalars())
    yield from (change_id for change_id, target in reverts.items() if target in selected)


def _reverted_in_part(tables: OwnTables) -> ColumnElement[bool]:
    revert = tables.log.alias()
    return exists().where(revert.c.reverts_change_id == tables.log.c.change_id, revert.c.state == ChangeState.APPLIED)


def _queries(tables: OwnTables, selection: ChangeSelection, *columns: ColumnElement[object]) -> Iterator[Select[tuple]]:
    """Yield queries whose results together pass the filters; each uses an index.

    Not one query with ``OR``: that would read the whole log.
    """
    log, decision = tables.log, tables.decision
    of_decisions = select(decision.c.decision_id)
    legs: list[list[ColumnElement[bool]]] = [[]]
    for value, own, theirs in (
        (selection.batch_id, log.c.batch_id, decision.c.batch_id),
        (selection.reviewer, log.c.operator, decision.c.reviewer),
    ):
        if value:
            either = (own == value, log.c.decision_id.in_(of_decisions.where(theirs == value)))
            legs = [[*leg, one] for leg in legs for one in either]
    plain: list[ColumnElement[bool]] = []
    if selection.run_id:
        plain.append(log.c.run_id == selection.run_id)
    if selection.rule_version:
        plain.append(log.c.rule_version == selection.rule_version)
    if selection.automatic:
        plain.append(log.c.operator == PIPELINE)
    origin = intro_origin(tables, selection)
    if origin:
        # Read once: as many rows as there are intros, of which there is one a video.
        plain.append(log.c.change_id.in_(select(tables.intro.c.change_id).where(*origin)))
        plain.append(log.c.action == INTRO)
    if selection.since is not None:
        plain.append(log.c.prepared_at >= selection.since)
    if selection.until is not None:
        plain.append(log.c.prepared_at < selection.until)
    named = (selection.change_ids, selection.vod_ids, selection.decision_ids, selection.batch_id, selection.reviewer)
    if not any(named):
        plain.append(or_(log.c.batch_id != SEEN_IN_CMS, log.c.operator != BY_CMS))
    lists = [
        (column, tuple(dict.fromkeys(values)))
        for column, values in (
            (log.c.change_id, selection.change_ids),
            (log.c.decision_id, selection.decision_ids),
            (log.c.vod_id, selection.vod_ids),
        )
        if values
    ]
    for leg in legs:
        for listed in _combined(lists):
            yield select(*columns).where(*leg, *plain, *listed)


def intro_origin(tables: OwnTables, selection: ChangeSelection) -> list[ColumnElement[bool]]:
    """Return the conditions on the table of intros by which ``selection`` chooses them; empty if it does not."""
    intro, found = tables.intro, list[ColumnElement[bool]]()
    if selection.intro_reader:
        of_version = intro.c.reader.startswith(f"{selection.intro_reader} ", autoescape=True)
        found.append(or_(intro.c.reader == selection.intro_reader, of_version))
    if selection.intro_prompt:
        found.append(intro.c.prompt_version == selection.intro_prompt)
    if selection.intro_model:
        found.append(intro.c.model == selection.intro_model)
    return found


def _combined(lists: Sequence[tuple[Column[int], tuple[int, ...]]]) -> Iterator[list[ColumnElement[bool]]]:
    """Yield conditions that a row is on every list, in pieces that a statement can hold."""
    if not lists:
        yield []
        return
    (column, values), *others = lists
    for chunk in chunks(values):
        for conditions in _combined(others):
            yield [column.in_(chunk), *conditions]
