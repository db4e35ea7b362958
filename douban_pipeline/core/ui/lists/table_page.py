"""A page of tables: numbers, a list or none, tables, plots. It needs no network, on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup

from douban_pipeline.core.ui.lists.list_page import Figures, Table
from douban_pipeline.core.ui.lists.shown_cells import PageFrame, filled_columns, layout, shown
from douban_pipeline.core.ui.live_tables import page_policy, renewing_script, table_style, tables_script
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.templates import render
from douban_pipeline.core.ui.tmdb_attribution import attribution_parts, names_tmdb

_PACKAGE = "douban_pipeline.core.ui.lists"


def table_page(
    title: str,
    about: str,
    figures: Figures,
    frame: PageFrame,
    now: datetime,
    *,
    lead: tuple[str, str] | None = None,
    rows: Mapping[str, Any] | None = None,
    renewed_seconds: int = 0,
) -> str:
    """Return a page as HTML.

    Args:
        title: Its heading.
        about: What it is about; when it was made is added.
        figures: Its numbers, tables and plots.
        frame: Settings of the site.
        now: When it is made.
        lead: First line with the overall state, and whether that is ``good`` or ``bad``.
        rows: The list, for the template; see `list_files`.
        renewed_seconds: How often browsers reload the page, 0 for never. Its tables cannot be sorted and filtered
            then, since a reload would undo it.
    """
    made = local_time(now, frame.zone).replace("\u00a0", " ")
    tables = [_chapter(table, frame) for table in figures.tables]
    plots = [{"key": "plots", "title": "走势"}] if figures.plots else []
    live = not renewed_seconds and (rows is not None or any(len(table.rows) > 1 for table in figures.tables))
    scripts = [renewing_script()] if renewed_seconds else [tables_script()] if live else []
    return render(
        _PACKAGE,
        "table_page.html.j2",
        lang="zh-Hans",
        title=title,
        badge=f"{rows['list']['count']:,}" if rows else "",
        about=f"{about}{made} 生成（{frame.zone.key}）。操作链接打开 Dagster 的启动页，已填好内容；"
        "核对、填上姓名后点 Launch Run 才会生效。",
        chapters=[*([{"key": "rows", "title": title}] if rows else []), *tables, *plots],
        siblings=[{"title": title, "file": file} for title, file in frame.siblings] if rows else [],
        rows=rows,
        tmdb=attribution_parts() if _names_tmdb(figures.tables, rows) else None,
        lead=lead,
        cards=figures.cards,
        plots=[Markup(svg) for svg in figures.plots],  # noqa: S704 (made by core.ui.plots, which escapes)
        renewed_seconds=renewed_seconds,
        made_at=int(now.timestamp()),
        policy=page_policy(*scripts, images=frame.image_sources, own_files=rows is not None),
        style=table_style(),
        scripts=[script.text for script in scripts],
    )


def _names_tmdb(tables: Sequence[Table], rows: Mapping[str, Any] | None) -> bool:
    cells = (cell for table in tables for row in table.rows for cell in row.values())
    return bool(rows and rows["names_tmdb"]) or names_tmdb(cells)


def _chapter(table: Table, frame: PageFrame) -> dict[str, Any]:
    """Return a table for the template."""
    columns = filled_columns(table)
    return {
        "key": table.key,
        "title": table.title if table.total is None else f"{table.title}（{table.total:,}）",
        "note": table.note,
        "empty": table.empty,
        "columns": [
            {"key": each.key, "head": each.head, "kind": str(each.kind), "class": layout(each)} for each in columns
        ],
        "rows": shown_rows(table, table.rows, frame),
        "left_out": table.left_out,
    }


def shown_rows(table: Any, rows: Sequence[Mapping[str, Any]], frame: PageFrame) -> list[dict[str, Any]]:
    """Return rows of a table or a list for the template: cells, the video's page, and its picture."""
    return [
        {
            "cells": {column.key: shown(column, row.get(column.key), table, frame) for column in table.columns},
            "page": frame.video_address(table, row),
        }
        for row in rows
    ]
