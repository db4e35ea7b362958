"""Rows as the CMS stores them, and as files that MariaDB loads; also run as a process of its own, several at once.

``python -m douban_pipeline_tests.harness.generated.stored FIRST LAST SEED NOW FILE`` writes the rows ``FIRST`` to
``LAST``; ``NOW`` is in unix seconds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from douban_pipeline.demo.cms_schema import VOD_COLUMNS
from douban_pipeline_tests.harness.generated.videos import COLUMNS as GIVEN
from douban_pipeline_tests.harness.generated.videos import video_of

FIELD_END, LINE_END = "\x1f", "\x1e"
"""Neither is ever in a row, so that nothing in the file has to be escaped."""

_FALLBACKS = {
    column.name: column.fallback
    for column in VOD_COLUMNS
    if column.name in GIVEN or (column.default is None and not column.nullable)
}

COLUMNS = tuple(_FALLBACKS)
"""What a row has, in this order: what generated videos have, and what has no default; the rest is the table's."""

_WIDTHS = tuple((column.name, column.width) for column in VOD_COLUMNS if column.width and column.name in GIVEN)
_SPECIAL = re.compile("[&<>\"']").search
_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#039;"}


def stored_of(vod_id: int, seed: int, now: datetime) -> dict[str, Any]:
    """Return :data:`COLUMNS` of a video, short text escaped and cut as `demo.library.escape_as_cms` does."""
    row = _FALLBACKS | video_of(vod_id, seed, now)
    for name, width in _WIDTHS:
        text = row[name]
        if text:
            if _SPECIAL(text):
                row[name] = text = text.translate(_ENTITIES)
            if len(text) > width:
                row[name] = text[:width]
    return row


def write_file(path: Path, vod_ids: Iterable[int], seed: int, now: datetime) -> None:
    """Write rows for `LOAD DATA`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for vod_id in vod_ids:
            file.write(FIELD_END.join(map(str, stored_of(vod_id, seed, now).values())) + LINE_END)


def main(first: str, last: str, seed: str, now: str, path: str) -> None:
    """Write one file; see the module."""
    write_file(Path(path), range(int(first), int(last) + 1), int(seed), datetime.fromtimestamp(int(now), UTC))


if __name__ == "__main__":
    main(*sys.argv[1:])
