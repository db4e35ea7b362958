"""Tables, links and times for people, as shown in Dagster's UI. Outside text is escaped here."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

MOST_ROWS = 20
PAGE, DIALOG = 38, 100
"""Width of a table row in Dagster's UI at 1440 pixels, in Latin letters: on an asset's page, and in its dialog."""
DIALOG_FROM = 1000
"""Length of Markdown, in characters, from which Dagster's UI shows it in a dialog."""
_GAP = 2
"""Separator of two columns."""
_SHORT_TEXT = 24
"""Length of texts that always stay in a table: an amount, a date, a name."""
_LINK = re.compile(r"\[((?:\\.|[^\]\\])*)\]\([^)]*\)")
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]")
_HAN = re.compile("[\u4e00-\u9fff]")


class Markdown(str):
    """Text that is already Markdown and is not escaped again."""

    __slots__ = ()


def subject_address(douban_id: int) -> str:
    """Return the address of a subject's page."""
    return f"https://movie.douban.com/subject/{douban_id}/"


def subject_link(douban_id: int) -> Markdown:
    """Return a link to a subject's page, empty for no subject."""
    return Markdown(f"[{douban_id}]({subject_address(douban_id)})" if douban_id else "")


def escaped(value: Any) -> Markdown:
    """Return a value as shown in a table, to be combined with our own Markdown."""
    return Markdown(_cell(value))


def counted(what: str, counts: Mapping[str, int]) -> str:
    """Return the number of ``what`` in total and by kind: ``3 videos judged (2 REVIEW, 1 NOT_FOUND)``."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{sum(counts.values())} {what}" + (f" ({kinds})" if kinds else "")


def table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS) -> str:
    """Return ``rows`` as a Markdown table of at most ``most`` rows.

    The number of rows left out is stated under it, in the language of the headings.
    """
    return _shown(rows, _piped, most)


def panel(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS, in_dialog: bool = False) -> str:
    """Return ``rows`` formatted for the page of an asset in Dagster's UI.

    A table that is too wide is shown there one Chinese character per line and cut on the right. Markdown shorter than
    `DIALOG_FROM` characters is shown in a narrow column: there a table that does not fit becomes a list with one
    numbered item per row. Longer Markdown is shown after a click in a dialog: there columns of long text, the longest
    first, become numbered lines under the table, until the others fit.

    Args:
        rows: Cells by heading; the first one identifies the row.
        most: Maximum number of rows shown.
        in_dialog: Whether it is always shown in a dialog, as on the page of a run.
    """
    return _shown(rows, partial(_fitted, in_dialog=in_dialog), most)


def _shown(
    rows: Sequence[Mapping[str, Any]],
    form: Callable[[list[str], list[dict[str, str]]], str],
    most: int,
) -> str:
    if not rows:
        return "—"
    columns = [*dict.fromkeys(name for row in rows[:most] for name in row)]
    text = form(columns, [{name: _cell(row.get(name)) for name in columns} for row in rows[:most]])
    left_out = len(rows) - most
    if left_out <= 0:
        return text
    return f"{text}\n\n" + (f"…… 另有 {left_out} 条" if _HAN.search("".join(columns)) else f"… and {left_out} more")


def _piped(columns: Sequence[str], cells: Sequence[Mapping[str, str]]) -> str:
    rows = [[row[name] for name in columns] for row in cells]
    from tabulate import tabulate  # slow to load, and the lists do without it

    return tabulate(rows, headers=list(columns), tablefmt="pipe", disable_numparse=True)


def _fitted(columns: list[str], cells: list[dict[str, str]], *, in_dialog: bool) -> str:
    widths = {name: max(_shown_width(text) for text in (name, *(row[name] for row in cells))) for name in columns}
    needed, piped = sum(widths.values()) + _GAP * len(columns), _piped(columns, cells)
    if needed <= PAGE:
        return piped
    if len(piped) < DIALOG_FROM and not in_dialog:
        first, *others = columns
        said = (
            f"{number}. **{row[first]}**　" + "；".join(f"{name}：{row[name]}" for name in others if row[name])
            for number, row in enumerate(cells, 1)
        )
        return "\n".join(said)
    below: list[str] = []
    for name in sorted(columns[1:], key=widths.__getitem__, reverse=True):
        if needed <= DIALOG or widths[name] <= _SHORT_TEXT:
            break
        below.append(name)
        needed -= widths[name] + _GAP
    return _with_lines_below(columns, cells, below) if below else piped


def _with_lines_below(columns: Sequence[str], cells: Sequence[Mapping[str, str]], below: Sequence[str]) -> str:
    kept, moved = ([name for name in columns if (name in below) is low] for low in (False, True))
    numbered = [{"#": str(number), **row} for number, row in enumerate(cells, 1)]
    lines = []
    for row in numbered:
        said = "；".join(f"{name}：{row[name]}" for name in moved if row[name])
        if said:
            lines.append(f"- **{row['#']}** {said}")
    return "\n\n".join([_piped(["#", *kept], numbered), "\n".join(lines)])


def _shown_width(text: str) -> int:
    """Return the width of a cell in Latin letters; for links, the width of their texts."""
    shown = _LINK.sub(r"\1", text)
    return sum(2 if _WIDE.match(sign) else 1 for sign in shown if sign != "\\")


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
    """Return a time in the site's zone, to the minute; empty for none."""
    # A non-breaking space: a narrow column would put the hour on a line of its own.
    return f"{moment.astimezone(zone):%Y-%m-%d\u00a0%H:%M}" if moment else ""


def share_text(share: float | None, missing: str = "—") -> str:
    """Return a share of 0 to 1 as a percentage with one decimal, ``missing`` for None."""
    return missing if share is None else f"{share:.1%}"
