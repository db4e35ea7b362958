"""What sites know of a work: some fields missing, some wrong, in the words and with the marks that sites use."""

from __future__ import annotations

from douban_pipeline_tests.harness.generated.draws import Draw, picked, shares
from douban_pipeline_tests.harness.generated.people import cast
from douban_pipeline_tests.harness.generated.works import LAST_YEAR, Work

_AREAS = {"中国大陆": "大陆", "中国香港": "香港", "中国台湾": "台湾"}
_LANGUAGES = {"汉语普通话": "国语", "印地语": "其它", "泰语": "其它", "西班牙语": "其它"}
_MARKS = shares((",", 86), (" / ", 8), ("/", 4), ("、", 2))
_NOBODY = ("未知", "内详", "未知主演", "佚名")

POOR = 5900
"""Of 65,536 videos so many come from a source that tells hardly more than the name."""


def site_year(year: int, draw: int, *, copy: bool, poor: bool) -> str:
    """Return the year, or ``""``, ``"0"``, that of the release elsewhere, or a wrong one."""
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


def people(work: Work, draw: Draw, *, poor: bool) -> dict[str, str]:
    """Return the columns of people; takes 5 numbers of ``draw``."""
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


def sub(work: Work, how: int, which: int) -> str:
    """Return `vod_sub`: nothing, the original title, with its year, aliases, or the name again."""
    subject = work.subject
    names = [name for name in (subject["original_title"], *subject["aka"]) if name != subject["title"]]
    if how < 26_000 or not names:
        return subject["title"] if how > 62_000 else ""
    if how < 36_000:
        return f"{names[0]}（{subject['year']}）"
    return names[which % len(names)] if how < 52_000 else (" / ", ",", "/")[which % 3].join(names)


def classes(genres: list[str], category: str, draw: int) -> str:
    """Return `vod_class`: genres, the category's name, or both."""
    if draw < 4500:
        return ""
    if draw < 12_000:
        return category
    return ",".join(genres) if draw > 50_000 else ",".join(dict.fromkeys((*genres, category.removesuffix("片"))))


def area(work: Work, draw: int) -> str:
    """Return `vod_area`, mostly one of the values that the site's filter has."""
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


def language(spoken: str, draw: int) -> str:
    """Return `vod_lang`."""
    return "" if draw < 9000 else _LANGUAGES.get(spoken, spoken)


def content(summary: str, draw: int) -> str:
    """Return `vod_content`: the synopsis as it is, as HTML, indented, cut short, or none."""
    if draw < 5200:
        return ""
    if draw < 5330:
        return "null"
    if draw < 20_000:
        return f"<p>{summary}</p>"
    if draw < 26_000:
        return f"　　{summary}"
    return f"{summary[: 40 + draw % 60]}..." if draw < 30_000 else summary


def picture(vod_id: int, draw: int, douban_id: int) -> str:
    """Return `vod_pic`: Douban's own poster for one in five."""
    if draw < 1300:
        return ""
    if draw < 14_000:
        number = 2_000_000_000 + douban_id
        return f"https://img{draw % 9}.poster.example/view/photo/s_ratio_poster/public/p{number}.webp"
    day = f"20{18 + draw % 8}{1 + draw % 12:02d}{1 + draw % 28:02d}"
    return f"https://pic{draw % 7}.image-store.example/upload/vod/{day}-1/{vod_id:x}{draw:04x}9f3c7a51d2e84b60.jpg"
