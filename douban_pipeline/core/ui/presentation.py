"""Tables, links and times as people read them in Dagster's UI. Text from outside is escaped here."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tabulate import tabulate

MOST_ROWS = 20
_HAN = re.compile("[\u4e00-\u9fff]")


class Markdown(str):
    """Text that is Markdown already and not escaped again."""

    __slots__ = ()


def subject_address(douban_id: int) -> str:
    """Return the address of a subject's page."""
    return f"https://movie.douban.com/subject/{douban_id}/"


def subject_link(douban_id: int) -> Markdown:
    """Return a link to a subject's page, empty for no subject."""
    return Markdown(f"[{douban_id}]({subject_address(douban_id)})" if douban_id else "")


def escaped(value: Any) -> Markdown:
    """Return a value as a table shows it, to be put together with Markdown of ours."""
    return Markdown(_cell(value))


def counted(what: str, counts: Mapping[str, int]) -> str:
    """Return how many there are of ``what``, and of each kind: ``3 videos judged (2 REVIEW, 1 NOT_FOUND)``."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{sum(counts.values())} {what}" + (f" ({kinds})" if kinds else "")


def table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS, empty: str = "—") -> str:
    """Return ``rows`` as a Markdown table of at most ``most`` rows.

    How many were left out is said under it, in the language of the heads.
    """
    if not rows:
        return empty
    columns = dict.fromkeys(name for row in rows[:most] for name in row)
    cells = [[_cell(row.get(name)) for name in columns] for row in rows[:most]]
    text = tabulate(cells, headers=list(columns), tablefmt="pipe", disable_numparse=True)
    left_out = len(rows) - most
    if left_out <= 0:
        return text
    return f"{text}\n\n" + (f"…… 另有 {left_out} 条" if _HAN.search("".join(columns)) else f"… and {left_out} more")


def _cell(value: Any) -> str:
    if isinstance(value, Markdown):
        return value
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}"
    text = " ".join(html.escape(str(value), quote=False).split())
    for sign in ("\\", "|", "`", "*", "_", "[", "]"):
        text = text.replace(sign, "\\" + sign)
    return text


def local_time(moment: datetime | None, zone: ZoneInfo) -> str:
    """Return a moment in the site's zone, to the minute; empty for none."""
    # A space that does not break: a narrow column would set the hour on a line of its own.
    return f"{moment.astimezone(zone):%Y-%m-%d\u00a0%H:%M}" if moment else ""


def as_image(svg: str, title: str) -> str:
    """Return a plot as a Markdown image that needs no file; Dagster's UI shows it. A dash for no plot."""
    return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})" if svg else "—"
