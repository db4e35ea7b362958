"""Estimates capacity from measured rates: reads and events of the busiest hour, and the threshold of hot sections.

The plan's formulas: the query rate of an interface is the page rate times the queries per page; the number of nodes is
the query rate over the capacity of one node; a section is hot where its share of all queries would fill one node's
reserve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from sqlalchemy import Connection, func, select

from douban_pipeline.comments.store.tables import event, impression

PAGE_SIZE = 20
"""Comments per page: each page of a list is this many impressions."""
PEAK = 5.0
"""Assumed ratio of the busiest second of an hour to the hour's average."""
RESERVE = 0.7
"""Share of a node's capacity that is planned for."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Measured rates and the capacity derived from them."""

    events_per_second: float
    pages_per_second: float
    peak_events: float
    peak_pages: float
    service_nodes: int
    workers: int
    hot_pages: float


NODE_PAGES, WORKER_EVENTS = 500.0, 500.0
"""Measured pages per second that one process of the service serves, and events per second that one worker applies."""


def capacity(events_per_second: float, pages_per_second: float) -> Capacity:
    """Return the capacity required by the rates of the busiest hour, on average."""
    peak_events, peak_pages = PEAK * events_per_second, PEAK * pages_per_second
    nodes = max(1, math.ceil(peak_pages / (NODE_PAGES * RESERVE)))
    spare = max(NODE_PAGES * nodes - peak_pages, NODE_PAGES * (1 - RESERVE))
    return Capacity(
        events_per_second,
        pages_per_second,
        peak_events,
        peak_pages,
        nodes,
        max(1, math.ceil(peak_events / (WORKER_EVENTS * RESERVE))),
        spare / nodes,
    )


def busiest_hour(connection: Connection, now: datetime, days: int = 7) -> tuple[float, float]:
    """Return events and pages per second of the busiest hours of the last days."""
    since = now - timedelta(days=days)
    hours = (
        select(func.sum(impression.c.shown).label("shown"))
        .where(impression.c.hour > since)
        .group_by(impression.c.hour)
        .subquery()
    )
    shown = connection.execute(select(func.max(hours.c.shown))).scalar()
    return max(events_by_hour(connection, now, days), default=0) / 3600, int(shown or 0) / PAGE_SIZE / 3600


def events_by_hour(connection: Connection, now: datetime, days: int = 2) -> list[int]:
    """Return the number of events of each of the last hours, earliest first.

    Event ids ascend with time, but there is no index by time: the first event of each hour is found by binary search.
    """
    last = int(connection.execute(select(func.max(event.c.event_id))).scalar() or 0) + 1
    bounds: list[int] = []
    for back in range(days * 24, -1, -1):
        bounds.append(_first_since(connection, now - timedelta(hours=back), bounds[-1] if bounds else 1, last))
    return [later - earlier for earlier, later in pairwise(bounds)]


def _first_since(connection: Connection, moment: datetime, low: int, high: int) -> int:
    """Return the id of the first event since a moment, within ``low`` to ``high``; ``high`` if there is none."""
    while low < high:
        middle = (low + high) // 2
        query = (
            select(event.c.event_id, event.c.created_at)
            .where(event.c.event_id >= middle, event.c.event_id < high)
            .order_by(event.c.event_id)
            .limit(1)
        )
        found = connection.execute(query).one_or_none()
        if found is None or found.created_at >= moment:
            high = middle
        else:
            low = found.event_id + 1
    return high
