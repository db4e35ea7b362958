"""Which addresses may be requested: none of this machine or a private network, unless a setting allows it.

A source's address is untrusted input, and so are its redirects and what its name resolves to. Each hop's address and
everything its name resolves to are checked before the request. The peer's address is checked again once the connection
is open, so that a name that resolves differently by then (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

from douban_pipeline.core.errors import PrivateAddress, SourceUnavailable
from douban_pipeline.core.http_answers import Admit

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def admission(source: str, *, allow_private: bool, remedy: str = "", trusted: str = "") -> Admit:
    """Return the check that refuses addresses for the fetcher of ``source``.

    Args:
        source: Name of the source, as errors show it.
        allow_private: Allow every address that http and https can reach.
        remedy: What the error says can be done about a private address.
        trusted: Address of our own site, whose host and port are allowed whatever they resolve to; empty for none.
    """
    own = urlsplit(trusted).netloc
    refusal = "; ".join(filter(None, ("a private address", remedy)))

    def admit(url: httpx.URL, peer: str | None) -> None:
        if url.scheme not in ("http", "https") or not url.host:
            raise PrivateAddress(source, f"an address of scheme {url.scheme[:20] or 'none'}: only http and https")
        if allow_private or (own and urlsplit(str(url)).netloc == own):
            return
        if peer is not None:
            if peer and not getproxies() and is_private(peer):
                raise PrivateAddress(source, "a private address (reached by its name)")
            return
        if any(map(is_private, _resolved(source, url))):
            raise PrivateAddress(source, refusal)

    return admit


def is_private(address: str) -> bool:
    """Return whether an IP address is not a public one; text that is no IP address counts as private."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(found, ipaddress.IPv6Address):
        embedded = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            embedded = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if embedded is not None:
            return is_private(str(embedded))
    return not found.is_global or found.is_multicast


def _resolved(source: str, url: httpx.URL) -> set[str]:
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(source, f"no connection: {url.host[:100]} cannot be resolved") from error
    return {str(item[4][0]) for item in found}
