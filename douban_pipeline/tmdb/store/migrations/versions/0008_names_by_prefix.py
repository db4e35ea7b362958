"""Names are found by how they begin, other names of people and the films of a series by index."""

from alembic import op

revision = "0008"
down_revision = "0006"
release = "1.0.0rc1"

_NAMES = {"movies": "title", "people": "name", "tv_shows": "name"}


def upgrade() -> None:
    """Replace the indexes of whole names by such that serve their beginnings, too, and add the others."""
    for table, name in _NAMES.items():
        for each in (name, f"original_{name}"):
            op.execute(f"DROP INDEX tmdb.idx_tmdb_{table}_{each}")
            op.execute(f"CREATE INDEX idx_tmdb_{table}_{each} ON tmdb.{table} (lower({each}) text_pattern_ops)")
    for table, name in (("movie_translations", "title"), ("tv_translations", "name")):
        op.execute(f"CREATE INDEX idx_tmdb_{table}_{name} ON tmdb.{table} (lower({name}) text_pattern_ops)")
    op.execute(
        "CREATE INDEX idx_tmdb_people_known_as ON tmdb.people USING gin ((raw->'also_known_as')) "
        "WHERE data_state = 'full'"
    )
    op.execute(
        "CREATE INDEX idx_tmdb_movies_series ON tmdb.movies ((raw#>>'{belongs_to_collection,id}')) "
        "WHERE raw#>>'{belongs_to_collection,id}' IS NOT NULL"
    )
