"""The pages: what they say, that nothing of outside runs or loads in them, and how they lead to each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin
from zoneinfo import ZoneInfo

import httpx
import pytest
from fastapi import FastAPI

from douban_pipeline.digest.api import INDEX_DAYS, digest_router
from douban_pipeline.digest.page_data import DayEntry, FailureView, OpportunityView, SlotView, TopView
from douban_pipeline.digest.pages.html import formatted, render_analysis, render_daily, render_index
from douban_pipeline.digest.services import open_services
from douban_pipeline.digest.store.tables import daily_report
from douban_pipeline_tests.digest.pages.samples import DAY, HOSTILE, analysis, day
from douban_pipeline_tests.digest.stage import Stage, given_settings, stage
from douban_pipeline_tests.serve.test_serving import listening

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


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path, at="22:00") as opened:
        yield opened


@contextmanager
def browser(at: Stage) -> Iterator[httpx.Client]:
    app = FastAPI()
    app.include_router(digest_router(at.services))
    with listening(app) as base, httpx.Client(base_url=base, timeout=60) as client:
        yield client


def test_pages_lead_to_each_other(at: Stage) -> None:
    seen: set[str] = set()
    pending = {"/", f"/daily/{DAY}", "/analysis/1"}
    with browser(at) as client:
        assert "run_digest_slot" in client.get("/").text  # there is nothing yet
        at.publish(1, 86)
        at.run("22:00")
        while pending:
            path = pending.pop()
            seen.add(path)
            answer = client.get(path)
            assert answer.status_code == 200, path
            tags = Tags(answer.text)
            targets = [attributes.get("href") or "" for attributes in tags.all("a")]
            targets += [attributes["src"] or "" for attributes in tags.all("script")]
            found = {urljoin(path, each) for each in targets if not each.startswith(("#", "http"))}
            pending |= found - seen
    assert {"/index.html", "/days-2026.html", "/search.js", f"/daily/{DAY}.html", "/analysis/1.html"} <= seen


@pytest.mark.parametrize("path", ["daily/2020-01-01", "daily/x", "analysis/9", "analysis/-1", "analysis/" + "9" * 99])
def test_what_is_no_page_is_not_found(at: Stage, path: str) -> None:
    with browser(at) as client:
        assert client.get(f"/{path}").status_code == 404


def test_ten_years_of_days_are_a_page_of_the_newest_and_one_a_year(at: Stage) -> None:
    row = {"state": "plain", "reason": "", "digest_md": "", "digest_json": {}, "slots_done": [], "stats": {}}
    times = {"created_at": at.clock.at, "updated_at": at.clock.at}
    days = [{"report_date": DAY - timedelta(days=back), **row, **times} for back in range(800)]
    with at.services.engine.begin() as connection:
        connection.execute(daily_report.insert(), days)
    with browser(at) as client:
        assert client.get("/").text.count("<article") == INDEX_DAYS
        assert sum(client.get(f"/days-{year}.html").text.count("<article") for year in (2024, 2025, 2026)) == 800
        assert client.get("/days-2023.html").status_code == 404


@pytest.mark.parametrize(("public", "base"), [("https://d.example/", "https://d.example"), ("", "")])
def test_messages_link_to_where_the_pages_are(tmp_path: Path, public: str, base: str) -> None:
    services = open_services(given_settings(tmp_path, public_url=public))
    assert services.daily_address(DAY) == f"{base}/daily/2026-11-20"
    assert services.analysis_address(3) == f"{base}/analysis/3"
    services.close()
