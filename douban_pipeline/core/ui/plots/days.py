"""Vertical bars by day, for the pages of assets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from html import escape

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
