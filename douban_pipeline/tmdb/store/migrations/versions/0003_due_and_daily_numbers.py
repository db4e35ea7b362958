"""Time of an entity's last change at TMDB, which makes it due; results for videos; figures by day for plots."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
release = "0.2.0"

_TABLES = ("movies", "people", "tv_shows")


def upgrade() -> None:
    """Add the columns with their indexes, and the tables."""
    for table in _TABLES:
        op.execute(f"ALTER TABLE tmdb.{table} ADD COLUMN changed_at timestamptz")
        op.execute(
            f"CREATE INDEX idx_tmdb_{table}_changed ON tmdb.{table} (changed_at) "
            "WHERE data_state = 'full' AND changed_at IS NOT NULL"
        )
    op.execute(
        "CREATE TABLE tmdb.vod_match (vod_id bigint PRIMARY KEY, title text NOT NULL, state text NOT NULL, "
        "reason text NOT NULL DEFAULT '', candidates jsonb, looked_at timestamptz NOT NULL DEFAULT now(), "
        "CONSTRAINT vod_match_state_check CHECK (state IN ('confirmed','review','none')))"
    )
    op.execute("CREATE INDEX idx_tmdb_vod_match_state ON tmdb.vod_match (state, looked_at)")
    op.execute(
        "CREATE TABLE tmdb.daily_numbers (day date NOT NULL, name text NOT NULL, value double precision NOT NULL, "
        "PRIMARY KEY (day, name))"
    )
