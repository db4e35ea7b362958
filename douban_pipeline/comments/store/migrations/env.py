"""Alembic environment: runs the migrations, or prints them as SQL; called by `douban_pipeline.core.migrations` only."""

from douban_pipeline.core.migrations import run_migrations

run_migrations()
