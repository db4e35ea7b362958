"""The index of the whole queue: one line per video with the fields for search, filter and sorting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable, year_shown
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.review.records.snapshot import holders_of
from douban_pipeline.douban.review.worklist.queue import QueuePlace, grouped, places_of
from douban_pipeline.douban.review.worklist.sheet import day_of, group_name, plain
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.wording import REVIEW_STATUSES, word_for
from douban_pipeline.matching.codes import labels_of


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The order of the whole queue.

    Attributes:
        places: The places of all waiting videos, the most pressing group first, its members by season or part.
        group_of: The number of each video's group.
        decided: Number of videos with a decision that is not applied yet.
    """

    places: tuple[QueuePlace, ...]
    group_of: Mapping[int, int]
    decided: int


def order_of(services: Services) -> QueueOrder:
    """Return the order of the whole queue."""
    with reading(services.engine) as connection:
        places, decided = places_of(services, connection)
    groups = [sorted(group, key=lambda place: (place.number, place.before)) for group in grouped(places)]
    group_of = {place.vod_id: number for number, group in enumerate(groups) for place in group}
    return QueueOrder(tuple(place for group in groups for place in group), group_of, decided)


def lines_of(services: Services, order: QueueOrder, places: Sequence[QueuePlace]) -> list[dict[str, Any]]:
    """Return a line for each of ``places`` except deleted videos; lines of groups have the group's name.

    The fields have the names of a card's fields, of which they are a subset.
    """
    with reading(services.engine) as connection:
        lines = _lines(services, connection, places)
    members: dict[int, list[dict[str, Any]]] = {}
    for place in places:
        if place.vod_id in lines:
            members.setdefault(order.group_of[place.vod_id], []).append(lines[place.vod_id])
    names = {number: group_name(line["title"] for line in group) for number, group in members.items() if len(group) > 1}
    return [{**line, "group": names.get(number, "")} for number, group in members.items() for line in group]


def _lines(services: Services, connection: Connection, places: Sequence[QueuePlace]) -> dict[int, dict[str, Any]]:
    video, verdict, candidate, vod = (
        services.tables.video,
        services.tables.verdict,
        services.tables.candidate,
        services.cms.vod,
    )
    by_video = {place.vod_id: place for place in places}
    firsts: dict[int, int] = {}
    reasons: dict[int, Sequence[str]] = {}
    for chunk in chunks([place.verdict_id for place in places if place.verdict_id]):
        judged = select(verdict.c.verdict_id, verdict.c.reasons).where(verdict.c.verdict_id.in_(chunk))
        reasons |= {row.verdict_id: row.reasons or () for row in connection.execute(judged)}
        best = select(candidate.c.verdict_id, candidate.c.douban_id)
        best = best.where(candidate.c.verdict_id.in_(chunk), candidate.c.rank == 1)
        firsts |= {row.verdict_id: row.douban_id for row in connection.execute(best)}
    holders = holders_of(services, set(firsts.values()))
    columns = [vod.c[name] for name in ("vod_id", "vod_name", "vod_year", "type_id", "vod_hits", "vod_time")]
    columns += [video.c.vod_douban_id, video.c.douban_review_reason]
    found: dict[int, dict[str, Any]] = {}
    for chunk in chunks(list(by_video)):
        query = select(*columns).join(video, video.c.vod_id == vod.c.vod_id).where(vod.c.vod_id.in_(chunk))
        for row in connection.execute(query).mappings():
            place = by_video[row["vod_id"]]
            subject = firsts.get(place.verdict_id, 0)
            others = 0
            if subject in holders:
                carries = (row["vod_douban_id"], place.status) == (subject, ReviewStatus.CONFIRMED)
                others, _ = holders[subject].others(place.vod_id, carries=carries)
            found[place.vod_id] = _line(services, place, row, reasons.get(place.verdict_id, ()), others)
    return found


def _line(
    services: Services, place: QueuePlace, row: Mapping[Any, Any], reasons: Sequence[str], others: int
) -> dict[str, Any]:
    category = services.categories.get(row["type_id"])
    return {
        "vod": place.vod_id,
        "verdict": place.verdict_id,
        "title": plain(readable(row["vod_name"])),
        "year": plain(year_shown(row["vod_year"])),
        "category": plain(category.name if category else ""),
        "hits": row["vod_hits"],
        "updated": day_of(moment_of(row["vod_time"]), services.zone),
        "id": row["vod_douban_id"],
        "status": word_for(REVIEW_STATUSES, place.status),
        "reason": plain(row["douban_review_reason"]),
        "labels": list(labels_of(reasons)),
        "score": place.score,
        "lead": place.lead,
        "linked": others > 0,
    }
