"""Chinese names are found by their pinyin, whole or by initials, and titles by the people that they name."""

from typing import Any

from alembic import context, op
from sqlalchemy import ColumnElement, column, select, text
from sqlalchemy import table as sql_table

from douban_pipeline.tmdb.store.pinyin import sounds_of

revision = "0009"
down_revision = "0008"
release = "1.0.0rc1"

_NAMES = {"movies": "title", "people": "name", "tv_shows": "name"}
_PIECE = 5000
_INSERT = text(
    "INSERT INTO tmdb.name_sounds (name, initials, pinyin, said_at) VALUES (:name, :initials, :pinyin, :said_at) "
    "ON CONFLICT (name) DO UPDATE SET said_at = GREATEST(name_sounds.said_at, EXCLUDED.said_at)"
)


def upgrade() -> None:
    """Create the table, and fill it from the names that are stored."""
    op.execute(
        "CREATE TABLE tmdb.name_sounds (name text PRIMARY KEY, initials text NOT NULL, pinyin text NOT NULL, "
        "said_at timestamptz NOT NULL DEFAULT now())"
    )
    if not context.is_offline_mode():  # which only lists the statements
        for table, name in _NAMES.items():
            _fill(table, name)
    for each in ("initials", "pinyin"):
        op.execute(f"CREATE INDEX idx_tmdb_name_sounds_{each} ON tmdb.name_sounds ({each} text_pattern_ops)")
    for table in ("movies", "tv_shows"):
        op.execute(
            f"CREATE INDEX idx_tmdb_{table}_credited ON tmdb.{table} "
            "USING gin (jsonb_path_query_array(raw, '$.*.*[*].id')) WITH (gin_pending_list_limit = 512) "
            "WHERE data_state = 'full'"
        )
    op.execute("CREATE INDEX idx_tmdb_name_sounds_said ON tmdb.name_sounds (said_at)")


def _fill(table: str, name: str) -> None:
    columns: list[ColumnElement[Any]] = [column(each) for each in ("tmdb_id", name, "fetched_at")]
    stored = sql_table(table, *map(column, ("tmdb_id", name, "fetched_at")), schema="tmdb")
    last = 0
    while (
        rows := op.get_bind()
        .execute(select(*columns).select_from(stored).where(columns[0] > last).order_by(columns[0]).limit(_PIECE))
        .all()
    ):
        last = rows[-1][0]
        given = [
            {"name": each, "initials": found[0], "pinyin": found[1], "said_at": said_at}
            for _, each, said_at in rows
            if each and (found := sounds_of(each))
        ]
        if given:
            op.get_bind().execute(_INSERT, given)
