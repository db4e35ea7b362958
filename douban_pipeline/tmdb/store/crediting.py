"""Which people credit titles: their edges count again for a title that is no longer full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from psycopg import Connection
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from douban_pipeline.tmdb.store.tables import CREDITED
from douban_pipeline.tmdb.types import EntityType

CREDITING = SQL(
    """
    SELECT tmdb_id FROM tmdb.people
    WHERE data_state = 'full' AND gone_at IS NULL AND {credited} @> ANY(%(ids)s::jsonb[]) AND (
        jsonb_path_exists(raw, '$.combined_credits.*[*] ? (
            (@.media_type == "movie" && @.id == $movies[*]) || (@.media_type == "tv" && @.id == $shows[*])
        )', %(titles)s, true)
        OR jsonb_path_exists(raw, '$.movie_credits.*[*] ? (@.id == $movies[*])', %(titles)s, true)
        OR jsonb_path_exists(raw, '$.tv_credits.*[*] ? (@.id == $shows[*])', %(titles)s, true)
    ) ORDER BY tmdb_id
    """
).format(credited=SQL(CREDITED))
"""Full people whose answers name titles: the index finds who lists such an id, the rest says of which type it is."""


def people_crediting(connection: Connection, titles: Mapping[EntityType, Iterable[int]]) -> list[int]:
    """Return full people whose answers name one of these titles."""
    movies, shows = (sorted(titles.get(entity, ())) for entity in (EntityType.MOVIE, EntityType.TV))
    given = {
        "ids": [f"[{tmdb_id}]" for tmdb_id in sorted({*movies, *shows})],
        "titles": Jsonb({"movies": movies, "shows": shows}),
    }
    return [tmdb_id for (tmdb_id,) in connection.execute(CREDITING, given)]
