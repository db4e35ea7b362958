"""Credentials with which sources are asked: basic, bearer or a cookie. The store keeps only their names.

They are written as one JSON object, in a file that only its owner may read::

    {"paper": {"host": "example.com", "user": "reader", "password": "…"},
     "board": {"host": "board.example.com", "bearer": "…"},
     "forum": {"host": "forum.example.com", "cookie": "session=…"}}

Each belongs to one host, so that a source whose address changes never carries a secret elsewhere.
"""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text

_WAYS = ({"user", "password"}, {"bearer"}, {"cookie"})


@dataclass(frozen=True, slots=True)
class Credential:
    """One of them: its name, its host (with a port, unless it is the scheme's own), and the headers it sends."""

    name: str
    host: str
    headers: Mapping[str, str] = field(repr=False)


def read_credentials(file: str, setting: str) -> dict[str, Credential]:
    """Return the credentials of a file by name; none without a file.

    Args:
        file: Its path; empty for none.
        setting: Its variable, for errors.

    Raises:
        ProblemsError: The file cannot be read, others may read it, or an object cannot be used. No error shows a
            secret.
    """
    return _parsed(_private_text(Path(file), setting), f"{setting}={file}") if file else {}


def _private_text(path: Path, setting: str) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            message = terminal_text("{setting}: {path} may be read by others (mode {mode:o}); chmod 600 {path}")
            raise ProblemsError([message.format(setting=setting, path=path, mode=mode)])
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = terminal_text("{setting}: {path} cannot be read ({error}); create it with mode 600, or unset it")
        raise ProblemsError([message.format(setting=setting, path=path, error=type(error).__name__)]) from None


def _parsed(text: str, setting: str) -> dict[str, Credential]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = terminal_text("{setting} is no JSON object of names; its form is in docs/feeds.md")
        raise ProblemsError([message.format(setting=setting)])
    return {name: _credential(name, given, setting) for name, given in found.items()}


def _credential(name: str, given: object, setting: str) -> Credential:
    fields = given if isinstance(given, dict) and all(isinstance(each, str) for each in given.values()) else {}
    host = fields.get("host", "").strip().lower()
    secrets = {key: value for key, value in fields.items() if key != "host"}
    # A line break would begin another header.
    clean = all(value and value.isprintable() for value in secrets.values())
    if not host or set(secrets) not in _WAYS or not clean or not 0 < len(name) <= 64:
        message = terminal_text("{setting}: {name} needs a host, and user and password, or bearer, or cookie")
        raise ProblemsError([message.format(setting=setting, name=name[:64] or "?")])
    if "bearer" in secrets:
        headers = {"Authorization": f"Bearer {secrets['bearer']}"}
    elif "cookie" in secrets:
        headers = {"Cookie": secrets["cookie"]}
    else:
        pair = f"{secrets['user']}:{secrets['password']}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return Credential(name, host, headers)
