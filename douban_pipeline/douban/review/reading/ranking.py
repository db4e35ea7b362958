"""The whole queue, cheaply: the place of every waiting video, and which stand together.

Tens of thousands may wait. Only what the order needs is read of them; `queue` reads the rest of the few that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, or_, select

from douban_pipeline.cms.maccms import live_condition
from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.match_inputs import kind_of_category
from douban_pipeline.douban.review.reading.ordering import Lines, doubt_of, value_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Aspect, aspect_of
from douban_pipeline.douban.store.states import DecisionAction, DecisionState, ReviewStatus
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.matching import Kind, parse_title

_LARGEST_GROUP = 12
"""Members of a franchise that one look takes in; further ones stand as a group of their own."""

_SETTLING = [action for action in DecisionAction if aspect_of(action) is Aspect.LINK]
"""Decisions after which a video does not wait for a person any more, as soon as they are recorded."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the order needs of a video."""

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
        """The smaller, the sooner it is looked at."""
        return (-self.value * self.doubt, -self.value, self.vod_id)


def places_of(services: Services, connection: Connection) -> tuple[list[Place], int]:
    """Return the place of every waiting video, and how many wait for the machine only."""
    rows = _waiting(services, connection)
    decided = _decided(services, connection)
    open_rows = [row for row in rows if row["vod_id"] not in decided]
    points = _points(services, connection, [row["verdict_id"] for row in open_rows if row["verdict_id"]])
    now, settings = services.clock.now(), services.settings
    lines = Lines(settings.confirm_score, settings.lead_score)
    kinds: dict[int, Kind | None] = {}
    places = []
    for row in open_rows:
        score, lead = points.get(row["verdict_id"], (None, None))
        title = parse_title(readable(row["vod_name"]))
        if row["type_id"] not in kinds:
            kinds[row["type_id"]] = kind_of_category(services.categories, row["type_id"])
        status = row["douban_review_status"]
        places.append(
            Place(
                row["vod_id"],
                status,
                row["verdict_id"] or 0,
                score,
                lead,
                value_of(row["vod_hits"], moment_of(row["vod_time"]), now),
                doubt_of(
                    score,
                    lead,
                    lines,
                    stands=status == ReviewStatus.REVIEW and row["vod_douban_id"] > 0,
                    failing=row["douban_sync_fail_count"] >= FAILURES_FOR_A_PERSON,
                ),
                title.base,
                kinds[row["type_id"]],
                title.number or 0,
            )
        )
    return places, len(rows) - len(open_rows)


def _waiting(services: Services, connection: Connection) -> list[RowMapping]:
    """Return the few columns that place a video, of all that wait."""
    video, vod, verdict = services.tables.video, services.cms.vod, services.tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id == video.c.vod_id).scalar_subquery()
    query = (
        select(vod.c.vod_id, vod.c.vod_name, vod.c.type_id, vod.c.vod_hits, vod.c.vod_time)
        .add_columns(video.c.vod_douban_id, video.c.douban_review_status, video.c.douban_sync_fail_count)
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
    return list(connection.execute(query).mappings())


def _decided(services: Services, connection: Connection) -> set[int]:
    decision = services.tables.decision
    query = select(decision.c.vod_id).where(decision.c.state == DecisionState.PENDING, decision.c.action.in_(_SETTLING))
    return set(connection.execute(query).scalars())


def _points(
    services: Services, connection: Connection, verdict_ids: Sequence[int]
) -> dict[int, tuple[float | None, float | None]]:
    """Return score and lead of verdicts."""
    verdict = services.tables.verdict
    found: dict[int, tuple[float | None, float | None]] = {}
    for chunk in chunks(verdict_ids):
        query = select(verdict.c.verdict_id, verdict.c.score, verdict.c.lead).where(verdict.c.verdict_id.in_(chunk))
        found |= {row.verdict_id: (row.score, row.lead) for row in connection.execute(query)}
    return found


def grouped(places: Sequence[Place]) -> list[list[Place]]:
    """Return the places by franchise: groups and members, the most pressing first."""
    franchises: dict[tuple[str, Kind | None], list[Place]] = {}
    for place in sorted(places, key=lambda place: place.before):
        franchises.setdefault((place.franchise, place.kind), []).append(place)
    groups = [
        members[start : start + _LARGEST_GROUP]
        for members in franchises.values()
        for start in range(0, len(members), _LARGEST_GROUP)
    ]
    return sorted(groups, key=lambda group: group[0].before)


def first_of(groups: Sequence[Sequence[Place]], most: int) -> list[list[Place]]:
    """Return the first ``most`` places, each group's by season or part; the last group may lose its least pressing."""
    first, room = [], most
    for group in groups:
        if room <= 0:
            break
        kept = group[:room]
        room -= len(kept)
        first.append(sorted(kept, key=lambda place: (place.number, place.before)))
    return first
