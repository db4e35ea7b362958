"""The migrations make the tables that the code names."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.store.tables import comment, event, metadata, score, section
from douban_pipeline.comments.types import IMPORTED, Attribute, EventKind, Rank
from douban_pipeline.core.database import open_engine


def test_the_migrations_make_the_tables_as_they_are(any_database_url):
    engine = open_engine(any_database_url)
    assert TREE.upgrade(engine) == (None, TREE.head)
    options = {"include_name": lambda name, kind, _: kind != "table" or TREE.owns(name or ""), "compare_type": True}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    assert TREE.upgrade(engine) == (TREE.head, TREE.head)
    engine.dispose()


def test_comments_of_the_staff_and_times_of_scoring_are_known_after_the_upgrade(any_database_url):
    engine, at = open_engine(any_database_url), datetime(2026, 11, 1, 12, tzinfo=UTC)
    config = TREE.config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0005")
        known = {"settings": {}, "pinned": [], "created_at": at, "active_at": at, "type": 1}
        for number in (1, 2):
            connection.execute(sa.insert(section).values(section_id=number, object_id=number, **known))
        published = {10: (Rank.OPERATOR, "a"), 11: (Rank.USER, "b"), 12: (Rank.OPERATOR, f"{IMPORTED}7")}
        for number, (rank, key) in published.items():
            meta = {"ip": "192.0.2.7", "name": "小王"} if number == 10 else {}
            row = {"comment_id": number, "section_id": 1, "floor": number, "meta": meta, "attributes": 4}
            connection.execute(sa.insert(comment).values(**row, created_at=at, updated_at=at))
            told = {"shard": 1, "section_id": 1, "kind": EventKind.PUBLISH, "actor": "x", "actor_rank": rank}
            told |= {"payload": {}, "request_key": key, "created_at": at}
            connection.execute(sa.insert(event).values(comment_id=number, **told))
        scored = {"comment_id": 10, "section_id": 1, "parts": {}, "decisions": [], "score_at": at}
        connection.execute(sa.insert(score).values(**scored))
    assert TREE.plan(engine).before == "0005"
    assert TREE.upgrade(engine) == ("0005", TREE.head)
    with engine.connect() as connection:
        marks = connection.execute(sa.select(comment.c.attributes).order_by(comment.c.comment_id)).scalars().all()
        moved = connection.execute(sa.select(address.c.comment_id, address.c.address, address.c.network)).tuples().all()
        metas = connection.execute(sa.select(comment.c.meta).order_by(comment.c.comment_id)).scalars().all()
        times = connection.execute(sa.select(section.c.scored_at).order_by(section.c.section_id)).scalars().all()
    assert marks == [4 | Attribute.STAFF, 4, 4]
    assert times == [at, None]
    assert moved == [(10, "192.0.2.7", "192.0.2.0/24")]
    assert metas == [{"name": "小王"}, {}, {}]
    engine.dispose()
