"""SQL of the entity tables, built once per table from its columns; values are always parameters.

Whatever the order in which answers arrive, the newest one of the base language is kept; without one, the newest of the
language that sorts last (zh-TW before en-US).

Comparing and queueing for the graph is one statement: between a comparison and a later write another writer could
store something else, and the graph would never receive it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from psycopg import sql

from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.store.tables import SCHEMA
from douban_pipeline.tmdb.types import EntityType


def outranks(fetched_at: str = "fetched_at", language: str = "raw_language") -> sql.Composed:
    """Return the condition that the new row's answer replaces the kept row's."""
    rank = "({0}.{2} = %(base)s, {0}.{2}, {0}.{1})"
    new, kept = (rank.format(row, fetched_at, language) for row in ("EXCLUDED", "kept"))
    return sql.SQL(f"{new} >= {kept}").format()


ENQUEUE = """
    INSERT INTO tmdb.neo4j_etl_outbox AS pending (entity_type, tmdb_id, raw_hash, graph_hash, action, request_id)
    {source}
    ON CONFLICT (entity_type, tmdb_id) DO UPDATE SET
        raw_hash = EXCLUDED.raw_hash,
        graph_hash = EXCLUDED.graph_hash,
        action = EXCLUDED.action,
        request_id = EXCLUDED.request_id,
        version = pending.version + 1,
        enqueued_at = now(),
        -- While a worker has the row, nobody else gets it: its acknowledgement fails by version and releases the row.
        available_at = CASE WHEN pending.locked_at IS NOT NULL AND pending.available_at > now()
                            THEN pending.available_at ELSE now() END,
        attempts = 0,
        last_error = NULL,
        processed_at = NULL,
        dead_at = NULL
    RETURNING tmdb_id
"""
"""Queues an entity once, however often it changes; ``{source}`` selects the six columns."""


@dataclass(frozen=True)
class EntityTable:
    """The tables of one type of entity, with the statements on them.

    Attributes:
        columns: Columns derived from an answer, with their SQL types.
        shown: Those of them that the graph shows of a stub.
        translations: The table of its translations.
        owner: That table's column with the entity's id.
        translated: Texts of a translation.
    """

    entity: EntityType
    name: str
    columns: dict[str, str]
    shown: tuple[str, ...]
    translations: str
    owner: str
    translated: tuple[str, ...]

    @property
    def listed(self) -> tuple[str, ...]:
        """The derived columns that lists fill of a stub, and credits do not."""
        return tuple(name for name in self.columns if name not in self.shown)

    def _fill(self, text: str, **parts: sql.Composable) -> sql.Composed:
        return sql.SQL(text).format(
            table=sql.Identifier(SCHEMA, self.name),
            entity=sql.Literal(self.entity.value),
            translations=sql.Identifier(SCHEMA, self.translations),
            owner=sql.Identifier(self.owner),
            columns=_names(self.columns),
            name=sql.Identifier(self.shown[0]),
            **parts,
        )

    @cached_property
    def fetched(self) -> sql.Composed:
        """Select language and fetch time of the full rows with given ids."""
        return self._fill(
            "SELECT tmdb_id, raw_language, fetched_at FROM {table} WHERE data_state = 'full' AND tmdb_id = ANY(%(ids)s)"
        )

    @cached_property
    def newer(self) -> sql.Composed:
        """Find a full row that was fetched later, in a language or (NULL) in any."""
        return self._fill(
            """
            SELECT 1 FROM {table} WHERE tmdb_id = %(tmdb_id)s AND data_state = 'full' AND fetched_at > %(fetched_at)s
              AND (%(language)s::text IS NULL OR raw_language = %(language)s)
            """
        )

    @cached_property
    def hashes(self) -> sql.Composed:
        """Select hash and language of the full rows with given ids that are not gone."""
        return self._fill(
            "SELECT tmdb_id, raw_hash, raw_language FROM {table} "
            "WHERE data_state = 'full' AND gone_at IS NULL AND tmdb_id = ANY(%(ids)s)"
        )

    @cached_property
    def touch(self) -> sql.Composed:
        """Mark unchanged full rows as seen again, and queue those whose credits are contested: of two answers the
        newer one counts; returns the ids of those that were unchanged."""
        return self._fill(
            """
            WITH touched AS (
                UPDATE {table} AS kept SET last_seen_at = now(), fetched_at = GREATEST(kept.fetched_at, seen.fetched_at)
                FROM unnest(%(ids)s::int[], %(hashes)s::text[], %(languages)s::text[], %(fetched)s::timestamptz[])
                    AS seen (tmdb_id, raw_hash, raw_language, fetched_at)
                WHERE kept.tmdb_id = seen.tmdb_id AND kept.raw_hash = seen.raw_hash
                  AND kept.raw_language = seen.raw_language AND kept.gone_at IS NULL
                RETURNING kept.tmdb_id, kept.raw_hash, kept.graph_hash
            ), queued AS ({enqueue})
            SELECT tmdb_id FROM touched
            """,
            enqueue=sql.SQL(ENQUEUE).format(
                source=sql.SQL(
                    """
                    SELECT {}, tmdb_id, raw_hash, graph_hash, 'upsert', NULL FROM touched
                    WHERE EXISTS (
                        SELECT FROM tmdb.credit_claim AS claim
                        WHERE claim.entity_type = {} AND claim.tmdb_id = touched.tmdb_id
                    )
                    """
                ).format(sql.Literal(self.entity.value), sql.Literal(self.entity.value))
            ),
        )

    @cached_property
    def upsert(self) -> sql.Composed:
        """Store full answers about different entities, given as arrays, and queue those for the graph whose part there
        changed, or whose credits are contested.

        Returns of each its id, whether it was stored (not if the row outranks it), state, hash and language of the
        previous row, when it was gone, and whether it was queued.
        """
        return self._fill(
            """
            WITH seen AS MATERIALIZED (
                SELECT * FROM unnest(
                    %(ids)s::int[], {arrays}, %(languages)s::text[], %(raws)b::text[], %(hashes)s::text[],
                    %(graph_hashes)s::text[], %(times)s::timestamptz[]
                ) AS seen (tmdb_id, {columns}, language, raw, raw_hash, graph_hash, fetched_at)
            ), old AS MATERIALIZED (
                SELECT kept.tmdb_id, data_state, kept.raw_hash, kept.graph_hash, gone_at, raw_language, kept.raw,
                       kept.fetched_at
                FROM {table} AS kept WHERE tmdb_id = ANY(%(ids)s::int[]) ORDER BY tmdb_id FOR UPDATE
            ), given AS MATERIALIZED (
                SELECT count(*) AS rows_before FROM old
            ), kept AS (
                -- A makeshift in another language that gives way stays as a translation.
                INSERT INTO {translations} AS kept ({owner}, language, {texts}, raw, raw_hash, fetched_at)
                SELECT old.tmdb_id, raw_language, {texts_of_raw}, old.raw, old.raw_hash, old.fetched_at
                FROM old JOIN seen USING (tmdb_id)
                WHERE data_state = 'full' AND raw_language <> seen.language
                  AND (seen.language = %(base)s, seen.language) > (raw_language = %(base)s, raw_language)
                ON CONFLICT ({owner}, language) DO UPDATE SET {translation} WHERE {newer_translation}
            ), stored AS (
                INSERT INTO {table} AS kept
                    (tmdb_id, {columns}, raw_language, data_state, raw, raw_hash, graph_hash, fetched_at)
                SELECT tmdb_id, {columns}, language, 'full', raw::jsonb, raw_hash, graph_hash, fetched_at
                FROM given, seen ORDER BY tmdb_id
                ON CONFLICT (tmdb_id) DO UPDATE SET
                    {assigned}, raw_language = EXCLUDED.raw_language, data_state = 'full', raw = EXCLUDED.raw,
                    raw_hash = EXCLUDED.raw_hash, graph_hash = EXCLUDED.graph_hash,
                    fetched_at = EXCLUDED.fetched_at, last_seen_at = now(), listed_at = NULL,
                    gone_at = CASE WHEN kept.gone_at > EXCLUDED.fetched_at THEN kept.gone_at END
                WHERE kept.data_state = 'stub' OR {outranks}
                RETURNING tmdb_id, raw_hash, graph_hash, gone_at
            ), queued AS ({enqueue})
            SELECT seen.tmdb_id, stored.tmdb_id IS NOT NULL, data_state, old.raw_hash, old.raw_language, old.gone_at,
                   queued.tmdb_id IS NOT NULL
            FROM seen LEFT JOIN stored USING (tmdb_id) LEFT JOIN old USING (tmdb_id) LEFT JOIN queued USING (tmdb_id)
            """,
            arrays=self._arrays,
            assigned=_assigned(self.columns),
            outranks=outranks(),
            translation=self._translation,
            newer_translation=sql.SQL(_NEWER_TRANSLATION),
            texts=_names(self.translated),
            texts_of_raw=sql.SQL(", ").join(
                sql.SQL("old.raw->>{}").format(sql.Literal(name)) for name in self.translated
            ),
            enqueue=sql.SQL(ENQUEUE).format(
                source=sql.SQL(
                    """
                    SELECT {}, tmdb_id, raw_hash, graph_hash, 'upsert', %(request_id)s
                    FROM stored WHERE stored.gone_at IS NULL AND (NOT EXISTS (
                        SELECT FROM old WHERE old.tmdb_id = stored.tmdb_id AND data_state = 'full' AND gone_at IS NULL
                           AND old.graph_hash = stored.graph_hash
                    ) OR EXISTS (
                        SELECT FROM tmdb.credit_claim AS claim
                        WHERE claim.entity_type = {} AND claim.tmdb_id = stored.tmdb_id
                    )) ORDER BY tmdb_id
                    """
                ).format(sql.Literal(self.entity.value), sql.Literal(self.entity.value))
            ),
        )

    @property
    def _translation(self) -> sql.Composed:
        return sql.SQL(
            "{}, raw = CASE WHEN kept.raw_hash = EXCLUDED.raw_hash THEN kept.raw ELSE EXCLUDED.raw END, "
            "raw_hash = EXCLUDED.raw_hash, fetched_at = EXCLUDED.fetched_at, last_seen_at = now()"
        ).format(_assigned(self.translated))

    @property
    def _arrays(self) -> sql.Composed:
        """The derived columns as parameters, an array each."""
        return sql.SQL(", ").join(
            sql.SQL("{}::{}[]").format(sql.Placeholder(name), sql.SQL(kind)) for name, kind in self.columns.items()
        )

    @cached_property
    def stubs(self) -> sql.Composed:
        """Insert stubs of what credits or lists name, and update names and listed columns of existing ones, each by its
        own time; what names nothing, or has no popularity, changes nothing. Returns ids, whether new, shown columns."""
        named = sql.SQL("(({0} > 0 AND {1} = 0) OR (({0} > 0 OR {1} = 0) AND {2}))").format(
            *(sql.SQL("num_nonnulls({})").format(_of(row, self.shown)) for row in ("excluded", "kept")), outranks()
        )
        listed = sql.SQL("(EXCLUDED.listed_at >= COALESCE(kept.listed_at, '-infinity'))")
        return self._fill(
            """
            INSERT INTO {table} AS kept (tmdb_id, {columns}, fetched_at, raw_language, data_state, listed_at)
            SELECT seen.*, %(language)s, 'stub', CASE WHEN popularity IS NOT NULL THEN seen.fetched_at END
            FROM unnest(%(ids)s::int[], {arrays}, %(times)s::timestamptz[]) AS seen ({names}) ORDER BY 1
            ON CONFLICT (tmdb_id) DO UPDATE SET last_seen_at = now(), {assigned_names}, {assigned_listed}
            WHERE kept.data_state = 'stub' AND (
                ({named} AND (kept.fetched_at, kept.raw_language, {shown}) IS DISTINCT FROM
                             (EXCLUDED.fetched_at, EXCLUDED.raw_language, {excluded})) OR {listed}
            )
            RETURNING tmdb_id, xmax = 0, {shown}
            """,
            arrays=self._arrays,
            names=_names(("tmdb_id", *self.columns, "fetched_at")),
            named=named,
            listed=listed,
            shown=_of("kept", self.shown),
            excluded=_of("excluded", self.shown),
            assigned_names=_chosen((*self.shown, "raw_language", "fetched_at"), named),
            assigned_listed=_chosen((*self.listed, "listed_at"), listed),
        )

    @cached_property
    def requeue(self) -> sql.Composed:
        """Queue stubs whose name changed without a change of what names them."""
        return self._fill(
            "{enqueue}",
            enqueue=sql.SQL(ENQUEUE).format(
                source=sql.SQL(
                    "SELECT {}, tmdb_id, '', '', 'upsert', NULL FROM unnest(%(ids)s::int[]) AS tmdb_id"
                ).format(sql.Literal(self.entity.value))
            ),
        )

    @cached_property
    def translate(self) -> sql.Composed:
        """Store an answer in another language, or an item of the list of translations; the former takes precedence,
        then the newer one.

        Returns one row: the previous hash, if there was a row.
        """
        return self._fill(
            """
            WITH old AS MATERIALIZED (
                SELECT raw_hash FROM {translations} WHERE {owner} = %(tmdb_id)s AND language = %(language)s FOR UPDATE
            ), stored AS (
                INSERT INTO {translations} AS kept ({owner}, language, {texts}, raw, raw_hash, fetched_at)
                SELECT %(tmdb_id)s, %(language)s, {values}, %(raw)s::jsonb, %(raw_hash)s, %(fetched_at)s
                FROM (SELECT count(*) FROM old) AS given
                ON CONFLICT ({owner}, language) DO UPDATE SET {translation} WHERE {newer_translation}
                RETURNING 1
            )
            SELECT (SELECT raw_hash FROM old), (SELECT count(*) FROM stored) > 0
            """,
            texts=_names(self.translated),
            values=sql.SQL(", ").join(sql.Placeholder(name) for name in self.translated),
            translation=self._translation,
            newer_translation=sql.SQL(_NEWER_TRANSLATION),
        )

    @cached_property
    def mark_gone(self) -> sql.Composed:
        """Mark an entity as gone now or when it was recorded, unless a newer answer is stored, and queue it; returns a
        row if it was known and not gone yet. An unknown one is marked, too, if that was recorded."""
        return self._fill(
            """
            WITH old AS MATERIALIZED (
                SELECT tmdb_id, gone_at FROM {table} WHERE tmdb_id = %(tmdb_id)s FOR UPDATE
            ), gone AS (
                UPDATE {table} AS kept SET gone_at = COALESCE(%(recorded)s::timestamptz, now()) FROM old
                WHERE kept.tmdb_id = old.tmdb_id AND (old.gone_at IS NULL OR old.gone_at < %(recorded)s::timestamptz)
                  AND (data_state = 'stub' OR %(recorded)s::timestamptz IS NULL OR fetched_at <= %(recorded)s)
                RETURNING kept.tmdb_id, data_state, raw_hash, graph_hash, old.gone_at AS before
            ), queued AS ({enqueue}), marked AS (
                INSERT INTO {table} (tmdb_id, data_state, fetched_at, gone_at)
                SELECT %(tmdb_id)s, 'stub', %(recorded)s, %(recorded)s
                WHERE %(recorded)s::timestamptz IS NOT NULL AND NOT EXISTS (SELECT FROM old)
                ON CONFLICT (tmdb_id) DO NOTHING
            )
            SELECT tmdb_id FROM gone WHERE before IS NULL
            """,
            enqueue=self._queue_deletes("gone", "data_state = 'full' AND before IS NULL"),
        )

    def _queue_deletes(self, source: str, condition: str) -> sql.Composed:
        select = sql.SQL("SELECT {}, tmdb_id, raw_hash, graph_hash, 'delete', NULL FROM {} WHERE {}").format(
            sql.Literal(self.entity.value), sql.Identifier(source), sql.SQL(condition)
        )
        return sql.SQL(ENQUEUE).format(source=select)

    @cached_property
    def rows(self) -> sql.Composed:
        """Select rows by id: state, whether gone, raw, and the columns that stubs show."""
        return self._fill(
            "SELECT tmdb_id, data_state = 'full' AND gone_at IS NULL, {shown} FROM {table} "
            "WHERE tmdb_id = ANY(%(ids)s)",
            shown=_names(self.shown),
        )

    @cached_property
    def raws(self) -> sql.Composed:
        """Select the answers of full rows by id, with the times at which TMDB sent them."""
        return self._fill(
            "SELECT tmdb_id, raw, fetched_at FROM {table} WHERE tmdb_id = ANY(%(ids)s) AND data_state = 'full' "
            "AND gone_at IS NULL"
        )

    @cached_property
    def page(self) -> sql.Composed:
        """Select times and ids of full rows after a given one, the oldest answer first."""
        return self._fill(
            "SELECT fetched_at, tmdb_id FROM {table} WHERE (fetched_at, tmdb_id) > (%(at)s, %(after)s) "
            "AND data_state = 'full' AND gone_at IS NULL ORDER BY fetched_at, tmdb_id LIMIT %(most)s"
        )

    @cached_property
    def counts(self) -> sql.Composed:
        """Count full rows, stubs and gone entities."""
        return self._fill(
            "SELECT count(*) FILTER (WHERE data_state = 'full' AND gone_at IS NULL), "
            "count(*) FILTER (WHERE data_state = 'stub'), count(*) FILTER (WHERE gone_at IS NOT NULL) FROM {table}"
        )


def _names(columns: dict[str, str] | tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _assigned(columns: dict[str, str] | tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in columns)


def _of(row: str, columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(row, name) for name in columns)


def _chosen(columns: tuple[str, ...], new: sql.Composable) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{0} = CASE WHEN {1} THEN EXCLUDED.{0} ELSE kept.{0} END").format(sql.Identifier(name), new)
        for name in columns
    )


# An item of a list of translations has no id.
_NEWER_TRANSLATION = (
    "(COALESCE(EXCLUDED.raw ? 'id', false), EXCLUDED.fetched_at) >= (COALESCE(kept.raw ? 'id', false), kept.fetched_at)"
)


def _title_columns(name: str, day: str) -> dict[str, str]:
    kinds = {name: "text", f"original_{name}": "text", "original_language": "text", day: "date"}
    return {**kinds, "popularity": "float8", "vote_average": "float8", "vote_count": "int"}


TABLES = {
    EntityType.MOVIE: EntityTable(
        EntityType.MOVIE,
        "movies",
        _title_columns("title", "release_date"),
        SHOWN[EntityType.MOVIE],
        "movie_translations",
        "tmdb_movie_id",
        ("title", "overview"),
    ),
    EntityType.PERSON: EntityTable(
        EntityType.PERSON,
        "people",
        {"name": "text", "original_name": "text", "known_for_department": "text", "popularity": "float8"},
        SHOWN[EntityType.PERSON],
        "person_translations",
        "tmdb_person_id",
        ("biography",),
    ),
    EntityType.TV: EntityTable(
        EntityType.TV,
        "tv_shows",
        _title_columns("name", "first_air_date"),
        SHOWN[EntityType.TV],
        "tv_translations",
        "tmdb_tv_id",
        ("name", "overview"),
    ),
}
"""The tables by type."""
