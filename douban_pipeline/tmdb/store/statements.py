"""SQL of the entity tables, built once per table from its columns; values are always parameters.

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
        entity: The type.
        name: Its table.
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
        newer one counts; returns the ids of those that were unchanged, and when they were fetched before."""
        return self._fill(
            """
            WITH touched AS (
                UPDATE {table} AS kept SET last_seen_at = now(), fetched_at = GREATEST(kept.fetched_at, seen.fetched_at)
                FROM unnest(%(ids)s::int[], %(hashes)s::text[], %(languages)s::text[], %(fetched)s::timestamptz[])
                    AS seen (tmdb_id, raw_hash, raw_language, fetched_at) JOIN {table} AS old USING (tmdb_id)
                WHERE kept.tmdb_id = seen.tmdb_id AND kept.raw_hash = seen.raw_hash
                  AND kept.raw_language = seen.raw_language AND kept.gone_at IS NULL
                RETURNING kept.tmdb_id, kept.raw_hash, kept.graph_hash, old.fetched_at AS before
            ), queued AS ({enqueue})
            SELECT tmdb_id, before FROM touched
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

        Returns of each its id, whether it was stored (it is not if the row is in another language), state and hash of
        the previous row, when it was gone, whether it was queued, when the previous row was fetched, and its name.
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
                       kept.fetched_at, kept.{name} AS name
                FROM {table} AS kept WHERE tmdb_id = ANY(%(ids)s::int[]) ORDER BY tmdb_id FOR UPDATE
            ), given AS MATERIALIZED (
                SELECT count(*) AS rows_before FROM old
            ), kept AS (
                -- A makeshift in another language gives way to the base language, and stays as a translation.
                INSERT INTO {translations} ({owner}, language, {texts}, raw, raw_hash, fetched_at)
                SELECT old.tmdb_id, raw_language, {texts_of_raw}, old.raw, old.raw_hash, old.fetched_at
                FROM old JOIN seen USING (tmdb_id)
                WHERE data_state = 'full' AND raw_language <> seen.language AND seen.language = %(base)s
                ON CONFLICT ({owner}, language) DO UPDATE SET
                    raw = EXCLUDED.raw, raw_hash = EXCLUDED.raw_hash, fetched_at = EXCLUDED.fetched_at
            ), stored AS (
                INSERT INTO {table} AS kept
                    (tmdb_id, {columns}, raw_language, data_state, raw, raw_hash, graph_hash, fetched_at)
                SELECT tmdb_id, {columns}, language, 'full', raw::jsonb, raw_hash, graph_hash, fetched_at
                FROM given, seen ORDER BY tmdb_id
                ON CONFLICT (tmdb_id) DO UPDATE SET
                    {assigned}, raw_language = EXCLUDED.raw_language, data_state = 'full', raw = EXCLUDED.raw,
                    raw_hash = EXCLUDED.raw_hash, graph_hash = EXCLUDED.graph_hash,
                    fetched_at = EXCLUDED.fetched_at, last_seen_at = now(), gone_at = NULL, listed_at = NULL
                WHERE kept.data_state = 'stub' OR kept.raw_language = EXCLUDED.raw_language
                   OR EXCLUDED.raw_language = %(base)s
                RETURNING tmdb_id, raw_hash, graph_hash
            ), queued AS ({enqueue})
            SELECT seen.tmdb_id, stored.tmdb_id IS NOT NULL, data_state, old.raw_hash, gone_at,
                   queued.tmdb_id IS NOT NULL, old.fetched_at, old.name
            FROM seen LEFT JOIN stored USING (tmdb_id) LEFT JOIN old USING (tmdb_id) LEFT JOIN queued USING (tmdb_id)
            """,
            arrays=self._arrays,
            assigned=_assigned(self.columns),
            texts=_names(self.translated),
            texts_of_raw=sql.SQL(", ").join(
                sql.SQL("old.raw->>{}").format(sql.Literal(name)) for name in self.translated
            ),
            enqueue=sql.SQL(ENQUEUE).format(
                source=sql.SQL(
                    """
                    SELECT {}, tmdb_id, raw_hash, graph_hash, 'upsert', %(request_id)s
                    FROM stored WHERE NOT EXISTS (
                        SELECT FROM old WHERE old.tmdb_id = stored.tmdb_id AND data_state = 'full' AND gone_at IS NULL
                           AND old.graph_hash = stored.graph_hash
                    ) OR EXISTS (
                        SELECT FROM tmdb.credit_claim AS claim
                        WHERE claim.entity_type = {} AND claim.tmdb_id = stored.tmdb_id
                    ) ORDER BY tmdb_id
                    """
                ).format(sql.Literal(self.entity.value), sql.Literal(self.entity.value))
            ),
        )

    @property
    def _arrays(self) -> sql.Composed:
        """The derived columns as parameters, an array each."""
        return sql.SQL(", ").join(
            sql.SQL("{}::{}[]").format(sql.Placeholder(name), sql.SQL(kind)) for name, kind in self.columns.items()
        )

    @cached_property
    def credit_stubs(self) -> sql.Composed:
        """Insert stubs named by credits, and update the names of existing ones, or that they were said on that day."""
        return self._stubs(
            """
            SET {assigned_shown}, raw_language = EXCLUDED.raw_language, fetched_at = EXCLUDED.fetched_at,
                last_seen_at = now()
            WHERE kept.data_state = 'stub' AND (
                {nameless} OR (
                    (kept.raw_language = EXCLUDED.raw_language OR EXCLUDED.raw_language = %(base)s)
                    AND kept.fetched_at <= EXCLUDED.fetched_at
                    AND (({shown}) IS DISTINCT FROM ({excluded}) OR kept.fetched_at::date < EXCLUDED.fetched_at::date)
                )
            )
            """
        )

    @cached_property
    def listed_stubs(self) -> sql.Composed:
        """Insert stubs named by a list; for existing ones update only when they were seen, and what lists alone say.

        Their names are kept, because only changes of the graph report names to the graph; the list may only confirm
        them, or name what has no name.
        """
        return self._stubs(
            """
            SET last_seen_at = now(), {assigned_listed},
                listed_at = CASE WHEN {older_list} THEN kept.listed_at ELSE EXCLUDED.listed_at END,
                {assigned_names},
                fetched_at = CASE WHEN {confirmed} THEN EXCLUDED.fetched_at ELSE kept.fetched_at END
            WHERE kept.data_state = 'stub'
            """
        )

    def _stubs(self, update: str) -> sql.Composed:
        nameless = sql.SQL("num_nonnulls({}) = 0").format(_of("kept", self.shown))
        same = sql.SQL("(({}) IS NOT DISTINCT FROM ({}) AND kept.fetched_at < EXCLUDED.fetched_at)").format(
            _of("kept", self.shown), _of("excluded", self.shown)
        )
        confirmed = sql.SQL("({} OR {})").format(nameless, same)
        older_list = sql.SQL("(EXCLUDED.popularity IS NULL OR kept.listed_at > EXCLUDED.fetched_at)")
        return self._fill(
            """
            INSERT INTO {table} AS kept (tmdb_id, {columns}, fetched_at, raw_language, data_state, listed_at)
            SELECT seen.*, %(language)s, 'stub', {listed_at}
            FROM unnest(%(ids)s::int[], {arrays}, %(times)s::timestamptz[]) AS seen ({names}) ORDER BY 1
            ON CONFLICT (tmdb_id) DO UPDATE {update}
            RETURNING tmdb_id, xmax = 0, {shown_columns}
            """,
            arrays=self._arrays,
            names=_names(("tmdb_id", *self.columns, "fetched_at")),
            listed_at=sql.SQL("seen.fetched_at" if "{confirmed}" in update else "NULL"),
            shown_columns=_of("kept", self.shown),
            update=sql.SQL(update).format(
                assigned_shown=_assigned(self.shown),
                nameless=nameless,
                shown=_of("kept", self.shown),
                excluded=_of("excluded", self.shown),
                confirmed=confirmed,
                older_list=older_list,
                assigned_listed=_chosen(self.listed, older_list),
                assigned_names=_chosen((*self.shown, "raw_language"), sql.SQL("NOT {}").format(confirmed)),
            ),
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
        """Store an answer in another language, or an item of the list of translations; the former takes precedence.

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
                ON CONFLICT ({owner}, language) DO UPDATE SET
                    {assigned},
                    raw = CASE WHEN kept.raw_hash = EXCLUDED.raw_hash THEN kept.raw ELSE EXCLUDED.raw END,
                    raw_hash = EXCLUDED.raw_hash, fetched_at = EXCLUDED.fetched_at, last_seen_at = now()
                WHERE NOT %(item)s OR NOT kept.raw ? 'id'
                RETURNING 1
            )
            SELECT (SELECT raw_hash FROM old), (SELECT count(*) FROM stored) > 0
            """,
            texts=_names(self.translated),
            values=sql.SQL(", ").join(sql.Placeholder(name) for name in self.translated),
            assigned=_assigned(self.translated),
        )

    @cached_property
    def mark_gone(self) -> sql.Composed:
        """Mark an entity as gone, and queue it; returns a row if it was known and not gone yet."""
        return self._fill(
            """
            WITH gone AS (
                UPDATE {table} SET gone_at = now() WHERE tmdb_id = %(tmdb_id)s AND gone_at IS NULL
                RETURNING tmdb_id, data_state, raw_hash, graph_hash
            ), queued AS ({enqueue})
            SELECT tmdb_id FROM gone
            """,
            enqueue=self._queue_deletes("gone", "data_state = 'full'"),
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


def _chosen(columns: tuple[str, ...], kept: sql.Composable) -> sql.Composed:
    """Return assignments of the new values, except where ``kept`` is true."""
    return sql.SQL(", ").join(
        sql.SQL("{0} = CASE WHEN {1} THEN kept.{0} ELSE EXCLUDED.{0} END").format(sql.Identifier(name), kept)
        for name in columns
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
