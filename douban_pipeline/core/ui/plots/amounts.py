"""Plots of amounts that are not shares, such as durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.core.ui.plots.svg import WIDTH, frame, path, round_up, text, ticks, width


@dataclass(frozen=True, slots=True)
class Span:
    """One row: the usual amount, and the largest one shown.

    Attributes:
        label: Its label.
        usual: Length of the bar, 0 or more.
        reach: End of the line behind it, 0 or more.
    """

    label: str
    usual: float
    reach: float


def spans(
    rows: Sequence[Span],
    *,
    title: str,
    usual: str,
    reach: str,
    format_amount: Callable[[float], str],
    unit: tuple[float, str] = (1.0, ""),
) -> str:
    """Return horizontal bars, each extended by a line to `Span.reach`; without rows, an empty string.

    Args:
        rows: From top to bottom.
        title: Shown above.
        usual: Name of the bars in the legend.
        reach: Name of the ends of the lines in the legend.
        format_amount: Returns an amount as text.
        unit: Unit of the axis: its size, and its name.
    """
    if not rows:
        return ""
    amounts = [f"{format_amount(row.usual)} · {format_amount(row.reach)}" for row in rows]
    size, name = unit
    high = size * round_up(max(*(max(row.usual, row.reach) for row in rows), 1e-3) / size)
    left = min(175.0, max(width(row.label) for row in rows)) + 12
    right = WIDTH - max(map(width, amounts)) - 14
    top, step = 58.0, 26.0
    bottom = top + step * len(rows)

    def x(amount: float) -> float:
        return left + (right - left) * amount / high

    def row_parts(row: Span, words: str, middle: float) -> Iterator[str]:
        yield text(left - 12, middle + 4.5, row.label, anchor="end", most=left - 12)
        yield text(right + 14, middle + 4.5, words)
        yield path(f"M{left:.1f} {middle - 7:.1f}H{x(row.usual):.1f}v14H{left:.1f}z", "dp-b")
        yield path(f"M{x(row.usual):.1f} {middle:.1f}H{x(row.reach):.1f}m0 -4v8", "dp-w")

    second = 18 + width(usual) + 16
    parts = [
        text(0, 16, title, "dp-h"),
        path("M0 33h12v9h-12z", "dp-b"),
        text(18, 42.5, usual, "dp-m"),
        path(f"M{second:.1f} 37.5h12m0 -4v8", "dp-w"),
        text(second + 18, 42.5, reach, "dp-m"),
    ]
    for tick in ticks(0.0, high / size, 4 if right - left > 250 else 2):
        across = x(tick * size)
        parts.append(path(f"M{across:.1f} {top - 4:.1f}V{bottom:.1f}", "dp-g"))
        parts.append(text(across, bottom + 18, f"{tick:g} {name}".rstrip(), "dp-m", anchor="middle"))
    for number, row in enumerate(rows):
        parts += row_parts(row, amounts[number], top + step * (number + 0.5))
    return frame(title, bottom + 24, parts)
