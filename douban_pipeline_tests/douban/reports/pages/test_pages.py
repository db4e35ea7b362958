"""How a report is shown: in the UI its first rows, with paths; in the sheet all of them; nothing unescaped."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.douban.reports.pages.report_page import (
    IN_UI,
    Card,
    Chapter,
    LinesCell,
    LinkCell,
    NoteCell,
    PageFrame,
    ReportPage,
    SubjectCell,
    markdown,
    sheet,
)
from douban_pipeline_tests.douban.reports.pages.planting import HOSTILE

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
FRAME = PageFrame(ZoneInfo("Asia/Shanghai"), "https://dagster.example.org/base/", "__repository__@library")


def report(*chapters: Chapter, cards=()) -> ReportPage:
    return ReportPage("some_report", "某报告", "说明。", {}, cards, chapters)


def html_of(rows, **given) -> str:
    return sheet(report(Chapter("rows", "各行", rows, **given)), FRAME, NOW)


def test_in_the_ui_a_link_is_a_path_and_outside_it_an_address() -> None:
    path = "/locations/x/jobs/y/playground/setup?config=a%3A%201"
    rows = [{"影片": "1 某片", "操作": LinkCell("解锁", path)}]
    assert f"[解锁]({path})" in markdown(Chapter("k", "t", rows), FRAME)
    assert f'href="https://dagster.example.org/base{path}"' in html_of(rows)
    away = [{"搜索": LinkCell("豆瓣", "https://search.douban.com/?a=1&b=2")}]
    assert 'href="https://search.douban.com/?a=1&amp;b=2"' in html_of(away)


ATTRIBUTES = {"http-equiv", "lang", "charset", "name", "content", "class", "href", "id", "data-head"}


class Seen(HTMLParser):
    """What a browser would make of a page: its elements with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "cell", [HOSTILE, NoteCell(HOSTILE), LinesCell((HOSTILE, NoteCell(HOSTILE))), LinkCell(HOSTILE, "/runs/1")]
)
def test_outside_text_makes_no_element_and_no_markdown(cell) -> None:
    page = html_of([{HOSTILE: cell}], note=HOSTILE)
    seen = Seen(page).elements
    assert not [tag for tag, _ in seen if tag in ("img", "script", "b", "em")]
    assert not [attributes for _, attributes in seen if any(name.startswith("on") for name in attributes)]
    assert not [attributes for _, attributes in seen if (attributes.get("href") or "").startswith("javascript")]
    assert page.count("onerror=alert(1)") >= 2, "it is shown as what it is"
    text = markdown(Chapter("k", "t", [{"片名": cell}]), FRAME)
    line = text.splitlines()[-1]
    assert "<img" not in line
    assert "\\|\\`乙\\`\\*丙\\*\\[丁\\]" in line


def test_what_looks_like_a_template_or_an_attribute_stays_text() -> None:
    text = "{{ 7*7 }}{% raw %} ]]> <script>alert(1)</script> \" onclick='x' </style>"
    page = sheet(
        ReportPage("r", text, text, {}, [Card(text, text, text)], [Chapter("k", text, [{text: text}])]), FRAME, NOW
    )
    seen = Seen(page)
    tags = [tag for tag, _ in seen.elements]
    assert (tags.count("script"), tags.count("style")) == (0, 1)
    assert {name for _, attributes in seen.elements for name in attributes} <= ATTRIBUTES
    assert ("td", {"class": "text", "data-head": text}) in seen.elements
    assert page.count("{{ 7*7 }}{% raw %}") == 11


def test_the_ui_has_the_first_rows_and_the_sheet_all() -> None:
    rows = [{"影片": f"第{number}部"} for number in range(IN_UI + 20)]
    chapter = Chapter("k", "t", rows, total=900)
    text = markdown(chapter, FRAME)
    assert (f"第{IN_UI - 1}部" in text, f"第{IN_UI}部" in text) == (True, False)
    assert text.endswith(f"前 {IN_UI} 行，共 900 行。")
    page = html_of(rows, total=900)
    assert f"第{IN_UI + 19}部" in page
    assert f"另有 {900 - len(rows)} 行未列出" in page
    assert "各行（900）" in page


def test_no_number_hides_a_table() -> None:
    with pytest.raises(ValueError, match="one name among"):
        ReportPage("some_report", "某报告", "", {"failed": 3}, [], [Chapter("failed", "失败的", [])])


def test_nothing_to_tell() -> None:
    assert markdown(Chapter("k", "t", []), FRAME) == "—"
    page = html_of([], total=0)
    assert "没有" in page
    assert "各行（0）" in page
    assert "<table" not in page


def test_columns_that_hold_nothing_are_left_out() -> None:
    rows = [{"影片": "甲", "注意": LinesCell(()), "条目": SubjectCell(0), "空": "", "无": None, "数": 0}] * 2
    text = markdown(Chapter("k", "t", rows), FRAME)
    assert [head.strip() for head in text.splitlines()[0].strip("|").split("|")] == ["影片", "数"]
    assert 'data-head="注意"' not in html_of(rows)


def test_cells_are_set_by_what_they_hold() -> None:
    moment = datetime(2026, 2, 1, 18, 30, tzinfo=UTC)
    row = {
        "影片": "一部片名很长很长的影片",
        "次数": 12_345,
        "得分": 91.25,
        "时间": moment,
        "条目": SubjectCell(1292052),
        "操作": LinesCell((LinkCell("解锁", "/a"), LinkCell("重写", "/b"))),
    }
    page = html_of([row])
    for head, kind in {"影片": "text", "次数": "number", "时间": "short", "条目": "short", "操作": "act"}.items():
        assert f'<td class="{kind}" data-head="{head}">' in page, head
    assert "12,345" in page
    assert "91.2" in page
    assert "2026-02-02\u00a002:30" in page
    assert 'href="https://movie.douban.com/subject/1292052/"' in page
    text = markdown(Chapter("k", "t", [row]), FRAME)
    assert "[解锁](/a) · [重写](/b)" in text
    assert "2026-02-02\u00a002:30" in text


def test_the_sheet_is_one_file_in_chinese_for_any_screen() -> None:
    page = sheet(report(Chapter("a", "甲", []), Chapter("b", "乙", []), cards=[Card("数目", "7", "部")]), FRAME, NOW)
    elements = Seen(page).elements
    assert ("html", {"lang": "zh-Hans"}) in elements
    assert ("meta", {"name": "viewport", "content": "width=device-width,initial-scale=1"}) in elements
    assert not [tag for tag, _ in elements if tag in ("script", "link", "img", "iframe")]
    assert [attributes["href"] for tag, attributes in elements if tag == "a"] == ["#a", "#b"]
    assert "2026-03-01 12:00 生成（Asia/Shanghai）" in page
    assert "数目" in page
