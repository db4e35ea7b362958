"""How Alembic runs our migrations, or tells them as SQL; called by `douban_pipeline.douban.store.migrations` only."""

from typing import Any

from alembic import context

from douban_pipeline.douban.store.migrations import version_table
from douban_pipeline.douban.store.migrations.steps import Shape
from douban_pipeline.douban.store.tables import own_tables

attributes = context.config.attributes
prefix = attributes["prefix"]
target: dict[str, Any]
if context.is_offline_mode():  # the shape was read before
    target = {"dialect_name": attributes["dialect"], "literal_binds": True}
    target["dialect_opts"] = {"paramstyle": "named"}  # another one would double each %
else:
    attributes["shape"] = Shape.read(attributes["connection"], prefix)
    target = {"connection": attributes["connection"]}
context.configure(
    **target,
    target_metadata=own_tables(prefix).metadata,
    version_table=version_table(prefix),
    include_name=lambda name, kind, parents: kind != "table" or (name or "").startswith(f"{prefix}douban_"),
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
