"""What a site's sources tell of a video in a soak: the row as a collector brings it, and the subject it really is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from douban_pipeline.demo.cms_schema import VOD_COLUMNS
from douban_pipeline.demo.library import escape_as_cms
from douban_pipeline_tests.harness.generated.videos import video_of, work_id_of
from douban_pipeline_tests.harness.generated.works import known, subject_id_of

_WIDEST_CHARACTER = 0xFFFF
"""utf8mb3 holds no character above it."""


class Source(Protocol):
    """Where rows come from."""

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected: all columns, as the CMS stores them."""

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video, 0 if Douban does not know it."""


class Generated:
    """The generated library as a source.

    Args:
        seed: Of the library.
        now: The present as the library was filled.
    """

    def __init__(self, seed: int, now: datetime) -> None:
        self.seed, self.now = seed, now

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected: all columns, as the CMS stores them."""
        return as_stored(video_of(vod_id, self.seed, self.now))

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video, 0 if Douban does not know it."""
        work_id = work_id_of(vod_id, self.seed)
        return subject_id_of(work_id) if known(work_id, self.seed) else 0


def as_stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the CMS stores it: escaped and cut, without characters that its tables cannot hold."""
    widths = {column.name: column.width for column in VOD_COLUMNS}
    stored: dict[str, Any] = {column.name: column.fallback for column in VOD_COLUMNS}
    for name, value in row.items():
        if isinstance(value, str):
            fitting = "".join(sign if ord(sign) <= _WIDEST_CHARACTER else "?" for sign in value)
            width = widths.get(name)
            value = escape_as_cms(fitting, width) if width else fitting
        stored[name] = value
    return stored
