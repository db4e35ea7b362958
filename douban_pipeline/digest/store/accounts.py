"""The table of accounts: which are followed, and when each was last read and synced."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from douban_pipeline.digest.store.tables import account


def last_reads(connection: Connection) -> Mapping[str, datetime | None]:
    """Return when each account was last read successfully."""
    rows = connection.execute(select(account.c.mp_id, account.c.last_good_at))
    return {row.mp_id: row.last_good_at for row in rows}


def note(connection: Connection, mp_id: str, kind: str, now: datetime, **values: Any) -> None:
    """Store values of an account, creating its row if needed."""
    changed = update(account).where(account.c.mp_id == mp_id).values(kind=kind, updated_at=now, **values)
    if not connection.execute(changed).rowcount:
        known = connection.execute(select(account.c.mp_id).where(account.c.mp_id == mp_id)).first()
        if known is None:
            connection.execute(insert(account).values(mp_id=mp_id, kind=kind, updated_at=now, **values))


def set_followed(connection: Connection, kind: str, followed: Collection[str]) -> None:
    """Store which accounts of a kind are followed; all others are not followed any more."""
    rows = connection.execute(select(account.c.mp_id, account.c.followed).where(account.c.kind == kind)).all()
    for row in rows:
        if row.followed != (row.mp_id in followed):
            changed = update(account).where(account.c.mp_id == row.mp_id).values(followed=row.mp_id in followed)
            connection.execute(changed)


def all_followed(connection: Connection) -> list[Row[Any]]:
    """Return the rows of the followed accounts, by name."""
    query = select(account).where(account.c.followed.is_(True)).order_by(account.c.name, account.c.mp_id)
    return [*connection.execute(query)]
