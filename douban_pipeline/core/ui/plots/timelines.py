"""Plots of numbers over time, as lines, columns and bars by day, and of amounts such as durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from html import escape

from douban_pipeline.core.ui.plots.svg import (
    WIDTH,
    colour,
    frame,
    joined,
    path,
    round_up,
    text,
    ticks,
    width,
)

_LEAST = 4.0
"""Smallest end of an axis of counts: a shorter axis would have fractional marks."""

_OUT_OF_REACH = 40.0
"""A limit is drawn only up to this multiple of the highest column."""


@dataclass(frozen=True, slots=True)
class Track:
    """One line over time.

    Attributes:
        name: Its name in the legend.
        points: Times and numbers (0 or more), in order of time.
        colour: 1 to 4.
    """

    name: str
    points: Sequence[tuple[datetime, float]]
    colour: int = 1


@dataclass(frozen=True, slots=True)
class Series:
    """One part of every column.

    Attributes:
        name: Its name in the legend.
        values: One number (0 or more) per column.
        colour: 1 to 4.
    """

    name: str
    values: Sequence[float]
    colour: int = 1


def timeline(
    tracks: Sequence[Track],
    *,
    title: str,
    start: datetime,
    end: datetime,
    marks: Sequence[tuple[datetime, str]],
    gap: timedelta,
    height: int = 130,
) -> str:
    """Return numbers over time as lines; without points between ``start`` and ``end``, an empty string.

    Args:
        tracks: Drawn in this order, the last on top.
        title: Shown above.
        start: Time at the left edge.
        end: Time at the right edge, later than ``start``.
        marks: Times marked under the axis, with their labels.
        gap: Points further apart are not connected, because nothing is known between them.
        height: Height of the plot area, in pixels.
    """
    seen = [Track(item.name, [p for p in item.points if start <= p[0] <= end], item.colour) for item in tracks]
    values = [value for track in seen for _, value in track.points]
    if not values:
        return ""
    canvas = _Canvas(max(values), height, [(track.name, track.colour) for track in seen])

    def x(moment: datetime) -> float:
        return canvas.left + (canvas.right - canvas.left) * ((moment - start) / (end - start))

    parts = [text(0, 16, title, "dp-h"), *canvas.ground()]
    for moment, words in marks:
        if start <= moment <= end:
            parts.append(path(f"M{x(moment):.1f} {canvas.top}V{canvas.bottom}", "dp-g"))
            parts.append(canvas.mark(x(moment), words))
    for track in seen:
        for piece in _pieces(track.points, gap):
            # A point without neighbours is drawn as a dash: a line of length 0 is invisible.
            drawn = [(x(moment), canvas.y(value)) for moment, value in piece]
            drawn = drawn if len(drawn) > 1 else [(drawn[0][0] - 1, drawn[0][1]), (drawn[0][0] + 1, drawn[0][1])]
            parts.append(path(joined(drawn), f"dp-l dp-l{colour(track.colour)}"))
    return frame(title, canvas.bottom + 24, parts)


def columns(
    series: Sequence[Series],
    *,
    title: str,
    marks: Sequence[str],
    limit: float | None = None,
    limit_name: str = "",
    height: int = 110,
) -> str:
    """Return a stacked column for each of ``marks``; without any, an empty string.

    Args:
        series: From bottom to top.
        title: Shown above.
        marks: Labels under the columns, from left to right; empty for none.
        limit: A limit, drawn as a dotted line. One far above the columns is only named in the legend, because drawing
            it would make the columns too small.
        limit_name: Its name in the legend.
        height: Height of the plot area, in pixels.
    """
    if not marks:
        return ""
    sums = [sum(item.values[number] for item in series) for number in range(len(marks))]
    if limit is not None and 0 < max(sums) * _OUT_OF_REACH < limit:
        title, limit, limit_name = f"{title} · {limit_name}", None, ""
    canvas = _Canvas(max([*sums, limit or 0.0]), height, [(item.name, item.colour) for item in series], limit_name)
    step = (canvas.right - canvas.left) / len(marks)
    broad = step * 0.8
    parts = [text(0, 16, title, "dp-h"), *canvas.ground()]
    for number, words in enumerate(marks):
        if words:
            parts.append(canvas.mark(canvas.left + step * (number + 0.5), words))
    heights = [0.0] * len(marks)
    for item in series:
        area = ""
        for number, value in enumerate(item.values):
            if value > 0:
                low, high = canvas.y(heights[number]), canvas.y(heights[number] + value)
                left = canvas.left + step * number + (step - broad) / 2
                area += f"M{left:.1f} {low:.1f}V{high:.1f}h{broad:.1f}V{low:.1f}z"
                heights[number] += value
        if area:
            parts.append(path(area, f"dp-p{colour(item.colour)}"))
    if limit is not None:
        parts.append(path(f"M{canvas.left:.1f} {canvas.y(limit):.1f}H{canvas.right:.1f}", "dp-goal"))
    return frame(title, canvas.bottom + 24, parts)


class _Canvas:
    """The coordinates of a plot: its axis, grid and legend."""

    def __init__(self, most: float, height: int, legend: Sequence[tuple[str, int]], limit_name: str = "") -> None:
        self._most = round_up(max(most, _LEAST))
        self._ticks = [tick for tick in ticks(0.0, self._most) if tick == int(tick)]
        self._legend = legend
        self._limit_name = limit_name
        rows = list(self._rows())
        self.top = 34 + 20 * (max((row for row, *_ in rows), default=-1) + 1) + 6
        self.bottom = self.top + height
        self.left = 12 + max(width(_count(tick)) for tick in self._ticks)
        self.right = WIDTH - 8.0

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * value / self._most

    def ground(self) -> Iterator[str]:
        """Draw the legend and the grid."""
        for row, x, name, number in self._rows():
            middle = 34 + 20 * row
            if number:
                yield path(f"M{x:.1f} {middle - 1}h12v9h-12z", f"dp-p{colour(number)}")
            else:
                yield path(f"M{x:.1f} {middle + 3.5}h12", "dp-goal")
            yield text(x + 18, middle + 8.5, name, "dp-m")
        for tick in self._ticks:
            yield path(f"M{self.left:.1f} {self.y(tick):.1f}H{self.right:.1f}", "dp-g")
            yield text(self.left - 8, self.y(tick) + 4, _count(tick), "dp-m", anchor="end")

    def mark(self, x: float, words: str) -> str:
        # A text under the edge must not be clipped.
        x = min(x, WIDTH - width(words) / 2)
        return text(x, self.bottom + 18, words, "dp-m", anchor="middle")

    def _rows(self) -> Iterator[tuple[int, float, str, int]]:
        """Yield row, position, name and colour of each entry of the legend; colour 0 is the limit's."""
        row, x = 0, 0.0
        for name, number in [*self._legend, *([(self._limit_name, 0)] if self._limit_name else [])]:
            needed = 18 + width(name) + 16
            if x and x + needed > WIDTH:
                row, x = row + 1, 0.0
            yield row, x, name, number
            x += needed


def _pieces(points: Sequence[tuple[datetime, float]], gap: timedelta) -> Iterator[list[tuple[datetime, float]]]:
    piece: list[tuple[datetime, float]] = []
    for item in points:
        if piece and item[0] - piece[-1][0] > gap:
            yield piece
            piece = []
        piece.append(item)
    if piece:
        yield piece


def _count(value: float) -> str:
    return f"{value:,.0f}"


_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 600, 120, 34, 18


def day_bars(values: Sequence[float], days: Sequence[date], title: str) -> str:
    """Return an SVG of vertical bars, one per day.

    Args:
        values: One number per day, 0 or more.
        days: The days, in order.
        title: What is counted.
    """
    top = max([*values, 1])
    step = (_WIDTH - _LEFT) / len(values)
    floor = _HEIGHT - _BOTTOM
    bars = "".join(
        f'<rect x="{_LEFT + number * step:.1f}" y="{floor - value / top * (floor - 16):.1f}" width="{step - 2:.1f}" '
        f'height="{value / top * (floor - 16):.1f}" fill="#4a7ebb"><title>{days[number]}: {value:g}</title></rect>'
        for number, value in enumerate(values)
    )
    text = 'font-family="sans-serif" font-size="11" fill="#888"'
    labels: Mapping[float, date] = {_LEFT: days[0], _WIDTH - 62: days[-1]}
    dates = "".join(f'<text x="{x:.0f}" y="{_HEIGHT - 4}" {text}>{each}</text>' for x, each in labels.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<text x="{_LEFT}" y="11" {text}>{escape(title)}</text><text x="0" y="24" {text}>{top:g}</text>'
        f'<line x1="{_LEFT}" y1="{floor}" x2="{_WIDTH}" y2="{floor}" stroke="#888"/>{bars}{dates}</svg>'
    )


@dataclass(frozen=True, slots=True)
class AmountRow:
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
    rows: Sequence[AmountRow],
    *,
    title: str,
    usual: str,
    reach: str,
    format_amount: Callable[[float], str],
    unit: tuple[float, str] = (1.0, ""),
) -> str:
    """Return horizontal bars, each extended by a line to `AmountRow.reach`; without rows, an empty string.

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

    def row_parts(row: AmountRow, words: str, middle: float) -> Iterator[str]:
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
