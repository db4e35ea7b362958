"""The pages: what they say, that nothing of outside runs or loads in them, and how they come to be files."""

from __future__ import annotations

import errno
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.ui.report_files import ReportFileError, ReportFolder
from douban_pipeline.digest.pages.content import DayEntry, FailureView, OpportunityView, SlotView, TopView
from douban_pipeline.digest.pages.files import INDEX_DAYS, PageAddresses, write_pages
from douban_pipeline.digest.pages.html import formatted, render_analysis, render_daily, render_index
from douban_pipeline_tests.digest.pages.samples import DAY, HOSTILE, analysis, day, entries

ZONE = ZoneInfo("Asia/Shanghai")


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def folder(home: Path, url: str = "") -> ReportFolder:
    return ReportFolder(home / "reports", url, "DOUBAN_PIPELINE_HOME")


def test_a_day_says_what_it_found_best_first() -> None:
    page = render_daily(day(), ZONE)
    assert "日报 2026-11-20" in page
    assert "2026-11-20\u00a022:03 生成" in page
    assert page.index("铜价上行与冶炼加工费（1）") < page.index("铜价上行与冶炼加工费（2）")
    assert "<strong>铜</strong>" in page
    assert 'href="../analysis/1.html"' in page
    assert "模型三次没有给出 JSON" in page
    assert "⚠ 存疑" in page


def test_a_day_without_findings_says_so() -> None:
    told = {"headline": "已读 1 篇，没有投资机会", "coverage": "收到 1 篇，分析 1 篇，失败 0 篇"}
    page = render_daily(day(analyses=[analysis(3, 35)], top=[], digest_md="", **told), ZONE)
    assert all(text in page for text in told.values())
    assert "分析过的文章都没有达到阈值" in page


def test_a_day_that_could_not_be_read_says_why_and_not_that_nothing_was_found() -> None:
    told = {"unread": True, "headline": "今日没能读取文章，有无机会不知道", "causes": ["07:00：WeRSS 不可用"]}
    page = render_daily(day(analyses=[], top=[], digest_md="", **told), ZONE)
    assert told["headline"] in page
    assert "07:00：WeRSS 不可用" in page
    assert "没有分析过的文章" in page
    assert "阈值的" not in page
    assert "机会—达到推送阈值" in re.sub(r"<[^>]+>|\s", "", page), "nobody knows how many"


def test_a_day_that_failed_says_so_with_the_causes_and_shows_what_there_is() -> None:
    causes = ["22:00 时段：WeRSS 不可用", "模型没有回答"]
    page = render_daily(day(failed=True, causes=causes, digest_md="", top=[]), ZONE)
    assert "日报生成失败，请稍后刷新" in page
    assert all(cause in page for cause in causes)
    assert "铜价上行与冶炼加工费（1）" in page
    assert "没有投资机会" not in page


def test_nothing_that_comes_from_outside_runs_or_loads() -> None:
    opportunity = OpportunityView(HOSTILE, HOSTILE, [HOSTILE], HOSTILE, HOSTILE, HOSTILE)
    hostile = analysis(
        9,
        90,
        title=HOSTILE,
        mp_name=HOSTILE,
        url="javascript:alert(1)",
        summary=HOSTILE,
        opportunities=[opportunity],
        suspicions=[HOSTILE],
        model=HOSTILE,
    )
    markdown = (
        f"{HOSTILE}\n\n[a](javascript:alert(1)) ![p](https://evil.example/p.png) <https://evil.example>\n\n{HOSTILE}"
    )
    pages = [
        render_analysis(hostile, ZONE),
        render_daily(
            day(
                analyses=[hostile],
                digest_md=markdown,
                top=[TopView(HOSTILE, 1, HOSTILE, 9)],
                watchlist=[HOSTILE],
                failures=[FailureView(HOSTILE, HOSTILE, "data:text/html,x", HOSTILE)],
                slots=[SlotView("07:00", HOSTILE, "bad", HOSTILE)],
                failed=True,
                causes=[HOSTILE],
                note=HOSTILE,
            ),
            ZONE,
        ),
        render_index([DayEntry(DAY, 1, {9: HOSTILE}, 90)], "日报", [2026], HOSTILE),
    ]
    for page in pages:
        tags = Tags(page)
        assert [each for each in tags.all("script") if set(each) != {"src", "defer"}] == []
        assert tags.all("img") == []
        links = [attributes.get("href") or "" for attributes in tags.all("a")]
        assert all(link.startswith(("#", "../", "analysis/", "daily/", "index.html", "days-")) for link in links), links
        assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)


def test_markdown_of_the_model_formats_and_does_no_more() -> None:
    assert formatted("# 一\n\n- 二") == "<h1>一</h1>\n<ul>\n<li>二</li>\n</ul>\n"
    assert "<a" not in formatted("[x](https://example.com) https://example.com\n\n[y]\n\n[y]: https://example.com")


def test_pages_are_files_that_lead_to_each_other(tmp_path: Path) -> None:
    reports = folder(tmp_path)
    path = write_pages(reports, day(), [DayEntry(DAY, 3, {1: "铜"}, 86)], ZONE)
    root = tmp_path / "reports" / "digest"
    assert path == root / "daily" / "2026-11-20.html"
    written = {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}
    assert written == {
        "index.html",
        "days-2026.html",
        "search.js",
        "daily/2026-11-20.html",
        *(f"analysis/{number}.html" for number in (1, 2, 3)),
    }
    for page in root.rglob("*.html"):
        tags = Tags(page.read_text())
        targets = [attributes.get("href") or "" for attributes in tags.all("a")]
        targets += [attributes["src"] or "" for attributes in tags.all("script")]
        for target in targets:
            if not target.startswith(("#", "http")):
                assert (page.parent / target).resolve().exists(), (page, target)


def test_ten_years_of_days_are_a_page_of_the_newest_and_one_a_year(tmp_path: Path) -> None:
    reports = folder(tmp_path)
    days = entries(800)
    write_pages(reports, day(), days, ZONE)
    root = tmp_path / "reports" / "digest"
    assert (root / "index.html").read_text().count("<article") == INDEX_DAYS
    pages = sorted(root.glob("days-*.html"))
    assert [page.name for page in pages] == ["days-2024.html", "days-2025.html", "days-2026.html"]
    assert sum(page.read_text().count("<article") for page in pages) == 800
    old = pages[0].stat().st_mtime_ns
    write_pages(reports, day(), days, ZONE)
    assert pages[0].stat().st_mtime_ns == old


def test_a_full_disk_leaves_the_page_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = folder(tmp_path)
    path = write_pages(reports, day(), [], ZONE)
    before = path.read_text()
    sync = os.fsync

    def full(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if "2026-11-20" in name:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportFileError, match=r"2026-11-20\.html 无法写入（No space left.*DOUBAN_PIPELINE_HOME"):
        write_pages(reports, day(watchlist=["新"]), [], ZONE)
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("public", "reports_url", "expected"),
    [
        ("https://d.example/", "https://r.example", "https://d.example/daily/2026-11-20"),
        ("", "https://r.example/reports", "https://r.example/reports/digest/daily/2026-11-20.html"),
        ("", "", "{home}/reports/digest/daily/2026-11-20.html"),
    ],
)
def test_messages_link_to_where_the_pages_are(tmp_path: Path, public: str, reports_url: str, expected: str) -> None:
    addresses = PageAddresses(public, folder(tmp_path, reports_url))
    assert addresses.daily(DAY) == expected.format(home=tmp_path)
