"""Values of the log as people read them: CMS columns and our state, shortened, in the site's zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.presentation import local_time

MOST = 60
"""Characters of a text that are shown."""

EMPTY = "（空）"


def shown(value: Any, zone: ZoneInfo, *, most: int = MOST) -> str:
    """Return a value in at most about ``most`` characters; a text that is cut says how long it is."""
    if value is None or value == "":
        return EMPTY
    if isinstance(value, datetime):
        return local_time(value, zone)
    if isinstance(value, bool):
        return "是" if value else "否"
    if isinstance(value, Decimal | int | float):
        return f"{value}"
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[:most]}…（共 {len(text)} 字）"


def described_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], columns: Iterable[str], zone: ZoneInfo, *, most: int = MOST
) -> list[str]:
    """Return ``column：before → after`` for each of ``columns``; where nothing changes, its value alone."""
    lines = []
    for column in columns:
        old, new = shown(before.get(column), zone, most=most), shown(after.get(column), zone, most=most)
        lines.append(
            f"{column}：{old} → {new}" if before.get(column) != after.get(column) else f"{column}：{new}（未变）"
        )
    return lines
