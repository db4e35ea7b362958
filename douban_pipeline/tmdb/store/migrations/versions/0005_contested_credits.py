"""Credits that several answers claim, so that a withdrawn claim brings the next one into the graph."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
release = "0.3.0"


def upgrade() -> None:
    """Add the table."""
    op.execute(
        "CREATE TABLE tmdb.credit_claim (credit_id text NOT NULL, entity_type text NOT NULL, tmdb_id int NOT NULL, "
        "PRIMARY KEY (entity_type, tmdb_id, credit_id), "
        "CONSTRAINT credit_claim_entity_type_check CHECK (entity_type IN ('movie','person','tv')))"
    )
    op.execute("CREATE INDEX idx_tmdb_credit_claim_credit ON tmdb.credit_claim (credit_id)")
