"""The migrations make the tables that the code names."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.moderator_tables import metadata
from douban_pipeline.core.database import open_engine


def test_the_migrations_make_the_tables_as_they_are(any_database_url):
    engine = open_engine(any_database_url)
    assert TREE.upgrade(engine) == (None, TREE.head)
    options = {"include_name": lambda name, kind, _: kind != "table" or name in metadata.tables, "compare_type": True}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    assert TREE.upgrade(engine) == (TREE.head, TREE.head)
    engine.dispose()
