"""What a process does in the tests of leases; in a module of its own, which a new process imports quickly."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, text

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.database import open_engine, run_transaction
from douban_pipeline.core.leases import Leases
from douban_pipeline.core.owner import owner_name

METADATA = MetaData()
WORK = Table(
    "leased_work",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("value", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("owner", String(160)),
    Column("until", UtcDateTime),
    mysql_engine="InnoDB",
)
NULLABLE = Leases(WORK.c.number, WORK.c.owner, WORK.c.until)
"""Leases as of tasks: a free row has NULL in both columns."""

SECONDS = Table(
    "leased_by_seconds",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("value", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("owner", String(160), nullable=False, server_default=text("''")),
    Column("until", Integer, nullable=False, server_default=text("0")),
    mysql_engine="InnoDB",
)
WHOLE_SECONDS = Leases(SECONDS.c.number, SECONDS.c.owner, SECONDS.c.until)
"""Leases as of feeds: whole seconds, and a free row has an empty name."""

FENCED = Table(
    "leased_with_token",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("value", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("owner", String(160), nullable=False, server_default=text("''")),
    Column("token", Integer, nullable=False, server_default=text("0")),
    Column("until", Integer, nullable=False, server_default=text("0")),
    mysql_engine="InnoDB",
)
WITH_TOKEN = Leases(FENCED.c.number, FENCED.c.owner, FENCED.c.until, token=FENCED.c.token)
"""Leases as of shards: a token tells a lease from the owner's earlier one."""


def claim_and_die(url: str, now: datetime, seconds: int, limit: int, committed: bool) -> None:
    """Claim rows and be killed, before or after the transaction is committed."""
    engine = open_engine(url)

    def work(connection: Connection) -> None:
        NULLABLE.claim(
            connection,
            owner_name("killed"),
            now=now,
            until=now + timedelta(seconds=seconds),
            order_by=(WORK.c.number,),
            limit=limit,
        )
        if not committed:
            os.kill(os.getpid(), signal.SIGKILL)

    run_transaction(engine, work)
    os.kill(os.getpid(), signal.SIGKILL)
