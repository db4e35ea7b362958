"""Numbers as people read them."""

from __future__ import annotations


def share_text(share: float | None) -> str:
    """Return a share of 0 to 1 as a percentage, a dash for None."""
    return "—" if share is None else f"{share:.1%}"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit that makes it readable."""
    size, unit = time_unit(seconds)
    return f"{_number(seconds / size)} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration is readable: its seconds, and its name."""
    for limit, size, unit in ((90, 1.0, "秒"), (5400, 60.0, "分"), (172_800, 3600.0, "小时")):
        if seconds < limit:
            return size, unit
    return 86_400.0, "天"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{round(value, 1 if value >= 10 else 2):g}"
