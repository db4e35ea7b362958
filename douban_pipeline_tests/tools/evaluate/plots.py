"""Plots of the report as SVG text: bars with confidence intervals, and curves of one share over another."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.core.intervals import Interval, Rate

WIDTH = 440
COLOURS = 4
_FONT_SIZE = 13
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


def round_up(most: float) -> float:
    """Return the first round number not below ``most`` (above 0), where an axis may end."""
    size = 10.0 ** math.floor(math.log10(most))
    return next(size * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * step >= most * (1 - 1e-9))


def ticks(low: float, high: float, parts: int = 4) -> list[float]:
    """Return about ``parts`` + 1 round numbers from ``low`` to ``high``."""
    rough = (high - low) / parts
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def colour(number: int) -> int:
    """Return the colour of ``number``; colours repeat after the last."""
    return (number - 1) % COLOURS + 1


def path(line: str, style: str) -> str:
    """Return a line or an area as an SVG path."""
    return f'<path class="{style}" d="{line}"/>'


def point(x: float, y: float, number: int) -> str:
    """Return a dot in a colour."""
    return f'<circle class="dp-p{number}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def joined(points: Sequence[tuple[float, float]]) -> str:
    """Return points as one line of an SVG path, empty for none.

    Invisible points are left out: those less than one dot from the previous one, except the last.
    """
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in _apart(points))
    return f"M{line}" if line else ""


def _apart(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    last: tuple[float, float] | None = None
    for number, item in enumerate(points):
        if last is None or max(abs(item[0] - last[0]), abs(item[1] - last[1])) >= 1 or number == len(points) - 1:
            yield item
            last = item


def text(x: float, y: float, words: str, style: str = "", anchor: str = "", most: float | None = None) -> str:
    """Return a text; one wider than ``most`` is cut, with the full text as a tooltip."""
    shown = words if most is None else _cut(words, most)
    full = f"<title>{html.escape(words)}</title>" if shown != words else ""
    marks = (f' class="{style}"' if style else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{marks}>{full}{html.escape(shown)}</text>'


def width(words: str) -> float:
    """Estimate the width of a text: a Chinese character is as wide as the font is high, others are narrower."""
    wide = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in words)
    return _FONT_SIZE * wide


def _cut(words: str, most: float) -> str:
    if width(words) <= most + 0.1:
        return words
    while words and width(words + "…") > most:
        words = words[:-1]
    return words + "…"


def frame(title: str, height: float, parts: Sequence[str]) -> str:
    """Return the complete plot."""
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" style="max-width:100%;height:auto"'
    head = f'<svg class="dp" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{html.escape(title)}">'
    return f"{head}{_STYLE}{''.join(parts)}</svg>"


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
