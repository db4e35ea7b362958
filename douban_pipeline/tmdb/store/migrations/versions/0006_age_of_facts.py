"""The age of every fact of TMDB, so that none is kept longer than its terms allow; names and credits by index.

A stub's ``fetched_at`` becomes the time at which TMDB last gave its name, ``listed_at`` that of what only lists say.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
release = "0.3.0"

_TABLES = {
    "movies": (
        "title, release_date",
        "original_title, original_language, popularity, vote_average, vote_count",
        "movie_translations",
    ),
    "people": ("name, known_for_department", "original_name, popularity", "person_translations"),
    "tv_shows": (
        "name, first_air_date",
        "original_name, original_language, popularity, vote_average, vote_count",
        "tv_translations",
    ),
}
_SAID = """
    UPDATE tmdb.{stubs} AS kept SET fetched_at = said.at
    FROM (
        SELECT (item->>'id')::numeric AS tmdb_id, max(fetched_at) AS at
        FROM tmdb.{answers}, jsonb_path_query(raw, '{credits} ? (@.id.type() == "number"{of})') AS item
        WHERE data_state = 'full' GROUP BY 1
    ) AS said
    WHERE kept.tmdb_id = said.tmdb_id AND kept.data_state = 'stub' AND kept.fetched_at < said.at
"""
"""A stub was named when the newest answer that credits it came."""


def upgrade() -> None:
    """Add the columns and indexes, and date the names of stubs."""
    for table, (shown, listed, translations) in _TABLES.items():
        op.execute(f"ALTER TABLE tmdb.{table} ADD COLUMN listed_at timestamptz")
        op.execute(
            f"CREATE INDEX idx_tmdb_{table}_named ON tmdb.{table} (fetched_at) "
            f"WHERE data_state = 'stub' AND num_nonnulls({shown}) > 0"
        )
        op.execute(
            f"CREATE INDEX idx_tmdb_{table}_listed ON tmdb.{table} (COALESCE(listed_at, fetched_at)) "
            f"WHERE data_state = 'stub' AND num_nonnulls({listed}) > 0"
        )
        name = shown.split(",")[0]
        for each in (name, f"original_{name}"):
            op.execute(f"CREATE INDEX idx_tmdb_{table}_{each} ON tmdb.{table} (lower({each}))")
        op.execute(f"CREATE INDEX idx_tmdb_{translations}_fetched ON tmdb.{translations} (fetched_at)")
        # What lists said keeps its time, which is that of the row so far.
        op.execute(f"UPDATE tmdb.{table} SET listed_at = fetched_at WHERE data_state = 'stub'")  # noqa: S608
    for answers in ("movies", "tv_shows"):
        for credits in ("$.credits.*[*]", "$.aggregate_credits.*[*]", "$.created_by[*]"):
            op.execute(_SAID.format(stubs="people", answers=answers, credits=credits, of=""))
    for stubs, kind, own in (("movies", "movie", "movie_credits"), ("tv_shows", "tv", "tv_credits")):
        of = f' && @.media_type == "{kind}"'
        op.execute(_SAID.format(stubs=stubs, answers="people", credits="$.combined_credits.*[*]", of=of))
        op.execute(_SAID.format(stubs=stubs, answers="people", credits=f"$.{own}.*[*]", of=""))
    op.execute(
        "CREATE INDEX idx_tmdb_people_credited ON tmdb.people "
        "USING gin (jsonb_path_query_array(raw, '$.*.*[*].id')) WHERE data_state = 'full'"
    )
    op.execute("ALTER TABLE tmdb.vod_match ADD COLUMN candidates_at timestamptz")
    op.execute("UPDATE tmdb.vod_match SET candidates_at = looked_at WHERE candidates IS NOT NULL")
    op.execute(
        "CREATE INDEX idx_tmdb_vod_match_candidates ON tmdb.vod_match (candidates_at) WHERE candidates_at IS NOT NULL"
    )
