"""Values as the change log keeps them: in JSON, and back again as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from douban_pipeline.cms.maccms import DECIMAL_COLUMNS


def encode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as the log stores them in JSON; see `decode`."""
    encoded: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Decimal):
            encoded[name] = str(value)
        elif isinstance(value, datetime):
            encoded[name] = {"time": value.isoformat()}
        else:
            encoded[name] = value
    return encoded


def decode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return logged values as they are written: scores as `Decimal`, times as `datetime`."""
    decoded: dict[str, Any] = {}
    for name, value in values.items():
        if name in DECIMAL_COLUMNS and value is not None:
            decoded[name] = Decimal(value)
        elif isinstance(value, dict) and "time" in value:
            decoded[name] = datetime.fromisoformat(value["time"])
        else:
            decoded[name] = value
    return decoded
