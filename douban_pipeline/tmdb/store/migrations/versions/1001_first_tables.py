"""The first tables of the tmdb system: those of its `tables`."""

from douban_pipeline.core.migrations import create_tables

revision = "1001"
down_revision = None
upgrade = create_tables
