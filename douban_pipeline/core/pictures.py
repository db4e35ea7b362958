"""Pictures of untrusted addresses, fetched by the service and cached on its disk: browsers contact no third party.

Only public addresses and the site's own host are contacted. An answer is accepted if it is small enough and begins like
a picture. No address is taken from a request.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from douban_pipeline.core.addresses import admission
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.http_answers import HttpRequest
from douban_pipeline.core.http_transport import Transport
from douban_pipeline.core.payload import DEFAULT_RULES
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline.core.ui.report_files import ReportFileError, ReportFolder

MOST_BYTES = 3_000_000
"""Size limit of a picture, in bytes."""

_SECONDS = 10.0
"""Time limit for fetching a picture with its redirects, in seconds of wall-clock time."""

_AT_ONCE = 4
_FORGET = timedelta(minutes=10)
"""How long a picture that could not be fetched is not requested again."""

_DAYS, _MOST_FILES = 30, 20_000
_BEGINNINGS: Mapping[bytes, str] = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class NoPicture(Exception):  # noqa: N818 (it says what happened)
    """There is no picture; the message says why, in Chinese."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it was received, with its media type."""

    body: bytes
    media_type: str


def picture_folder(home: Path) -> Path:
    """Return the folder under HOME in which fetched pictures are kept."""
    return home.absolute() / "cache" / "posters"


def kept_picture(home: Path, address: str) -> Path:
    """Return the file under HOME that keeps the picture of an address."""
    return picture_folder(home) / hashlib.sha256(address.encode()).hexdigest()


class KeptPictures:
    """Posters by their addresses, kept under HOME. Safe to share between threads.

    Args:
        home: The folder HOME.
        clock: Source of the current time.
        site: Address of the video site, whose own pictures may be on a private address; empty for none.
    """

    def __init__(self, home: Path, clock: Clock, site: str) -> None:
        self._home, self._clock = home, clock
        self._folder = ReportFolder(picture_folder(home), "", f"{BASE_PREFIX}HOME")
        self._transport = Transport(
            "poster",
            DEFAULT_RULES,
            {"Accept": "image/*"},
            admission("poster", allow_private=False, trusted=site),
            timeout=_SECONDS,
            deadline=_SECONDS,
            max_bytes=MOST_BYTES,
            keep_alive=0,
        )
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._missing: dict[str, datetime] = {}

    def at(self, address: str) -> Picture:
        """Return the picture of an address.

        Raises:
            NoPicture: The address is empty, or there is none that can be fetched or shown.
        """
        if not address:
            raise NoPicture("没有海报")
        path = kept_picture(self._home, address)
        name = path.name
        kept = _read(path)
        if kept is not None:
            return kept
        now = self._clock.now()
        if now - self._missing.get(name, datetime.min.replace(tzinfo=UTC)) < _FORGET:
            raise NoPicture("海报刚才无法取得")
        with self._turns:
            kept = _read(path)
            if kept is not None:
                return kept
            try:
                picture = self._fetch(address)
            except NoPicture:
                self._missing[name] = now
                if len(self._missing) > _MOST_FILES:
                    self._missing.clear()
                raise
        # If the disk is full, the picture is returned without being cached.
        with suppress(ReportFileError):
            self._folder.write(name, picture.body)
            self._tidy()
        return picture

    def _fetch(self, address: str) -> Picture:
        try:
            request = HttpRequest("GET", httpx.URL(address))
            answer = self._transport.send(request)
        except (httpx.InvalidURL, SourceError) as error:
            raise NoPicture(f"海报无法取得（{type(error).__name__}）") from error
        if answer.status != 200:
            raise NoPicture(f"海报无法取得（HTTP {answer.status}）")
        media_type = media_type_of(answer.body)
        if not media_type:
            raise NoPicture("不是可显示的图片")
        return Picture(answer.body, media_type)

    def _tidy(self) -> None:
        """Remove old files if there are more than `_MOST_FILES`."""
        files = list(self._folder.path.iterdir())
        if len(files) <= _MOST_FILES:
            return
        oldest = (self._clock.now() - timedelta(days=_DAYS)).timestamp()
        for file in files:
            with suppress(OSError):
                if file.stat().st_mtime < oldest:
                    file.unlink()


def media_type_of(body: bytes) -> str:
    """Return the media type of a picture by its first bytes, whatever its server says; empty if it is no picture."""
    for beginning, media_type in _BEGINNINGS.items():
        if body.startswith(beginning):
            return media_type
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if body[4:12] in (b"ftypavif", b"ftypavis") else ""


def _read(path: Path) -> Picture | None:
    try:
        body = path.read_bytes()
    except OSError:
        return None
    return Picture(body, media_type_of(body))
