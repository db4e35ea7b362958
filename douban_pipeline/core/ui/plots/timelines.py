"""Plots of numbers over time: lines, and columns that may be stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

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
