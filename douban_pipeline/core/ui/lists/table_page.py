"""A page of tables: numbers, a list or none, tables. It needs no network, on a desktop and on a phone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from douban_pipeline.core.ui.lists.list_page import Figures, ListView, Table
from douban_pipeline.core.ui.lists.shown_cells import PageFrame, filled_columns, layout, shown
from douban_pipeline.core.ui.live_tables import page_policy, table_style, tables_script
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.templates import render
from douban_pipeline.core.ui.tmdb_attribution import attribution_parts, names_tmdb

_PACKAGE = "douban_pipeline.core.ui.lists"

MOST_SELECTED = 100
"""Most rows of a batch link."""


def table_page(
    title: str,
    about: str,
    figures: Figures,
    frame: PageFrame,
    now: datetime,
    *,
    lead: tuple[str, str] | None = None,
    view: ListView | None = None,
    renewed_seconds: int = 0,
) -> tuple[str, str]:
    """Return a page as HTML, and its content security policy.

    Args:
        title: Its heading.
        about: What it is about; when it was made is added.
        figures: Its numbers and tables.
        frame: Settings of the site.
        now: When it is made.
        lead: First line with the overall state, and whether that is ``good`` or ``bad``.
        view: The list.
        renewed_seconds: How often browsers reload the page, 0 for never.
    """
    made = local_time(now, frame.zone).replace("\u00a0", " ")
    tables = [*([view.table] if view else []), *figures.tables]
    cells = (cell for table in tables for row in table.rows for cell in row.values())
    script = tables_script()
    page = render(
        _PACKAGE,
        "table_page.html.j2",
        lang="zh-Hans",
        title=title,
        badge=view.count if view else "",
        about=f"{about}{made} 生成（{frame.zone.key}）。操作链接打开 Dagster 的启动页，已填好内容；"
        "核对、填上姓名后点 Launch Run 才会生效。",
        chapters=[_chapter(table, frame) for table in tables],
        siblings=[{"title": title, "address": frame.full(address)} for title, address in frame.siblings],
        view=_given(view, frame) if view else None,
        tmdb=attribution_parts() if names_tmdb(cells) else None,
        lead=lead,
        cards=figures.cards,
        renewed_seconds=renewed_seconds,
        style=table_style(),
        script=script.text,
    )
    return page, page_policy(script, images=frame.image_sources)


def _given(view: ListView, frame: PageFrame) -> dict[str, Any]:
    """Return what is around the rows of a list, for the template."""
    ids = [str(row[view.key]) for row in view.table.rows]
    on_page = list(dict.fromkeys(ids))[:MOST_SELECTED]
    batch = [{"text": link.text, "address": frame.full(link.address)} for link in view.batch] if ids else []
    return {
        "key": view.table.key,
        "form": view.form,
        "count": view.count,
        "ids": ids,
        "most": MOST_SELECTED,
        "batch": [{**each, "now": each["address"].replace("{ids}", "%2C%20".join(on_page))} for each in batch],
        "on_page": len(on_page),
        "first": view.first,
        "following": view.following,
        "csv": frame.full(view.csv),
    }


def _chapter(table: Table, frame: PageFrame) -> dict[str, Any]:
    """Return a table for the template: its columns, and of each row the cells and the video's page."""
    columns = [
        {"key": each.key, "head": each.head, "kind": str(each.kind), "class": layout(each)}
        for each in filled_columns(table)
    ]
    rows = [
        {
            "cells": {column.key: shown(column, row.get(column.key), table, frame) for column in table.columns},
            "page": frame.video_address(table, row),
        }
        for row in table.rows
    ]
    title = table.title if table.total is None else f"{table.title}（{table.total:,}）"
    texts = {"key": table.key, "title": title, "note": table.note, "empty": table.empty}
    return {**texts, "columns": columns, "rows": rows, "left_out": table.left_out}
