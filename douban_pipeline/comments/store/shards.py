"""Leases of shards and of node numbers, with fencing tokens that every write checks; heartbeats of workers."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, case, func, insert, select
from sqlalchemy.exc import IntegrityError

from douban_pipeline.comments.ids import NODES
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import SHARDS
from douban_pipeline.core.database import insert_missing, run_transaction, upsert
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.leases import Leases
from douban_pipeline.core.owner import is_dead

SHARD_LEASES = Leases(
    tables.shard.c.shard, tables.shard.c.owner, tables.shard.c.lease_until, token=tables.shard.c.token
)
_NODE_LEASES = Leases(tables.node.c.node, tables.node.c.owner, tables.node.c.lease_until)
_RACES = 20
"""Maximum number of attempts to take a new number while other processes take numbers."""


class LostShardError(Exception):
    """Another worker holds the shard now: nothing may be written for it."""


def claim_shards(engine: Engine, owner: str, now: datetime, lease: timedelta, *, most: int = SHARDS) -> dict[int, int]:
    """Lease free shards, and renew those that ``owner`` holds.

    Args:
        owner: Owner of the leases; `core.owner` names processes.
        most: Maximum number of shards it may hold in all; it releases those beyond that.

    Returns:
        Fencing tokens of the shards held now, by shard.
    """

    def work(connection: Connection) -> dict[int, int]:
        long_ago = datetime(2000, 1, 1, tzinfo=now.tzinfo)
        present = set(connection.execute(select(tables.shard.c.shard)).scalars())
        if missing := [{"shard": number, "lease_until": long_ago} for number in range(SHARDS) if number not in present]:
            insert_missing(connection, tables.shard, missing, key="shard")
        rows = connection.execute(select(tables.shard).order_by(tables.shard.c.shard).with_for_update()).all()
        mine = [row.shard for row in rows if row.owner == owner]
        SHARD_LEASES.put_back(connection, owner, mine[most:])
        dead = [each for each in {row.owner for row in rows} if is_dead(each)]
        mine_first = case((tables.shard.c.owner == owner, 0), else_=1)
        taken = SHARD_LEASES.claim(
            connection,
            owner,
            now=now,
            until=now + lease,
            order_by=(mine_first, tables.shard.c.shard),
            limit=most,
            instead_of=dead,
        )
        return {row.shard: row.token for row in taken}

    return run_transaction(engine, work)


def release_shards(engine: Engine, owner: str) -> None:
    """Release every shard that ``owner`` holds."""

    def work(connection: Connection) -> None:
        SHARD_LEASES.put_back(connection, owner, SHARD_LEASES.held(connection, owner))

    run_transaction(engine, work)


def lock_shard(connection: Connection, shard: int, token: int) -> None:
    """Lock a shard until the transaction ends, checking its fencing token.

    Raises:
        LostShardError: The shard has another token.
    """
    if not SHARD_LEASES.holds(connection, shard, token):
        raise LostShardError(f"shard {shard} is another worker's")


def lease_node(engine: Engine, owner: str, now: datetime, lease: timedelta) -> int:
    """Lease a node number for `ids.IdGenerator`, or renew the one that ``owner`` holds.

    A number is leased again only after its lease has ended, even if its owner is dead: the lease ends later than any of
    the owner's ids was generated, also where the clock was set back since.

    Raises:
        DatabaseError: All numbers are taken.
    """

    def work(connection: Connection) -> int:
        rows = connection.execute(select(tables.node).order_by(tables.node.c.node).with_for_update()).all()
        present = {row.node: row for row in rows}
        # Where the clock was set back, a renewal does not shorten the lease: ids of the time before it are in use.
        until = max([now + lease, *(row.lease_until for row in rows if row.owner == owner)])
        mine_first = case((tables.node.c.owner == owner, 0), else_=1)
        order = (mine_first, tables.node.c.node)
        if taken := _NODE_LEASES.claim(connection, owner, now=now, until=until, order_by=order, limit=1):
            return int(taken[0].node)
        number = next((number for number in range(NODES) if number not in present), None)
        if number is None:
            raise DatabaseError(
                terminal_text("all {nodes} numbers for ids of comments are leased").format(nodes=NODES),
                terminal_text("end processes that are not used"),
            )
        connection.execute(insert(tables.node), {"node": number, "owner": owner, "lease_until": now + lease})
        return number

    for _ in range(_RACES):
        try:
            return run_transaction(engine, work)
        except IntegrityError:  # another process took the same new number at the same time
            continue
    return run_transaction(engine, work)


def beat(connection: Connection, name: str, now: datetime) -> None:
    """Record a worker's heartbeat; its age in a replica of the database is the replication lag."""
    upsert(connection, tables.beat, [{"name": name, "beat_at": now}], keys=["name"], changes=["beat_at"])


def last_beat(connection: Connection) -> datetime | None:
    """Return the last heartbeat of any worker in this database; None for none."""
    query = select(tables.beat.c.beat_at).order_by(tables.beat.c.beat_at.desc()).limit(1)
    return connection.execute(query).scalar()


def working(connection: Connection, since: datetime) -> int:
    """Return the number of workers with a heartbeat since a moment."""
    return connection.execute(select(func.count()).where(tables.beat.c.beat_at >= since)).scalar_one()
