"""Plots as SVG text that needs nothing else: no library, no font, no script. They follow the reader's light or dark.

Every text is escaped here; callers pass names as they are.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.intervals import Interval

WIDTH = 440
_FONT_SIZE = 13
_COLOURS = 4
_STYLE = """<style>
.dp{--dp-text:#1c2430;--dp-muted:#657080;--dp-line:#dfe4eb;--dp-goal:#a8483f;
--dp-1:#2f6fb5;--dp-2:#c2511b;--dp-3:#2e8b57;--dp-4:#8250b4;
font:13px system-ui,"PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif}
@media(prefers-color-scheme:dark){.dp{--dp-text:#e4e9f0;--dp-muted:#95a1b1;--dp-line:#2c3542;--dp-goal:#f08a80;
--dp-1:#6aaaf2;--dp-2:#f29a63;--dp-3:#62c792;--dp-4:#b998e6}}
.dp text{fill:var(--dp-text)}.dp .dp-m{fill:var(--dp-muted);font-size:12px}.dp .dp-h{font-weight:600}
.dp path{fill:none}.dp .dp-g{stroke:var(--dp-line)}.dp .dp-w{stroke:var(--dp-text);stroke-width:1.5}
.dp .dp-goal{stroke:var(--dp-goal);stroke-dasharray:2 3}.dp .dp-b{fill:var(--dp-1);fill-opacity:.5}
.dp .dp-l{stroke-width:2;stroke-linejoin:round}.dp .dp-d{stroke-dasharray:5 4}
.dp .dp-l1{stroke:var(--dp-1)}.dp .dp-l2{stroke:var(--dp-2)}.dp .dp-l3{stroke:var(--dp-3)}.dp .dp-l4{stroke:var(--dp-4)}
.dp .dp-p1{fill:var(--dp-1)}.dp .dp-p2{fill:var(--dp-2)}.dp .dp-p3{fill:var(--dp-3)}.dp .dp-p4{fill:var(--dp-4)}
</style>"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a bar plot.

    Attributes:
        label: What it is about.
        value: A share, 0 to 1; None where there is nothing to show.
        interval: How sure the share is.
        note: Set behind the value, such as the number of rows.
    """

    label: str
    value: float | None
    interval: Interval | None = None
    note: str = ""

    @property
    def told(self) -> str:
        """The value in words."""
        return " · ".join(filter(None, ("—" if self.value is None else percent(self.value), self.note)))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a curve plot.

    Attributes:
        name: What the legend calls it.
        points: Shares, 0 to 1, as (x, y), in the order they are joined.
        mark: A point to be marked, if any.
        dashed: Whether the line is dashed.
        colour: 1 to 4; lines that belong together share one.
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
        title: Set above.
        low: Share at the left edge. Above 0 points are drawn, as the length of a bar would then mean nothing.
        high: Share at the right edge; by default what the rows need.
        goal: Share that is aimed at, drawn as a dotted line.
    """
    if not rows:
        return ""
    reached = [bar.interval.high if bar.interval else bar.value for bar in rows if bar.value is not None]
    high = _edge(max([*reached, goal or 0.0])) if high is None else high
    if not low < high:
        raise ValueError(f"an axis from {low} to {high} has no length")
    left = min(175.0, max(_width(bar.label) for bar in rows)) + 12
    right = WIDTH - max(_width(bar.told) for bar in rows) - 14
    top, step = 34.0, 26.0
    bottom = top + step * len(rows)

    def x(share: float) -> float:
        return left + (right - left) * (min(max(share, low), high) - low) / (high - low)

    def row(bar: Bar, middle: float) -> Iterator[str]:
        yield _text(left - 12, middle + 4.5, bar.label, anchor="end", most=left - 12)
        yield _text(right + 14, middle + 4.5, bar.told)
        if bar.value is None:
            return
        if low:
            yield _point(x(bar.value), middle, 1)
        else:
            width = x(bar.value) - left
            yield f'<rect class="dp-b" x="{left:.1f}" y="{middle - 7:.1f}" width="{width:.1f}" height="14"/>'
        if bar.interval:
            # A bound beyond the edge has no cap: it goes on.
            caps = "".join(f"M{x(bound):.1f} {middle - 4:.1f}v8" for bound in bar.interval if low <= bound <= high)
            yield _path(f"{caps}M{x(bar.interval.low):.1f} {middle:.1f}H{x(bar.interval.high):.1f}", "dp-w")

    parts = [_text(0, 16, title, "dp-h"), *_x_axis(low, high, x, top, bottom)]
    for number, bar in enumerate(rows):
        parts += row(bar, top + step * (number + 0.5))
    if goal is not None:
        parts.append(_path(f"M{x(goal):.1f} {top - 4:.1f}V{bottom:.1f}", "dp-goal"))
    return _svg(title, bottom + 24, parts)


def curve(lines: Sequence[Line], *, title: str, x_label: str, y_label: str) -> str:
    """Return lines over shares, with a legend; without points, an empty string.

    Args:
        lines: Drawn in this order, the last on top.
        title: Set above.
        x_label: Set under the horizontal axis.
        y_label: Set over the vertical axis.
    """
    points = [point for line in lines for point in (*line.points, *([line.mark] if line.mark else ()))]
    if not points:
        return ""
    high_x, high_y = (_edge(max(point[axis] for point in points)) for axis in (0, 1))
    top = 34.0 + 20 * len(lines) + 26
    bottom = top + 230
    left = 12 + max(_width(_tick(tick)) for tick in _ticks(0.0, high_y))
    right = WIDTH - 20.0

    def x(share: float) -> float:
        return left + (right - left) * share / high_x

    def y(share: float) -> float:
        return bottom - (bottom - top) * share / high_y

    parts = [_text(0, 16, title, "dp-h"), _text(0, top - 14, y_label, "dp-m"), *_x_axis(0.0, high_x, x, top, bottom)]
    parts.append(_text(right, bottom + 36, x_label, "dp-m", anchor="end"))
    for tick in _ticks(0.0, high_y):
        parts.append(_path(f"M{left:.1f} {y(tick):.1f}H{right:.1f}", "dp-g"))
        parts.append(_text(left - 8, y(tick) + 4, _tick(tick), "dp-m", anchor="end"))
    for number, line in enumerate(lines):
        style = f"dp-l dp-l{_colour(line)}" + (" dp-d" if line.dashed else "")
        parts.append(_path(f"M0 {34 + 20 * number + 4}h26", style))
        parts.append(_text(34, 34 + 20 * number + 8.5, line.name, most=WIDTH - 34))
        joined = "L".join(f"{across:.1f} {up:.1f}" for across, up in _apart([(x(a), y(b)) for a, b in line.points]))
        if joined:
            parts.append(_path(f"M{joined}", style))
    parts += [_point(x(line.mark[0]), y(line.mark[1]), _colour(line)) for line in lines if line.mark]
    return _svg(title, bottom + 44, parts)


def percent(share: float) -> str:
    """Return a share as a percentage: near the ends with more digits, and 0 or 100 only where it is exactly that."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    for digits in (1,) if 0.01 <= share <= 0.99 else (2, 3):
        told = f"{100 * share:.{digits}f}"
        if float(told) not in (0.0, 100.0):
            return f"{told} %"
    return "< 0.001 %" if share < 0.5 else "> 99.999 %"


def _colour(line: Line) -> int:
    return (line.colour - 1) % _COLOURS + 1


def _edge(most: float) -> float:
    """Return where an axis ends that has to show ``most``: at a round share, and never at nothing."""
    if most <= 0:
        return 0.01
    size = 10.0 ** math.floor(math.log10(most))
    return min(
        next(size * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * step >= most * (1 - 1e-9)),
        max(1.0, most),
    )


def _ticks(low: float, high: float, parts: int = 4) -> list[float]:
    """Return round shares from ``low`` to ``high``, some ``parts`` + 1 of them."""
    rough = (high - low) / parts
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def _tick(share: float) -> str:
    return f"{100 * share:.6g} %"


def _x_axis(low: float, high: float, x: Callable[[float], float], top: float, bottom: float) -> Iterator[str]:
    # Labels of a short axis would run into each other.
    for tick in _ticks(low, high, 4 if x(high) - x(low) > 250 else 2):
        yield _path(f"M{x(tick):.1f} {top - 4:.1f}V{bottom:.1f}", "dp-g")
        yield _text(x(tick), bottom + 18, _tick(tick), "dp-m", anchor="middle")


def _path(line: str, style: str) -> str:
    return f'<path class="{style}" d="{line}"/>'


def _point(x: float, y: float, colour: int) -> str:
    return f'<circle class="dp-p{colour}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def _apart(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Leave out what nobody can see: points less than one dot from the last one, but for the very last."""
    last: tuple[float, float] | None = None
    for number, point in enumerate(points):
        if last is None or max(abs(point[0] - last[0]), abs(point[1] - last[1])) >= 1 or number == len(points) - 1:
            yield point
            last = point


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "", most: float | None = None) -> str:
    shown = text if most is None else _cut(text, most)
    full = f"<title>{html.escape(text)}</title>" if shown != text else ""
    marks = (f' class="{style}"' if style else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{marks}>{full}{html.escape(shown)}</text>'


def _width(text: str) -> float:
    """Estimate how wide a text is: a Chinese letter is as wide as the font is high, others less."""
    wide = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text)
    return _FONT_SIZE * wide


def _cut(text: str, most: float) -> str:
    if _width(text) <= most + 0.1:
        return text
    while text and _width(text + "…") > most:
        text = text[:-1]
    return text + "…"


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" style="max-width:100%;height:auto"'
    head = f'<svg class="dp" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{html.escape(title)}">'
    return f"{head}{_STYLE}{''.join(parts)}</svg>"
