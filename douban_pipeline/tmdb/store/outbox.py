"""The outbox: entities whose changes the graph must receive. One row per entity; claims are leases, acknowledged by
version.

The rows of a dead worker become due when their lease expires, and are claimed one at a time: if one of them ends its
workers' processes, it is put aside after some attempts, and no other one with it. An entity that changes while a worker
holds its row stays queued, because the acknowledgement names the claimed version.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from douban_pipeline.tmdb.types import EntityKey, EntityType

BACKOFF_SECONDS = 30.0
"""Delay after the first failure; each further one doubles it, up to `LONGEST_BACKOFF`."""
LONGEST_BACKOFF = 3600.0
_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class OutboxClaim:
    """One claimed row.

    Attributes:
        version: The claimed version of its changes.
        attempts: Number of claims since its last change, including this one.
    """

    row_id: str
    key: EntityKey
    version: int
    attempts: int


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """Size of the outbox.

    Attributes:
        waiting: Rows not completed yet, including failed ones.
        failing: Those of them that failed since their last change.
        dead: Rows put aside after too many failures.
        oldest: When the oldest waiting row was queued.
    """

    waiting: int
    failing: int
    dead: int
    oldest: datetime | None


def claim(connection: Connection, worker: str, most: int, lease_seconds: float) -> list[OutboxClaim]:
    """Claim due rows, longest waiting first, exclusively for ``lease_seconds``; a dead worker's row alone."""
    rows = connection.execute(
        """
        WITH oldest AS MATERIALIZED (
            SELECT id, locked_at IS NOT NULL AS abandoned,
                   row_number() OVER (ORDER BY available_at, enqueued_at) AS place
            FROM (
                SELECT id, locked_at, available_at, enqueued_at FROM tmdb.neo4j_etl_outbox
                WHERE processed_at IS NULL AND dead_at IS NULL AND available_at <= now()
                ORDER BY available_at, enqueued_at
                LIMIT %(most)s FOR UPDATE SKIP LOCKED
            ) AS waiting
        ), due AS (
            SELECT id FROM oldest
            WHERE place = 1 OR place < (SELECT COALESCE(min(place), %(most)s + 1) FROM oldest WHERE abandoned)
        )
        UPDATE tmdb.neo4j_etl_outbox AS row
        SET locked_at = now(), locked_by = %(worker)s, attempts = attempts + 1, last_attempt_at = now(),
            available_at = now() + make_interval(secs => %(lease)s)
        FROM due
        WHERE row.id = due.id
        RETURNING row.id, row.entity_type, row.tmdb_id, row.version, row.attempts
        """,
        {"worker": worker, "most": most, "lease": lease_seconds},
    )
    return [
        OutboxClaim(str(row_id), EntityKey(EntityType(entity), tmdb_id), version, attempts)
        for row_id, entity, tmdb_id, version, attempts in rows
    ]


def put_aside_abandoned(connection: Connection, most_attempts: int) -> list[EntityKey]:
    """Put rows aside whose workers ended without a result, after ``most_attempts`` attempts; return their entities."""
    rows = connection.execute(
        """
        UPDATE tmdb.neo4j_etl_outbox
        SET dead_at = now(), locked_at = NULL, locked_by = NULL,
            last_error = 'its worker ended without a result, in the last of ' || attempts || ' attempts'
        WHERE processed_at IS NULL AND dead_at IS NULL AND available_at <= now()
          AND locked_at IS NOT NULL AND attempts >= %s
        RETURNING entity_type, tmdb_id
        """,
        (most_attempts,),
    )
    return [EntityKey(EntityType(entity), tmdb_id) for entity, tmdb_id in rows]


def acknowledge(connection: Connection, worker: str, claims: Sequence[OutboxClaim]) -> int:
    """Complete rows that did not change since they were claimed, release the others; return how many are complete."""
    parameters = {
        "ids": [each.row_id for each in claims],
        "versions": [each.version for each in claims],
        "worker": worker,
    }
    done = connection.execute(
        """
        UPDATE tmdb.neo4j_etl_outbox AS row
        SET processed_at = now(), locked_at = NULL, locked_by = NULL, last_error = NULL
        FROM unnest(%(ids)s::uuid[], %(versions)s::bigint[]) AS claimed (id, version)
        WHERE row.id = claimed.id AND row.version = claimed.version AND row.processed_at IS NULL
        """,
        parameters,
    ).rowcount
    if done < len(claims):
        connection.execute(
            """
            UPDATE tmdb.neo4j_etl_outbox SET locked_at = NULL, locked_by = NULL, available_at = now()
            WHERE id = ANY(%(ids)s::uuid[]) AND processed_at IS NULL AND locked_by = %(worker)s
            """,
            parameters,
        )
    return done


def fail(connection: Connection, worker: str, failed: OutboxClaim, error: str, most_attempts: int) -> bool:
    """Store a row's error and the time of its retry; return whether it was put aside for good.

    A row that changed since it was claimed is only released, because the change may fix the error.
    """
    wait = min(LONGEST_BACKOFF, BACKOFF_SECONDS * 2 ** (failed.attempts - 1)) * random.uniform(1.0, 1.25)
    row = connection.execute(
        """
        UPDATE tmdb.neo4j_etl_outbox
        SET locked_at = NULL, locked_by = NULL, last_error = %(error)s,
            available_at = CASE WHEN version = %(version)s THEN now() + make_interval(secs => %(wait)s) ELSE now() END,
            dead_at = CASE WHEN version = %(version)s AND attempts >= %(most)s THEN now() END
        WHERE id = %(id)s AND locked_by = %(worker)s
        RETURNING dead_at IS NOT NULL
        """,
        {
            "id": failed.row_id,
            "worker": worker,
            "version": failed.version,
            "error": error.replace("\x00", "")[:_LONGEST_ERROR],
            "wait": wait,
            "most": most_attempts,
        },
    ).fetchone()
    return bool(row and row[0])


def release(connection: Connection, worker: str, claims: Sequence[OutboxClaim]) -> None:
    """Release rows as if they had not been claimed, because the graph is down or the worker stops."""
    connection.execute(
        """
        UPDATE tmdb.neo4j_etl_outbox
        SET locked_at = NULL, locked_by = NULL, available_at = now(), attempts = GREATEST(attempts - 1, 0)
        WHERE id = ANY(%(ids)s::uuid[]) AND locked_by = %(worker)s AND processed_at IS NULL
        """,
        {"ids": [each.row_id for each in claims], "worker": worker},
    )


def requeue_dead(connection: Connection) -> int:
    """Queue rows again that were put aside; return how many."""
    return connection.execute(
        """
        UPDATE tmdb.neo4j_etl_outbox
        SET dead_at = NULL, attempts = 0, available_at = now(), version = version + 1
        WHERE dead_at IS NOT NULL
        """
    ).rowcount


def counts(connection: Connection) -> OutboxCounts:
    """Return the size of the outbox."""
    row = connection.execute(
        """
        SELECT count(*) FILTER (WHERE dead_at IS NULL), count(*) FILTER (WHERE dead_at IS NULL AND attempts > 0),
               count(*) FILTER (WHERE dead_at IS NOT NULL), min(enqueued_at) FILTER (WHERE dead_at IS NULL)
        FROM tmdb.neo4j_etl_outbox WHERE processed_at IS NULL
        """
    ).fetchone()
    assert row is not None
    return OutboxCounts(*row)


def due(connection: Connection) -> int:
    """Return how many rows a worker could claim now, by index; counts up to a thousand."""
    row = connection.execute(
        """
        SELECT count(*) FROM (
            SELECT FROM tmdb.neo4j_etl_outbox
            WHERE processed_at IS NULL AND dead_at IS NULL AND available_at <= now() LIMIT 1000
        ) AS waiting
        """
    ).fetchone()
    assert row is not None
    return int(row[0])


def dead(connection: Connection, most: int = 50) -> list[dict[str, Any]]:
    """Return rows that were put aside, newest first, with the reason."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            "SELECT entity_type, tmdb_id, action, attempts, last_error, dead_at FROM tmdb.neo4j_etl_outbox "
            "WHERE dead_at IS NOT NULL ORDER BY dead_at DESC LIMIT %s",
            (most,),
        ).fetchall()


def prune(connection: Connection, before: datetime) -> int:
    """Delete rows completed before a given time; return how many."""
    return connection.execute("DELETE FROM tmdb.neo4j_etl_outbox WHERE processed_at < %s", (before,)).rowcount
