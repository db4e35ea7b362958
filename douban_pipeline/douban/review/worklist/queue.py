"""The queue of videos that wait for a person, the most valuable and most doubtful first, seasons of one work together.

Tens of thousands may wait. For all of them only the columns for the order are read; everything else is read only for
the few that are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, RowMapping, func, or_, select

from douban_pipeline.cms.maccms import SCREENSHOTS, live_condition
from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable, year_shown
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.evidence.added_facts import Added
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate, newest_candidates
from douban_pipeline.douban.review.worklist.both_verdicts import BothVerdicts, both_verdicts
from douban_pipeline.douban.review.worklist.discussions import hot_comments
from douban_pipeline.douban.review.worklist.order import doubt_of, lines_of, value_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Aspect, aspect_of
from douban_pipeline.douban.store.shown_status import ShownStatus, shown_status
from douban_pipeline.douban.store.states import DecisionAction, DecisionState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.douban.store.videos import changed_since
from douban_pipeline.douban.writes.refusals import cms_lock_refusal
from douban_pipeline.matching import Kind, parse_title
from douban_pipeline.matching.codes import labels_of
from douban_pipeline.matching.site_videos import kind_of_category, video_facts

_LARGEST_GROUP = 12
"""Most members of a franchise in one group; further ones form another group."""

_SETTLING = [action for action in DecisionAction if aspect_of(action) is Aspect.LINK]
"""Decisions that remove a video from the queue as soon as they are recorded."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The facts of a video that determine its place in the queue."""

    vod_id: int
    status: str
    verdict_id: int
    score: float | None
    lead: float | None
    value: float
    doubt: float
    franchise: str
    kind: Kind | None
    number: int

    @property
    def before(self) -> tuple[float, float, int]:
        """Sort key; smaller comes first."""
        return (-self.value * self.doubt, -self.value, self.vod_id)


def places_of(
    services: Services, connection: Connection, vod_ids: Collection[int] | None = None
) -> tuple[list[QueuePlace], int]:
    """Return the place of every waiting video, and the number of already decided ones; only ``vod_ids`` if given."""
    rows = _waiting(services, connection, vod_ids)
    decided = decided_videos(services.tables, connection)
    open_rows = [row for row in rows if row["vod_id"] not in decided]
    points = _points(services.tables, connection, [row["verdict_id"] for row in open_rows if row["verdict_id"]])
    comments = hot_comments(services, vod_ids)
    now = services.clock.now()
    lines = lines_of(services.settings)
    kinds: dict[int, Kind | None] = {}
    places = []
    for row in open_rows:
        score, lead = points.get(row["verdict_id"], (None, None))
        franchise, number = _franchise_of(row["vod_name"])
        if row["type_id"] not in kinds:
            kinds[row["type_id"]] = kind_of_category(services.categories, row["type_id"])
        status = shown_status(row)
        places.append(
            QueuePlace(
                row["vod_id"],
                status,
                row["verdict_id"] or 0,
                score,
                lead,
                value_of(row["vod_hits"], moment_of(row["vod_time"]), now, comments.get(row["vod_id"], 0)),
                doubt_of(
                    score,
                    lead,
                    lines,
                    in_cms=status == ShownStatus.REVIEW and row["vod_douban_id"] > 0,
                    failing=row["douban_sync_fail_count"] >= FAILURES_FOR_A_PERSON,
                ),
                franchise,
                kinds[row["type_id"]],
                number,
            )
        )
    return places, len(rows) - len(open_rows)


@lru_cache(maxsize=50_000)
def _franchise_of(name: str) -> tuple[str, int]:
    """Return a name without season or part, and its number, 0 for none. Cached, since names seldom change."""
    title = parse_title(readable(name))
    return title.base, title.number or 0


def _waiting(services: Services, connection: Connection, vod_ids: Collection[int] | None) -> list[RowMapping]:
    """Return the columns that determine the places of all waiting videos."""
    video, vod, verdict = services.tables.video, services.cms.vod, services.tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id == video.c.vod_id).scalar_subquery()
    query = (
        select(vod.c.vod_id, vod.c.vod_name, vod.c.type_id, vod.c.vod_hits, vod.c.vod_time)
        .add_columns(video.c.vod_douban_id, video.c.douban_review_status, video.c.douban_review_reason)
        .add_columns(video.c.douban_last_sync_at, video.c.douban_sync_fail_count)
        .add_columns(newest.label("verdict_id"))
        .join(video, video.c.vod_id == vod.c.vod_id)
        .where(
            or_(
                video.c.douban_review_status == ReviewStatus.REVIEW,
                video.c.douban_sync_fail_count >= FAILURES_FOR_A_PERSON,
            ),
            video.c.douban_next_sync_at.is_not(None),
            live_condition(services.cms),
        )
    )
    if vod_ids is not None:
        query = query.where(vod.c.vod_id.in_(sorted(vod_ids)))
    return list(connection.execute(query).mappings())


def decided_videos(tables: OwnTables, connection: Connection) -> set[int]:
    """Return the videos with a recorded decision about their link that is not applied yet."""
    decision = tables.decision
    query = select(decision.c.vod_id).where(decision.c.state == DecisionState.PENDING, decision.c.action.in_(_SETTLING))
    return set(connection.execute(query).scalars())


def _points(
    tables: OwnTables, connection: Connection, verdict_ids: Sequence[int]
) -> dict[int, tuple[float | None, float | None]]:
    """Return the score and the lead of verdicts, by verdict."""
    verdict = tables.verdict
    found: dict[int, tuple[float | None, float | None]] = {}
    for chunk in chunks(verdict_ids):
        query = select(verdict.c.verdict_id, verdict.c.score, verdict.c.lead).where(verdict.c.verdict_id.in_(chunk))
        found |= {row.verdict_id: (row.score, row.lead) for row in connection.execute(query)}
    return found


def grouped(places: Sequence[QueuePlace]) -> list[list[QueuePlace]]:
    """Return the places by franchise: groups and members, the most pressing first."""
    franchises: dict[tuple[str, Kind | None], list[QueuePlace]] = {}
    for place in sorted(places, key=lambda place: place.before):
        franchises.setdefault((place.franchise, place.kind), []).append(place)
    groups = [
        members[start : start + _LARGEST_GROUP]
        for members in franchises.values()
        for start in range(0, len(members), _LARGEST_GROUP)
    ]
    return sorted(groups, key=lambda group: group[0].before)


def first_of(groups: Sequence[Sequence[QueuePlace]], most: int) -> list[list[QueuePlace]]:
    """Return the first ``most`` places, each group ordered by season or part; the last group may be cut."""
    first, room = [], most
    for group in groups:
        if room <= 0:
            break
        kept = group[:room]
        room -= len(kept)
        first.append(sorted(kept, key=lambda place: (place.number, place.before)))
    return first


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A video that waits for a person.

    Attributes:
        title: Its title as people read it, like year and category.
        updated: When the CMS last changed it.
        douban_id: The id in the CMS, 0 for none.
        status: One of `ShownStatus`.
        reason: Why it waits, in Chinese.
        verdict_id: Its newest verdict; 0 if it was never judged.
        score: Score of that verdict's best candidate.
        lead: Its lead over the best other work.
        value: Its value to the site; see `order`.
        doubt: The doubt about it. The order is by the product of value and doubt.
        franchise: Name without season or part, by which seasons are grouped.
        facts: The site's facts, by the field names of `matching.Video`.
        candidates: The best candidates of that verdict.
        locked: Whether the id is locked.
        intro_locked: Whether the synopsis is locked.
        stale: Whether the video was changed in the CMS since that verdict.
        cms_locked: Whether the site locked the row, so that only decisions that override the lock are written.
        labels: Short labels of that verdict's reasons against the link (年份冲突, 多候选接近), if there are any.
        both: The verdict that confirmed the link and the newest one, if that does not confirm it any more.
        picture: Address of its poster in the CMS, empty for none.
        frame: Address of the first screenshot of its file, likewise.
        added: What TMDB added to the site's facts for that verdict; None for nothing.
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
    candidates: tuple[ReviewCandidate, ...]
    locked: bool = False
    intro_locked: bool = False
    stale: bool = False
    cms_locked: bool = False
    labels: tuple[str, ...] = ()
    both: BothVerdicts | None = None
    picture: str = ""
    frame: str = ""
    added: Added | None = None


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The queue.

    Attributes:
        length: Number of all waiting videos.
        by_status: Their numbers by status.
        groups: The first groups, the most pressing group first, its members by season or part.
        decided: Number of videos that are left out because a decision about them is not applied yet.
    """

    length: int
    by_status: dict[str, int]
    groups: tuple[tuple[QueueEntry, ...], ...]
    decided: int = 0

    @property
    def first(self) -> tuple[QueueEntry, ...]:
        """The members of all groups, in order."""
        return tuple(entry for group in self.groups for entry in group)


def review_queue_of(services: Services, *, most: int, candidates: int = 5) -> ReviewQueue:
    """Return the queue with its ``most`` most pressing entries, each with up to ``candidates`` candidates."""
    with reading(services.engine) as connection:
        places, decided = places_of(services, connection)
        groups = first_of(grouped(places), most)
        found = entries_of(services, connection, [place for group in groups for place in group], candidates)
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


def entries_of(
    services: Services, connection: Connection, places: Sequence[QueuePlace], candidates: int = 5
) -> dict[int, QueueEntry]:
    """Return the entries of these videos, by video; videos that were deleted since are left out."""
    video, verdict, vod = services.tables.video, services.tables.verdict, services.cms.vod
    columns: list[ColumnElement[Any]] = [each for each in vod.c if each.name not in ("vod_content", "vod_blurb")]
    if services.cms.screenshots is not None:
        columns.append(services.cms.screenshots)
    found: dict[int, QueueEntry] = {}
    for chunk in chunks(places):
        vod_ids = [place.vod_id for place in chunk]
        verdict_ids = [place.verdict_id for place in chunk]
        query = (
            select(*columns, video.c.douban_review_reason, video.c.douban_id_locked, video.c.intro_locked)
            .join(video, video.c.vod_id == vod.c.vod_id)
            .where(vod.c.vod_id.in_(vod_ids))
        )
        rows = {row["vod_id"]: row for row in connection.execute(query).mappings()}
        known = select(verdict.c.verdict_id, verdict.c.fingerprint, verdict.c.reasons, verdict.c.facts)
        known = known.where(verdict.c.verdict_id.in_(verdict_ids))
        judged = {row.verdict_id: row for row in connection.execute(known)}
        choice = newest_candidates(services.tables, connection, vod_ids, candidates)
        linked = {vod_id: row["vod_douban_id"] for vod_id, row in rows.items() if row["vod_douban_id"]}
        both = both_verdicts(services.tables, connection, linked) if linked else {}
        for place in chunk:
            if place.vod_id in rows:
                row, verdict_row = rows[place.vod_id], judged.get(place.verdict_id)
                chosen = choice.get(place.vod_id, [])
                found[place.vod_id] = _entry(services, place, row, chosen, verdict_row, both.get(place.vod_id))
    return found


def first_frame(stored: str) -> str:
    """Return the first of the CMS's screenshots; empty for none.

    Args:
        stored: ``#`` between items, each an address, or a title and an address with ``$`` between.
    """
    return stored.partition("#")[0].rpartition("$")[2].strip()


def _entry(
    services: Services,
    place: QueuePlace,
    row: RowMapping,
    candidates: Sequence[ReviewCandidate],
    judged: Row[Any] | None,
    both: BothVerdicts | None,
) -> QueueEntry:
    category = services.categories.get(row["type_id"])
    return QueueEntry(
        vod_id=place.vod_id,
        title=readable(row["vod_name"]),
        year=year_shown(row["vod_year"]),
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
        # A newer verdict may have been stored meanwhile: its candidates do not belong to this score.
        candidates=tuple(each for each in candidates if each.verdict_id == place.verdict_id),
        locked=row["douban_id_locked"],
        intro_locked=row["intro_locked"],
        stale=judged is not None and changed_since(judged.fingerprint, row),
        labels=labels_of(judged.reasons or ()) if judged is not None else (),
        added=Added.of_facts(judged.facts) if judged is not None else None,
        both=both if place.status == ReviewStatus.REVIEW else None,
        cms_locked=cms_lock_refusal(row, respect_vod_lock=services.settings.respect_vod_lock) is not None,
        picture=row["vod_pic"] or "",
        frame=first_frame(row.get(SCREENSHOTS) or ""),
    )
