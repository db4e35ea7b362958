"""Alembic's entry point."""

from douban_pipeline.core.migrations import run_migrations

run_migrations()
