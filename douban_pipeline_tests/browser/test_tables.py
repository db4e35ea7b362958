"""A page of tables and a list in a browser: posters, links, selected rows, on any screen; nothing from outside runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Figures,
    FormField,
    ListColumn,
    ListLink,
    ListView,
    Row,
    Table,
)
from douban_pipeline.core.ui.lists.shown_cells import PageFrame
from douban_pipeline.core.ui.lists.table_page import table_page

pytestmark = pytest.mark.browser

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
HOSTILE = "甲<img src=x onerror=document.title='run'></script><script>document.title='run'</script>"
COUNT = 40
PICTURE = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='56'><rect width='40' height='56' fill='#789'/></svg>"
)
GONE, WITHOUT_POSTER, BROKEN = 1, 2, 3


COLUMNS = (
    ListColumn("video", "影片"),
    ListColumn("picture", "海报", ColumnKind.PICTURE),
    ListColumn("state", "状态", ColumnKind.LABEL),
    ListColumn("why", "原因"),
    ListColumn("hits", "播放", ColumnKind.NUMBER),
    ListColumn("updated", "更新", ColumnKind.TIME),
    ListColumn("best", "候选"),
    ListColumn("links", "操作", ColumnKind.LINKS),
)


def row(number: int) -> Row:
    return {
        "video": f"{number} {HOSTILE}",
        "number": number,
        "vod_id": None if number == GONE else number,
        "picture": {GONE: None, WITHOUT_POSTER: None, BROKEN: "nowhere.svg"}.get(number, "picture.svg"),
        "state": "未找到" if number % 2 else "待审核",
        "why": "得分不足" * (number % 5),
        "hits": 12_345 * ((number * 7) % COUNT),
        "updated": NOW - timedelta(days=number) if number % 10 else None,
        "best": f"候选{number}\n{number}.5 分",
        "links": (("set", number), ("ignore", number)),
    }


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A page of two tables, the second a short one; the posters lie beside it."""
    (tmp_path / "picture.svg").write_text(PICTURE)
    links = {"set": ListLink("填写 ID", "/fill?vod={0}"), "ignore": ListLink("忽略", "/ignore?vod={0}")}
    rows = [row(number) for number in range(1, COUNT + 1)]
    short = [{"source": each, "count": number} for number, each in enumerate(("乙", "甲", "丙"))]
    table = Table("long", "长", COLUMNS, rows, video="vod_id", links=links)
    form = [FormField("q", "文字"), FormField("state", "状态", "a", [("", "全部"), ("a", "未找到")])]
    batch = (ListLink("批量", "/batch?ids=%5B{ids}%5D"),)
    view = ListView(table, form, "40", "number", batch, following="?after=1", csv="lists/long.csv")
    below = Table("short", "短", (ListColumn("source", "来源"), ListColumn("count", "数", ColumnKind.NUMBER)), short)
    frame = PageFrame(
        ZoneInfo("Asia/Shanghai"),
        "https://dagster.example.org",
        [("某报告", "lists/long")],
        "https://site.example.org/vod/{id}.html",
    )
    path = tmp_path / "some_report.html"
    html, _ = table_page("某报告", "说明。", Figures({}, (), [below]), frame, NOW, view=view)
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture
def opened(page: Page, report: Path) -> Iterator[Page]:
    """The report, as a file; nothing from outside runs in it."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(report.as_uri())
    expect(page.locator("#long .said")).to_have_text(f"共 {COUNT} 行")
    yield page
    assert page.title() != "run"
    assert not wrong


def test_batches_are_about_what_is_selected(opened: Page) -> None:
    batch = opened.locator("#long .batch a")
    expect(batch).to_have_text(f"批量（本页 {COUNT} 项）")
    opened.get_by_label("选中 7", exact=True).check()
    opened.get_by_label("选中 31", exact=True).check()
    expect(batch).to_have_text("批量（已选 2 项）")
    assert batch.get_attribute("href") == "https://dagster.example.org/batch?ids=%5B7%2C%2031%5D"
    opened.get_by_label("选中 7", exact=True).uncheck()
    opened.get_by_label("选中 31", exact=True).uncheck()
    expect(batch).to_have_text(f"批量（本页 {COUNT} 项）")


def test_videos_lead_to_the_site_and_a_poster_that_cannot_be_had_leaves_no_hole(opened: Page) -> None:
    first = opened.locator("#long tr").filter(has_text="候选5")
    assert first.locator(".video a").get_attribute("href") == "https://site.example.org/vod/5.html"
    assert opened.locator("#long tbody tr").nth(GONE - 1).locator(".video a, img").count() == 0
    assert opened.locator("#long tbody tr").nth(WITHOUT_POSTER - 1).locator("img").count() == 0
    expect(opened.locator("#long tbody tr").nth(BROKEN - 1).locator("img")).to_have_count(0)
    shown = first.locator("img")
    assert shown.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") == 40
    assert (shown.get_attribute("loading"), shown.get_attribute("referrerpolicy")) == ("lazy", "no-referrer")


def test_without_scripts_all_is_there_but_the_boxes(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#long tbody tr").count() == COUNT
    ids = "%2C%20".join(map(str, range(1, COUNT + 1)))
    assert page.locator(".batch a").get_attribute("href") == f"https://dagster.example.org/batch?ids=%5B{ids}%5D"
    assert page.get_by_role("link", name="下一页").get_attribute("href") == "?after=1"
    assert page.get_by_label("状态").input_value() == "a"
    context.close()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(browser: Browser, report: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#long .poster").first.bounding_box() is not None
    context.close()


NAMES = ("anthropic/claude-3.5-sonnet-20241022", "DOUBAN_PIPELINE_SITE_URL", "qwen/qwen-2.5-72b-instruct")
ADDRESS = "https://example.org/" + "x" * 300
BROKEN_WORDS = """name => {
  const within = document.createTreeWalker(document.querySelector("table"), NodeFilter.SHOW_TEXT);
  while (within.nextNode() && !within.currentNode.data.includes(name));
  const { data } = within.currentNode;
  const top = (place) => {
    const range = document.createRange();
    range.setStart(within.currentNode, place);
    range.setEnd(within.currentNode, place + 1);
    return Math.round(range.getBoundingClientRect().top);
  };
  const signs = [...name].map((_, place) => data.indexOf(name) + place).slice(1);
  const inWord = (place) => /\\w\\w/.test(data.slice(place - 1, place + 1));
  return signs.filter((place) => top(place - 1) !== top(place) && inWord(place)).length;
}"""
"""How often a name's words go on in another line; at hyphens and slashes they may."""


@pytest.mark.parametrize("width", [1440, 390])
def test_names_are_whole_and_long_addresses_are_broken(page: Page, tmp_path: Path, width: int):
    texts = {
        "模型": "模型",
        "名称": f"用的是 {NAMES[0]}",
        "设置": NAMES[1],
        "说明": "很长的中文说明，可以在任何两个字之间换行。" * 4,
        "备选": f"{NAMES[2]}，其次",
        "地址": ADDRESS,
        "次数": "12,345",
        "结果": "没有按时应答" * 3,
    }
    table = Table("rows", "行", [ListColumn(head, head) for head in texts], [texts] * 3)
    frame = PageFrame(ZoneInfo("Asia/Shanghai"), "")
    path = tmp_path / "narrow.html"
    path.write_text(table_page("窄的列", "说明。", Figures({}, (), [table]), frame, NOW)[0], encoding="utf-8")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    assert [page.evaluate(BROKEN_WORDS, name) for name in NAMES] == [0, 0, 0]
    assert page.evaluate(BROKEN_WORDS, ADDRESS) > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cell = page.locator("td", has_text="example.org").first
    assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
