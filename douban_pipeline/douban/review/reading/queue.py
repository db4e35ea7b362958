"""What waits for a person, the most valuable and most doubtful first; seasons of one work stand together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.match_inputs import video_facts
from douban_pipeline.douban.review.reading.ranking import Place, first_of, grouped, places_of
from douban_pipeline.douban.review.recording.candidates import Candidate, newest_candidates
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.videos import fingerprint


@dataclass(frozen=True, slots=True)
class Waiting:
    """A video that waits for a person.

    Attributes:
        title: As people read it, like year and category.
        updated: When the CMS last changed it.
        douban_id: The id that stands in the CMS, 0 for none.
        status: One of `ReviewStatus`.
        reason: Why it waits, in Chinese.
        verdict_id: Its newest verdict; 0: never judged.
        score: Of the best candidate of that verdict.
        lead: Over the best other work.
        value: What it is worth to the site; see `ordering`.
        doubt: How much a look may change. The order is by their product.
        franchise: Name without season or part, by which seasons are grouped.
        facts: What is known locally, by the field names of `matching.Video`.
        candidates: The best of that verdict.
        locked: Whether the id is locked.
        stale: Whether the video was changed in the CMS since that verdict.
    """

    vod_id: int
    title: str
    year: str
    category: str
    hits: int
    updated: datetime | None
    douban_id: int
    status: str
    reason: str
    verdict_id: int
    score: float | None
    lead: float | None
    value: float
    doubt: float
    franchise: str
    facts: Mapping[str, Any]
    candidates: tuple[Candidate, ...]
    locked: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The queue.

    Attributes:
        length: All that wait.
        by_status: The same by status.
        groups: What to look at first, the most pressing group first, its members by season or part.
        decided: Videos that would wait but for a decision that the next run carries out.
    """

    length: int
    by_status: dict[str, int]
    groups: tuple[tuple[Waiting, ...], ...]
    decided: int = 0

    @property
    def first(self) -> tuple[Waiting, ...]:
        """The members of all groups in their order."""
        return tuple(entry for group in self.groups for entry in group)


def review_queue_of(services: Services, *, most: int, candidates: int = 5) -> ReviewQueue:
    """Return the queue with its ``most`` most pressing entries, each with up to ``candidates`` candidates."""
    with reading(services.engine) as connection:
        places, decided = places_of(services, connection)
        groups = first_of(grouped(places), most)
        found = _details(services, connection, [place for group in groups for place in group], candidates)
    statuses = sorted({place.status for place in places})
    return ReviewQueue(
        len(places),
        {status: sum(place.status == status for place in places) for status in statuses},
        tuple(
            members
            for group in groups
            if (members := tuple(found[place.vod_id] for place in group if place.vod_id in found))
        ),
        decided,
    )


def _details(
    services: Services, connection: Connection, places: Sequence[Place], candidates: int
) -> dict[int, Waiting]:
    """Return all that is shown of these videos; one that vanished meanwhile is not among them."""
    video, verdict, vod = services.tables.video, services.tables.verdict, services.cms.vod
    columns = [column for column in vod.c if column.name not in ("vod_content", "vod_blurb", "vod_pic")]
    found: dict[int, Waiting] = {}
    for chunk in chunks(places):
        vod_ids = [place.vod_id for place in chunk]
        verdict_ids = [place.verdict_id for place in chunk]
        query = (
            select(*columns, video.c.douban_review_reason, video.c.douban_id_locked)
            .join(video, video.c.vod_id == vod.c.vod_id)
            .where(vod.c.vod_id.in_(vod_ids))
        )
        rows = {row["vod_id"]: row for row in connection.execute(query).mappings()}
        prints = select(verdict.c.verdict_id, verdict.c.fingerprint).where(verdict.c.verdict_id.in_(verdict_ids))
        judged = {row.verdict_id: row.fingerprint for row in connection.execute(prints)}
        choice = newest_candidates(services, connection, vod_ids, candidates)
        for place in chunk:
            if place.vod_id in rows:
                row, known = rows[place.vod_id], judged.get(place.verdict_id, "")
                found[place.vod_id] = _entry(services, place, row, choice.get(place.vod_id, []), known)
    return found


def _entry(services: Services, place: Place, row: RowMapping, candidates: Sequence[Candidate], judged: str) -> Waiting:
    category = services.categories.get(row["type_id"])
    return Waiting(
        vod_id=place.vod_id,
        title=readable(row["vod_name"]),
        year=readable(row["vod_year"]),
        category=category.name if category else "",
        hits=row["vod_hits"],
        updated=moment_of(row["vod_time"]),
        douban_id=row["vod_douban_id"],
        status=place.status,
        reason=row["douban_review_reason"],
        verdict_id=place.verdict_id,
        score=place.score,
        lead=place.lead,
        value=place.value,
        doubt=place.doubt,
        franchise=place.franchise,
        facts=asdict(video_facts(row, services.cms, services.categories)),
        # A verdict of this very moment has candidates that its score is not of.
        candidates=tuple(each for each in candidates if each.verdict_id == place.verdict_id),
        locked=row["douban_id_locked"],
        stale=bool(judged) and judged != fingerprint(row),
    )
