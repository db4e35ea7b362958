"""Plots of shares: bars with confidence intervals, and curves of one share over another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.core.intervals import Interval, Rate
from douban_pipeline.core.ui.plots.svg import (
    WIDTH,
    colour,
    frame,
    joined,
    path,
    point,
    round_up,
    text,
    ticks,
    width,
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a bar plot.

    Attributes:
        label: Its label.
        value: A share, 0 to 1; None if there is no data.
        interval: Confidence interval of the share.
        note: Shown after the value, such as the number of rows.
    """

    label: str
    value: float | None
    interval: Interval | None = None
    note: str = ""

    @classmethod
    def of_rate(cls, label: str, rate: Rate) -> Bar:
        """Return the bar of a rate, with its counts as the note."""
        return cls(label, rate.share, rate.interval if rate.total else None, f"{rate.hits}/{rate.total}")

    @property
    def caption(self) -> str:
        """The value as text."""
        return " · ".join(filter(None, ("—" if self.value is None else percent(self.value), self.note)))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a curve plot.

    Attributes:
        name: Its name in the legend.
        points: Shares, 0 to 1, as (x, y), in the order they are connected.
        mark: A point to highlight, if any.
        dashed: Whether the line is dashed.
        colour: 1 to 4; related lines share one.
    """

    name: str
    points: Sequence[tuple[float, float]]
    mark: tuple[float, float] | None = None
    dashed: bool = False
    colour: int = 1


def bars(
    rows: Sequence[Bar], *, title: str, low: float = 0.0, high: float | None = None, goal: float | None = None
) -> str:
    """Return horizontal bars with their intervals as whiskers; without rows, an empty string.

    Args:
        rows: From top to bottom.
        title: Shown above.
        low: Share at the left edge. Above 0 points are drawn, because the length of a bar would mean nothing.
        high: Share at the right edge; by default as needed by the rows.
        goal: Target share, drawn as a dotted line.
    """
    if not rows:
        return ""
    reached = [bar.interval.high if bar.interval else bar.value for bar in rows if bar.value is not None]
    high = _edge(max([*reached, goal or 0.0])) if high is None else high
    if not low < high:
        raise ValueError(f"an axis from {low} to {high} has no length")
    left = min(175.0, max(width(bar.label) for bar in rows)) + 12
    right = WIDTH - max(width(bar.caption) for bar in rows) - 14
    top, step = 34.0, 26.0
    bottom = top + step * len(rows)

    def x(share: float) -> float:
        return left + (right - left) * (min(max(share, low), high) - low) / (high - low)

    def row(bar: Bar, middle: float) -> Iterator[str]:
        yield text(left - 12, middle + 4.5, bar.label, anchor="end", most=left - 12)
        yield text(right + 14, middle + 4.5, bar.caption)
        if bar.value is None:
            return
        if low:
            yield point(x(bar.value), middle, 1)
        else:
            length = x(bar.value) - left
            yield f'<rect class="dp-b" x="{left:.1f}" y="{middle - 7:.1f}" width="{length:.1f}" height="14"/>'
        if bar.interval:
            # A bound beyond the edge has no cap.
            caps = "".join(f"M{x(bound):.1f} {middle - 4:.1f}v8" for bound in bar.interval if low <= bound <= high)
            yield path(f"{caps}M{x(bar.interval.low):.1f} {middle:.1f}H{x(bar.interval.high):.1f}", "dp-w")

    parts = [text(0, 16, title, "dp-h"), *_x_axis(low, high, x, top, bottom)]
    for number, bar in enumerate(rows):
        parts += row(bar, top + step * (number + 0.5))
    if goal is not None:
        parts.append(path(f"M{x(goal):.1f} {top - 4:.1f}V{bottom:.1f}", "dp-goal"))
    return frame(title, bottom + 24, parts)


def curve(lines: Sequence[Line], *, title: str, x_label: str, y_label: str) -> str:
    """Return lines over shares, with a legend; without points, an empty string.

    Args:
        lines: Drawn in this order, the last on top.
        title: Shown above.
        x_label: Shown under the horizontal axis.
        y_label: Shown over the vertical axis.
    """
    points = [item for line in lines for item in (*line.points, *([line.mark] if line.mark else ()))]
    if not points:
        return ""
    high_x, high_y = (_edge(max(item[axis] for item in points)) for axis in (0, 1))
    top = 34.0 + 20 * len(lines) + 26
    bottom = top + 230
    left = 12 + max(width(_tick(tick)) for tick in ticks(0.0, high_y))
    right = WIDTH - 20.0

    def x(share: float) -> float:
        return left + (right - left) * share / high_x

    def y(share: float) -> float:
        return bottom - (bottom - top) * share / high_y

    parts = [text(0, 16, title, "dp-h"), text(0, top - 14, y_label, "dp-m"), *_x_axis(0.0, high_x, x, top, bottom)]
    parts.append(text(right, bottom + 36, x_label, "dp-m", anchor="end"))
    for tick in ticks(0.0, high_y):
        parts.append(path(f"M{left:.1f} {y(tick):.1f}H{right:.1f}", "dp-g"))
        parts.append(text(left - 8, y(tick) + 4, _tick(tick), "dp-m", anchor="end"))
    for number, line in enumerate(lines):
        style = f"dp-l dp-l{colour(line.colour)}" + (" dp-d" if line.dashed else "")
        parts.append(path(f"M0 {34 + 20 * number + 4}h26", style))
        parts.append(text(34, 34 + 20 * number + 8.5, line.name, most=WIDTH - 34))
        if line.points:
            parts.append(path(joined([(x(a), y(b)) for a, b in line.points]), style))
    parts += [point(x(line.mark[0]), y(line.mark[1]), colour(line.colour)) for line in lines if line.mark]
    return frame(title, bottom + 44, parts)


def percent(share: float) -> str:
    """Return a share as a percentage: more digits near the ends, and 0 or 100 only if exact."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    for digits in (1,) if 0.01 <= share <= 0.99 else (2, 3):
        shown = f"{100 * share:.{digits}f}"
        if float(shown) not in (0.0, 100.0):
            return f"{shown} %"
    return "< 0.001 %" if share < 0.5 else "> 99.999 %"


def _edge(most: float) -> float:
    """Return the end of an axis that must show ``most``: a round share above 0."""
    return min(round_up(most), max(1.0, most)) if most > 0 else 0.01


def _tick(share: float) -> str:
    return f"{100 * share:.6g} %"


def _x_axis(low: float, high: float, x: Callable[[float], float], top: float, bottom: float) -> Iterator[str]:
    # Labels of a short axis would overlap.
    for tick in ticks(low, high, 4 if x(high) - x(low) > 250 else 2):
        yield path(f"M{x(tick):.1f} {top - 4:.1f}V{bottom:.1f}", "dp-g")
        yield text(x(tick), bottom + 18, _tick(tick), "dp-m", anchor="middle")
