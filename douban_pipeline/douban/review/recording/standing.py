"""What stands about the videos and subjects of a launch, read in chunks: never a query a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.cms.maccms import live_condition
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.review.recording.candidates import newest_verdicts
from douban_pipeline.douban.review.recording.form import LARGEST_ID
from douban_pipeline.douban.review.recording.wishes import Wish
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING, chosen_subjects
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.writes.intro_changes import locked_by_writing


class Named(NamedTuple):
    """A candidate as a message names it."""

    rank: int
    douban_id: int
    title: str
    year: int | None


@dataclass(frozen=True, slots=True)
class Holders:
    """Live videos that carry a subject: how many, and the first and the last of them."""

    count: int
    ends: tuple[int, ...]

    def others(self, vod_id: int, *, carries: bool) -> tuple[int, tuple[int, ...]]:
        """Return how many of them are not ``vod_id`` (which does carry it, or not), and one or two of these."""
        return self.count - carries, tuple(each for each in self.ends if each != vod_id)


@dataclass(slots=True)
class Standing:
    """What stands about the videos that a launch names.

    Attributes:
        rows: The CMS's rows.
        states: Our state rows.
        verdicts: The newest verdict of each video about which a subject is decided.
        candidates: Its candidates, the best first.
        chosen: Subjects that people chose for good.
        told: Videos whose synopsis is locked only because an intro was written: that lock goes with the intro.
    """

    rows: dict[int, RowMapping] = field(default_factory=dict)
    states: dict[int, RowMapping] = field(default_factory=dict)
    verdicts: dict[int, RowMapping] = field(default_factory=dict)
    candidates: dict[int, list[Named]] = field(default_factory=dict)
    chosen: Mapping[int, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)

    def title(self, vod_id: int) -> str:
        """Return a video's title as people read it, empty where there is no such video."""
        row = self.rows.get(vod_id)
        return readable(row["vod_name"]) if row is not None else ""


def look(services: Services, wishes: Collection[Wish]) -> Standing:
    """Return what stands about the videos of ``wishes``."""
    found = Standing()
    vod_ids = sorted({wish.vod_id for wish in wishes if 0 < wish.vod_id <= LARGEST_ID})
    linking = {wish.vod_id for wish in wishes if wish.action in LINKING}
    with reading(services.engine) as connection:
        for chunk in chunks(vod_ids):
            found.rows |= services.cms.rows(connection, chunk)
            found.states |= state_rows(connection, services.tables, chunk)
            judged = [vod_id for vod_id in chunk if vod_id in linking]
            if judged:
                found.verdicts |= newest_verdicts(services, connection, judged)
        by_verdict = {verdict["verdict_id"]: vod_id for vod_id, verdict in found.verdicts.items()}
        for chunk in chunks(sorted(by_verdict)):
            for verdict_id, candidate in _candidates(services, connection, chunk):
                found.candidates.setdefault(by_verdict[verdict_id], []).append(candidate)
        found.chosen = chosen_subjects(connection, services.tables, vod_ids)
        for chunk in chunks(sorted(wish.vod_id for wish in wishes if wish.action is DecisionAction.lock_intro)):
            found.told |= locked_by_writing(connection, services.tables, chunk)
    return found


def _candidates(services: Services, connection: Connection, verdict_ids: Sequence[int]) -> Iterator[tuple[int, Named]]:
    # Not what was compared: that is most of a candidate, and nobody reads it here.
    table = services.tables.candidate
    query = (
        select(table.c.verdict_id, table.c.rank, table.c.douban_id, table.c.title, table.c.year)
        .where(table.c.verdict_id.in_(verdict_ids))
        .order_by(table.c.verdict_id, table.c.rank)
    )
    for row in connection.execute(query):
        yield row.verdict_id, Named(row.rank, row.douban_id, row.title, row.year)


def holders_of(services: Services, subjects: Collection[int]) -> dict[int, Holders]:
    """Return which live videos carry ``subjects`` as a confirmed link; a subject nobody carries is left out.

    Counted by the database: some converters write one id into every record.
    """
    video, vod = services.tables.video, services.cms.vod
    found: dict[int, Holders] = {}
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
                found[douban_id] = Holders(count, (first, last) if first != last else (first,))
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
