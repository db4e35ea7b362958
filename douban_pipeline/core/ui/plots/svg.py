"""Building blocks of plots: texts, lines, round axes and the frame. Every text is escaped here."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterator, Sequence

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
