"""Reads the state of the videos and subjects that decisions are about, in chunks instead of one query per decision."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from douban_pipeline.cms.maccms import live_condition
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.evidence.added_facts import posters_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING, Aspect, Decision, chosen_subjects
from douban_pipeline.douban.store.states import DecisionAction, DecisionState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.writes.intro_changes import locked_by_writing

LARGEST_ID = 2**32 - 1
"""Largest value of the CMS's id columns."""


@dataclass(frozen=True, slots=True)
class ReviewCandidate:
    """A candidate as a reviewer sees it.

    Attributes:
        verdict_id: The verdict it belongs to.
        rank: Its place, from 1.
        items: The items as stored, each with ``name``, ``points`` and the compared values.
        conflicts: Objections to it, as sentences by code.
        rejects: Codes that rule it out.
        facts: The subject's facts, as the matcher saw them.
        fetched: Whether its details were fetched; False if it is known from a search hit only.
        same_poster: Whether it had the video's poster.
    """

    verdict_id: int
    rank: int
    douban_id: int
    title: str
    year: int | None
    score: float
    items: tuple[Mapping[str, Any], ...]
    conflicts: Mapping[str, str]
    rejects: tuple[str, ...]
    facts: Mapping[str, Any]
    fetched: bool
    same_poster: bool = False

    @property
    def points(self) -> Mapping[str, float]:
        """Points by item, of the items that could be compared."""
        return {item["name"]: item["points"] for item in self.items}

    @property
    def similarity(self) -> float | None:
        """Similarity of the titles, 0 to 1; None for a candidate that was stored without its items."""
        title = next((item for item in self.items if item["name"] == "title"), None)
        weight = title.get("weight") if title else None
        return round(title["points"] / weight, 2) if title and weight else None


def newest_verdicts(tables: OwnTables, connection: Connection, vod_ids: Collection[int]) -> dict[int, RowMapping]:
    """Return the newest verdict of each of ``vod_ids`` that has one, without the compared values."""
    verdict = tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(vod_ids)).group_by(verdict.c.vod_id)
    # In two steps: MariaDB runs a subquery of this form once for each row.
    verdict_ids = list(connection.execute(newest).scalars())
    columns = [verdict.c[name] for name in ("vod_id", "verdict_id", "score", "lead", "reasons", "fingerprint")]
    query = select(*columns).where(verdict.c.verdict_id.in_(verdict_ids))
    return {row["vod_id"]: row for row in connection.execute(query).mappings()} if verdict_ids else {}


def newest_candidates(
    tables: OwnTables, connection: Connection, vod_ids: Collection[int], most: int
) -> dict[int, list[ReviewCandidate]]:
    """Return up to ``most`` candidates of each video's newest verdict, the best first; omit videos without any."""
    table, verdict = tables.candidate, tables.verdict
    newest = (
        select(func.max(verdict.c.verdict_id).label("verdict_id"))
        .where(verdict.c.vod_id.in_(vod_ids))
        .group_by(verdict.c.vod_id)
        .subquery()
    )
    query = (
        select(table, verdict.c.facts.label("video_facts"))
        .join(newest, newest.c.verdict_id == table.c.verdict_id)
        .join(verdict, verdict.c.verdict_id == table.c.verdict_id)
        .where(table.c.rank <= most)
        .order_by(table.c.vod_id, table.c.rank)
    )
    found: dict[int, list[ReviewCandidate]] = {}
    for row in connection.execute(query).mappings():
        candidate = ReviewCandidate(
            row["verdict_id"],
            row["rank"],
            row["douban_id"],
            row["title"],
            row["year"],
            row["score"],
            tuple(row["points"] or ()),
            row["conflicts"] or {},
            tuple(row["rejects"] or ()),
            row["facts"] or {},
            row["fetched"],
            row["douban_id"] in posters_of(row["video_facts"]),
        )
        found.setdefault(row["vod_id"], []).append(candidate)
    return found


class CandidateName(NamedTuple):
    """A candidate for use in messages."""

    rank: int
    douban_id: int
    title: str
    year: int | None


@dataclass(slots=True)
class LibrarySnapshot:
    """The library's data about the videos of a launch, at the moment it was read.

    Attributes:
        rows: The CMS's rows.
        states: Our state rows.
        verdicts: The newest verdict of each video with a decision that links it.
        candidates: Its candidates, the best first.
        chosen: Subjects that people chose and nobody released.
        intro_written: Videos whose synopsis is locked only because an intro was written: that lock ends with the intro.
    """

    rows: dict[int, RowMapping] = field(default_factory=dict)
    states: dict[int, RowMapping] = field(default_factory=dict)
    verdicts: dict[int, RowMapping] = field(default_factory=dict)
    candidates: dict[int, list[CandidateName]] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)
    intro_written: set[int] = field(default_factory=set)

    def title(self, vod_id: int) -> str:
        """Return a video's title as people read it, empty if there is no such video."""
        row = self.rows.get(vod_id)
        return readable(row["vod_name"]) if row is not None else ""


def read_snapshot(services: Services, decisions: Collection[Decision]) -> LibrarySnapshot:
    """Return the library's data about the videos of ``decisions``."""
    found, tables = LibrarySnapshot(), services.tables
    vod_ids = sorted({each.vod_id for each in decisions if 0 < each.vod_id <= LARGEST_ID})
    linking = {each.vod_id for each in decisions if each.linking}
    locking = sorted({each.vod_id for each in decisions if each.action is DecisionAction.lock_intro})
    with reading(services.engine) as connection:
        for chunk in chunks(vod_ids):
            found.rows |= services.cms.rows(connection, chunk)
            found.states |= state_rows(connection, tables, chunk)
            judged = [vod_id for vod_id in chunk if vod_id in linking]
            if judged:
                found.verdicts |= newest_verdicts(tables, connection, judged)
        by_verdict = {verdict["verdict_id"]: vod_id for vod_id, verdict in found.verdicts.items()}
        for chunk in chunks(sorted(by_verdict)):
            for verdict_id, candidate in _candidate_names(tables, connection, chunk):
                found.candidates.setdefault(by_verdict[verdict_id], []).append(candidate)
        found.chosen = chosen_subjects(connection, tables, vod_ids)
        for chunk in chunks(locking):
            found.intro_written |= locked_by_writing(connection, tables, chunk)
    return found


def _candidate_names(
    tables: OwnTables, connection: Connection, verdict_ids: Sequence[int]
) -> Iterator[tuple[int, CandidateName]]:
    # Without the compared values, which are the largest part of a candidate and not needed here.
    table = tables.candidate
    query = (
        select(table.c.verdict_id, table.c.rank, table.c.douban_id, table.c.title, table.c.year)
        .where(table.c.verdict_id.in_(verdict_ids))
        .order_by(table.c.verdict_id, table.c.rank)
    )
    for row in connection.execute(query):
        yield row.verdict_id, CandidateName(row.rank, row.douban_id, row.title, row.year)


@dataclass(frozen=True, slots=True)
class SubjectHolders:
    """Live videos that are linked to a subject: their number, and the first and the last of them."""

    count: int
    ends: tuple[int, ...]

    def others(self, vod_id: int, *, carries: bool) -> tuple[int, tuple[int, ...]]:
        """Return how many of them are not ``vod_id``, and one or two of these; ``carries``: whether it is one."""
        return self.count - carries, tuple(each for each in self.ends if each != vod_id)


def holders_of(services: Services, subjects: Collection[int]) -> dict[int, SubjectHolders]:
    """Return the live videos with a confirmed link to each of ``subjects``; subjects without any are left out.

    They are counted by the database, because some converters write one id into every record.
    """
    video, vod = services.tables.video, services.cms.vod
    found: dict[int, SubjectHolders] = {}
    with reading(services.engine) as connection:
        for chunk in chunks(sorted(subjects)):
            query = (
                select(video.c.vod_douban_id, func.count(), func.min(video.c.vod_id), func.max(video.c.vod_id))
                .join(vod, vod.c.vod_id == video.c.vod_id)
                .where(
                    video.c.vod_douban_id.in_(chunk),
                    video.c.douban_review_status == ReviewStatus.CONFIRMED,
                    live_condition(services.cms),
                )
                .group_by(video.c.vod_douban_id)
            )
            for douban_id, count, first, last in connection.execute(query):
                found[douban_id] = SubjectHolders(count, (first, last) if first != last else (first,))
    return found


def titles_of(services: Services, vod_ids: Iterable[int]) -> dict[int, str]:
    """Return the titles of videos."""
    vod = services.cms.vod
    titles: dict[int, str] = {}
    with reading(services.engine) as connection:
        for chunk in chunks(sorted(set(vod_ids))):
            query = select(vod.c.vod_id, vod.c.vod_name).where(vod.c.vod_id.in_(chunk))
            titles |= {vod_id: readable(name) for vod_id, name in connection.execute(query)}
    return titles


@dataclass(slots=True)
class PendingDecisions:
    """Recorded decisions that are not applied yet: by video, and by the subject that they give to a video."""

    by_video: dict[int, list[Decision]] = field(default_factory=dict)
    by_subject: dict[int, list[Decision]] = field(default_factory=dict)

    def same(self, decision: Decision) -> Decision | None:
        """Return the pending decision that is equal to ``decision``, None if there is none.

        One that links a subject is not equal if the video's facts changed since: it will be refused for that, while
        the reviewer of ``decision`` has seen the new facts.
        """
        for pending in self.by_video.get(decision.vod_id, ()):
            outdated = decision.linking and not decision.fingerprint.startswith(pending.fingerprint)
            if pending.identity == decision.identity and not outdated:
                return pending
        return None

    def replaced_by(self, decision: Decision) -> list[int]:
        """Return the keys of the decisions that ``decision`` replaces, without those that a run has begun to apply."""
        return [
            pending.decision_id
            for pending in self.by_video.get(decision.vod_id, ())
            if pending.pending and decision.contradicts(pending)
        ]

    def link_left(self, decision: Decision) -> Decision | None:
        """Return the pending decision about the video's link, None if there is none or ``decision`` replaces it."""
        for pending in self.by_video.get(decision.vod_id, ()):
            if pending.aspect is Aspect.LINK and not decision.contradicts(pending):
                return pending
        return None

    def given_to_others(self, decision: Decision) -> list[int]:
        """Return the other videos to which a pending decision gives the subject of ``decision``."""
        found = (pending.vod_id for pending in self.by_subject.get(decision.douban_id, ()))
        return sorted({other for other in found if other != decision.vod_id})


def read_pending(
    tables: OwnTables, connection: Connection, vod_ids: Collection[int], subjects: Collection[int]
) -> PendingDecisions:
    """Return the pending decisions about ``vod_ids``, and those that give ``subjects`` to any video."""
    found, decision = PendingDecisions(), tables.decision
    not_applied = decision.c.state.in_((DecisionState.PENDING, DecisionState.QUEUED))
    for chunk in chunks(sorted(set(vod_ids))):
        for each in _decisions(tables, connection, decision.c.vod_id.in_(chunk), not_applied):
            found.by_video.setdefault(each.vod_id, []).append(each)
    for chunk in chunks(sorted(set(subjects))):
        gives = (decision.c.douban_id.in_(chunk), decision.c.action.in_(LINKING))
        for each in _decisions(tables, connection, *gives, decision.c.state == DecisionState.PENDING):
            found.by_subject.setdefault(each.douban_id, []).append(each)
    return found


def _decisions(tables: OwnTables, connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[Decision]:
    query = select(tables.decision).where(*conditions).order_by(tables.decision.c.decision_id)
    return map(Decision.from_row, connection.execute(query).mappings())
