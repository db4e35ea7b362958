"""How Alembic runs our migrations; called by `douban_pipeline.catalog.migrations.upgrade` only."""

from alembic import context

from douban_pipeline.catalog.migrations import version_table
from douban_pipeline.catalog.tables import own_tables

prefix = context.config.attributes["prefix"]
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=own_tables(prefix).metadata,
    version_table=version_table(prefix),
    include_name=lambda name, kind, parents: kind != "table" or (name or "").startswith(f"{prefix}douban_"),
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
