"""Converts TMDB's values into values that PostgreSQL and the graph can store. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from douban_pipeline.tmdb.types import BIGGEST_ID, PayloadError

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 200


def clean(value: Any, depth: int = 0) -> Any:
    """Return a JSON value accepted by ``jsonb``: without NUL, and with U+FFFD in place of half a surrogate pair.

    Raises:
        PayloadError: It contains a value that is not JSON (NaN, infinity, other types), or is nested too deeply.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value.replace("\x00", ""))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PayloadError(f"{value} is no JSON")
        return value
    if depth > _DEEPEST:
        raise PayloadError(f"nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        return {clean(str(name)): clean(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    raise PayloadError(f"{type(value).__name__} is no JSON")


def text_of(value: object) -> str | None:
    """Return a text without NUL and blanks around it; None if nothing is left."""
    if not isinstance(value, str):
        return None
    if "\x00" in value or (not value.isascii() and _SURROGATE.search(value)):
        value = str(clean(value))
    return value.strip() or None


def day_of(value: object) -> date | None:
    """Return the date ``YYYY-MM-DD``; None for anything else, such as TMDB's empty dates."""
    match = _DAY.fullmatch(value.strip()) if isinstance(value, str) else None
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def number_of(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def count_of(value: object) -> int | None:
    """Return a whole number that fits an ``int`` column; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= BIGGEST_ID:
        return None
    return value


def id_of(value: object) -> int | None:
    """Return a TMDB id; None for a value that cannot be one."""
    return count_of(value) or None


def items_of(value: object, name: str) -> list[dict[str, Any]]:
    """Return the objects in the list ``value[name]``; empty if there is no such list."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
