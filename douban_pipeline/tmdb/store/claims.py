"""Contested credits: those that several answers have at different ends. Of each, all claims, so that the entities are
written to the graph together: the newest claim counts, and the next one when that is withdrawn."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import Connection

from douban_pipeline.tmdb.types import CreditClaim, EntityKey, EntityType


def connected(connection: Connection, keys: Iterable[EntityKey]) -> set[CreditClaim]:
    """Return the claims to all credits that connect entities with others, directly or by further ones."""
    wanted = list(keys)
    rows = connection.execute(
        """
        WITH RECURSIVE entities (entity_type, tmdb_id) AS (
            SELECT * FROM unnest(%(types)s::text[], %(ids)s::int[])
            UNION
            SELECT theirs.entity_type, theirs.tmdb_id
            FROM entities JOIN tmdb.credit_claim AS own USING (entity_type, tmdb_id)
            JOIN tmdb.credit_claim AS theirs ON theirs.credit_id = own.credit_id
        )
        SELECT credit_id, entity_type, tmdb_id FROM tmdb.credit_claim JOIN entities USING (entity_type, tmdb_id)
        """,
        {"types": [key.type.value for key in wanted], "ids": [key.tmdb_id for key in wanted]},
    )
    return {CreditClaim(credit_id, EntityKey(EntityType(entity), tmdb_id)) for credit_id, entity, tmdb_id in rows}


def record(connection: Connection, claims: Iterable[CreditClaim]) -> None:
    """Store claims; known ones are kept."""
    found = sorted(claims)
    connection.execute(
        "INSERT INTO tmdb.credit_claim (credit_id, entity_type, tmdb_id) "
        "SELECT * FROM unnest(%s::text[], %s::text[], %s::int[]) ON CONFLICT DO NOTHING",
        (
            [claim.credit_id for claim in found],
            [claim.entity.type.value for claim in found],
            [claim.entity.tmdb_id for claim in found],
        ),
    )


def forget(connection: Connection, credit_ids: Iterable[str]) -> None:
    """Delete the claims to credits that are contested no longer."""
    connection.execute("DELETE FROM tmdb.credit_claim WHERE credit_id = ANY(%s)", (sorted(credit_ids),))
