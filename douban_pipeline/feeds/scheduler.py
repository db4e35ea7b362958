"""The plan's scheduler, under the plan's names: classify, predict, back off, keep statistics, and find what is due.

The rules are in `feeds.cadence`, the statements in `feeds.store.stats`; this module combines them. ``conn`` is a
SQLAlchemy connection whose transaction the caller ends. Time, time zone and randomness are arguments that default to
the real ones.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from random import Random
from typing import Any, Protocol

from sqlalchemy import Connection

from douban_pipeline.feeds.cadence import (
    DAY,
    DEFAULT_ZONE,
    FREQUENCY_CADENCE_MAP,
    HOUR,
    LEAST_PUBLICATIONS,
    RSS_CADENCE_INTERVALS,
    calculate_backoff,
    calculate_next_check_time,
    calculate_publish_time_stats,
    classify_update_frequency,
    publication_times,
    silent_cadence,
    usual_hours,
)
from douban_pipeline.feeds.failures import UNAUTHORISED, canonical_message
from douban_pipeline.feeds.store import stats as store

__all__ = [
    "FREQUENCY_CADENCE_MAP",
    "RSS_CADENCE_INTERVALS",
    "calculate_backoff",
    "calculate_next_check_time",
    "calculate_publish_time_stats",
    "classify_update_frequency",
    "get_due_sources",
    "get_recent_entries",
    "get_scheduler_stats",
    "get_source_stats",
    "update_source_stats",
]

logger = logging.getLogger(__name__)

_ANALYSED_EVERY = 10
_FIRST_CHECKS = 3
_RECENT = 30
_UNAUTHORISED_WAIT = 15 * 60


@dataclass(frozen=True, slots=True)
class PlannedCheck:
    """When a source is polled next, and the reasons stored in ``why``."""

    at: int
    why: dict[str, Any]


class CheckPlanner(Protocol):
    """Chooses the next poll of a source after a successful one, instead of the plan's own rule."""

    def next_check(self, conn: Connection, stats: dict[str, Any], now: int, floor: int) -> PlannedCheck | None:
        """Return the next poll, or None to use the plan's rule."""
        ...


def get_source_stats(conn: Connection, source_id: str) -> dict[str, Any] | None:
    """Return a source's statistics, with its hit rate (0 to 1), or None if there are none."""
    found = store.read_stats(conn, source_id)
    return None if found is None else _with_hit_rate(found)


def get_recent_entries(
    conn: Connection, source_id: str, source_type: str = "rss", limit: int = _RECENT
) -> list[dict[str, Any]]:
    """Return the newest publications of a source, newest first; rows of the same second are one publication.

    Args:
        conn: The connection.
        source_id: The source.
        source_type: ``rss`` or ``custom``; a source of the other type has none.
        limit: Maximum number.
    """
    known = store.type_of(conn, source_id)
    if known is not None and known != source_type:
        return []
    return store.distinct_publications(conn, source_id, limit)


def update_source_stats(
    conn: Connection,
    source_id: str,
    source_type: str = "rss",
    has_new_entries: bool = False,
    error_message: str = "",
    *,
    now: float | None = None,
    tz: tzinfo = DEFAULT_ZONE,
    rng: Random | None = None,
    raw_error: str = "",
    floor: float = 0,
    floor_from: str = "",
    planner: CheckPlanner | None = None,
    locked: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Record one attempt to fetch a source, choose its next poll, and return its updated statistics.

    The check is counted under a lock of the row, so that two concurrent ones both count. The source is re-analysed at
    every tenth check, at its first three that find something, and when its statistics are damaged.

    Args:
        conn: The connection.
        source_id: The source; its row is created if needed.
        source_type: ``rss`` or ``custom``.
        has_new_entries: Whether something new was found; ignored if there is an error.
        error_message: The error; empty for success.
        now: The current time.
        tz: Time zone of the hours.
        rng: Jitter.
        raw_error: The full error for people, if ``error_message`` is shorter.
        floor: The earliest time that the source allows (``Retry-After``, or its publisher's own gap).
        floor_from: Where the gap is written, for people.
        planner: A rule for the next poll other than the plan's.
        locked: The row, if this transaction has locked it already.
    """
    moment = int(time.time() if now is None else now)
    hit = has_new_entries and not error_message
    before = store.lock_stats(conn, source_id) if locked is None else locked
    if before is None:
        store.create_stats(conn, source_id, source_type, moment)
        before = store.lock_stats(conn, source_id)
        assert before is not None
    values: dict[str, Any] = {
        "check_count": (before["check_count"] or 0) + 1,
        "hit_count": (before["hit_count"] or 0) + hit,
        "fail_count": (before["fail_count"] or 0) + 1 if error_message else 0,
        "last_check_at": moment,
        "updated_at": moment,
    }
    stats = {**before, **values}
    damaged = _damaged(stats)
    if damaged:
        logger.warning("the statistics of source %s are damaged (%s): made anew", source_id, damaged)
        values |= {"hit_count": min(max(stats["hit_count"], 0), stats["check_count"])}
    if damaged or stats["check_count"] % _ANALYSED_EVERY == 0 or (hit and stats["check_count"] <= _FIRST_CHECKS):
        values |= analyse(conn, source_id, stats["source_type"], moment, tz)
    elif hit:
        values["last_article_at"] = max(
            stats["last_article_at"] or 0, min(store.newest_publication(conn, source_id), moment)
        )
    if error_message:
        values |= _after_failure({**stats, **values}, error_message, raw_error, moment, floor)
    else:
        values |= {"backoff_until": 0, "last_error": None, "error_kind": ""}
        values |= _after_success(conn, {**stats, **values}, moment, tz, rng, floor, planner)
        if floor_from and values["why"]["bound"] == "floor":
            values["why"] |= {"floor_gap": int(floor) - moment, "floor_from": floor_from}
    values |= store.LEASES.freed
    store.write_stats(conn, source_id, values)
    return _with_hit_rate({**stats, **values})


def analyse(conn: Connection, source_id: str, source_type: str, now: int, tz: tzinfo) -> dict[str, Any]:
    """Return the analysis of a source's known publications, as columns of `source_stats`."""
    entries = get_recent_entries(conn, source_id, source_type, _RECENT)
    times = publication_times(entries, now)
    frequency, cadence = classify_update_frequency(entries, now=now, tz=tz)
    average, deviation = calculate_publish_time_stats(entries, now=now, tz=tz)
    return {
        "frequency_type": frequency,
        "cadence": cadence,
        "avg_publish_hour": average,
        "std_publish_hour": deviation,
        "known_count": len(times),
        "mean_gap": (times[0] - times[-1]) / (len(times) - 1) if len(times) > 1 else None,
        "last_article_at": min(times[0], now) if times else 0,
    }


def _damaged(stats: dict[str, Any]) -> str:
    """Return the first column whose value no analysis writes; empty if there is none."""
    average, deviation, gap = stats["avg_publish_hour"], stats["std_publish_hour"], stats["mean_gap"]
    sound = {
        "cadence": stats["cadence"] in RSS_CADENCE_INTERVALS,
        "frequency_type": stats["frequency_type"] in FREQUENCY_CADENCE_MAP,
        "avg_publish_hour": average is None or 0 <= average < DAY / HOUR,
        "std_publish_hour": (deviation is None) is (average is None) and (deviation is None or deviation > 0),
        "mean_gap": gap is None or 0 <= gap < float("inf"),
        "hit_count": 0 <= stats["hit_count"] <= stats["check_count"],
    }
    return next((name for name, well in sound.items() if not well), "")


def cadence_in_force(conn: Connection, stats: dict[str, Any], now: float) -> tuple[str, str]:
    """Return the cadence at which a source is polled, and its origin: ``manual``, ``learned`` or ``silent``."""
    learned = stats["cadence"] if stats["cadence"] in RSS_CADENCE_INTERVALS else "P2"
    if stats["known_count"] < LEAST_PUBLICATIONS:
        manual = store.manual_cadence(conn, stats["source_id"])
        if manual is not None:
            return manual, "manual"
    stepped = silent_cadence(learned, stats["last_article_at"] or 0, stats["mean_gap"], now)
    return stepped, "learned" if stepped == learned else "silent"


def _after_success(
    conn: Connection,
    stats: dict[str, Any],
    now: int,
    tz: tzinfo,
    rng: Random | None,
    floor: float,
    planner: CheckPlanner | None,
) -> dict[str, Any]:
    planned = planner.next_check(conn, stats, now, int(floor)) if planner is not None else None
    if planned is not None:
        return {"next_due_at": planned.at, "why": planned.why}
    cadence, origin = cadence_in_force(conn, stats, now)
    hours = stats["avg_publish_hour"], stats["std_publish_hour"]
    at = calculate_next_check_time(
        cadence, stats["frequency_type"] or "daily", *hours, stats["last_article_at"] or 0, now=now, tz=tz, rng=rng
    )
    bound = "accrual" if usual_hours(*hours) else "interval"
    if floor > at:
        at, bound = int(floor), "floor"
    why = {"profile": "plan", "cadence": cadence, "origin": origin, "bound": bound, "known": stats["known_count"]}
    return {"next_due_at": at, "why": why}


def _after_failure(stats: dict[str, Any], error_message: str, raw_error: str, now: int, floor: float) -> dict[str, Any]:
    kind = canonical_message(error_message)
    backoff_until = now + calculate_backoff(stats["fail_count"], kind)
    earliest = backoff_until
    if kind == UNAUTHORISED:
        # The plan's back-off is 0 here, so that a renewed login works at once; this avoids a busy loop nevertheless.
        base = RSS_CADENCE_INTERVALS.get(stats["cadence"], RSS_CADENCE_INTERVALS["P2"])
        earliest = now + max(base, _UNAUTHORISED_WAIT)
    backoff_until = max(backoff_until, int(min(floor, now + DAY)))
    return {
        "backoff_until": backoff_until,
        "next_due_at": max(earliest, backoff_until, now + 60),
        "last_error": (raw_error or error_message)[:2000],
        "error_kind": kind,
        "why": {"profile": "failure", "error": kind, "failures": stats["fail_count"], "bound": "backoff"},
    }


def get_due_sources(
    conn: Connection, now: int, source_type: str | None = None, limit: int = 20
) -> list[dict[str, Any]]:
    """Return the statistics of sources that are due at ``now``, longest due first, without those in back-off or leased.

    Args:
        conn: The connection.
        now: The current time.
        source_type: ``rss``, ``custom``, or None for all.
        limit: Maximum number.
    """
    return [_with_hit_rate(row) for row in store.due_rows(conn, int(now), source_type, limit)]


def get_scheduler_stats(
    conn: Connection, source_type: str | None = None, *, now: float | None = None
) -> dict[str, Any]:
    """Return figures over all sources, or those of one type: totals, due, failing, hit rate, and counts by cadence."""
    found = store.overall(conn, source_type, int(time.time() if now is None else now))
    return {**found, "hit_rate": hit_rate(found["hits"], found["checks"])}


def hit_rate(hits: int, checks: int) -> float:
    """Return the share of checks that found something, from 0 to 1; 0 without any check."""
    return min(hits / checks, 1.0) if checks > 0 else 0.0


def _with_hit_rate(stats: dict[str, Any]) -> dict[str, Any]:
    return {**stats, "hit_rate": hit_rate(stats["hit_count"] or 0, stats["check_count"] or 0)}


def stagger(source_ids: Sequence[str], now: int, over: int) -> dict[str, int]:
    """Return when new sources are first due: spread over ``over`` seconds by their ids, reproducibly."""
    # The ids end in digits of a hash.
    return {each: now + int(_spread(each) * over) for each in source_ids}


def _spread(source_id: str) -> float:
    return Random(source_id).random()
