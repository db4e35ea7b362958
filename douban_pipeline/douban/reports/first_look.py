"""The page of a dry run: what would be linked and written, why, what would go to review, and what was not found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping, func, select

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.ui.templates import Card, render
from douban_pipeline.core.ui.tmdb_attribution import attribution_parts, names_tmdb
from douban_pipeline.douban.chain.sync.fields import plan_fields
from douban_pipeline.douban.chain.sync.writer import judged_answer
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.wording import COLUMNS, word_for
from douban_pipeline.matching.site_videos import kind_of_category

PAGE = "first_look.html"
"""File of the page among the reports."""
KIND_WORDS: Mapping[str, str] = {
    "film": "电影",
    "series": "剧集",
    "variety": "综艺",
    "animation": "动画",
    "documentary": "纪录片",
    "short": "短剧",
}
"""What the videos of a category are, by the names of the setting `CATEGORY_KINDS`."""

_ABOUT = "拿你影视库里的影片试判：哪些会自动关联到豆瓣条目、为什么，哪些要由人来定。以下一切都还没有写入 CMS。"
_SHOWN = 60
_CHAPTERS = (
    (ReviewStatus.CONFIRMED, "会自动关联", "没有哪一部会自动关联。"),
    (ReviewStatus.REVIEW, "会转人工审核", "没有哪一部会转人工审核。"),
    (ReviewStatus.NOT_FOUND, "没有找到", "没有哪一部找不到。"),
)


@dataclass(frozen=True, slots=True)
class JudgedVideo:
    """A verdict as the page shows it.

    Attributes:
        address: The video's page on the site; empty if the site is not known.
        kind: What its category is taken for; empty if that is not known.
        subject_title, subject_year: Of the best candidate; empty and None without any.
        planned: Word, value before and value after of each column that would be written.
    """

    vod_id: int
    name: str
    year: str
    address: str
    category: str
    kind: str
    verdict: str
    douban_id: int
    subject_title: str
    subject_year: int | None
    score: float | None
    why: str
    planned: Sequence[tuple[str, str, str]] = ()


def verdict_counts(services: Services, run_ids: Collection[str]) -> dict[str, int]:
    """Return the number of videos that these runs judged, by verdict."""
    verdict = services.tables.verdict
    videos = func.count(verdict.c.vod_id.distinct())
    query = select(verdict.c.verdict, videos).where(verdict.c.run_id.in_(run_ids)).group_by(verdict.c.verdict)
    with reading(services.engine) as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def write_first_look(services: Services, run_ids: Collection[str]) -> Path:
    """Write the page about the verdicts of these runs, and return its path.

    Raises:
        ReportFileError: It cannot be written.
    """
    judged = judged_videos(services, run_ids)
    cards = [Card("判定过的影片", str(len(judged)), "演练：什么都还没有写入 CMS")]
    chapters = []
    for status, title, none in _CHAPTERS:
        rows = [each for each in judged if each.verdict == status]
        cards.append(Card(title, str(len(rows)), address=f"#{status.lower()}"))
        chapters.append({"key": status.lower(), "title": f"{title}（{len(rows)}）", "rows": rows, "none": none})
    page = render(
        __package__,
        "first_look.html.j2",
        title="第一次演练",
        badge="",
        about=_ABOUT,
        lang="zh-Hans",
        cards=cards,
        chapters=chapters,
        tmdb=attribution_parts() if names_tmdb(each.why for each in judged) else None,
    )
    return services.reports.write(PAGE, page)


def judged_videos(services: Services, run_ids: Collection[str]) -> list[JudgedVideo]:
    """Return the verdicts of these runs, in the order of the videos."""
    verdict, candidate, video = services.tables.verdict, services.tables.candidate, services.tables.video
    with reading(services.engine) as connection:
        found = connection.execute(select(verdict).where(verdict.c.run_id.in_(run_ids))).mappings().all()
        newest = {row["vod_id"]: row for row in sorted(found, key=lambda row: row["verdict_id"])}
        ids = [row["verdict_id"] for row in newest.values()]
        query = select(*candidate.c["verdict_id", "rank", "douban_id", "title", "year"])
        candidates: dict[int, list[RowMapping]] = {}
        for each in connection.execute(
            query.where(candidate.c.verdict_id.in_(ids)).order_by(candidate.c["rank"])
        ).mappings():
            candidates.setdefault(each["verdict_id"], []).append(each)
        rows = services.cms.rows(connection, list(newest))
        locked = select(video.c.vod_id).where(video.c.vod_id.in_(list(newest)), video.c.intro_locked)
        intro_locked = set(connection.execute(locked).scalars())
    return [
        _judged(services, rows[vod_id], row, candidates.get(row["verdict_id"], ()), vod_id in intro_locked)
        for vod_id, row in sorted(newest.items())
        if vod_id in rows
    ]


def _judged(
    services: Services,
    row: RowMapping,
    verdict: RowMapping,
    candidates: Sequence[RowMapping],
    intro_locked: bool,
) -> JudgedVideo:
    subject = next((each for each in candidates if each["douban_id"] == verdict["douban_id"]), None)
    subject = subject or next(iter(candidates), None)
    category, kind = services.categories.get(row["type_id"]), kind_of_category(services.categories, row["type_id"])
    confirmed = verdict["verdict"] == ReviewStatus.CONFIRMED
    return JudgedVideo(
        vod_id=row["vod_id"],
        name=readable(row["vod_name"]),
        year=readable(row["vod_year"]).removeprefix("0"),
        address=VideoSite.of(services.settings).address(row["vod_id"]),
        category=readable(category.name) if category else str(row["type_id"]),
        kind=KIND_WORDS.get(kind or "", ""),
        verdict=verdict["verdict"],
        douban_id=subject["douban_id"] if subject else 0,
        subject_title=subject["title"] if subject else "",
        subject_year=subject["year"] if subject else None,
        score=verdict["score"],
        why=verdict["explanation"],
        planned=_planned(services, row, verdict, intro_locked) if confirmed else (),
    )


def _planned(
    services: Services, row: RowMapping, verdict: Mapping[Any, Any], intro_locked: bool
) -> list[tuple[str, str, str]]:
    """Return what would be written; nothing where the answer it would be written from is gone."""
    try:
        record, _ = judged_answer(services, verdict)
    except (KeyError, SourceError):
        return []
    plan = plan_fields(
        row,
        record,
        cms=services.cms,
        vocabulary=services.vocabulary(row["type_id"]),
        policies=services.settings.policies,
        undone={},
        intro_locked=intro_locked,
    )
    changes = {"vod_douban_id": (row["vod_douban_id"], record.douban_id)}
    changes |= {column: (plan.old[column], value) for column, value in plan.new.items()}
    return [(word_for(COLUMNS, column), _short(old), _short(new)) for column, (old, new) in changes.items()]


def _short(value: object) -> str:
    text = readable(value) if isinstance(value, str) else "" if value in (0, None) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
