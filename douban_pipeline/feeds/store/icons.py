"""Icons of sources, as readers get them: one row an address, which many sources may share.

Functions take a SQLAlchemy connection and leave the transaction to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urljoin

from sqlalchemy import Connection, delete, insert, select

from douban_pipeline.core.database import chunks
from douban_pipeline.feeds.store.tables import icon, source
from douban_pipeline.feeds.types import SourceKind, SourceState, digest

KEPT = 30 * 86_400
"""Seconds after which an icon is asked for again."""


def icon_address(url: str, favicon: str | None) -> str:
    """Return the address of a source's icon: the one it names, else that of its host; empty if it has none."""
    return urljoin(url, "/favicon.ico") if favicon is None else favicon


def wanted(connection: Connection, now: int, most: int) -> list[str]:
    """Return addresses of icons of followed feeds that were not asked for, or not within `KEPT`."""
    known = set(connection.execute(select(icon.c.icon_hash).where(icon.c.asked_at > now - KEPT)).scalars())
    query = select(source.c.url, source.c.favicon).where(
        source.c.kind == SourceKind.RSS.value, source.c.state == SourceState.ACTIVE.value
    )
    found: dict[str, None] = {}
    for row in connection.execute(query.order_by(source.c.source_id)):
        address = icon_address(row.url, row.favicon)
        if address and digest(address) not in known:
            found[address] = None
        if len(found) == most:
            break
    return list(found)


def keep(connection: Connection, address: str, data: str, now: int) -> None:
    """Store an icon as ``image/png;base64,…``; empty for an address that has none."""
    hashed = digest(address)
    connection.execute(delete(icon).where(icon.c.icon_hash == hashed))
    connection.execute(insert(icon), {"icon_hash": hashed, "url": address, "data": data, "asked_at": now})


def read_icons(connection: Connection, addresses: Iterable[str]) -> Mapping[str, str]:
    """Return the icons that there are, by the hash of their address."""
    found: dict[str, str] = {}
    for some in chunks(sorted({digest(each) for each in addresses if each})):
        query = select(icon.c.icon_hash, icon.c.data).where(icon.c.icon_hash.in_(some), icon.c.data != "")
        found.update({row.icon_hash: row.data for row in connection.execute(query)})
    return found
