"""Rows of `mac_vod` as sites have them: the facts of an invented work, what is missing, wrong or added, and links.

A row takes some 2.9 KB in MyISAM, more than half of it play links; text is **unescaped**, as the demo library's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from douban_pipeline_tests.harness.generated import text
from douban_pipeline_tests.harness.generated.text import SPAN, Draw, cast, draws, listed, picked, shares
from douban_pipeline_tests.harness.generated.works import LAST_YEAR, Work, known, make, subject_id_of, work_id_of

_AREAS = {"中国大陆": "大陆", "中国香港": "香港", "中国台湾": "台湾"}
_SITE_LANGUAGES = {"汉语普通话": "国语", "印地语": "其它", "泰语": "其它", "西班牙语": "其它"}
_MARKS = shares((",", 86), (" / ", 8), ("/", 4), ("、", 2))
_NOBODY = ("未知", "内详", "未知主演", "佚名")

_POOR = 5900
"""Of 65,536 videos so many come from a source that tells hardly more than the name."""


def _site_year(year: int, draw: int, *, copy: bool, poor: bool) -> str:
    if copy and draw & 3 == 0:
        return str(min(year + 1 + (draw >> 2) % 2, LAST_YEAR))
    if draw < 3000 or poor:
        return ("", "0")[draw & 1]
    if draw < 5500:
        return "0"
    if draw < 9000:
        return str(min(year + 1, LAST_YEAR))
    if draw < 10_600:
        return str(year - 1)
    # The year of the release in another country, or of the upload.
    return str(min(year + 2 + draw % 7, LAST_YEAR)) if draw < 11_900 else str(year)


def _people_columns(work: Work, draw: Draw, *, poor: bool) -> dict[str, str]:
    subject = work.subject
    mark = picked(_MARKS, draw)
    how, shown, written, directed = draw(), draw(), draw(), draw()
    actors: list[str] = subject["actors"]
    if how < 8000 or poor:
        played = ""
    elif how < 9400:
        played = _NOBODY[how & 3]
    elif how < 10_000:
        # Editors err.
        played = mark.join(cast(iter((how, shown, written, directed)).__next__, work.country, 2))
    else:
        played = mark.join(actors[: 1 + (shown * 8 >> 16)]) + ("," if how > 64_000 else "")
    if directed < 11_500 or poor:
        by = ""
    elif directed < 13_000:
        by = _NOBODY[directed & 1]
    elif directed < 13_600:
        by = actors[-1]
    else:
        by = mark.join(subject["directors"])
    writers = mark.join(subject["writers"]) if written < 24_000 else ""
    return {"vod_actor": played, "vod_director": by, "vod_writer": writers}


def _sub(work: Work, how: int, which: int) -> str:
    subject = work.subject
    names = [name for name in (subject["original_title"], *subject["aka"]) if name != subject["title"]]
    if how < 26_000 or not names:
        return subject["title"] if how > 62_000 else ""
    if how < 36_000:
        return f"{names[0]}（{subject['year']}）"
    return names[which % len(names)] if how < 52_000 else (" / ", ",", "/")[which % 3].join(names)


def _classes(genres: list[str], category: str, draw: int) -> str:
    if draw < 4500:
        return ""
    if draw < 12_000:
        return category
    return ",".join(genres) if draw > 50_000 else ",".join(dict.fromkeys((*genres, category.removesuffix("片"))))


def _area(work: Work, draw: int) -> str:
    regions = work.subject["regions"]
    if draw < 5200:
        return ""
    if draw < 7000:
        return "其它"
    if draw < 12_000:
        return str(regions[0])
    own = _AREAS.get(regions[0], regions[0])
    if own == "大陆" and work.kind != "film" and draw & 1:
        own = "内地"
    return own if draw < 58_000 else ",".join((own, *(_AREAS.get(each, each) for each in regions[1:])))


def _language(spoken: str, draw: int) -> str:
    return "" if draw < 9000 else _SITE_LANGUAGES.get(spoken, spoken)


def _content(summary: str, draw: int) -> str:
    if draw < 5200:
        return ""
    if draw < 5330:
        return "null"
    if draw < 20_000:
        return f"<p>{summary}</p>"
    if draw < 26_000:
        return f"　　{summary}"
    return f"{summary[: 40 + draw % 60]}..." if draw < 30_000 else summary


def _picture(vod_id: int, draw: int, douban_id: int) -> str:
    if draw < 1300:
        return ""
    if draw < 14_000:
        number = 2_000_000_000 + douban_id
        return f"https://img{draw % 9}.poster.example/view/photo/s_ratio_poster/public/p{number}.webp"
    day = f"20{18 + draw % 8}{1 + draw % 12:02d}{1 + draw % 28:02d}"
    return f"https://pic{draw % 7}.image-store.example/upload/vod/{day}-1/{vod_id:x}{draw:04x}9f3c7a51d2e84b60.jpg"


_ROMAN = ("", "Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ", "Ⅴ")
_BEHIND = (
    "高清", "[BD]", " HD", " 1080P", "[HD高清]", "（蓝光）", " 4K", "全集", "未删减版", "[国语]", "国语版", "无水印",
    "-正片",
)  # fmt: skip
_BEFORE = ("【国产剧】", "[热播]", "【豆瓣高分】", "最新电影《")
_FILM_EDITIONS = ("粤语版", "（粤语）", "国语版", "导演剪辑版", "加长版", "修复版", "3D", "电影版")
_SERIES_EDITIONS = ("粤语版", "国语版", "（国语配音）", "TV版", "未删减版", "特别篇", "番外篇")


def _site_name(work: Work, draw: Draw, *, copy: bool) -> str:
    counting, adding, which, changing = draw(), draw(), draw(), draw()
    name = _written(work, _counted(work, counting), changing, which)
    year = work.subject["year"]
    junk = 26_000 if copy else 4000
    if adding < junk:
        if which & 7 == 0:
            before = _BEFORE[which * len(_BEFORE) >> 16]
            return f"{before}{name}》" if before.endswith("《") else before + name
        return name + _BEHIND[which * len(_BEHIND) >> 16]
    if adding < junk + 900:
        return f"{name}({year})"
    if adding < junk + 1500:
        return f"{name} {year}"
    if adding < junk + 2600:
        editions = _FILM_EDITIONS if work.kind == "film" else _SERIES_EDITIONS
        return name + editions[which * len(editions) >> 16]
    if adding < junk + 3000 and work.subject["episodes"]:
        return f"{name} 更新至{1 + which % work.subject['episodes']:02d}集"
    return name


def _counted(work: Work, draw: int) -> str:
    number, title, base = work.number, str(work.subject["title"]), work.base
    if number is None:
        # 第一季 of what has no second, or not yet.
        numbered = work.kind in ("series", "animation", "variety") and title == base and draw < 1300
        return f"{title}第一季" if numbered else title
    if draw > 64_200:
        return base  # The number was lost.
    counted = text.counted(number)
    if work.counted == "season":
        match draw // 6000:
            case 0 | 1 | 2 | 3:
                return f"{base}第{counted}季"
            case 4 | 5 | 6:
                return title
            case 7 | 8:
                return f"{base}第{number}季"
            case 9:
                return f"{base} {_ROMAN[number]}" if draw & 1 else f"{base} S{number:02d}"
            case _:
                return f"{base}{number}"
    match draw // 8000:
        case 0:
            return f"{base} {number}"
        case 1:
            return f"{base}{_ROMAN[number]}"
        case 2:
            return f"{base}第{counted}部"
        case _:
            return title


def _written(work: Work, name: str, draw: int, which: int) -> str:
    if draw < 1300:
        # A misheard or mistyped character.
        place = which % len(name)
        return name[:place] + text.TAILS[which % len(text.TAILS)] + name[place + 1 :]
    aka = work.subject["aka"]
    if draw < 2900 and aka:
        return str(aka[which % len(aka)]).removesuffix("(港)")
    return f"{name}：{text.NOUNS[which % len(text.NOUNS)]}" if draw < 3100 else name


_PLAYERS = (
    ("lzm3u8", "v{0}.lz-cdn.example/{1}/{2}_{3}"),
    ("ffm3u8", "vip.ffzy-play{0}.example/{1}/{2}_{3}"),
    ("dbm3u8", "s{0}.db-video.example/hls/{1}/{2}{3}"),
    ("bfzym3u8", "c{0}.bf-stream.example:7891/{1}/{2}/{3}"),
    ("wjm3u8", "cdn.wujin{0}.example/m3/{1}{3}/{2}"),
)
_FILM_LABELS = ("HD中字", "正片", "HD国语")
_LABELS = [(f"第{number:02d}集$", 2 * number + 1) for number in range(1, 101)]
"""Episodes in a list of links, with an odd number each."""


def _play_columns(vod_id: int, episodes: int, groups: int, token: int, day: int) -> dict[str, str]:
    count = 1 if groups < 36_000 else 2 if groups < 58_000 else 3
    date = f"20{18 + day % 9}{1 + (day >> 4) % 12:02d}{1 + (day >> 8) % 28:02d}"
    names, links = [], []
    for group in range(count):
        player, pattern = _PLAYERS[(groups + group) % len(_PLAYERS)]
        head = "https://" + pattern.format(token % 9 + group, date, vod_id + 10_000, f"{token:04x}")
        names.append(player)
        salt = (vod_id * 4 + group) * 2_654_435_761
        if episodes == 1:
            links.append(f"{_FILM_LABELS[token % 3]}${head}{salt & 0xFFFFFFFF:08x}/index.m3u8")
            continue
        links.append(
            "#".join(
                [f"{label}{head}{salt * number & 0xFFFFFFFF:08x}/index.m3u8" for label, number in _LABELS[:episodes]]
            )
        )
    return {
        "vod_play_from": "$$$".join(names),
        "vod_play_server": "$$$".join(["no"] * count),
        "vod_play_note": "$$$".join([""] * count),
        "vod_play_url": "$$$".join(links),
    }


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

    Its ages are counted to ``now``; nothing else depends on that.
    """
    work_id = work_id_of(vod_id, seed)
    work = make(work_id, seed)
    subject = work.subject
    draw = draws(b"video", seed, vod_id, 2)
    copy, poor = work_id != vod_id, draw() < _POOR
    type_id, parent = _category(work, draw())
    title = _site_name(work, draw, copy=copy)
    slug = text.slug(title)
    content = _content(subject["summary"], draw())
    link = _link(work_id, seed, draw(), draw())
    rare = draw()
    return {
        "vod_id": vod_id,
        "type_id": type_id,
        "type_id_1": parent,
        "vod_name": title,
        "vod_sub": _sub(work, draw(), draw()),
        "vod_en": slug,
        "vod_letter": slug[:1].upper(),
        "vod_status": 0 if rare % 72 == 0 else 1,
        "vod_class": _classes(subject["genres"], _TYPE_NAMES[type_id], draw()),
        "vod_pic": _picture(vod_id, draw(), subject["id"]),
        **_people_columns(work, draw, poor=poor),
        "vod_year": _site_year(subject["year"], draw(), copy=copy, poor=poor),
        "vod_area": _area(work, draw()),
        "vod_lang": _language(subject["languages"][0], draw()),
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
        **_play_columns(vod_id, subject["episodes"] or 1, draw(), draw(), draw()),
    }


def _category(work: Work, draw: int) -> tuple[int, int]:
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
    if draw < 328:
        return CONSTANT_WRONG_ID if which & 3 == 0 else subject_id_of(work_id + 1 + (which >> 4) % 3)
    return subject_id_of(work_id) if draw < 328 + 5243 and known(work_id, seed) else 0


def _times(draw: Draw, now: int) -> dict[str, int]:
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
