"""The index of what people are credited for is up to date at once: with a list of what is not sorted in yet, PostgreSQL
read every person instead."""

from alembic import op

revision = "0007"
down_revision = "0006"
release = "1.0.0rc1"


def upgrade() -> None:
    """Sort in what waits, and let nothing wait any more."""
    op.execute("ALTER INDEX tmdb.idx_tmdb_people_credited SET (fastupdate = off)")
    op.execute("SELECT gin_clean_pending_list('tmdb.idx_tmdb_people_credited'::regclass)")
