"""Labels of automatic verdicts from people's decisions: which links they agreed with, and which they overruled."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, Select, func, or_, select

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.store.decisions import LINKING
from douban_pipeline.douban.store.states import (
    ChangeState,
    DecisionAction,
    DecisionState,
    ReviewStatus,
    VerdictState,
)
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import PIPELINE, WRONG_LINK, decode

_LABELLING = LINKING | {DecisionAction.clear_id, DecisionAction.lock_id}
_IN_FORCE = (DecisionState.PENDING, DecisionState.APPLIED)


class ActKind(enum.StrEnum):
    """What a person's action says about the subject of a video."""

    CHOSEN = "chosen"
    """It is this subject."""
    CLEARED = "cleared"
    """It is not the current one."""
    KEPT = "kept"
    """It is the current one, which was locked."""
    TAKEN_BACK = "taken_back"
    """It is not this subject, whose automatic link was reverted as wrong."""


@dataclass(frozen=True, slots=True)
class PersonAct:
    """A person's action on a video; ``subject`` is 0 if the action names none."""

    at: datetime
    kind: ActKind
    subject: int
    person: str


@dataclass(frozen=True, slots=True)
class AutomaticLink:
    """An automatic link: a confirmed verdict that was written."""

    verdict_id: int
    vod_id: int
    douban_id: int
    score: float
    strata: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class LinkLabel:
    """An automatic link with a person's latest judgement."""

    link: AutomaticLink
    right: bool
    judged_at: datetime
    person: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict that waited for a person, and the subject that the person chose.

    Attributes:
        top: The candidate shown first, 0 for none.
        chosen: The chosen subject; 0 if the person cleared the id in the CMS.
        place: Rank of the chosen subject among the candidates, None if it was not among them.
        codes: What blocked confirming.
        person: Who chose, and ``at`` when.
    """

    verdict_id: int
    vod_id: int
    status: str
    top: int
    chosen: int
    place: int | None
    codes: tuple[str, ...]
    strata: tuple[str, ...]
    person: str = ""
    at: datetime | None = None

    @property
    def top_right(self) -> bool:
        """Whether the first candidate was chosen."""
        return bool(self.chosen) and self.top == self.chosen


def last_word(subject: int, acts: Iterable[PersonAct]) -> tuple[bool, PersonAct] | None:
    """Return whether people judged the link to ``subject`` as right, and the deciding act; None if no act judges it.

    Acts are ordered by time. A lock agrees with the current subject, which an earlier act may have replaced.
    """
    current = subject
    word: tuple[bool, PersonAct] | None = None
    for act in acts:
        if act.kind is ActKind.CHOSEN:
            current = act.subject
            word = (current == subject, act)
        elif act.kind is ActKind.CLEARED or (act.kind is ActKind.TAKEN_BACK and act.subject == current):
            if current == subject:
                word = (False, act)
            current = 0
        elif act.kind is ActKind.KEPT and current == subject:
            word = (True, act)
    return word


def acts_of_people(connection: Connection, tables: OwnTables) -> dict[int, list[PersonAct]]:
    """Return people's actions on subjects, by video and ordered by time; decisions that were reverted are left out.

    Pending decisions count, since the person has decided. Refused ones do not.
    """
    acts: dict[int, list[PersonAct]] = {}
    decision, log = tables.decision, tables.log
    decided = (
        select(decision)
        .where(decision.c.action.in_(_LABELLING), decision.c.state.in_(_IN_FORCE))
        .order_by(decision.c.decision_id)
    )
    for row in connection.execute(decided).mappings():
        acts.setdefault(row["vod_id"], []).append(_act(row))
    change = log.alias()
    reverted = (
        select(log.c.vod_id, log.c.applied_at, log.c.operator, log.c.old_values)
        .join(change, change.c.change_id == log.c.reverts_change_id)
        .where(log.c.state == ChangeState.APPLIED, log.c.operator != PIPELINE, change.c.operator == PIPELINE)
        # Runs and batches are undone for many reasons, most of which say nothing about their links.
        .where(log.c.reason.startswith(WRONG_LINK, autoescape=True))
        .order_by(log.c.change_id)
    )
    for vod_id, at, operator, values in connection.execute(reverted):
        subject = decode(values).get("vod_douban_id")
        if subject:
            acts.setdefault(vod_id, []).append(PersonAct(at, ActKind.TAKEN_BACK, subject, operator))
    for found in acts.values():
        found.sort(key=lambda act: act.at)
    return acts


def _act(row: RowMapping) -> PersonAct:
    kinds = {DecisionAction.clear_id: ActKind.CLEARED, DecisionAction.lock_id: ActKind.KEPT}
    action = DecisionAction(row["action"])
    subject = row["douban_id"] if action in LINKING else 0
    return PersonAct(row["created_at"], kinds.get(action, ActKind.CHOSEN), subject, row["reviewer"])


def chosen_by_people(acts: Mapping[int, Sequence[PersonAct]]) -> dict[int, int]:
    """Return the subject that people chose last, by video; videos without one are left out."""
    found: dict[int, int] = {}
    for vod_id, of_video in acts.items():
        for act in of_video:
            if act.kind is ActKind.CHOSEN:
                found[vod_id] = act.subject
            elif act.kind is ActKind.CLEARED:
                found.pop(vod_id, None)
    return found


def labels(connection: Connection, tables: OwnTables, acts: Mapping[int, Sequence[PersonAct]]) -> list[LinkLabel]:
    """Return the automatic links that people judged, each with the latest judgement, ordered by verdict.

    An act refers to the newest automatic link before it.
    """
    links: dict[int, list[AutomaticLink]] = {}
    for link in automatic_links(connection, tables, acts):
        links.setdefault(link.vod_id, []).append(link)
    found: list[LinkLabel] = []
    for vod_id, of_video in links.items():
        of_video.sort(key=lambda link: link.verdict_id)
        for number, link in enumerate(of_video):
            later = of_video[number + 1].at if number + 1 < len(of_video) else None
            about = [act for act in acts[vod_id] if act.at >= link.at and (later is None or act.at < later)]
            word = last_word(link.douban_id, about)
            if word:
                found.append(LinkLabel(link, word[0], word[1].at, word[1].person))
    return sorted(found, key=lambda label: label.link.verdict_id)


def automatic_links(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> Iterator[AutomaticLink]:
    """Yield the confirmed verdicts on ``vod_ids`` that were written."""
    for row in _by_chunks(connection, _written_links(tables), tables.verdict.c.vod_id, vod_ids):
        yield _link(row)


def current_links(connection: Connection, tables: OwnTables) -> Iterator[AutomaticLink]:
    """Yield the automatic links that are in the CMS now, neither locked nor replaced by a person."""
    verdict, video = tables.verdict, tables.video
    query = (
        _written_links(tables)
        .join(video, video.c.vod_id == verdict.c.vod_id)
        .where(
            video.c.vod_douban_id == verdict.c.douban_id,
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.douban_next_sync_at.is_not(None),
            video.c.douban_id_locked.is_(False),
        )
    )
    for row in connection.execution_options(yield_per=2000).execute(query):
        yield _link(row)


def linked_since(connection: Connection, tables: OwnTables, since: datetime) -> int:
    """Return how many videos were linked automatically since a moment, including links that people reverted."""
    links = _written_links(tables).where(tables.verdict.c.created_at >= since).subquery()
    return int(connection.execute(select(func.count(links.c.vod_id.distinct()))).scalar_one())


def _written_links(tables: OwnTables) -> Select[Any]:
    verdict = tables.verdict
    names = ("verdict_id", "vod_id", "douban_id", "score", "strata", "created_at")
    return select(*(verdict.c[name] for name in names)).where(
        verdict.c.state == VerdictState.APPLIED, verdict.c.verdict == ReviewStatus.CONFIRMED
    )


def _link(row: Row[Any]) -> AutomaticLink:
    strata = tuple(row.strata or ())
    return AutomaticLink(row.verdict_id, row.vod_id, row.douban_id, row.score or 0.0, strata, row.created_at)


def settled_by_people(
    connection: Connection, tables: OwnTables, acts: Mapping[int, Sequence[PersonAct]]
) -> list[Settled]:
    """Return the verdicts that people settled by choosing or clearing a subject, ordered by verdict."""
    verdict, candidate = tables.verdict, tables.candidate
    names = ("verdict_id", "vod_id", "verdict", "reasons", "strata", "created_at")
    query = select(*(verdict.c[name] for name in names)).where(
        or_(verdict.c.state == VerdictState.APPLIED, verdict.c.verdict == ReviewStatus.CONFIRMED)
    )
    by_video: dict[int, list[Any]] = {}
    for row in _by_chunks(connection, query, verdict.c.vod_id, acts):
        by_video.setdefault(row.vod_id, []).append(row)
    waited: dict[int, tuple[Any, PersonAct]] = {}
    for vod_id, rows in by_video.items():
        for act in acts[vod_id]:
            if act.kind not in (ActKind.CHOSEN, ActKind.CLEARED):
                continue
            newest = max(
                (row for row in rows if row.created_at <= act.at), key=lambda row: row.verdict_id, default=None
            )
            if newest is not None and newest.verdict != ReviewStatus.CONFIRMED:
                waited[newest.verdict_id] = (newest, act)
    shown: dict[int, dict[int, int]] = {}
    query = select(candidate.c.verdict_id, candidate.c.douban_id, candidate.c.rank)
    for row in _by_chunks(connection, query, candidate.c.verdict_id, waited):
        shown.setdefault(row.verdict_id, {})[row.douban_id] = row.rank
    found: list[Settled] = []
    for verdict_id, (row, act) in sorted(waited.items()):
        chosen, places = act.subject, shown.get(verdict_id, {})
        top = min(places, key=lambda subject: places[subject], default=0)
        codes, strata = tuple(row.reasons or ()), tuple(row.strata or ())
        place = places.get(chosen)
        found.append(
            Settled(verdict_id, row.vod_id, row.verdict, top, chosen, place, codes, strata, act.person, act.at)
        )
    return found


def _by_chunks(connection: Connection, query: Any, column: Any, values: Collection[int]) -> Iterator[Any]:
    for chunk in chunks(sorted(values)):
        yield from connection.execute(query.where(column.in_(chunk)))
