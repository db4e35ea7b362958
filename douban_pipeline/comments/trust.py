"""Trust in users and addresses: what moderators set, what newcomers and known users get by themselves. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from douban_pipeline.core.errors import ProblemsError

USER, ADDRESS = "user", "address"
"""Kinds of those whom a level is set for."""
MOST_NUMBER = 1000
_REMEMBERED = 4096
"""Addresses whose networks a process remembers: they are asked for with every request."""
_PREFIXES = {4: (32, 24, 16), 6: (64, 48)}
"""Lengths of the prefixes of an address that a level may be set for; of IPv6 a /64 is what one household has."""


class TrustLevel(StrEnum):
    """What a moderator set for a user or an address."""

    BANNED = "banned"
    """Writes, likes and reports are refused."""
    WATCHED = "watched"
    """Every comment waits for review."""
    TRUSTED = "trusted"
    """Neither links nor being new make a comment wait; words and sections that review first do."""


@dataclass(frozen=True, slots=True)
class TrustRules:
    """How users are trusted whom nobody set a level for.

    Attributes:
        newcomers: Number of first comments of a user that wait for review, and all of guests; 0 for none, the default:
            a site where nobody looks at what waits would lose what its newcomers write.
        trusted_after: Shown comments from which links no longer make a user's comment wait; 0 for never.
    """

    newcomers: int = 0
    trusted_after: int = 50

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> TrustRules:
        """Return the rules that are stored; what is not stored has its default."""
        return cls(**{name: int(stored[name]) for name in ("newcomers", "trusted_after") if name in stored})


@dataclass(frozen=True, slots=True)
class CurrentLevel:
    """A level in force.

    Attributes:
        reason: Why, as the moderator wrote it; a banned user is told.
        until: When it ends; None for never.
    """

    level: TrustLevel
    reason: str = ""
    until: datetime | None = None

    def ban_refusal(self) -> str:
        """Return what a banned visitor is told."""
        until = f"，到 {self.until:%Y-%m-%d %H:%M} (UTC) 为止" if self.until else ""
        return f"你已被禁止发言{until}：{self.reason}"


@lru_cache(_REMEMBERED)
def network_of(address: str) -> str:
    """Return the network that an address is searched by: of IPv4 a /24, of IPv6 a /48; empty for no address."""
    found = _parsed(address)
    if found is None:
        return ""
    return str(ipaddress.ip_network(f"{found}/{24 if found.version == 4 else 48}", strict=False))


@lru_cache(_REMEMBERED)
def subjects_of(address: str) -> tuple[str, ...]:
    """Return what a level may be set for that holds for an address: itself and its networks."""
    found = _parsed(address)
    return () if found is None else tuple(_subject(f"{found}/{length}") for length in _PREFIXES[found.version])


def subject_of(kind: str, given: str) -> str:
    """Return a user's id, an address or a network as it is stored.

    Raises:
        ProblemsError: It is none, or a network of another size.
    """
    text = given.strip()
    if kind == USER:
        if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**63):
            raise ProblemsError([f"不是用户编号：「{text[:40]}」"])
        return str(int(text))
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ProblemsError([f"不是 IP 地址或网段：「{text[:40]}」"]) from None
    if network.version == 6 and network.prefixlen == 128:
        network = ipaddress.ip_network(f"{network.network_address}/64", strict=False)
    if network.prefixlen not in _PREFIXES[network.version]:
        sizes = "、".join(f"/{length}" for lengths in _PREFIXES.values() for length in lengths)
        raise ProblemsError([f"网段的长度只能是 {sizes}"])
    return _subject(str(network))


def _subject(network: str) -> str:
    return str(ipaddress.ip_network(network, strict=False)).removesuffix("/32")


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a socket has none
        return None
    return getattr(found, "ipv4_mapped", None) or found
