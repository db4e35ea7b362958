"""Plots as SVG text that needs nothing else: no library, no font, no script. They follow the reader's light or dark.

Callers pass names as they are: every text is escaped. Nothing to show is an empty string.
"""

from douban_pipeline.core.ui.plots.amounts import Span, spans
from douban_pipeline.core.ui.plots.days import day_bars
from douban_pipeline.core.ui.plots.shares import Bar, Line, bars, curve, percent
from douban_pipeline.core.ui.plots.svg import WIDTH
from douban_pipeline.core.ui.plots.timelines import Series, Track, columns, timeline

__all__ = [
    "WIDTH",
    "Bar",
    "Line",
    "Series",
    "Span",
    "Track",
    "bars",
    "columns",
    "curve",
    "day_bars",
    "percent",
    "spans",
    "timeline",
]
