"""The gate of TMDB's API, shared by all processes, and the archive of answers that are not about single entities."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
release = "0.2.0"

_TABLES = """
CREATE TABLE tmdb.gate (
  source             varchar(32) PRIMARY KEY,
  next_slot_at       timestamp NOT NULL,
  interval_ms        int NOT NULL,
  concurrency        int NOT NULL,
  holders            text NOT NULL,
  state              varchar(16) NOT NULL,
  open_until         timestamp,
  probe_owner        varchar(160),
  probe_until        timestamp,
  failures           int NOT NULL DEFAULT 0,
  granted            bigint NOT NULL DEFAULT 0,
  reason             varchar(500) NOT NULL DEFAULT '',
  changed_by         varchar(64) NOT NULL DEFAULT '',
  requests_per_day   int,
  tokens_per_minute  int,
  tokens_per_day     int,
  usage              text,
  updated_at         timestamp NOT NULL
);
CREATE TABLE tmdb.snapshot (
  snapshot_id     bigserial PRIMARY KEY,
  source          varchar(32) NOT NULL,
  key_hash        varchar(64) NOT NULL,
  request_key     varchar(500) NOT NULL,
  status          int NOT NULL,
  sha256          varchar(64) NOT NULL,
  body            bytea NOT NULL,
  parser_version  varchar(32) NOT NULL,
  fetched_at      timestamp NOT NULL,
  seen_at         timestamp NOT NULL,
  CONSTRAINT uq_snapshot_content UNIQUE (source, key_hash, sha256)
);
CREATE INDEX ix_snapshot_seen ON tmdb.snapshot (seen_at);
"""


def upgrade() -> None:
    """Create the tables, in the transaction that stores the version."""
    op.execute(_TABLES)
