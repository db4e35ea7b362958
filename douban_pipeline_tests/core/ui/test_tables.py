"""How a table is shown: in Dagster's UI its first rows; on its page all of them; nothing unescaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, Link, ListColumn, ListLink, Table
from douban_pipeline.core.ui.lists.shown_cells import IN_UI, PageFrame, preview
from douban_pipeline.core.ui.lists.table_page import table_page
from douban_pipeline.core.ui.templates import Card
from douban_pipeline_tests.douban.reports.planting import HOSTILE

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
FRAME = PageFrame(
    ZoneInfo("Asia/Shanghai"),
    "https://dagster.example.org/base/",
    video_page="https://site.example.org/{id}.html",
    root="../",
)


def table(columns: Sequence[ListColumn], *rows: Mapping[str, Any], **given: Any) -> Table:
    return Table("rows", "各行", columns, rows, **given)


def html_of(*tables: Table, title: str = "某页", cards: Sequence[Card] = ()) -> str:
    page, _ = table_page(title, "说明。", Figures({}, cards, tables), FRAME, NOW)
    # All but its own script.
    return re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)


def preview_of(shown: Table) -> str:
    return preview(shown.columns, shown.rows, FRAME.zone)


class Seen(HTMLParser):
    """What a browser would make of a page: its elements with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


TEXT = ListColumn("cell", "甲")
LINKS = ListColumn("links", "操作", ColumnKind.LINKS)


def test_links_lead_to_dagster_to_the_service_or_elsewhere() -> None:
    links = {"unlock": ListLink("解锁", "/jobs/y/setup?vod={0}"), "search": ListLink("搜", "https://e.org/?a={0}&b=2")}
    page = html_of(
        table(
            (TEXT, LINKS, ListColumn("page", "页面", ColumnKind.LINK)),
            {"cell": "1", "links": (("unlock", 7), ("search", "x y")), "page": Link("l", "lists/log")},
            links=links,
        )
    )
    for address in (
        "https://dagster.example.org/base/jobs/y/setup?vod=7",
        "https://e.org/?a=x%20y&amp;b=2",
        "../lists/log",
    ):
        assert f'href="{address}"' in page


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        (ColumnKind.TEXT, HOSTILE),
        (ColumnKind.TEXT, f"{HOSTILE}\n{HOSTILE}"),
        (ColumnKind.LABEL, (HOSTILE, HOSTILE)),
        (ColumnKind.LINK, Link(HOSTILE, "/runs/1")),
        (ColumnKind.LINK, Link(HOSTILE)),
    ],
)
def test_outside_text_makes_no_element_and_no_markdown(kind: ColumnKind, cell: Any) -> None:
    shown = table((ListColumn("cell", HOSTILE, kind),), {"cell": cell, "vod": 7}, note=HOSTILE, video="vod")
    page = html_of(shown)
    seen = Seen(page).elements
    assert not [tag for tag, _ in seen if tag in ("img", "script", "b", "em")]
    assert not [attributes for _, attributes in seen if any(name.startswith("on") for name in attributes)]
    assert not [attributes for _, attributes in seen if (attributes.get("href") or "").startswith("javascript")]
    assert page.count("onerror=alert(1)") >= 2, "it is shown as what it is"
    line = preview_of(shown).splitlines()[-1]
    assert "<img" not in line
    assert "\\|\\`乙\\`\\*丙\\*\\[丁\\]" in line


def test_what_looks_like_a_template_or_an_attribute_stays_text() -> None:
    text = "{{ 7*7 }}{% raw %} ]]> <script>alert(1)</script> \" onclick='x' </style>"
    shown = Table("k", text, (ListColumn("cell", text),), [{"cell": text}], text)
    page = html_of(shown, title=text, cards=[Card(text, text, text)])
    seen = Seen(page)
    tags = [tag for tag, _ in seen.elements]
    assert (tags.count("script"), tags.count("style")) == (0, 1)
    assert not [name for _, attributes in seen.elements for name in attributes if name.startswith("on")]
    assert ("td", {"class": "text", "data-head": text}) in seen.elements


def test_the_ui_has_the_first_rows_and_the_page_all() -> None:
    rows = [{"cell": f"第{number}部"} for number in range(IN_UI + 20)]
    shown = table((TEXT,), *rows, total=900)
    text = preview_of(shown)
    assert (f"第{IN_UI - 1}部" in text, f"第{IN_UI}部" in text) == (True, False)
    page = html_of(shown)
    for said in (f"第{IN_UI + 19}部", f"另有 {900 - len(rows)} 行未列出", "各行（900）"):
        assert said in page


def test_nothing_to_tell() -> None:
    shown = table((TEXT,), total=0)
    assert preview_of(shown) == "—"
    page = html_of(shown)
    assert ("没有" in page, "各行（0）" in page, "<table" in page) == (True, True, False)


def test_columns_that_hold_nothing_are_left_out_zero_is_something() -> None:
    columns = (
        TEXT,
        ListColumn("empty", "空"),
        ListColumn("none", "无", ColumnKind.LINK),
        ListColumn("subject", "条目", ColumnKind.SUBJECT),
        ListColumn("picture", "海报", ColumnKind.PICTURE),
        ListColumn("count", "数", ColumnKind.NUMBER),
    )
    row = {"cell": "甲", "empty": "", "subject": 0, "picture": "p.png", "count": 0}
    shown = table(columns, row, row)
    assert re.findall(r'data-head="(.*?)"', html_of(shown)) == ["甲", "数"] * 2


def test_cells_are_set_by_their_kind_and_the_first_leads_to_the_video() -> None:
    columns = (
        TEXT,
        ListColumn("count", "次数", ColumnKind.NUMBER),
        ListColumn("score", "得分", ColumnKind.NUMBER),
        ListColumn("at", "时间", ColumnKind.TIME),
        ListColumn("subject", "条目", ColumnKind.SUBJECT),
        ListColumn("why", "原因", width="wide"),
        LINKS,
    )
    moment = datetime(2026, 2, 1, 18, 30, tzinfo=UTC)
    row = {"cell": "某片", "vod": 7, "count": 12_345, "score": 91.25, "at": moment, "subject": 1292052, "why": "因为"}
    shown = table(columns, {**row, "links": (("a",),)}, video="vod", links={"a": ListLink("解锁", "/a")})
    page = html_of(shown)
    classes = {"次数": "number", "得分": "number", "时间": "short", "条目": "short", "原因": "text wide", "操作": "act"}
    for head, kind in classes.items():
        assert f'<td class="{kind}" data-head="{head}">' in page, head
    shown_texts = ("12,345", "91.25", "2026-02-02\u00a002:30", "https://movie.douban.com/subject/1292052/")
    for said in (*shown_texts, 'href="https://site.example.org/7.html"'):
        assert said in page


def test_the_page_is_one_file_in_chinese_for_any_screen() -> None:
    page = html_of(
        Table("a", "甲", (TEXT,), []),
        Table("b", "乙", (TEXT,), []),
        cards=[Card("数目", "7", "部"), Card("别的", "8", address="#b")],
    )
    elements = Seen(page).elements
    assert ("html", {"lang": "zh-Hans"}) in elements
    assert ("meta", {"name": "viewport", "content": "width=device-width,initial-scale=1"}) in elements
    assert not [tag for tag, _ in elements if tag in ("script", "link", "img", "iframe")]
    assert [attributes["href"] for tag, attributes in elements if tag == "a"] == ["#a", "#b", "#b"]
    assert "2026-03-01 12:00 生成（Asia/Shanghai）" in page
    assert "数目" in page
