"""Alembic's entry point: runs our migrations or prints them as SQL; used by `douban_pipeline.core.migrations` only."""

from douban_pipeline.core.migrations import run_migrations

run_migrations()
