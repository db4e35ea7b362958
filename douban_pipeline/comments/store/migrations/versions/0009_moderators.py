"""What moderators set and did; addresses beside the comments, no longer in them."""

from __future__ import annotations

import ipaddress
import json

import sqlalchemy as sa
from alembic import context, op

from douban_pipeline.core.column_types import BigId, JsonText, UtcDateTime
from douban_pipeline.core.migration_steps import add_index, create_table

revision = "0009"
down_revision = "0008"
release = "1.0.0rc1"

_AT_ONCE = 2_000


def upgrade() -> None:
    """Add the tables, and move the addresses."""
    create_table(
        "cmt_address",
        sa.Column("comment_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("address", sa.String(45), nullable=False),
        sa.Column("network", sa.String(48), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    add_index("cmt_address", "ix_cmt_address_network", "network", "comment_id")
    add_index("cmt_address", "ix_cmt_address_time", "created_at")
    create_table(
        "cmt_trust",
        sa.Column("trust_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("subject", sa.String(48), nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.Column("reason", sa.String(300), nullable=False, server_default=""),
        sa.Column("author", sa.String(40), nullable=False, server_default=""),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("until", UtcDateTime),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("ended_by", sa.String(40), nullable=False, server_default=""),
    )
    add_index("cmt_trust", "ix_cmt_trust_subject", "subject", "kind")
    create_table(
        "cmt_word",
        sa.Column("word", sa.String(100), primary_key=True),
        sa.Column("consequence", sa.String(8), nullable=False),
        sa.Column("author", sa.String(40), nullable=False, server_default=""),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    create_table(
        "cmt_option",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("value", JsonText, nullable=False),
        sa.Column("author", sa.String(40), nullable=False, server_default=""),
        sa.Column("changed_at", UtcDateTime, nullable=False),
    )
    create_table(
        "cmt_action",
        sa.Column("action_id", BigId, primary_key=True, autoincrement=True),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("action", sa.String(24), nullable=False),
        sa.Column("about", sa.String(64), nullable=False, server_default=""),
        sa.Column("detail", JsonText, nullable=False),
        sa.Column("reason", sa.String(300), nullable=False, server_default=""),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    add_index("cmt_action", "ix_cmt_action_time", "created_at")
    if not context.is_offline_mode():
        _move_addresses()


def _move_addresses() -> None:
    """Move the addresses out of the comments; a comment that was moved has none any more, so it may run again."""
    at = sa.column("created_at", UtcDateTime)
    comment = sa.table("cmt_comment", sa.column("comment_id", sa.BigInteger), sa.column("meta", sa.Text), at)
    address = sa.table(
        "cmt_address", *map(sa.column, ("comment_id", "address", "network")), sa.column("created_at", UtcDateTime)
    )
    connection, last = op.get_bind(), 0
    while True:
        query = sa.select(comment).where(comment.c.comment_id > last, comment.c.meta.contains('"ip"'))
        rows = connection.execute(query.order_by(comment.c.comment_id).limit(_AT_ONCE)).all()
        if not rows:
            return
        last, found, changed = rows[-1].comment_id, [], []
        for row in rows:
            meta = json.loads(row.meta)
            given = str(meta.pop("ip", ""))
            if network := _network(given):
                found.append((row.comment_id, given, network, row.created_at))
            text = json.dumps(meta, ensure_ascii=False, sort_keys=True)
            changed.append({"of_comment": row.comment_id, "new_meta": text})
        moved = [dict(zip(("comment_id", "address", "network", "created_at"), each, strict=True)) for each in found]
        connection.execute(sa.delete(address).where(address.c.comment_id.in_([each["comment_id"] for each in moved])))
        if moved:
            connection.execute(sa.insert(address), moved)
        changing = sa.update(comment).where(comment.c.comment_id == sa.bindparam("of_comment"))
        connection.execute(changing.values(meta=sa.bindparam("new_meta")), changed)


def _network(given: str) -> str:
    try:
        found = ipaddress.ip_address(given)
    except ValueError:
        return ""
    return str(ipaddress.ip_network(f"{found}/{24 if found.version == 4 else 48}", strict=False))
