"""Works that do not exist, as Douban would know them; each follows from its number and the seed alone.

Works 8 n + 1 to 8 n + 8 are a block; in most blocks some of them are of one family: seasons, sequels, a series and
what was spun off, a film and its remake. About one in ten is unknown to Douban, members of families too, so that a
site has videos whose nearest subject is a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from douban_pipeline_tests.harness.generated import text
from douban_pipeline_tests.harness.generated.text import (
    MOST,
    SPAN,
    Draw,
    cast,
    draws,
    listed,
    picked,
    shares,
    single,
    synopsis,
)

LAST_YEAR = 2026
"""No work is newer."""

COPIES = 0.04
"""Share of videos that are of a work which an earlier video is of already."""

_BLOCK = 8
_LAYOUTS = (
    *(((1,) * 8,) * 4),
    *(((2, 1, 1, 1, 1, 1, 1),) * 3),
    (3, 1, 1, 1, 1, 1),
    (4, 1, 1, 1, 1),
    (5, 1, 1, 1),
)
"""Sizes of the families in a block."""

_PLACES = tuple(
    tuple((start, member, size) for start, size in zip(_starts, sizes, strict=True) for member in range(size))
    for sizes in _LAYOUTS
    for _starts in [[sum(sizes[:n]) for n in range(len(sizes))]]
)

_KINDS = shares(("film", 55), ("series", 27), ("short", 3), ("variety", 5), ("animation", 10))
_REGIONS = {
    "film": shares(
        ("中国大陆", 42), ("美国", 21), ("中国香港", 8), ("日本", 7), ("韩国", 6), ("英国", 4), ("法国", 3),
        ("中国台湾", 3), ("印度", 2), ("泰国", 2), ("加拿大", 1), ("西班牙", 1),
    ),
    "series": shares(
        ("中国大陆", 55), ("韩国", 12), ("美国", 11), ("日本", 7), ("中国香港", 5), ("英国", 4), ("中国台湾", 3),
        ("泰国", 3),
    ),
    "short": shares(("中国大陆", 1)),
    "variety": shares(("中国大陆", 80), ("韩国", 12), ("中国台湾", 5), ("日本", 3)),
    "animation": shares(("日本", 48), ("中国大陆", 38), ("美国", 11), ("韩国", 3)),
}  # fmt: skip
_COUNTRIES = {"中国大陆": "cn", "中国香港": "cn", "中国台湾": "cn", "日本": "jp", "韩国": "kr"}
_LANGUAGES = {
    "中国大陆": "汉语普通话", "中国香港": "粤语", "中国台湾": "汉语普通话", "美国": "英语", "英国": "英语",
    "日本": "日语", "韩国": "韩语", "法国": "法语", "印度": "印地语", "泰国": "泰语", "加拿大": "英语",
    "西班牙": "西班牙语",
}  # fmt: skip
_GENRES = {
    "film": listed("动作 喜剧 喜剧 爱情 科幻 恐怖 剧情 剧情 剧情 战争 惊悚 犯罪 纪录片 悬疑"),
    "series": listed("剧情 剧情 爱情 古装 悬疑 家庭 喜剧 犯罪 奇幻 历史"),
    "short": listed("短片 爱情 剧情"),
    "variety": listed("真人秀 脱口秀 音乐"),
    "animation": ("动画",),
}
_SECOND_GENRES = listed("剧情 爱情 悬疑 犯罪 冒险 家庭 历史 奇幻 惊悚 运动 音乐")
_RELATIONS = {
    "film": shares(("number", 45), ("subtitle", 30), ("remake", 25)),
    "series": shares(("season", 62), ("subtitle", 18), ("remake", 20)),
    "short": shares(("number", 1)),
    "variety": shares(("season", 1)),
    "animation": shares(("season", 72), ("movie", 28)),
}


class Work(NamedTuple):
    """A work with what Douban's entry does not say."""

    subject: dict[str, Any]
    kind: str
    country: str
    base: str
    number: int | None
    counted: str


def subject_id_of(work_id: int) -> int:
    """Return the Douban id of a work; ids between those of two works are nobody's."""
    return 20_000_000 + 7 * work_id


def work_id_of(vod_id: int, seed: int) -> int:
    """Return the work that a video is of: that of its own number, or of an earlier video's for a copy."""
    while vod_id > 1 and single(3, seed, vod_id) < COPIES * SPAN:
        # Most copies come soon after, from another source of the same days.
        far = single(4, seed, vod_id)
        reach = min(vod_id - 1, 400 if far & 3 else vod_id - 1)
        vod_id -= 1 + (((far << 16) | single(5, seed, vod_id)) * reach >> 32)
    return vod_id


def known(work_id: int, seed: int) -> bool:
    """Say whether Douban has an entry of the work; nine of ten have one."""
    return single(2, seed, work_id) >= 6554


def subjects_of(videos: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what Douban knows of the works behind videos 1 to ``videos``, each work once."""
    works = dict.fromkeys(work_id_of(vod_id, seed) for vod_id in range(1, videos + 1))
    return (work_of(work_id, seed) for work_id in works if known(work_id, seed))


def work_of(work_id: int, seed: int) -> dict[str, Any]:
    """Return the Douban subject of a work (from 1) in the form that the replay upstream takes.

    A work unknown to Douban has one too: what the entry would say. See `known`.
    """
    return make(work_id, seed).subject


def make(work_id: int, seed: int) -> Work:
    """Return a work, from 1.

    Raises:
        ValueError: There is no such work.
    """
    if work_id < 1:
        raise ValueError(f"works are counted from 1: there is no work {work_id}")
    block, place = divmod(work_id - 1, _BLOCK)
    layout = single(1, seed, block) * len(_LAYOUTS) >> 16
    start, member, size = _PLACES[layout][place]
    family = draws(b"family", seed, block * _BLOCK + start + 1, 2)
    own = draws(b"work", seed, work_id, 2)

    kind = picked(_KINDS, family)
    region = picked(_REGIONS[kind], family)
    country = _COUNTRIES.get(region, "en")
    relation = picked(_RELATIONS[kind], family) if size > 1 else (family(), "")[1]
    base = text.name(family, kind, country)
    original = text.native(family, country)
    first_year, step = _years(family, relation, size)
    directors = cast(family, country, 2)[: 1 + (family() < 9000)]
    actors = cast(family, country, 8)[: 3 + (family() * 6 >> 16)]
    genre = _GENRES[kind][family() * len(_GENRES[kind]) >> 16]

    year = first_year + member * step
    serial = kind != "film"
    number = member + 1 if member and relation in ("season", "number", "movie") else None
    title, own_original = base, original
    director_stays, guests, tail, other_tail = own(), own(), text.subtitle(own), text.latin(own)
    if member and relation == "remake":
        directors, actors = cast(own, country, 1), cast(own, country, 5)
    elif member:
        if director_stays > 45000:
            directors = cast(own, country, 1)
        # The cast changes a little from season to season.
        actors = list(dict.fromkeys((*actors[: 5 - (guests & 1)], *cast(own, country, 2))))
        title, own_original = _member_title(relation, base, original, member + 1, tail, other_tail)
        if relation == "movie":
            serial, number = False, None
    episodes, minutes = _lengths(kind, serial, own)
    rating, votes = _rating(own, year)
    month, day = 1 + (own() * 12 >> 16), 1 + (own() * 28 >> 16)
    regions = [region]
    if own() < 5200:
        regions = list(dict.fromkeys((region, picked(_REGIONS["film"], own))))
    genres = list(dict.fromkeys((genre, _SECOND_GENRES[own() * len(_SECOND_GENRES) >> 16])))[: 1 + (own() < 40000)]
    aka = _aka(own, title, other_tail, country)
    prose = draws(b"prose", seed, work_id)
    writers = [*(directors[:1] if own() < 30000 else []), *cast(own, country, 1)]
    subject = {
        "id": subject_id_of(work_id),
        "title": title,
        "original_title": own_original or title,
        "aka": aka,
        "year": year,
        "regions": regions,
        "languages": [_LANGUAGES[region]],
        "directors": directors,
        "writers": list(dict.fromkeys(writers)),
        "actors": actors,
        "genres": genres,
        "duration_min": minutes,
        "episodes": episodes,
        "kind": "tv" if serial else "movie",
        "rating": rating,
        "votes": votes,
        "pubdates": [f"{year}-{month:02d}-{day:02d}({region})"],
        "summary": synopsis(prose, actors, 2 + (own() * (MOST - 1) >> 16)),
    }
    return Work(subject, kind, country, base, number, relation)


def _years(draw: Draw, relation: str, size: int) -> tuple[int, int]:
    place, gap = draw() / SPAN, draw()
    step = 6 + (gap * 12 >> 16) if relation == "remake" else 1 + (gap * 3 >> 16)
    back = 26 * place * place if gap & 15 else 20 + 55 * place
    return min(LAST_YEAR - int(back), LAST_YEAR - step * (size - 1)), step


def _member_title(relation: str, base: str, original: str, number: int, tail: str, other_tail: str) -> tuple[str, str]:
    if relation == "season":
        return (
            f"{base} 第{text.counted(number)}季",
            f"{original} Season {number}" if original and original.isascii() else original,
        )
    if relation == "movie":
        return f"{base}剧场版：{tail}", f"劇場版 {original}" if original else ""
    if relation == "number":
        return f"{base}{number}", f"{original} {number}" if original else ""
    return f"{base}：{tail}", f"{original}: {other_tail}" if original else ""


def _lengths(kind: str, serial: bool, draw: Draw) -> tuple[int | None, int | None]:
    long, wide = draw(), draw()
    if not serial:
        return None, 82 + (long * wide * 70 >> 32)
    if kind == "short":
        return 40 + (long * 60 >> 16), 2 + (wide & 1)
    if kind == "variety":
        return 10 + (long * 14 >> 16), 60 + (wide * 50 >> 16)
    if kind == "animation":
        return (12, 12, 13, 24, 26, 52)[long * 6 >> 16], 24
    return 8 + (long * 44 >> 16), 45


def _rating(draw: Draw, year: int) -> tuple[float | None, int]:
    liked, noted = draw(), draw()
    if liked < 9000:
        return None, 0
    votes = int(10 ** (1.2 + 4.6 * (noted / SPAN) ** 1.6)) + max(0, LAST_YEAR - year)
    return round(3.2 + 6.2 * (0.25 + 0.75 * liked / SPAN) - 0.3, 1), votes


def _aka(draw: Draw, title: str, other: str, country: str) -> list[str]:
    some, first, second = draw(), draw(), draw()
    if some < 26000:
        return []
    found = [] if country == "en" else [other]
    if some > 48000:
        found.append(f"{title}(港)" if first & 1 else text.name(iter([first, second] * 3).__next__, "film", "cn"))
    return [name for name in found if name != title]
