"""What a feed says of its WebSub hub, and whether a push is signed by it (W3C Recommendation WebSub, 2018). Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from douban_pipeline.feeds.clients.values import link_of

_LINK = re.compile(r"<([^<>]{1,4000})>((?:\s*;\s*[\w-]+\s*=\s*(?:\"[^\"]{0,500}\"|[^\s;,\"]{1,500}))*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_METHODS = ("sha1", "sha256", "sha384", "sha512")


class HubLinks(NamedTuple):
    """The hub of a feed and the topic to subscribe to; both empty if it has none."""

    hub: str = ""
    topic: str = ""


def hub_of(link_headers: Iterable[str], links: Iterable[Mapping[str, Any]], url: str) -> HubLinks:
    """Return the hub that an answer names: by its ``Link`` headers, else by the feed's own links (section 4).

    Args:
        link_headers: The values of the answer's ``Link`` headers.
        links: The links in the feed, each with ``rel`` and ``href``.
        url: The feed's address: what links are relative to, and the topic if no link names it.
    """
    found: dict[str, str] = {}
    for value in link_headers:
        for target, parameters in _LINK.findall(value[:10_000]):
            rel = _REL.search(parameters)
            for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
                found.setdefault(name, target)
    for each in links:
        for name in str(each.get("rel", "")).lower().split():
            found.setdefault(name, str(each.get("href", "")))
    hub = link_of(found.get("hub"), url)
    return HubLinks(hub, link_of(found.get("self"), url) or url) if hub else HubLinks()


def is_signed(body: bytes, header: str, secret: str) -> bool:
    """Return whether ``X-Hub-Signature`` is that of a body under a secret (section 7.1), compared in constant time."""
    method, _, signature = header.strip().partition("=")
    if method.lower() not in _METHODS or not signature.isascii():
        return False
    wanted = hmac.new(secret.encode(), body, getattr(hashlib, method.lower())).hexdigest()
    return hmac.compare_digest(wanted, signature.strip().lower())
