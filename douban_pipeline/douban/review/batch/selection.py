"""Selects the videos of a batch, the most pressing first, and lists which are left out and why.

The ids come from an index of our state table; everything else is read by key, so that a filter over the whole library
does not load it into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, Table, false, select, true

from douban_pipeline.cms.maccms import MATCH_COLUMNS, Cms
from douban_pipeline.cms.numbers import moment_of, year_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.review.batch.filters import VideoFilter, problems_of
from douban_pipeline.douban.review.batch.rules import BatchDecision, BatchVideo, TopCandidate, batch_refusal
from douban_pipeline.douban.review.records.rules import faults
from douban_pipeline.douban.review.records.snapshot import newest_verdicts, read_pending
from douban_pipeline.douban.review.worklist.order import doubt_of, lines_of, value_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import FROM_CANDIDATES, Decision, chosen_subjects
from douban_pipeline.douban.store.shown_status import ShownStatus, shown_status, status_condition
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.douban.store.videos import changed_since
from douban_pipeline.douban.writes.refusals import unlisted_refusal
from douban_pipeline.douban.writes.reverted_changes import undone_values
from douban_pipeline.matching import SENTENCES

_STATE = (
    "vod_id vod_douban_id douban_review_status douban_review_reason douban_last_sync_at douban_id_locked intro_locked "
    "douban_sync_fail_count"
)
_CANDIDATE = "vod_id douban_id title year score rejects conflicts fetched"


@dataclass(frozen=True, slots=True)
class MatchingVideo:
    """A video that meets a filter.

    Attributes:
        status: Its status as people read it.
        score: Score of its newest verdict; None without one, or without candidates.
        before: Sort key of the review order; smaller comes first.
        gone: Why it is not visible on the site, empty if it is visible.
        video: Facts that decide whether a batch may change it.
    """

    title: str
    status: ShownStatus
    score: float | None
    before: tuple[float, ...]
    gone: str
    video: BatchVideo


def matching_videos(
    services: Services, connection: Connection, asked: VideoFilter, vod_ids: Sequence[int], *, with_best: bool
) -> Iterator[MatchingVideo]:
    """Yield the videos of ``vod_ids`` that meet the parts of ``asked`` that our state table cannot answer.

    Args:
        services: Database and settings.
        connection: A connection for reading.
        asked: The filter; its statuses, categories and ids are not checked again.
        vod_ids: At most as many as one statement may name.
        with_best: Whether to read the best candidates too.
    """
    verdicts = newest_verdicts(services.tables, connection, vod_ids)
    left = [vod_id for vod_id in vod_ids if asked.score_fits(_score(verdicts.get(vod_id)))]
    best: Mapping[int, TopCandidate] = {}
    if with_best or asked.coded:
        best = best_candidates(
            services.tables, connection, [verdicts[id_]["verdict_id"] for id_ in left if id_ in verdicts]
        )
        left = [vod_id for vod_id in left if asked.codes_fit(_codes(verdicts.get(vod_id), best.get(vod_id)))]
    rows = _cms_rows(services.cms, connection, left)
    left = [vod_id for vod_id in left if asked.year_fits(year_of(rows[vod_id]["vod_year"]) if vod_id in rows else None)]
    video = services.tables.video
    states = {row["vod_id"]: row for row in _read(connection, video, _STATE, video.c.vod_id, left)}
    pending = read_pending(services.tables, connection, left, ()).by_video
    chosen = chosen_subjects(connection, services.tables, left)
    reverted = undone_values(connection, services.tables, left) if with_best else {}
    for vod_id in left:
        if vod_id in states:
            yield _matching_video(
                services,
                states[vod_id],
                rows.get(vod_id),
                verdicts.get(vod_id),
                best.get(vod_id),
                pending.get(vod_id, ()),
                chosen.get(vod_id, 0),
                reverted.get(vod_id, {}).get("vod_douban_id", ()),
            )


def _matching_video(
    services: Services,
    state: RowMapping,
    row: RowMapping | None,
    verdict: RowMapping | None,
    best: TopCandidate | None,
    pending: Sequence[Decision],
    chosen: int,
    reverted: Collection[int],
) -> MatchingVideo:
    vod_id, status = state["vod_id"], shown_status(state)
    lead = verdict["lead"] if verdict else None
    value = value_of(row["vod_hits"], moment_of(row["vod_time"]), services.clock.now()) if row else 0.0
    doubt = doubt_of(
        _score(verdict),
        lead,
        lines_of(services.settings),
        in_cms=status == ShownStatus.REVIEW and state["vod_douban_id"] > 0,
        failing=state["douban_sync_fail_count"] >= FAILURES_FOR_A_PERSON,
    )
    judged = verdict["fingerprint"] if verdict else ""
    unlisted = unlisted_refusal(row)
    return MatchingVideo(
        title=readable(row["vod_name"]) if row else "",
        status=status,
        score=_score(verdict),
        # The order of the review queue.
        before=(-value * doubt, -value, vod_id),
        gone=unlisted.sentence if unlisted else "",
        video=BatchVideo(
            vod_id,
            state["vod_douban_id"],
            id_locked=state["douban_id_locked"],
            intro_locked=state["intro_locked"],
            verdict_id=verdict["verdict_id"] if verdict else 0,
            lead=lead,
            stale=row is not None and changed_since(judged, row),
            best=best,
            pending=pending,
            chosen=chosen,
            reverted=reverted,
        ),
    )


def best_candidates(tables: OwnTables, connection: Connection, verdict_ids: Collection[int]) -> dict[int, TopCandidate]:
    """Return the best candidate of each of these verdicts that has one, by video."""
    table = tables.candidate
    query = _columns(table, _CANDIDATE).where(table.c.verdict_id.in_(verdict_ids), table.c.rank == 1)
    rows = connection.execute(query).mappings() if verdict_ids else ()
    return {
        row["vod_id"]: TopCandidate(
            row["douban_id"],
            row["title"],
            row["year"],
            row["score"],
            {**{code: SENTENCES.get(code, code) for code in row["rejects"] or ()}, **(row["conflicts"] or {})},
            row["fetched"],
        )
        for row in rows
    }


def _cms_rows(cms: Cms, connection: Connection, vod_ids: Sequence[int]) -> dict[int, RowMapping]:
    vod = cms.vod
    names = ["vod_id", "vod_hits", "vod_time", *MATCH_COLUMNS]
    names += ["vod_recycle_time"] if cms.has_recycle_bin else []
    return {row["vod_id"]: row for row in _read(connection, vod, " ".join(names), vod.c.vod_id, vod_ids)}


def _read(
    connection: Connection, table: Table, names: str, key: Column[Any], values: Sequence[int]
) -> Sequence[RowMapping]:
    return connection.execute(_columns(table, names).where(key.in_(values))).mappings().all() if values else ()


def _columns(table: Table, names: str) -> Any:
    return select(*(table.c[name] for name in names.split()))


def _score(verdict: RowMapping | None) -> float | None:
    return verdict["score"] if verdict else None


def _codes(verdict: RowMapping | None, best: TopCandidate | None) -> set[str]:
    return {*((verdict["reasons"] or ()) if verdict else ()), *(best.objections if best else ())}


MOST_LEFT_OUT = 500
"""Most videos left out that are named; further ones are only counted."""

_IGNORED = "已忽略；要包括它，请在 statuses 中加上 IGNORED"
_SPARE = 1000

_Item = TypeVar("_Item")


class SelectionError(ProblemsError):
    """The filter cannot be used; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class SelectedVideo:
    """A video that the batch decides about."""

    vod_id: int
    title: str
    status: ShownStatus
    douban_id: int
    score: float | None
    verdict_id: int
    best: TopCandidate | None


class LeftOut(NamedTuple):
    """A video that meets the filter but is left out."""

    vod_id: int
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class BatchSelection:
    """Result of a selection.

    Attributes:
        videos: The selected videos in review order, at most ``max_rows``.
        left_out: The first `MOST_LEFT_OUT` videos that are left out, in review order.
        matched_in_all: Number of videos that meet the filter.
        left_out_in_all: Number of these that are left out.
    """

    videos: tuple[SelectedVideo, ...]
    left_out: tuple[LeftOut, ...]
    matched_in_all: int
    left_out_in_all: int

    @property
    def beyond(self) -> int:
        """Number of further videos that would be selected without the limit."""
        return self.matched_in_all - self.left_out_in_all - len(self.videos)


def select_videos(
    services: Services,
    asked: VideoFilter,
    batch: BatchDecision,
    *,
    progress: Callable[[int, int], None] = lambda at, of: None,
) -> BatchSelection:
    """Return the videos that meet ``asked`` and that ``batch`` may change.

    Args:
        services: Database and settings.
        asked: The filter.
        batch: The decision about each of them.
        progress: Called after every few hundred videos with the number of processed videos and their total.

    Raises:
        SelectionError: The filter is empty or invalid; the error lists all problems.
    """
    with reading(services.engine) as connection:
        problems = [
            *faults(batch.about(0), ai_intros=services.settings.ai_intros),
            *problems_of(services, connection, asked),
        ]
        if problems:
            raise SelectionError(problems)
        vod_ids = _ids(services.tables, connection, asked)
    with_best = batch.action in FROM_CANDIDATES
    found = _Sorted(_FirstFew(asked.max_rows))
    looked_at = 0
    for chunk in chunks(vod_ids):
        # One connection per chunk, so that no read of the whole library blocks others.
        with reading(services.engine) as connection:
            for looked in matching_videos(services, connection, asked, chunk, with_best=with_best):
                found.sort_in(looked, asked, batch, services)
        looked_at += len(chunk)
        progress(looked_at, len(vod_ids))
    videos = found.taken.items if with_best else list(_with_best(services, found.taken.items))
    taken, left_out = found.taken, found.left_out
    return BatchSelection(tuple(videos), tuple(left_out.items), taken.offered + left_out.offered, left_out.offered)


def decisions_of(picked: BatchSelection, batch: BatchDecision) -> list[Decision]:
    """Return the decision about each video. A choice among candidates holds only for the verdict that was read."""
    of_verdict = batch.action in FROM_CANDIDATES
    return [
        replace(
            batch.about(pick.vod_id),
            verdict_id=pick.verdict_id if of_verdict else 0,
            where=f"所选第 {number} 部",
        )
        for number, pick in enumerate(picked.videos, start=1)
    ]


def _ids(tables: OwnTables, connection: Connection, asked: VideoFilter) -> list[int]:
    """Return the videos that meet the filter as far as our state table can answer it."""
    video = tables.video
    conditions: list[ColumnElement[bool]] = []
    if asked.statuses:
        conditions.append(status_condition(video, asked.statuses))
    if asked.type_ids:
        conditions.append(video.c.type_id.in_(asked.type_ids))
    if asked.duplicates_of:
        conditions.append(video.c.vod_douban_id == asked.duplicates_of)
    for locked, column in ((asked.id_locked, "douban_id_locked"), (asked.intro_locked, "intro_locked")):
        if locked is not None:
            conditions.append(video.c[column] == (true() if locked else false()))
    if asked.sources:
        conditions.append(video.c.douban_id_source.in_(asked.sources))
    if asked.updated_since:
        conditions.append(video.c.vod_time >= int(asked.updated_since.timestamp()))
    if asked.updated_before:
        conditions.append(video.c.vod_time < int(asked.updated_before.timestamp()))
    if asked.locked_since:
        conditions.append(video.c.douban_id_lock_time >= asked.locked_since)
    if asked.locked_before:
        conditions.append(video.c.douban_id_lock_time < asked.locked_before)
    found: set[int] = set()
    for named in chunks(sorted(set(asked.vod_ids))) if asked.vod_ids else [()]:
        within = [video.c.vod_id.in_(named)] if named else []
        found.update(connection.execute(select(video.c.vod_id).where(*within, *conditions)).scalars())
    return sorted(found - set(asked.except_vod_ids))


class _FirstFew(Generic[_Item]):
    """The first few of many items by their order; the others are only counted."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.offered = 0
        self._held: list[tuple[tuple[float, ...], _Item]] = []

    def offer(self, before: tuple[float, ...], item: _Item) -> None:
        """Add an item; items with smaller ``before`` come first."""
        self.offered += 1
        self._held.append((before, item))
        if len(self._held) > 2 * self.most + _SPARE:
            self._cut()

    @property
    def items(self) -> list[_Item]:
        """The first ones, in order."""
        self._cut()
        return [item for _, item in self._held]

    def _cut(self) -> None:
        self._held.sort(key=lambda held: held[0])
        del self._held[self.most :]


@dataclass(frozen=True, slots=True)
class _Sorted:
    taken: _FirstFew[SelectedVideo]
    left_out: _FirstFew[LeftOut] = field(default_factory=lambda: _FirstFew(MOST_LEFT_OUT))

    def sort_in(self, looked: MatchingVideo, asked: VideoFilter, batch: BatchDecision, services: Services) -> None:
        """Add a video to the taken or the left out. One that is deleted or ignored is listed only if it was named."""
        video = looked.video
        ignored = looked.status == ShownStatus.IGNORED and ShownStatus.IGNORED not in asked.statuses
        refusal = looked.gone or (_IGNORED if ignored else None)
        if refusal and not asked.named:
            return
        refusal = refusal or batch_refusal(batch, video, lines_of(services.settings))
        if refusal:
            self.left_out.offer(looked.before, LeftOut(video.vod_id, looked.title, refusal))
        else:
            pick = SelectedVideo(
                video.vod_id, looked.title, looked.status, video.douban_id, looked.score, video.verdict_id, video.best
            )
            self.taken.offer(looked.before, pick)


def _with_best(services: Services, picks: Sequence[SelectedVideo]) -> Iterator[SelectedVideo]:
    """Yield ``picks`` with their best candidates, which are only shown."""
    for chunk in chunks(picks):
        with reading(services.engine) as connection:
            best = best_candidates(services.tables, connection, [pick.verdict_id for pick in chunk])
        yield from (replace(pick, best=best.get(pick.vod_id)) for pick in chunk)
