"""Rows of `mac_vod` as sites have them: the facts of an invented work, what is missing, wrong or added, and links.

A row takes some 2.9 KB in MyISAM, more than half of it play links; text is **unescaped**, as the demo library's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from douban_pipeline_tests.harness.generated import describing, titles
from douban_pipeline_tests.harness.generated.draws import SPAN, Draw, draws
from douban_pipeline_tests.harness.generated.naming import site_name
from douban_pipeline_tests.harness.generated.playing import play_columns
from douban_pipeline_tests.harness.generated.words import listed
from douban_pipeline_tests.harness.generated.works import Work, known, make, subject_id_of, work_id_of

CONSTANT_WRONG_ID = 36_427_183
"""What some converters write into every record."""

_DAY = 86_400
_FILM_TYPES = {
    "动作": 6, "犯罪": 6, "喜剧": 7, "爱情": 8, "科幻": 9, "恐怖": 10, "惊悚": 10, "战争": 12, "纪录片": 19,
}  # fmt: skip
_TYPE_NAMES = {
    1: "电影", 6: "动作片", 7: "喜剧片", 8: "爱情片", 9: "科幻片", 10: "恐怖片", 11: "剧情片", 12: "战争片",
    19: "纪录片", 2: "连续剧", 13: "国产剧", 14: "港台剧", 15: "日韩剧", 16: "欧美剧", 24: "短剧", 3: "综艺",
    4: "动漫", 21: "国产动漫", 22: "日韩动漫", 23: "欧美动漫",
}  # fmt: skip
COLUMNS = frozenset(
    listed("""
        vod_id type_id type_id_1 vod_name vod_sub vod_en vod_letter vod_status vod_class vod_pic vod_actor vod_director
        vod_writer vod_year vod_area vod_lang vod_pubdate vod_content vod_blurb vod_lock vod_level vod_douban_id
        vod_douban_score vod_time vod_time_add vod_time_hits vod_time_make vod_recycle_time vod_hits vod_hits_day
        vod_hits_week vod_hits_month vod_up vod_down vod_score vod_score_num vod_score_all vod_remarks vod_duration
        vod_total vod_serial vod_isend vod_play_from vod_play_server vod_play_note vod_play_url
    """)
)
"""What a video may have; anything else is the CMS's default in all."""

_FILM_BADGES = ("HD", "HD中字", "BD1080P", "TS", "正片", "HD国语", "蓝光", "更新HD", "1080P", "完结")


def video_of(vod_id: int, seed: int, now: datetime) -> dict[str, Any]:
    """Return the row of a video (from 1) as column → value; columns left out have the CMS's defaults.

    Args:
        vod_id: Its id.
        seed: What the library is generated from.
        now: The time to which its ages are counted; nothing else depends on it.
    """
    work_id = work_id_of(vod_id, seed)
    work = make(work_id, seed)
    subject = work.subject
    draw = draws(b"video", seed, vod_id, 2)
    copy, poor = work_id != vod_id, draw() < describing.POOR
    type_id, parent = _category(work, draw())
    title = site_name(work, draw, copy=copy)
    slug = titles.slug(title)
    content = describing.content(subject["summary"], draw())
    link = _link(work_id, seed, draw(), draw())
    rare = draw()
    return {
        "vod_id": vod_id,
        "type_id": type_id,
        "type_id_1": parent,
        "vod_name": title,
        "vod_sub": describing.sub(work, draw(), draw()),
        "vod_en": slug,
        "vod_letter": slug[:1].upper(),
        "vod_status": 0 if rare % 72 == 0 else 1,
        "vod_class": describing.classes(subject["genres"], _TYPE_NAMES[type_id], draw()),
        "vod_pic": describing.picture(vod_id, draw(), subject["id"]),
        **describing.people(work, draw, poor=poor),
        "vod_year": describing.site_year(subject["year"], draw(), copy=copy, poor=poor),
        "vod_area": describing.area(work, draw()),
        "vod_lang": describing.language(subject["languages"][0], draw()),
        "vod_pubdate": subject["pubdates"][0] if draw() < 20_000 and not poor else "",
        "vod_content": content,
        "vod_blurb": content.removeprefix("<p>")[:100].strip(),
        "vod_lock": 1 if rare % 145 == 1 else 0,
        "vod_level": rare % 9 + 1 if rare % 50 == 2 else 0,
        "vod_douban_id": link,
        "vod_douban_score": subject["rating"] or 0.0 if link and rare & 1 else 0.0,
        **_times(draw, int(now.timestamp())),
        **_noise(draw(), draw(), draw()),
        **_progress(work, draw(), draw()),
        **play_columns(vod_id, subject["episodes"] or 1, draw(), draw(), draw()),
    }


def _category(work: Work, draw: int) -> tuple[int, int]:
    """Return type and parent type; some videos stand in a root category."""
    root = draw < 2000
    subject = work.subject
    if work.kind == "film":
        return (1, 0) if root else (_FILM_TYPES.get(subject["genres"][0], 11), 1)
    if work.kind == "short":
        return 24, 2
    if work.kind == "variety":
        return 3, 0
    if work.kind == "animation":
        return (4, 0) if root else ({"cn": 21, "en": 23}.get(work.country, 22), 4)
    if root:
        return 2, 0
    region = subject["regions"][0]
    if region == "中国大陆":
        return 13, 2
    return (14 if work.country == "cn" else 15 if region in ("日本", "韩国", "泰国") else 16), 2


def _link(work_id: int, seed: int, draw: int, which: int) -> int:
    """Return the Douban id that a collector brought: right in 8 % of what Douban knows, wrong in 0.5 %."""
    if draw < 328:
        return CONSTANT_WRONG_ID if which & 3 == 0 else subject_id_of(work_id + 1 + (which >> 4) % 3)
    return subject_id_of(work_id) if draw < 328 + 5243 and known(work_id, seed) else 0


def _times(draw: Draw, now: int) -> dict[str, int]:
    """Return the CMS's times: a tenth touched this week, a quarter these three months, the rest over eight years."""
    how, place, added, later = draw(), draw() / SPAN, draw() / SPAN, draw()
    if how < 1000:
        age = place
    elif how < 6500:
        age = 7 * place
    elif how < 17_000:
        age = 7 + 83 * place
    elif how < 30_000:
        age = 90 + 275 * place
    else:
        age = 365 + 2555 * place * place
    updated = now - int(age * _DAY)
    return {
        "vod_time": updated,
        "vod_time_add": updated - int(added**3 * 900 * _DAY),
        "vod_time_hits": updated + (now - updated) * later // SPAN,
        "vod_time_make": updated + 300 if later & 1 and age > 1 else 0,
        "vod_recycle_time": updated + 7200 if later % 100 == 7 and age > 1 else 0,
    }


def _noise(hits: int, liked: int, scored: int) -> dict[str, Any]:
    """Return the counters that the CMS fills with chance itself."""
    count = 1 + (scored & 0x3FF)
    return {
        "vod_hits": 1 + hits * hits // SPAN,
        "vod_hits_day": hits % 50,
        "vod_hits_week": hits % 50 + liked % 300,
        "vod_hits_month": hits % 50 + liked % 1000,
        "vod_up": liked % 1000,
        "vod_down": liked >> 9,
        "vod_score": (10 + scored % 90) / 10,
        "vod_score_num": count,
        "vod_score_all": count * (1 + scored % 9),
    }


def _progress(work: Work, how: int, which: int) -> dict[str, Any]:
    """Return what tells how far a series has got; sites keep little of it but the badge."""
    episodes = work.subject["episodes"]
    if episodes is None:
        minutes = work.subject["duration_min"]
        length = (f"{minutes}", f"{minutes}分钟", f"{minutes // 60:02d}:{minutes % 60:02d}:00")[which % 3]
        return {
            "vod_remarks": _FILM_BADGES[how * len(_FILM_BADGES) >> 16],
            "vod_duration": length if which < 17_000 else "",
        }
    running = how < 6000
    reached = 1 + which * episodes // SPAN if running else episodes
    finished = f"全{episodes}集" if how < 42_000 else "已完结"
    return {
        "vod_remarks": f"更新至{reached:02d}集" if running else finished,
        "vod_total": episodes if which & 3 == 0 else 0,
        "vod_serial": str(reached) if which & 7 == 0 else "0",
        "vod_isend": 1 if not running and which & 16 else 0,
    }
