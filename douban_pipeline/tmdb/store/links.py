"""Search results for the library's videos, and their links to titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from douban_pipeline.tmdb.types import EntityKey


@dataclass(frozen=True, slots=True)
class Match:
    """Result for one video.

    Attributes:
        state: ``confirmed``, ``review`` or ``none``.
        reason: The reason, as text.
        best: The matching, or possibly matching, title; None if there is none.
        candidates: The candidates, best first, for people.
    """

    vod_id: int
    title: str
    state: str
    reason: str
    best: EntityKey | None = None
    score: float | None = None
    candidates: Sequence[dict[str, Any]] = ()


def keep(connection: Connection, match: Match, *, decided_by: str | None = None) -> None:
    """Store the result for a video, and its link; a person's decision is only replaced by another person's.

    Args:
        decided_by: The person who decided; None for a run.
    """
    row = connection.execute(
        """
        INSERT INTO tmdb.vod_match AS kept (vod_id, title, state, reason, candidates, candidates_at, decided_by,
            looked_at)
        VALUES (%(vod_id)s, %(title)s, %(state)s, %(reason)s, %(candidates)s,
            CASE WHEN %(candidates)s::jsonb IS NOT NULL THEN now() END, %(by)s, now())
        ON CONFLICT (vod_id) DO UPDATE SET
            title = EXCLUDED.title, state = EXCLUDED.state, reason = EXCLUDED.reason, looked_at = EXCLUDED.looked_at,
            decided_by = EXCLUDED.decided_by, candidates = COALESCE(EXCLUDED.candidates, kept.candidates),
            candidates_at = COALESCE(EXCLUDED.candidates_at, kept.candidates_at)
        WHERE kept.decided_by IS NULL OR EXCLUDED.decided_by IS NOT NULL
        RETURNING 1
        """,
        {
            "vod_id": match.vod_id,
            "title": match.title,
            "state": match.state,
            "reason": match.reason,
            "candidates": Jsonb([*match.candidates]) if match.candidates else None,
            "by": decided_by,
        },
    ).fetchone()
    if row is None:
        return
    if match.best is None:
        connection.execute("DELETE FROM tmdb.vod_link WHERE vod_id = %s", (match.vod_id,))
        return
    state = "rejected" if match.state == "none" else match.state
    connection.execute(
        "INSERT INTO tmdb.vod_link (vod_id, media_type, tmdb_id, score, state) VALUES (%s, %s, %s, %s, %s) "
        "ON CONFLICT (vod_id) DO UPDATE SET media_type = EXCLUDED.media_type, tmdb_id = EXCLUDED.tmdb_id, "
        "score = EXCLUDED.score, state = EXCLUDED.state, decided_at = now()",
        (match.vod_id, match.best.type.value, match.best.tmdb_id, match.score, state),
    )


def keep_failed(connection: Connection, match: Match, looked_at: datetime) -> None:
    """Count a video whose search failed as searched at ``looked_at``; what an earlier search found stays."""
    connection.execute(
        "INSERT INTO tmdb.vod_match AS kept (vod_id, title, state, reason, looked_at) VALUES (%s, %s, %s, %s, %s) "
        "ON CONFLICT (vod_id) DO UPDATE SET looked_at = EXCLUDED.looked_at WHERE kept.decided_by IS NULL",
        (match.vod_id, match.title, match.state, match.reason, looked_at),
    )


def highest(connection: Connection) -> int:
    """Return the highest key of a video that was searched."""
    row = connection.execute("SELECT COALESCE(max(vod_id), 0) FROM tmdb.vod_match").fetchone()
    return int(row[0]) if row else 0


def to_look_at_again(connection: Connection, before: datetime, most: int) -> list[int]:
    """Return videos without a link that were last searched before a given time, longest ago first."""
    rows = connection.execute(
        "SELECT vod_id FROM tmdb.vod_match WHERE state IN ('none', 'review') AND looked_at < %s "
        "AND decided_by IS NULL ORDER BY looked_at LIMIT %s",
        (before, most),
    )
    return [vod_id for (vod_id,) in rows]


def postpone(connection: Connection, vod_ids: Sequence[int]) -> None:
    """Count videos as searched now, because the library does not have them any more."""
    connection.execute("UPDATE tmdb.vod_match SET looked_at = now() WHERE vod_id = ANY(%s)", ([*vod_ids],))


def waiting(connection: Connection, most: int) -> list[dict[str, Any]]:
    """Return videos that wait for a person, with their candidates."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "SELECT vod_id, title, reason, candidates FROM tmdb.vod_match WHERE state = 'review' "
            "ORDER BY looked_at DESC, vod_id LIMIT %s",
            (most,),
        ).fetchall()


def known(connection: Connection, vod_ids: Sequence[int]) -> dict[int, str]:
    """Return the titles of those of the videos that were searched, by key."""
    rows = connection.execute("SELECT vod_id, title FROM tmdb.vod_match WHERE vod_id = ANY(%s)", ([*vod_ids],))
    return dict(rows.fetchall())


def counts(connection: Connection) -> dict[str, int]:
    """Return how many videos are in each state."""
    return dict(connection.execute("SELECT state, count(*) FROM tmdb.vod_match GROUP BY 1 ORDER BY 1").fetchall())
