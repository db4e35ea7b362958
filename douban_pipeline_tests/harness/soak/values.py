"""Values of the CMS's columns as the soak compares them: one text a value, whoever told it, short enough to keep."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

NO_ROW = "(no row)"
"""What stands in every column of a video that does not exist."""

_DECIMALS = frozenset({"vod_score", "vod_douban_score"})
_LONGEST = 64
_SHOWN = 24


def canonical(column: str, value: Any) -> str:
    """Return ``value`` of ``column`` as text: equal for equal values, whether the database, JSON or Python told them.

    Long texts become their beginning and a hash, so that the history of a library fits into memory.
    """
    if value is None:
        return "(null)"
    if column in _DECIMALS:
        return str(Decimal(str(value)).quantize(Decimal("0.1")))
    text = str(value)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{text[:_SHOWN]}… #{digest}"


def canonical_row(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return a row, or some columns of one, as `canonical` texts; the key is left out."""
    return {str(name): canonical(str(name), value) for name, value in row.items() if name != "vod_id"}
