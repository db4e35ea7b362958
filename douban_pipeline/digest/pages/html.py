"""Renders the pages. Every value is escaped; the model's Markdown may format, but not link or embed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from markdown_it import MarkdownIt
from markupsafe import Markup

from douban_pipeline.core.settings_base import http_address
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.templates import Card, render
from douban_pipeline.digest.page_data import AnalysisView, DayEntry, DayView

FAILED = "日报生成失败，请稍后刷新"
SEARCH_SCRIPT = "search.js"
_WEEKDAYS = "一二三四五六日"


def render_analysis(analysis: AnalysisView, zone: ZoneInfo) -> str:
    """Return the page of an analysis."""
    about = " · ".join(filter(None, (analysis.mp_name, local_time(analysis.published_at, zone))))
    return render(
        __package__,
        "analysis.html.j2",
        title=analysis.title or "（无标题）",
        badge=str(analysis.score),
        about=about,
        lang="zh-Hans",
        chapters=_chapters(
            ("summary", "摘要", True),
            ("opportunities", "机会", analysis.opportunities),
            ("article", "原文", True),
        ),
        analysis=analysis,
        link=_safe_link(analysis.url),
    )


def render_daily(day: DayView, zone: ZoneInfo) -> str:
    """Return the page of a day, best score first."""
    ordered = sorted(day.analyses, key=lambda each: (-each.score, each.analysis_id))
    findings = [each for each in ordered if each.is_finding]
    cards = [
        Card("机会", "—" if day.unread else str(len(findings)), "达到推送阈值", "good" if findings else ""),
        Card("最高分", str(ordered[0].score) if ordered else "—", "满分 100"),
        Card("分析文章", str(len(ordered)), "当日各时段合计"),
        Card("分析失败", str(len(day.failures)), "见下文", "bad" if day.failures else ""),
    ]
    return render(
        __package__,
        "daily.html.j2",
        title=f"日报 {day.report_date.isoformat()}",
        badge="",
        about=f"星期{_WEEKDAYS[day.report_date.weekday()]} · {local_time(day.made_at, zone)} 生成",
        lang="zh-Hans",
        chapters=_chapters(
            ("digest", "日报", True),
            ("findings", "投资机会", True),
            ("watchlist", "关注", day.watchlist),
            ("others", "其他资讯", len(ordered) > len(findings)),
            ("failures", "未能分析", day.failures),
            ("slots", "时段", day.slots),
        ),
        day=day,
        cards=cards,
        findings=findings,
        others=[each for each in ordered if not each.is_finding],
        digest=formatted(day.digest_md),
        link_of=_safe_link,
        failed=FAILED,
    )


def render_index(days: Sequence[DayEntry], title: str, years: Sequence[int], about: str) -> str:
    """Return a list of days, newest first, with a search field if scripts are allowed.

    Args:
        days: The days.
        title: Its heading.
        years: Years with a list of their own, which are linked.
        about: A sentence under the heading.
    """
    return render(
        __package__,
        "index.html.j2",
        title=title,
        badge="",
        about=about,
        lang="zh-Hans",
        chapters=_chapters(("days", "按日期", True)),
        days=days,
        years=years,
        weekdays=_WEEKDAYS,
        search_script=SEARCH_SCRIPT,
    )


def search_script() -> str:
    """Return the script of the index."""
    return files(__package__).joinpath(SEARCH_SCRIPT).read_text(encoding="utf-8")


def formatted(markdown: str) -> Markup:
    """Return Markdown as HTML: headings, lists, emphasis, tables; HTML, links and pictures in it are shown as text."""
    return Markup(_parser().render(markdown))  # noqa: S704 (the parser escapes)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])


def _chapters(*chapters: tuple[str, str, object]) -> list[dict[str, str]]:
    return [{"key": key, "title": title} for key, title, shown in chapters if shown]


def _safe_link(url: str) -> str:
    """Return an address that may become a link; otherwise empty."""
    try:
        return http_address(url)
    except ValueError:
        return ""
