"""Logging in at WeRSS: a token that all processes share, renewed before it ends, and as few logins as can be.

After five refused logins WeRSS locks the account until it is restarted, even for the right password. So a refusal is
kept beside the token: the same account and password are tried again after hours only, three times in all.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

LONGEST_REFUSALS = 3
"""Refused logins after which the same account and password are not tried again."""
REFUSAL_SECONDS = 6 * 3600
"""How long after a refused login the next one is tried."""
RENEWED_AT = 0.2
"""Share of a token's life that is left when it is renewed."""


@dataclass(frozen=True, slots=True)
class WeRssLogin:
    """How to log in: account and password, or ``KEY:SECRET`` of an access key (1.4.9 and later)."""

    username: str = ""
    password: str = ""
    access_key: str = ""

    @property
    def fingerprint(self) -> str:
        """What tells these credentials from others, without naming them."""
        return hashlib.sha256(f"{self.username}\x00{self.password}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class WeRssSession:
    """What is known of being logged in.

    Attributes:
        token: The token; empty for none.
        begins: When it was given, in seconds.
        ends: When it ends.
        refused: How often in a row a login was refused.
        refused_at: When it was last.
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
    """Where a session is kept."""

    def held(self) -> Any:
        """Return a context in which nobody else reads or writes it."""
        ...

    def read(self) -> WeRssSession:
        """Return the session; an empty one for none."""
        ...

    def write(self, session: WeRssSession) -> None:
        """Keep a session in place of the one before."""
        ...


class MemorySessions:
    """A session of this process alone."""

    def __init__(self) -> None:
        self._session = WeRssSession()
        self._lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep this process's other threads out."""
        with self._lock:
            yield

    def read(self) -> WeRssSession:
        """Return the session."""
        return self._session

    def write(self, session: WeRssSession) -> None:
        """Keep a session."""
        self._session = session


class FileSessions:
    """A session that all processes of an account of this machine share, in a file that only its owner can read.

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
        """Keep other threads and processes out until the block ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            handle = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)

    def read(self) -> WeRssSession:
        """Return the session; what cannot be read counts as none."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return WeRssSession(**found)
        except (OSError, ValueError, TypeError):
            return WeRssSession()

    def write(self, session: WeRssSession) -> None:
        """Keep a session, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".werss-")  # 0600 from the beginning
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(session), file)
            Path(temporary).replace(self.path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    def forget(self) -> bool:
        """Drop token and refusals, so that the next call logs in; return whether there was anything."""
        with self.held():
            there = self.path.exists()
            self.path.unlink(missing_ok=True)
        return there


def expiry_of(token: str) -> float | None:
    """Return when a JWT says that it ends."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None
