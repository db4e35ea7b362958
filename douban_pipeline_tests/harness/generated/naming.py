"""What sites make of a work's name: seasons written in five ways, editions, and what they hang on it to be found."""

from __future__ import annotations

from douban_pipeline_tests.harness.generated import titles, words
from douban_pipeline_tests.harness.generated.draws import Draw
from douban_pipeline_tests.harness.generated.works import Work

_ROMAN = ("", "Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ", "Ⅴ")
_BEHIND = (
    "高清", "[BD]", " HD", " 1080P", "[HD高清]", "（蓝光）", " 4K", "全集", "未删减版", "[国语]", "国语版", "无水印",
    "-正片",
)  # fmt: skip
_BEFORE = ("【国产剧】", "[热播]", "【豆瓣高分】", "最新电影《")
_FILM_EDITIONS = ("粤语版", "（粤语）", "国语版", "导演剪辑版", "加长版", "修复版", "3D", "电影版")
_SERIES_EDITIONS = ("粤语版", "国语版", "（国语配音）", "TV版", "未删减版", "特别篇", "番外篇")


def site_name(work: Work, draw: Draw, *, copy: bool) -> str:
    """Return the video's name; takes 4 numbers of ``draw``.

    Args:
        work: The work.
        draw: Chance.
        copy: Whether it is another source's row of a work that the site has: those come with additions more often.
    """
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
    """Write the number of a season or part as one of the sites does, Douban's own way three times in five."""
    number, title, base = work.number, str(work.subject["title"]), work.base
    if number is None:
        # 第一季 of what has no second, or not yet.
        numbered = work.kind in ("series", "animation", "variety") and title == base and draw < 1300
        return f"{title}第一季" if numbered else title
    if draw > 64_200:
        return base  # The number was lost.
    counted = titles.counted(number)
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
    """Return the name as it is, or an alias, or with another character, as one in thirty is."""
    if draw < 1300:
        # A misheard or mistyped character.
        place = which % len(name)
        return name[:place] + words.TAILS[which % len(words.TAILS)] + name[place + 1 :]
    aka = work.subject["aka"]
    if draw < 2900 and aka:
        return str(aka[which % len(aka)]).removesuffix("(港)")
    return f"{name}：{words.NOUNS[which % len(words.NOUNS)]}" if draw < 3100 else name
