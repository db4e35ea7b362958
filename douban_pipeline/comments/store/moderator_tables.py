"""Tables of what moderators set and did, and of the addresses that comments were sent from; see `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table

from douban_pipeline.comments.store.tables import metadata
from douban_pipeline.core.column_types import JsonText, key, moment, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS

address = Table(
    "cmt_address",
    metadata,
    # A table of its own, so that addresses are found and forgotten without touching the comments.
    Column("comment_id", BigInteger, primary_key=True, autoincrement=False),
    Column("address", String(45), nullable=False),
    # The network that it is in, see `moderation_rules.network_of`.
    Column("network", String(48), nullable=False),
    moment("created_at", nullable=False),
    Index("ix_cmt_address_network", "network", "comment_id"),
    Index("ix_cmt_address_time", "created_at"),
    **MYSQL_OPTIONS,
)

trust = Table(
    "cmt_trust",
    metadata,
    key("trust_id"),
    # user or address; with the user's id, the address, or its network.
    Column("kind", String(8), nullable=False),
    Column("subject", String(48), nullable=False),
    # banned, watched or trusted.
    Column("level", String(8), nullable=False),
    words("reason", 300),
    words("author", 40),
    moment("created_at", nullable=False),
    # When it ends by itself; NULL for never.
    moment("until"),
    # When and by whom it was ended, or replaced by another level.
    moment("ended_at"),
    words("ended_by", 40),
    Index("ix_cmt_trust_subject", "subject", "kind"),
    **MYSQL_OPTIONS,
)

word = Table(
    "cmt_word",
    metadata,
    Column("word", String(100), primary_key=True),
    # mask or review.
    Column("consequence", String(8), nullable=False),
    words("author", 40),
    moment("created_at", nullable=False),
    **MYSQL_OPTIONS,
)

option = Table(
    "cmt_option",
    metadata,
    # trust: the numbers of `moderation_rules.TrustRules`. words: its time tells workers to read the words again.
    Column("name", String(32), primary_key=True),
    Column("value", JsonText, nullable=False),
    words("author", 40),
    moment("changed_at", nullable=False),
    **MYSQL_OPTIONS,
)

action = Table(
    "cmt_action",
    metadata,
    # What moderators did, all but decisions about a comment's status, which are in `cmt_moderation`.
    key("action_id"),
    Column("actor", String(40), nullable=False),
    Column("action", String(24), nullable=False),
    # What it is about, such as comment:17, section:3, user:12, address:192.0.2.0/24 or rule:disliked.
    words("about", 64),
    Column("detail", JsonText, nullable=False),
    words("reason", 300),
    moment("created_at", nullable=False),
    Index("ix_cmt_action_time", "created_at"),
    **MYSQL_OPTIONS,
)
