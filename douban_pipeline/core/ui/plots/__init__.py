"""Plots as self-contained SVG text, without library, font or script. They follow the reader's light or dark theme.

Callers pass unescaped names; every text is escaped here. Without data the result is an empty string.
"""

from douban_pipeline.core.ui.plots.shares import Bar, Line, bars, curve, percent
from douban_pipeline.core.ui.plots.svg import WIDTH
from douban_pipeline.core.ui.plots.timelines import AmountRow, Series, Track, columns, day_bars, spans, timeline

__all__ = [
    "WIDTH",
    "AmountRow",
    "Bar",
    "Line",
    "Series",
    "Track",
    "bars",
    "columns",
    "curve",
    "day_bars",
    "percent",
    "spans",
    "timeline",
]
