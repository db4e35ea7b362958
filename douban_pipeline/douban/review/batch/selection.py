"""Which videos a batch decides about, the most pressing first, and which it leaves out and why.

The ids come from an index of our state table; everything else is read by key, so that a filter over the whole library
never holds it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.review.batch.filters import VideoFilter, problems_of
from douban_pipeline.douban.review.batch.looking import Looked, best_candidates, lines_of, look
from douban_pipeline.douban.review.batch.rules import Best, Bulk, why_not
from douban_pipeline.douban.review.recording.form import faults
from douban_pipeline.douban.review.recording.wishes import Wish
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import FROM_CANDIDATES
from douban_pipeline.douban.store.states import ReviewStatus

MOST_LEFT_OUT = 500
"""Videos left out that are named; further ones are only counted."""

_IGNORED = "已忽略；要包括它，请在 statuses 中加上 IGNORED"
_SPARE = 1000

_Item = TypeVar("_Item")


class SelectionError(ProblemsError):
    """The filter cannot be used; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A video that the batch decides about."""

    vod_id: int
    title: str
    status: str
    douban_id: int
    score: float | None
    verdict_id: int
    best: Best | None


class LeftOut(NamedTuple):
    """A video that meets the filter but is not touched."""

    vod_id: int
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Picked:
    """What a filter selects.

    Attributes:
        videos: The videos in review order, at most as many as were asked for.
        left_out: Those that are not touched, in review order; the first `MOST_LEFT_OUT`.
        matched_in_all: All that meet the filter.
        left_out_in_all: All of these that are not touched.
    """

    videos: tuple[Pick, ...]
    left_out: tuple[LeftOut, ...]
    matched_in_all: int
    left_out_in_all: int

    @property
    def beyond(self) -> int:
        """How many more would be decided about but for the limit."""
        return self.matched_in_all - self.left_out_in_all - len(self.videos)


def select_videos(
    services: Services, asked: VideoFilter, bulk: Bulk, *, progress: Callable[[int, int], None] = lambda at, of: None
) -> Picked:
    """Return the videos that ``asked`` describes and ``bulk`` may touch.

    Args:
        services: Database and settings.
        asked: What the videos have in common.
        bulk: What is to be decided about them.
        progress: Told after every few hundred videos how many were looked at, of how many.

    Raises:
        SelectionError: The filter is empty or wrong; all problems are told at once.
    """
    with reading(services.engine) as connection:
        problems = [
            *faults(_wish(bulk), ai_intros=services.settings.ai_intros),
            *problems_of(services, connection, asked),
        ]
        if problems:
            raise SelectionError(problems)
        vod_ids = _ids(services, connection, asked)
    with_best = bulk.action in FROM_CANDIDATES
    found = _Found(_First(asked.max_rows))
    looked_at = 0
    for chunk in chunks(vod_ids):
        # A connection a piece: nobody waits for a reader of the whole library.
        with reading(services.engine) as connection:
            for looked in look(services, connection, asked, chunk, with_best=with_best):
                found.sort_in(looked, asked, bulk, services)
        looked_at += len(chunk)
        progress(looked_at, len(vod_ids))
    videos = found.taken.items if with_best else list(_with_best(services, found.taken.items))
    taken, left_out = found.taken, found.left_out
    return Picked(tuple(videos), tuple(left_out.items), taken.offered + left_out.offered, left_out.offered)


def wishes_of(picked: Picked, bulk: Bulk) -> list[Wish]:
    """Return the decision about each video. Those from candidates hold for the verdict that was looked at alone."""
    plain, of_verdict = _wish(bulk), bulk.action in FROM_CANDIDATES
    return [
        replace(
            plain,
            vod_id=pick.vod_id,
            verdict_id=pick.verdict_id if of_verdict else 0,
            where=f"所选第 {number} 部",
        )
        for number, pick in enumerate(picked.videos, start=1)
    ]


def _wish(bulk: Bulk) -> Wish:
    return Wish(0, bulk.action, bulk.douban_id, bulk.rank, bulk.days, bulk.lock, bulk.accept_conflicts)


def _ids(services: Services, connection: Connection, asked: VideoFilter) -> list[int]:
    """Return the videos that our state table alone does not rule out."""
    video = services.tables.video
    conditions: list[ColumnElement[bool]] = []
    if asked.statuses:
        conditions.append(video.c.douban_review_status.in_(asked.statuses))
    if asked.type_ids:
        conditions.append(video.c.type_id.in_(asked.type_ids))
    if asked.duplicates_of:
        conditions.append(video.c.vod_douban_id == asked.duplicates_of)
    found: set[int] = set()
    for named in chunks(sorted(set(asked.vod_ids))) if asked.vod_ids else [()]:
        within = [video.c.vod_id.in_(named)] if named else []
        found.update(connection.execute(select(video.c.vod_id).where(*within, *conditions)).scalars())
    return sorted(found - set(asked.except_vod_ids))


class _First(Generic[_Item]):
    """The first few of many items by their order; the others are only counted."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.offered = 0
        self._held: list[tuple[tuple[float, ...], _Item]] = []

    def offer(self, before: tuple[float, ...], item: _Item) -> None:
        """Take an item; the smaller ``before`` is, the sooner it comes."""
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
class _Found:
    taken: _First[Pick]
    left_out: _First[LeftOut] = field(default_factory=lambda: _First(MOST_LEFT_OUT))

    def sort_in(self, looked: Looked, asked: VideoFilter, bulk: Bulk, services: Services) -> None:
        """Put a video where it belongs. One that is gone or ignored is told of only where it was named."""
        video = looked.video
        ignored = looked.status == ReviewStatus.IGNORED and ReviewStatus.IGNORED not in asked.statuses
        why = looked.gone or (_IGNORED if ignored else "")
        if why and not asked.named:
            return
        why = why or why_not(bulk, video, lines_of(services))
        if why:
            self.left_out.offer(looked.before, LeftOut(video.vod_id, looked.title, why))
        else:
            pick = Pick(
                video.vod_id, looked.title, looked.status, video.douban_id, looked.score, video.verdict_id, video.best
            )
            self.taken.offer(looked.before, pick)


def _with_best(services: Services, picks: Sequence[Pick]) -> Iterator[Pick]:
    """Yield ``picks`` with their best candidates, which people want to see though nothing depends on them."""
    for chunk in chunks(picks):
        with reading(services.engine) as connection:
            best = best_candidates(services, connection, [pick.verdict_id for pick in chunk])
        yield from (replace(pick, best=best.get(pick.vod_id)) for pick in chunk)
