"""Login at WeRSS: one token shared by all processes, renewed before it expires, with as few logins as possible.

After five refused logins WeRSS locks the account until it is restarted, even for the right password. So refusals are
stored beside the token: the same credentials are retried only after hours, three times in all.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from douban_pipeline.core.files import replaced

LONGEST_REFUSALS = 3
"""Refused logins after which the same credentials are not tried again."""
REFUSAL_SECONDS = 6 * 3600
"""How long after a refused login the next one is tried."""
RENEWED_AT = 0.2
"""Remaining share of a token's lifetime at which it is renewed."""


@dataclass(frozen=True, slots=True)
class WeRssLogin:
    """Credentials: account and password, or ``KEY:SECRET`` of an access key (1.4.9 and later)."""

    username: str = ""
    password: str = ""
    access_key: str = ""

    @property
    def fingerprint(self) -> str:
        """Identifies these credentials without revealing them."""
        return hashlib.sha256(f"{self.username}\x00{self.password}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class WeRssSession:
    """State of the login.

    Attributes:
        token: The token; empty for none.
        begins: When it was issued, in seconds.
        ends: When it expires.
        refused: Number of refused logins in a row.
        refused_at: When a login was last refused.
        refused_login: Which credentials were refused, as `WeRssLogin.fingerprint`.
    """

    token: str = ""
    begins: float = 0.0
    ends: float = 0.0
    refused: int = 0
    refused_at: float = 0.0
    refused_login: str = ""

    def is_good(self, now: float) -> bool:
        """Return whether the token can be used."""
        return bool(self.token) and self.begins <= now + 60 and now < self.ends

    def is_old(self, now: float) -> bool:
        """Return whether it is time to renew the token."""
        return now >= self.ends - RENEWED_AT * (self.ends - self.begins)

    def next_login(self, login: WeRssLogin) -> float | None:
        """Return when these credentials may be tried: 0 for now, None for not again."""
        if not self.refused or self.refused_login != login.fingerprint:
            return 0.0
        return None if self.refused >= LONGEST_REFUSALS else self.refused_at + REFUSAL_SECONDS


class SessionStore(Protocol):
    """Storage of a session."""

    def held(self) -> Any:
        """Return a context that locks the session for exclusive use."""
        ...

    def read(self) -> WeRssSession:
        """Return the session, empty if there is none."""
        ...

    def write(self, session: WeRssSession) -> None:
        """Store a session, replacing the previous one."""
        ...


class MemorySessions:
    """A session in this process only."""

    def __init__(self) -> None:
        self._session = WeRssSession()
        self._lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock out this process's other threads."""
        with self._lock:
            yield

    def read(self) -> WeRssSession:
        """Return the session."""
        return self._session

    def write(self, session: WeRssSession) -> None:
        """Store a session."""
        self._session = session


class FileSessions:
    """A session shared by all processes of one account of this machine, in a file that only its owner can read.

    Args:
        folder: Where the file is.
        base: Address of WeRSS's API.
        username: Account at WeRSS.
    """

    def __init__(self, folder: Path, base: str, username: str) -> None:
        name = hashlib.sha256(f"{base}\x00{username}".encode()).hexdigest()[:12]
        self.path = folder / f"werss-session-{name}.json"
        self._lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock out other threads and processes until the block ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            handle = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)

    def read(self) -> WeRssSession:
        """Return the session; an unreadable one counts as none."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return WeRssSession(**found)
        except (OSError, ValueError, TypeError):
            return WeRssSession()

    def write(self, session: WeRssSession) -> None:
        """Store a session atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(self.path, 0o600) as part:
            part.write_text(json.dumps(asdict(session)), encoding="utf-8")

    def forget(self) -> bool:
        """Delete token and refusals, so that the next call logs in; return whether there were any."""
        with self.held():
            there = self.path.exists()
            self.path.unlink(missing_ok=True)
        return there


def expiry_of(token: str) -> float | None:
    """Return the expiry time stated in a JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None
