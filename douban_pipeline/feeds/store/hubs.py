"""Subscriptions at WebSub hubs: one row a source whose feed names a hub.

Functions take a SQLAlchemy connection and leave the transaction to the caller.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update

from douban_pipeline.feeds.store.tables import stats, websub


class HubState(enum.StrEnum):
    """State of a subscription."""

    NEW = "new"
    """The hub was not asked yet, or did not accept the request."""
    ASKED = "asked"
    """The hub accepted the request, and has to verify it."""
    ACTIVE = "active"
    """The hub verified it: it pushes until the lease ends."""
    DENIED = "denied"
    """The hub refused it."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription at a hub; columns as in the table `feed_websub`."""

    source_id: str
    hub: str
    topic: str
    token: str
    secret: str
    state: HubState
    attempts: int
    asked_at: int
    lease_until: int
    last_push_at: int
    missed: int

    def serves(self, now: int) -> bool:
        """Return whether the hub delivers: verified, within the lease, it pushed before, and missed nothing since."""
        return self.state is HubState.ACTIVE and self.lease_until > now and self.last_push_at > 0 and not self.missed


_COLUMNS = [websub.c[name] for name in Subscription.__dataclass_fields__]


def _of(row: Row[Any] | None) -> Subscription | None:
    return None if row is None else Subscription(**{**row._mapping, "state": HubState(row.state)})


def of_source(connection: Connection, source_id: str) -> Subscription | None:
    """Return a source's subscription, or None."""
    return _of(connection.execute(select(*_COLUMNS).where(websub.c.source_id == source_id)).first())


def of_token(connection: Connection, token: str) -> Subscription | None:
    """Return the subscription whose callback has a token, locked until the transaction ends; or None."""
    return _of(connection.execute(select(*_COLUMNS).where(websub.c.token == token).with_for_update()).first())


def note(connection: Connection, source_id: str, hub: str, topic: str, now: int) -> None:
    """Note the hub that a feed names, to be asked at once; a subscription at another hub, or to another topic, ends.

    With an empty hub the source has none, and its subscription ends.
    """
    before = of_source(connection, source_id)
    if before is not None and (before.hub, before.topic) == (hub, topic):
        return
    if before is not None:
        connection.execute(delete(websub).where(websub.c.source_id == source_id))
    if hub:
        row = {"source_id": source_id, "hub": hub, "topic": topic, "state": HubState.NEW.value, "ask_at": now}
        row |= {"token": secrets.token_urlsafe(32), "secret": secrets.token_hex(32)}
        connection.execute(insert(websub), {**row, "created_at": now, "updated_at": now})


def write(connection: Connection, source_id: str, values: Mapping[str, Any], now: int) -> None:
    """Set columns of a subscription."""
    connection.execute(update(websub).where(websub.c.source_id == source_id).values(**values, updated_at=now))


def count_push(connection: Connection, source_id: str, added: int, now: int) -> None:
    """Count a push and the entries it added; the hub is trusted again."""
    counted = {"pushes": websub.c.pushes + 1, "pushed_entries": websub.c.pushed_entries + added}
    values = {**counted, "last_push_at": now, "missed": 0, "updated_at": now}
    connection.execute(update(websub).where(websub.c.source_id == source_id).values(values))


def to_ask(connection: Connection, now: int, most: int) -> list[Subscription]:
    """Return subscriptions whose hub is to be asked, the longest waiting first."""
    query = select(*_COLUMNS).where(websub.c.ask_at <= now).order_by(websub.c.ask_at).limit(most)
    return [each for row in connection.execute(query) if (each := _of(row)) is not None]


def served(connection: Connection, now: int) -> set[str]:
    """Return the sources that hubs serve; see `Subscription.serves`."""
    return set(connection.execute(select(websub.c.source_id).where(*_serving(now))).scalars())


def _serving(now: int) -> tuple[ColumnElement[bool], ...]:
    active = (websub.c.state == HubState.ACTIVE.value, websub.c.lease_until > now)
    return (*active, websub.c.last_push_at > 0, websub.c.missed == 0)


def figures(connection: Connection, now: int) -> dict[str, int]:
    """Return the number of subscriptions, of sources that hubs serve, of pushes, and of entries that were pushed."""
    sums = (func.coalesce(func.sum(column), 0) for column in (websub.c.pushes, websub.c.pushed_entries))
    row = connection.execute(select(func.count(), *sums)).one()
    counts = {"hub_subscriptions": int(row[0]), "hub_served": len(served(connection, now))}
    return {**counts, "hub_pushes": int(row[1]), "hub_entries": int(row[2])}


def served_cadences(connection: Connection, now: int) -> dict[str, int]:
    """Return the number of sources that hubs serve, by the cadence at which they would be polled."""
    query = select(stats.c.cadence, func.count()).join(websub, websub.c.source_id == stats.c.source_id)
    return {
        str(row[0]): int(row[1]) for row in connection.execute(query.where(*_serving(now)).group_by(stats.c.cadence))
    }
