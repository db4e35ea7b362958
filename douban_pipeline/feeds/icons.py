"""Fetches the icons of sources, which readers that speak Fever show: some at a time, through their hosts' gates."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable

from sqlalchemy import Connection

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import GateClosed, SourceError
from douban_pipeline.core.http_answers import HttpExchange
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import icons
from douban_pipeline.feeds.types import Source, SourceKind, digest

AT_ONCE = 100
"""Icons of one call."""
SECONDS = 60.0
"""Seconds after which a call begins no further icon."""
LARGEST = 50_000
"""Bytes of an icon: a larger one is a picture, and every reader would load it."""
_PARSER_VERSION = "icon-1"
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
)

logger = logging.getLogger(__name__)


def icon_data(body: bytes) -> str:
    """Return an icon as ``image/png;base64,…``; empty if the bytes are no picture of a known kind.

    The kind is that of the bytes, whatever the server says; SVG, which may hold scripts, is none of them.
    """
    kind = next((name for start, name in _KINDS if body.startswith(start)), "")
    if not kind and body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind or len(body) > LARGEST:
        return ""
    return f"{kind};base64,{base64.b64encode(body).decode()}"


def fetch_icons(services: FeedsServices, monotonic: Callable[[], float] = time.monotonic) -> int:
    """Fetch icons that are not known yet, or were fetched a month ago; return how many were found.

    Without credentials, which icons do not need. What does not answer counts as having none, and is asked again in a
    month.
    """
    with reading(services.engine) as connection:
        addresses = icons.wanted(connection, services.now(), AT_ONCE)
    end, found = monotonic() + SECONDS, 0
    for address in addresses:
        if monotonic() >= end:
            break
        try:
            data = _fetched(services, address)
        except GateClosed:
            continue  # it is asked at the next call

        def keep(connection: Connection, address: str = address, data: str = data) -> None:
            icons.keep(connection, address, data, services.now())

        run_transaction(services.engine, keep)
        found += bool(data)
    return found


def _fetched(services: FeedsServices, address: str) -> str:
    def read(answer: HttpExchange) -> str:
        return icon_data(answer.body) if answer.status == 200 else ""

    try:
        with services.web_fetcher(Source("", SourceKind.RSS, address)) as fetcher:
            key = f"icon {digest(address)[:16]}"
            return fetcher.exchange(address, read, key=key, parser_version=_PARSER_VERSION).value
    except GateClosed:
        raise
    except SourceError as error:
        logger.debug("no icon at %s: %s", address, error.reason)
        return ""
