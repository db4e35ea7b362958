"""The first tables of the TMDB system. ``gen_random_uuid()`` is PostgreSQL's own since 13: pgcrypto is not needed."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
release = "0.2.0"

_ENTITIES = """
CREATE TABLE tmdb.movies (
  tmdb_id            int PRIMARY KEY,
  title              text,
  original_title     text,
  original_language  text,
  release_date       date,
  popularity         double precision,
  vote_average       double precision,
  vote_count         int,
  raw_language       text NOT NULL DEFAULT 'zh-CN',
  data_state         text NOT NULL DEFAULT 'full' CHECK (data_state IN ('stub','full')),
  raw                jsonb,
  raw_hash           text,
  graph_hash         text,
  fetched_at         timestamptz NOT NULL DEFAULT now(),
  first_seen_at      timestamptz NOT NULL DEFAULT now(),
  last_seen_at       timestamptz NOT NULL DEFAULT now(),
  gone_at            timestamptz,
  CONSTRAINT ck_tmdb_movies_state CHECK (
    (data_state = 'stub' AND raw IS NULL AND raw_hash IS NULL)
    OR (data_state = 'full' AND raw IS NOT NULL AND raw_hash IS NOT NULL)
  )
);
CREATE TABLE tmdb.people (
  tmdb_id               int PRIMARY KEY,
  name                  text,
  original_name         text,
  known_for_department  text,
  popularity            double precision,
  raw_language          text NOT NULL DEFAULT 'zh-CN',
  data_state            text NOT NULL DEFAULT 'full' CHECK (data_state IN ('stub','full')),
  raw                   jsonb,
  raw_hash              text,
  graph_hash            text,
  fetched_at            timestamptz NOT NULL DEFAULT now(),
  first_seen_at         timestamptz NOT NULL DEFAULT now(),
  last_seen_at          timestamptz NOT NULL DEFAULT now(),
  gone_at               timestamptz,
  CONSTRAINT ck_tmdb_people_state CHECK (
    (data_state = 'stub' AND raw IS NULL AND raw_hash IS NULL)
    OR (data_state = 'full' AND raw IS NOT NULL AND raw_hash IS NOT NULL)
  )
);
CREATE TABLE tmdb.tv_shows (
  tmdb_id            int PRIMARY KEY,
  name               text,
  original_name      text,
  original_language  text,
  first_air_date     date,
  popularity         double precision,
  vote_average       double precision,
  vote_count         int,
  raw_language       text NOT NULL DEFAULT 'zh-CN',
  data_state         text NOT NULL DEFAULT 'full' CHECK (data_state IN ('stub','full')),
  raw                jsonb,
  raw_hash           text,
  graph_hash         text,
  fetched_at         timestamptz NOT NULL DEFAULT now(),
  first_seen_at      timestamptz NOT NULL DEFAULT now(),
  last_seen_at       timestamptz NOT NULL DEFAULT now(),
  gone_at            timestamptz,
  CONSTRAINT ck_tmdb_tv_shows_state CHECK (
    (data_state = 'stub' AND raw IS NULL AND raw_hash IS NULL)
    OR (data_state = 'full' AND raw IS NOT NULL AND raw_hash IS NOT NULL)
  )
);
CREATE INDEX idx_tmdb_movies_fetched ON tmdb.movies (fetched_at) WHERE data_state = 'full';
CREATE INDEX idx_tmdb_people_fetched ON tmdb.people (fetched_at) WHERE data_state = 'full';
CREATE INDEX idx_tmdb_tv_shows_fetched ON tmdb.tv_shows (fetched_at) WHERE data_state = 'full';
CREATE INDEX idx_tmdb_movies_stubs ON tmdb.movies (popularity DESC NULLS LAST) WHERE data_state = 'stub';
CREATE INDEX idx_tmdb_people_stubs ON tmdb.people (popularity DESC NULLS LAST) WHERE data_state = 'stub';
CREATE INDEX idx_tmdb_tv_shows_stubs ON tmdb.tv_shows (popularity DESC NULLS LAST) WHERE data_state = 'stub';
CREATE TABLE tmdb.genres (
  tmdb_id       int PRIMARY KEY,
  name          text,
  raw_language  text NOT NULL DEFAULT 'zh-CN',
  last_seen_at  timestamptz NOT NULL DEFAULT now()
);
"""

_TRANSLATIONS = """
CREATE TABLE tmdb.movie_translations (
  tmdb_movie_id  int NOT NULL REFERENCES tmdb.movies(tmdb_id) ON DELETE CASCADE,
  language       text NOT NULL,
  title          text,
  overview       text,
  raw            jsonb,
  raw_hash       text,
  fetched_at     timestamptz NOT NULL DEFAULT now(),
  first_seen_at  timestamptz NOT NULL DEFAULT now(),
  last_seen_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tmdb_movie_id, language)
);
CREATE TABLE tmdb.person_translations (
  tmdb_person_id  int NOT NULL REFERENCES tmdb.people(tmdb_id) ON DELETE CASCADE,
  language        text NOT NULL,
  biography       text,
  raw             jsonb,
  raw_hash        text,
  fetched_at      timestamptz NOT NULL DEFAULT now(),
  first_seen_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tmdb_person_id, language)
);
CREATE TABLE tmdb.tv_translations (
  tmdb_tv_id     int NOT NULL REFERENCES tmdb.tv_shows(tmdb_id) ON DELETE CASCADE,
  language       text NOT NULL,
  name           text,
  overview       text,
  raw            jsonb,
  raw_hash       text,
  fetched_at     timestamptz NOT NULL DEFAULT now(),
  first_seen_at  timestamptz NOT NULL DEFAULT now(),
  last_seen_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tmdb_tv_id, language)
);
"""

_REQUESTS = """
CREATE TABLE tmdb.enrichment_requests (
  id                    uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  request_id            text,
  user_id               text NOT NULL,
  session_id            text NOT NULL,
  conversation_id       uuid,
  user_message_id       uuid,
  query_text            text NOT NULL,
  tmdb_endpoint         text NOT NULL DEFAULT '/search/multi',
  role_hint             text,
  extracted_entities    jsonb,
  selected              jsonb,
  selected_media_type   text,
  selected_tmdb_id      int,
  selected_score        double precision,
  candidates_top3       jsonb,
  multi_results_raw     jsonb,
  discover_results_raw  jsonb,
  tmdb_language         text,
  duration_ms           double precision,
  created_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_tmdb_enrich_req_created ON tmdb.enrichment_requests (created_at DESC);
CREATE INDEX idx_tmdb_enrich_req_user ON tmdb.enrichment_requests (user_id, created_at DESC);
CREATE INDEX idx_tmdb_enrich_req_selected ON tmdb.enrichment_requests (selected_media_type, selected_tmdb_id);
CREATE INDEX idx_tmdb_enrich_req_endpoint ON tmdb.enrichment_requests (tmdb_endpoint, created_at DESC);
CREATE INDEX idx_tmdb_enrich_req_conversation ON tmdb.enrichment_requests (conversation_id);
CREATE TABLE tmdb.enrichment_request_entities (
  enrichment_request_id  uuid NOT NULL REFERENCES tmdb.enrichment_requests(id) ON DELETE CASCADE,
  entity_type            text NOT NULL CHECK (entity_type IN ('movie','person','tv')),
  tmdb_id                int  NOT NULL,
  selected               boolean NOT NULL DEFAULT false,
  score                  double precision,
  PRIMARY KEY (enrichment_request_id, entity_type, tmdb_id)
);
"""

# One row per entity: a key that includes the hash would lose the third of the changes A, B, A. A plain index over type
# and id would duplicate the unique one.
_OUTBOX = """
CREATE TABLE tmdb.neo4j_etl_outbox (
  id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  entity_type      text NOT NULL CHECK (entity_type IN ('movie','person','tv')),
  tmdb_id          int  NOT NULL,
  raw_hash         text NOT NULL,
  graph_hash       text NOT NULL,
  action           text NOT NULL DEFAULT 'upsert' CHECK (action IN ('upsert','delete')),
  version          bigint NOT NULL DEFAULT 1,
  request_id       text,
  enqueued_at      timestamptz NOT NULL DEFAULT now(),
  available_at     timestamptz NOT NULL DEFAULT now(),
  locked_at        timestamptz,
  locked_by        text,
  attempts         int NOT NULL DEFAULT 0,
  last_attempt_at  timestamptz,
  last_error       text,
  processed_at     timestamptz,
  dead_at          timestamptz
);
CREATE UNIQUE INDEX ux_tmdb_etl_outbox_dedupe ON tmdb.neo4j_etl_outbox (entity_type, tmdb_id);
CREATE INDEX idx_tmdb_etl_outbox_pending ON tmdb.neo4j_etl_outbox (available_at, enqueued_at)
  WHERE processed_at IS NULL AND dead_at IS NULL;
CREATE INDEX idx_tmdb_etl_outbox_processed ON tmdb.neo4j_etl_outbox (processed_at) WHERE processed_at IS NOT NULL;
CREATE INDEX idx_tmdb_etl_outbox_request ON tmdb.neo4j_etl_outbox (request_id) WHERE request_id IS NOT NULL;
CREATE TABLE tmdb.vod_link (
  vod_id      bigint PRIMARY KEY,
  media_type  text NOT NULL CHECK (media_type IN ('movie','tv')),
  tmdb_id     int NOT NULL,
  score       double precision,
  state       text NOT NULL CHECK (state IN ('confirmed','review','rejected')),
  decided_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_tmdb_vod_link_title ON tmdb.vod_link (media_type, tmdb_id);
"""


def upgrade() -> None:
    """Create the tables, in the transaction that stores the version."""
    for statements in (_ENTITIES, _TRANSLATIONS, _REQUESTS, _OUTBOX):
        op.execute(statements)
