"""A list page in a browser, opened as a file: filter, sort and paging over all its rows, and nothing that runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest
from douban_pipeline.core.ui.lists.list_files import write_list
from playwright.sync_api import Browser, Page, expect

from douban_pipeline.core.ui.lists import list_files
from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Figures,
    ListColumn,
    ListLink,
    ListPage,
    Row,
    Table,
)
from douban_pipeline.core.ui.lists.shown_cells import PageFrame
from douban_pipeline.core.ui.lists.table_page import table_page
from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.core.ui.templates import Card

pytestmark = pytest.mark.browser

NOW = datetime(2026, 3, 1, 4, tzinfo=UTC)
HOSTILE = "甲<img src=x onerror=document.title='run'></script><script>document.title='run'</script>\u2028"
COUNT = 130
HASH = "0123456789abcdef" * 4
PICTURES, DRAWN = "data:image/svg+xml,", "%3Csvg xmlns='http://www.w3.org/2000/svg' width='40' height='56'/%3E"
COLUMNS = (
    ListColumn("video", "影片"),
    ListColumn("picture", "海报", ColumnKind.PICTURE),
    ListColumn("vod_id", "影片 ID", ColumnKind.ID),
    ListColumn("category", "分类", ColumnKind.LABEL),
    ListColumn("labels", "冲突", ColumnKind.LABEL),
    ListColumn("score", "得分", ColumnKind.NUMBER),
    ListColumn("nothing", "没有的", ColumnKind.TEXT),
    ListColumn("why", "原因", ColumnKind.TEXT),
    ListColumn("tier", "优先级", ColumnKind.LABEL, by="rank"),
    ListColumn("rank", "", ColumnKind.RANK),
    ListColumn("subject", "条目", ColumnKind.SUBJECT),
    ListColumn("updated", "更新", ColumnKind.TIME),
    ListColumn("links", "操作", ColumnKind.LINKS),
)
PAGE = ListPage(
    "list_some",
    "某列表",
    "说明。",
    COLUMNS,
    key="vod_id",
    time="updated",
    video="vod_id",
    links={"set": ListLink("填写", "/launch?vod={0}&text={1}"), "search": ListLink("搜索", "https://example.org/{0}")},
    batch=(ListLink("批量", "/batch?ids=%5B{ids}%5D"),),
    top="score",
)
FEW = [{"name": name, "count": count} for name, count in (("乙", 2), ("甲", 3), ("丙", 1))]


def row(number: int) -> Row:
    return {
        "video": f"{HOSTILE}{number}",
        "picture": f"{PICTURES}{DRAWN}" if number % 2 else None,
        "vod_id": number,
        "category": f"{HOSTILE}类" if number % 2 else "剧集",
        "labels": ("年份", "地区") if number % 3 == 0 else ("年份",) if number % 3 == 1 else (),
        "score": None if number % 10 == 0 else (number * 37) % 101 + 0.5,
        "nothing": None,
        "why": f"事实表 {HASH}" if number == 1 else None,
        "tier": ("急", "次之", "不急")[number % 3],
        "rank": (3000, 200, 10)[number % 3] + number,
        "subject": 90_000_000 + number,
        "updated": NOW - timedelta(days=number),
        "links": (("set", number, "a&b=c"), ("search", HOSTILE)),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a list of several pieces."""
    monkeypatch.setattr(list_files, "PIECE", 20)
    frame = PageFrame(
        ZoneInfo("Asia/Shanghai"),
        "https://dagster.example.org/",
        [("某列表", "list_some.html")],
        "https://site.example.org/vod/{id}.html",
        PICTURES,
    )
    figures = Figures(
        {},
        [Card("年份", "43", address="#_labels=%E5%B9%B4%E4%BB%BD")],
        [Table("few", "几行", (ListColumn("name", "名称"), ListColumn("count", "数", ColumnKind.NUMBER)), FEW)],
    )
    rows = map(row, range(1, COUNT + 1))
    assert write_list(ReportFolder(tmp_path, "", "HOME"), PAGE, rows, frame, NOW, lambda counts: figures).rows == COUNT
    return tmp_path


@pytest.fixture
def opened(page: Page, folder: Path) -> Iterator[Page]:
    """The page, as a file; it must neither report an error nor let anything from outside run."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.goto((folder / "list_some.html").as_uri())
    expect(page.locator("#rows .said")).to_contain_text("共 130 行")
    yield page
    assert page.title() != "run"
    assert page.locator("img:not(.poster)").count() == 0
    assert not wrong


def ids(page: Page) -> list[int]:
    return [int(text) for text in page.locator('td[data-head="影片 ID"]').all_inner_texts()]


def expect_ids(page: Page, wanted: list[int]) -> None:
    cells = page.locator('td[data-head="影片 ID"]')
    expect(cells).to_have_text([str(each) for each in wanted])


def loaded(page: Page) -> int:
    return page.locator('script[src*="list_some.rows"]').count()


def test_pages_load_their_pieces_and_no_others(opened: Page) -> None:
    expect_ids(opened, list(range(1, 51)))
    assert loaded(opened) == 3
    opened.get_by_label("最后一页").click()
    expect_ids(opened, list(range(101, 131)))
    assert loaded(opened) == 5
    opened.get_by_label("上一页").click()
    expect_ids(opened, list(range(51, 101)))
    opened.get_by_label("每页行数").select_option("200")
    expect_ids(opened, list(range(1, 131)))


def test_sorting_goes_over_all_rows_and_empty_ones_come_last(opened: Page) -> None:
    head = opened.get_by_role("button", name="得分")
    head.click()
    by_score = sorted(range(1, COUNT + 1), key=lambda n: (row(n)["score"] is None, -(row(n)["score"] or 0), n))
    expect_ids(opened, by_score[:50])
    expect(opened.locator('th[data-key="score"]')).to_have_attribute("aria-sort", "descending")
    head.click()
    upward = sorted(range(1, COUNT + 1), key=lambda n: (row(n)["score"] is None, row(n)["score"] or 0, n))
    expect_ids(opened, upward[:50])
    head.click()
    expect_ids(opened, list(range(1, 51)))


def test_a_column_of_words_is_sorted_by_its_numbers_which_are_not_shown(opened: Page) -> None:
    opened.locator('th[data-key="tier"]').get_by_role("button").click()
    expect_ids(opened, sorted(range(1, COUNT + 1), key=lambda n: -row(n)["rank"])[:50])
    assert opened.locator('th[data-key="rank"]').count() == 0
    assert opened.locator('#rows option[value^="rank"]').count() == 0


def test_filters_go_over_all_rows_and_add_up(opened: Page) -> None:
    opened.locator('select[data-facet="labels"]').select_option(label="地区（43）")
    thirds = [n for n in range(1, COUNT + 1) if n % 3 == 0]
    expect_ids(opened, thirds[:50])
    opened.locator('select[data-facet="category"]').select_option(label="剧集（65）")
    even = [n for n in thirds if n % 2 == 0]
    expect_ids(opened, even)
    expect(opened.locator("#rows .said")).to_have_text(f"{len(even)} 行符合，共 130 行")
    opened.get_by_label("更新起").fill(f"{NOW - timedelta(days=60):%Y-%m-%d}")
    expect_ids(opened, [n for n in even if n <= 60])
    opened.get_by_label("止").fill(f"{NOW - timedelta(days=31):%Y-%m-%d}")
    expect_ids(opened, [n for n in even if 31 <= n <= 60])


def test_words_are_looked_for_in_every_column(opened: Page) -> None:
    opened.locator("#rows input[type=search]").fill("90000123")
    expect_ids(opened, [123])
    opened.locator("#rows input[type=search]").fill("<IMG 剧集 122")
    expect_ids(opened, [122])
    opened.locator("#rows input[type=search]").fill("没有这样的")
    expect(opened.locator("#rows").get_by_text("没有符合的")).to_be_visible()


def test_what_was_chosen_is_in_the_address_and_holds_when_opened_again(opened: Page) -> None:
    opened.locator('select[data-facet="category"]').select_option(label="剧集（65）")
    opened.get_by_label("最后一页").click()
    last = list(range(102, COUNT + 1, 2))
    expect_ids(opened, last)
    opened.reload()
    expect_ids(opened, last)
    assert opened.locator('select[data-facet="category"] option:checked').inner_text() == "剧集（65）"


def test_a_number_on_top_leads_to_its_rows_and_back(opened: Page) -> None:
    opened.get_by_role("link", name="年份 43").click()
    some = [n for n in range(1, COUNT + 1) if n % 3 < 2]
    expect_ids(opened, some[:50])
    assert opened.locator('select[data-facet="labels"] option:checked').inner_text() == f"年份（{len(some)}）"
    opened.get_by_role("link", name="得分高的在前").click()
    by_score = sorted(range(1, COUNT + 1), key=lambda n: (row(n)["score"] is None, -(row(n)["score"] or 0), n))
    expect_ids(opened, by_score[:50])
    opened.go_back()
    expect_ids(opened, some[:50])


def test_a_table_below_the_list_is_sorted_on_its_own_and_reached_by_its_name(opened: Page) -> None:
    opened.locator(".views").get_by_role("link", name="几行").click()
    opened.locator("#few").get_by_role("button", name="数").click()
    expect(opened.locator("#few td:first-child")).to_have_text(["甲", "乙", "丙"])
    expect_ids(opened, list(range(1, 51)))
    assert opened.url.endswith("#few")
    opened.get_by_label("下一页").click()
    expect_ids(opened, list(range(51, 101)))


def test_links_lead_where_they_should_and_outside_text_stays_a_part(opened: Page) -> None:
    first = opened.locator("#rows tbody tr").first
    address = first.get_by_role("link", name="填写").get_attribute("href")
    assert address == "https://dagster.example.org/launch?vod=1&text=a%26b%3Dc"
    search = first.get_by_role("link", name="搜索").get_attribute("href") or ""
    assert unquote(search) == f"https://example.org/{HOSTILE}"
    assert "<" not in search


def test_a_row_has_its_poster_and_leads_to_the_sites_page(opened: Page) -> None:
    rows = opened.locator("#rows tbody tr")
    expect(rows.first.locator("img.poster")).to_have_js_property("naturalWidth", 40)
    assert rows.nth(1).locator("img").count() == 0
    assert rows.nth(1).locator(".video a").get_attribute("href") == "https://site.example.org/vod/2.html"
    assert opened.locator('th[data-key="picture"]').count() == 0


def test_batches_are_about_what_is_selected_on_any_page(opened: Page) -> None:
    batch = opened.locator("#rows .batch a")
    expect(batch).to_have_text("批量（本页 50 项）")
    opened.get_by_label("选中 7", exact=True).check()
    opened.get_by_label("下一页").click()
    opened.get_by_label("选中 60", exact=True).check()
    expect(batch).to_have_text("批量（已选 2 项）")
    assert batch.get_attribute("href") == "https://dagster.example.org/batch?ids=%5B7%2C%2060%5D"
    opened.get_by_role("button", name="取消选择").click()
    expect(batch).to_have_text("批量（本页 50 项）")


def test_without_scripts_the_first_rows_are_there(browser: Browser, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "list_some.html").as_uri())
    assert ids(page) == list(range(1, 51))
    assert page.locator("#rows tbody tr").first.locator(".video a").get_attribute("href") == (
        "https://site.example.org/vod/1.html"
    )
    assert page.locator(".filters, .turns").count() == 0
    assert "前 50 行" in page.locator("#rows .said").inner_text()
    assert page.get_by_role("link", name=re.compile("^CSV")).get_attribute("href") == "list_some.csv"
    context.close()


def test_a_piece_that_is_gone_is_told(page: Page, folder: Path) -> None:
    page.goto((folder / "list_some.html").as_uri())
    expect(page.locator("#rows .said")).to_contain_text("共 130 行")
    for path in (folder / "list_some.rows").glob("*/0006.js"):
        path.unlink()
    page.get_by_label("最后一页").click()
    expect(page.locator("#rows .said")).to_contain_text("请刷新")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(browser: Browser, folder: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto((folder / "list_some.html").as_uri())
    expect(page.locator("#rows .said")).to_contain_text("共 130 行")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.locator("abbr")).to_have_text("0123456789…")
    expect(page.locator("abbr")).to_have_attribute("title", HASH)
    context.close()


def test_a_page_that_nobody_renews_says_how_old_it_is(page: Page, tmp_path: Path) -> None:
    frame = PageFrame(ZoneInfo("Asia/Shanghai"), "https://dagster.example.org/", [], "", "")
    lead, file = ("一切正常", "good"), tmp_path / "index.html"
    made = table_page("首页", "每 2 分钟更新。", Figures({}, [], [], []), frame, NOW, lead=lead, renewed_seconds=120)
    file.write_text(made, encoding="utf-8")
    page.clock.install(time=NOW)
    page.goto(file.as_uri())
    expect(page.locator(".lead")).to_have_text(["一切正常"])
    page.clock.set_system_time(NOW + timedelta(minutes=11, seconds=5))
    page.clock.run_for(1000)
    expect(page.locator(".stale")).to_contain_text("本页是 11 分钟前写的，此后没有更新")
    expect(page.locator(".lead")).to_have_count(2)
    page.clock.set_system_time(NOW + timedelta(hours=30))
    page.clock.run_for(1000)
    expect(page.locator(".stale")).to_contain_text("30 小时前")
    if folder := os.environ.get("DOUBAN_TEST_PICTURES"):
        page.screenshot(path=Path(folder) / "stale.png")
