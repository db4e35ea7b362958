"""The acceptance gate: every condition refuses on its own, says so in Chinese, and lets pass what keeps it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from douban_pipeline.matching import Code, Kind, Status
from douban_pipeline.matching import acceptance as gate
from douban_pipeline.matching.acceptance import refusals
from douban_pipeline.matching.case import Case
from douban_pipeline.matching.scoring import compare
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES_SUBJECT
from douban_pipeline_tests.matching.trials import both, full, other, thin

FIRST = {"title": "庆余年 第一季", "aliases": ()}
CREW = {"directors": ("王伟",)}
SOON_AFTER = {"year": 2018, "directors": ("王伟",)}
SOON_FILM = {**SOON_AFTER, "kind": Kind.FILM}
FILM_CREW = {**CREW, "kind": Kind.FILM}
LATER = {"year": 2019, "directors": ("王伟",), "actors": ("潘粤明", "王泷正")}
PLACE = {"regions": ("中国大陆",)}
PLACED = both(regions=("中国大陆",), kind=Kind.SERIES)
NO_YEAR = {"year": None, "directors": ("王伟",)}
LONE_ACTOR = {"year": None, "directors": (), "actors": ("李沁",)}
FILMED = {"kind": Kind.FILM}
SEQUEL = ({"title": "灯塔守夜人2", "year": 2020, **FILMED}, {"title": "灯塔守夜人2", "year": 2019, **FILMED})
TWO_NAMES = ({"title": "灯塔守夜人", "year": 2020, **FILMED}, {"title": "灯塔守夜人", "year": 2019, **FILMED})
WHOLE_CAST = {"directors": ("王伟",), "actors": ("潘粤明", "王泷正", "吕晓霖")}
CAST_A_YEAR_OFF = ({**WHOLE_CAST, **FILMED, "year": 2018}, WHOLE_CAST)
SUBTITLED = "ハクヤオイカケ 最後の夜"
CREWED = {"directors": ("王伟",), "actors": ("潘粤明", "王泷正"), **PLACE}
OTHER_HALF = {**CREWED, "title": "守夜人 最终章 白昼篇", "aliases": ("守夜人 最终章 黑夜篇", "守夜人黑夜篇")}
LONGER = other("新白夜追凶", 1990)
FOREIGN = ({"title": "Long Watch", **FILMED}, {"aliases": ("Long Watch",), **FILMED})

ALONE = [
    pytest.param(
        thin(
            {"title": "守夜人", "aliases": ("Long Night Watch",), **FILMED},
            {"original_title": "Long Night Watch", **FILMED},
        ),
        thin(
            {"title": "守夜人", "aliases": ("Long Night Watch",), **PLACE},
            {"original_title": "Long Night Watch", **PLACE},
        ),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a film's English title, which is another's as well",
    ),
    pytest.param(
        thin({"title": "守夜人之白夜追凶"}),
        thin({"title": "守夜人之白夜追凶", **CREW}, CREW),
        Code.TITLE_NOT_EXACT,
        "片名不够一致",
        id="the tail of a longer name, and nobody known",
    ),
    pytest.param(
        thin({"aliases": (SUBTITLED,), "kind": Kind.SERIES}, {"title": "白夜追凶OVA", "original_title": SUBTITLED}),
        thin({"aliases": (SUBTITLED,), "kind": None}, {"title": "白夜追凶OVA", "original_title": SUBTITLED}),
        Code.EDITION_CONFLICT,
        "版本不一致",
        id="an OVA whose title in its language is the video's, which is a series",
    ),
    pytest.param(
        thin({"aliases": ("ハクヤオイカケ",)}, {"title": "白夜追凶OVA", "original_title": "ハクヤオイカケ"}),
        thin({"aliases": (SUBTITLED,)}, {"title": "白夜追凶OVA", "original_title": SUBTITLED}),
        Code.EDITION_CONFLICT,
        "版本不一致",
        id="an OVA whose title in its language is the series', too",
    ),
    pytest.param(
        thin(*PLACED, other("白夜追凶特别篇", 2017)),
        thin(*PLACED, other("白夜追凶特别篇", 2018)),
        Code.UNCORROBORATED,
        "有同名作品",
        id="a special of that year",
    ),
    pytest.param(
        full({"title": "庆余年 第三季", "aliases": ("庆余年2",)}),
        full({"aliases": ("庆余年2",)}),
        Code.SEASON_CONFLICT,
        "季数不一致：本地第 3 季 / 豆瓣第 2 季",
        id="another season that bears an alias of this one",
    ),
    pytest.param(
        full({"title": "庆余年"}, FIRST, other("庆余年 第二季", 2024)),
        full({"title": "庆余年"}, FIRST, other("庆余年 第二季", 2025)),
        Code.SIBLING_NEARER,
        "同系列另一部的年份同样相符或更相符",
        id="no number, and two seasons of that year",
    ),
    pytest.param(
        full({"title": "庆余年"}, {**FIRST, "year": 2023}),
        full({"title": "庆余年"}, FIRST),
        Code.SEASON_ONE_SIDED,
        "只有一方标明季数或部数：本地未标明 / 豆瓣第 1 季",
        id="no number, and the first season is of another year",
    ),
    pytest.param(
        full({"title": "庆余年 第二季 纯享版"}), full(), Code.EDITION_CONFLICT, "版本不一致", id="a cut of it"
    ),
    pytest.param(
        full({"title": "庆余年 第1-3季"}, {"title": "庆余年", "aliases": ()}),
        full({"title": "庆余年"}, {"title": "庆余年", "aliases": ()}),
        Code.MERGED_RECORD,
        "本地像是多季或多部的合集，豆瓣分为多个条目",
        id="several seasons in one record",
    ),
    pytest.param(
        thin({"kind": Kind.ANIMATION, **PLACE}, {"genres": ("剧情",), **PLACE}),
        thin(*both(kind=Kind.ANIMATION, **PLACE)),
        Code.MEDIUM_CONFLICT,
        "本地是动画，豆瓣不是",
        id="an animation of it",
    ),
    pytest.param(
        full({"year": 2026}, {"year": 2020, "release_years": (2020, 2026)}),
        full({"year": 2020}, {"year": 2020, "release_years": (2020, 2026)}),
        Code.YEAR_OF_RELEASE,
        "年份只与某次上映相符：本地 2026 / 豆瓣 2020",
        id="the year of a re-release",
    ),
    pytest.param(
        full({"title": "庆余年 第二季(1994)"}),
        full({"title": "庆余年 第二季(2024)"}),
        Code.YEAR_IN_TITLE,
        "片名里的年份 1994 与年份 2024 不符",
        id="another year in the title",
    ),
    pytest.param(
        full({"episodes": 12}),
        full({"episodes": 30}),
        Code.LENGTH_CONFLICT,
        "集数不同：本地 12 / 豆瓣 36",
        id="episodes",
    ),
    pytest.param(
        full({"title": "庆裕年 第二季", "year": 2023}),
        full({"title": "庆裕年 第二季"}),
        Code.TITLE_NOT_EXACT,
        "片名不够一致",
        id="one letter otherwise, a year off",
    ),
    pytest.param(
        full({"title": "庆裕年 第二季", "actors": ()}),
        full({"title": "庆裕年 第二季"}),
        Code.TITLE_NOT_EXACT,
        "片名不够一致",
        id="one letter otherwise, cast unknown",
    ),
    pytest.param(
        full({"title": "庆余年传 第二季"}),
        full({"title": "庆裕年 第二季"}),
        Code.TITLE_NOT_EXACT,
        "片名不够一致",
        id="a longer name that holds it, though all else agrees",
    ),
    pytest.param(
        full(
            {"title": "海贼王", "aliases": ("ワンピース",)},
            {**FIRST, "title": "海贼王", "original_title": "ルフィの冒険"},
        ),
        full(
            {"title": "海贼王", "aliases": ("ワンピース",)},
            {**FIRST, "title": "海贼王", "original_title": "ワンピース"},
        ),
        Code.ORIGINALS_DIFFER,
        "原名不一致",
        id="another name in kana",
    ),
    pytest.param(
        full({"title": "信号", "aliases": ("시그널",)}, {"title": "信号", "original_title": "신호등 아래에서"}),
        full({"title": "信号", "aliases": ("시그널",)}, {"title": "信号", "original_title": "시그널"}),
        Code.ORIGINALS_DIFFER,
        "原名不一致",
        id="another name in hangul",
    ),
    pytest.param(
        thin({"title": "夜行人", "kind": Kind.SERIES}, {"aliases": ("夜行人",), "kind": Kind.SERIES}),
        thin({"title": "夜行猎人", "kind": Kind.SERIES}, {"aliases": ("夜行猎人",), "kind": Kind.SERIES}),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a short alias of the subject and one trait",
    ),
    pytest.param(
        thin({**SEQUEL[0], "title": "灯塔守夜人"}, {**SEQUEL[1], "title": "灯塔守夜人"}, other("灯塔守夜人2", 2023)),
        thin(*SEQUEL, other("灯塔守夜人3", 2021)),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="a film a year off that states no number, with sequels in sight",
    ),
    pytest.param(
        thin({**SEQUEL[0], "kind": Kind.SERIES}, {**SEQUEL[1], "kind": Kind.SERIES}, other("灯塔守夜人", 2016)),
        thin(*SEQUEL, other("灯塔守夜人", 2016)),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="numbers that are seasons of a series",
    ),
    pytest.param(
        thin(*TWO_NAMES, other("灯塔守夜人之春", 2022)),
        thin(
            {**TWO_NAMES[0], "aliases": ("The Long Watch",)},
            {**TWO_NAMES[1], "aliases": ("The Long Watch",)},
            other("灯塔守夜人之春", 2022),
        ),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="a film a year off of a family, without a second name",
    ),
    pytest.param(
        thin({**CAST_A_YEAR_OFF[0], "actors": ("潘粤明",)}, CAST_A_YEAR_OFF[1], LONGER),
        thin(*CAST_A_YEAR_OFF, LONGER),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="one actor a year off, of a name that a longer one holds",
    ),
    pytest.param(
        thin({**FOREIGN[0], "kind": None}, FOREIGN[1]),
        thin(*FOREIGN),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a foreign title and no trait",
    ),
    pytest.param(
        thin({**FOREIGN[0], "title": "Keepers"}, {**FOREIGN[1], "aliases": ("Keepers",)}),
        thin({**FOREIGN[0], "title": "Keepers", **PLACE}, {**FOREIGN[1], "aliases": ("Keepers",), **PLACE}),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a foreign title of one word and one trait",
    ),
    pytest.param(
        thin({**PLACED[0], "directors": ("索菲亚·科波拉",)}, {**PLACED[1], "directors": ("Francis Leclerc",)}),
        thin({**PLACED[0], "directors": ("索菲亚·科波拉",)}, {**PLACED[1], "directors": ("Sofia Coppola",)}),
        Code.UNCORROBORATED,
        "人员不符",
        id="a director whose foreign name sounds otherwise",
    ),
    pytest.param(
        thin({**PLACED[0], "actors": ("Robert Heath",)}, {**PLACED[1], "actors": ("文章", "黄维德")}),
        thin({**PLACED[0], "actors": ()}, {**PLACED[1], "actors": ("文章", "黄维德")}),
        Code.UNCORROBORATED,
        "人员不符",
        id="foreign actors of a work that has Chinese ones",
    ),
    pytest.param(
        thin({"directors": ("王伟",), "kind": Kind.FILM}, {"directors": ("Shôhei Imamura",), "kind": Kind.FILM}),
        thin(
            {"title": "Narayama", "directors": ("Shôhei Imamura",), **FILMED},
            {"original_title": "Narayama", "directors": ("今村昌平",), **FILMED},
        ),
        Code.UNCORROBORATED,
        "人员不符",
        id="names of two scripts, unless the whole record is a foreign one",
    ),
    pytest.param(
        thin({"kind": Kind.FILM}, {}, other("白夜追凶", 2019, kind=Kind.FILM)),
        thin({"kind": Kind.FILM}, {}, other("白夜追凶", 2020, kind=Kind.FILM)),
        Code.UNCORROBORATED,
        "有同名作品",
        id="a namesake that is of the video's kind, where the candidate's is unknown",
    ),
    pytest.param(
        thin(
            {**PLACED[0], "title": "Colour of the Lighthouse"}, {**PLACED[1], "aliases": ("Color of the Lighthouse",)}
        ),
        thin({**PLACED[0], "title": "Color of the Lighthouse"}, {**PLACED[1], "aliases": ("Color of the Lighthouse",)}),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="an alias with a letter more",
    ),
    pytest.param(
        thin({"title": "夜行猎人", "aliases": ("追凶者",)}, {"title": "追凶者"}),
        thin({"title": "夜行猎人", "aliases": ("白夜追凶",)}),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a short alias of the video and nothing else",
    ),
    pytest.param(
        thin({**PLACED[0], "title": "追凶"}, {**PLACED[1], "aliases": ("追凶",)}),
        thin({**PLACED[0], "title": "追凶", **CREW}, {**PLACED[1], "aliases": ("追凶",), **CREW}),
        Code.ALIAS_UNBACKED,
        "仅别名相符，佐证不足",
        id="a short alias without people",
    ),
    pytest.param(
        thin({**PLACED[0], "title": "夜行猎人"}, {**PLACED[1], "aliases": ("夜行猎人",)}, other("夜行猎人", 1999)),
        thin(
            {**PLACED[0], "title": "夜行猎人"},
            {**PLACED[1], "aliases": ("夜行猎人",)},
            other("猎人", 1999, aliases=("夜行猎人",)),
        ),
        Code.ALIAS_TAKEN,
        "片名是此条目的别名，却是另一条目的正名",
        id="an alias that is another work's title",
    ),
    pytest.param(
        thin({**CREWED, "title": "守夜人 最终章 黑夜篇"}, OTHER_HALF),
        thin({**CREWED, "title": "夜的看守者"}, {**OTHER_HALF, "aliases": ("夜的看守者",)}),
        Code.PART_DIFFERS,
        "双方片名各标明不同的篇章",
        id="the other half of a film, which the subject has as an alias",
    ),
    pytest.param(
        thin({**CREWED, "title": "守夜人黑夜篇"}, {**OTHER_HALF, "title": "守夜人白昼篇"}),
        thin({**CREWED, "title": "夜的看守者"}, {**OTHER_HALF, "aliases": ("夜的看守者",)}),
        Code.PART_DIFFERS,
        "双方片名各标明不同的篇章",
        id="the same, without a mark before the part",
    ),
    pytest.param(
        thin({**CREWED, "title": "白夜追凶 第一季", "kind": Kind.ANIMATION}, {**CREWED, **FILMED}),
        thin({**CREWED, "title": "白夜追凶 第一季", "kind": Kind.ANIMATION}, {**CREWED, "kind": Kind.ANIMATION}),
        Code.SEASON_OF_FILM,
        "片名标明第几季，豆瓣条目却是单部作品",
        id="the first season, and the film before it",
    ),
    pytest.param(
        full({"title": "工作细胞！！"}, {"title": "工作细胞", "aliases": ()}, other("工作细胞？")),
        full({"title": "工作细胞！！"}, {"title": "工作细胞", "aliases": ()}),
        Code.MARKS_DIFFER,
        "片名仅标点不同，且另有同名条目",
        id="marks that may tell seasons apart",
    ),
    pytest.param(
        thin({"year": None}), thin(NO_YEAR, CREW), Code.YEAR_UNCONFIRMED, "年份未知或有出入", id="no year, no people"
    ),
    pytest.param(
        thin({"year": 2018}, {}), thin(), Code.YEAR_UNCONFIRMED, "年份未知或有出入", id="a year off, no people"
    ),
    pytest.param(
        thin(SOON_AFTER, CREW),
        thin({**SOON_AFTER, "kind": Kind.FILM}, {**CREW, "kind": Kind.FILM}),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="a year off, and no kind",
    ),
    pytest.param(
        thin({**SOON_AFTER, "kind": Kind.SERIES}, {**CREW, "kind": Kind.SERIES}),
        thin({**SOON_AFTER, "kind": Kind.FILM}, {**CREW, "kind": Kind.FILM}),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="a year off, of works that have a season a year",
    ),
    pytest.param(
        thin(SOON_AFTER, CREW),
        thin({**SOON_AFTER, "episodes": 32}, {**CREW, "episodes": 32}),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="a year off, and no length",
    ),
    pytest.param(
        thin({**LATER, "actors": ()}, CREW),
        thin(LATER, {**CREW, "actors": ("潘粤明", "王泷正")}),
        Code.YEAR_UNCONFIRMED,
        "年份未知或有出入",
        id="two years off, and no cast",
    ),
    pytest.param(
        thin({**LATER, "year": 2020}, {**CREW, "actors": ("潘粤明", "王泷正"), "release_years": (2017, 2018)}),
        thin({**LATER, "year": 2019}, {**CREW, "actors": ("潘粤明", "王泷正"), "release_years": (2017,)}),
        Code.YEAR_OF_RELEASE,
        "年份只与某次上映相符",
        id="a release that is nearer than the work",
    ),
    pytest.param(
        thin(SOON_FILM, FILM_CREW, other("白夜追凶2", 2018)),
        thin(SOON_FILM, FILM_CREW, other("白夜追凶2", 2021)),
        Code.SIBLING_NEARER,
        "可能漏了季数或副标题",
        id="a sequel of the video's year",
    ),
    pytest.param(
        thin(SOON_FILM, FILM_CREW, other("白夜追凶之破晓", 2018)),
        thin(SOON_FILM, FILM_CREW, other("白夜追凶之破晓", 2019)),
        Code.SIBLING_NEARER,
        "可能漏了季数或副标题",
        id="a longer name of the video's year",
    ),
    pytest.param(
        thin(*both(**CREW), other("白夜追凶2", 2017)),
        thin(*both(**CREW), other("白夜追凶2", 2018)),
        Code.SIBLING_NEARER,
        "可能漏了季数或副标题",
        id="a sequel of the same year",
    ),
    pytest.param(
        thin(*both(title="Zodiac")),
        thin(*both(title="Zodiac Returns")),
        Code.TOO_FEW_FACTS,
        "片名之外相符的事实太少",
        id="a word of Latin letters",
    ),
    pytest.param(
        thin(*both(title="追凶", kind=Kind.SERIES)),
        thin({**PLACED[0], "title": "追凶"}, {**PLACED[1], "title": "追凶"}),
        Code.UNCORROBORATED,
        "片名过短、有同名作品或人员不符，需要导演、主演佐证",
        id="a short name with one trait",
    ),
    pytest.param(
        thin(*PLACED, other("白夜追凶", 2018)),
        thin(*PLACED, other("白夜追凶", 2019)),
        Code.UNCORROBORATED,
        "片名过短、有同名作品",
        id="a namesake of the next year",
    ),
    pytest.param(
        thin({**PLACED[0], "actors": ("甲一",)}, {**PLACED[1], "actors": ("乙二",)}),
        thin({**PLACED[0], "actors": ("甲一",)}, {**PLACED[1], **CREW}),
        Code.UNCORROBORATED,
        "需要导演、主演佐证",
        id="people who are not the same",
    ),
    pytest.param(
        thin({**PLACED[0], "actors": ("甲一", "乙二", "丙三")}, PLACED[1]),
        thin({**PLACED[0], "actors": ("甲一", "乙二", "丙三")}, {**PLACED[1], **CREW}),
        Code.UNCORROBORATED,
        "需要导演、主演佐证",
        id="a cast, and a candidate that names nobody",
    ),
    pytest.param(
        thin({**PLACED[0]}, {**PLACED[1], "kind": Kind.ANIMATION, "duration_minutes": 25}),
        thin({**PLACED[0]}, {**PLACED[1], "kind": Kind.ANIMATION, "duration_minutes": 25, "serial": True}),
        Code.LONE_EPISODE,
        "可能是特别篇或 OVA",
        id="a series, and a candidate as long as an episode without any",
    ),
    pytest.param(
        full(
            {"kind": Kind.SERIES, "episodes": None}, {"kind": Kind.ANIMATION, "episodes": None, "duration_minutes": 12}
        ),
        full(
            {"kind": Kind.SERIES, "episodes": None}, {"kind": Kind.ANIMATION, "episodes": None, "duration_minutes": 24}
        ),
        Code.LONE_EPISODE,
        "可能是特别篇或 OVA",
        id="a short of a series' crew",
    ),
    pytest.param(
        full({}, {"title": "庆余年 第二季第2集", "aliases": ()}),
        full({"title": "庆余年 第二季第2集"}, {"title": "庆余年 第二季第2集", "aliases": ()}),
        Code.LONE_EPISODE,
        "片名写明第几集",
        id="an entry of one episode",
    ),
    pytest.param(
        full(LONE_ACTOR, {}, other("庆余年 第二季", 2020)),
        full({**LONE_ACTOR, "actors": ("李沁", "陈道明")}, {}, other("庆余年 第二季", 2020)),
        Code.UNCORROBORATED,
        "有同名作品",
        id="one actor, no year, and a namesake he may play in too",
    ),
    pytest.param(
        thin({}, {"fetched": False}), thin(), Code.RIVALS_UNSEEN, "还有同名条目未查看", id="nobody asked about itself"
    ),
    pytest.param(
        full({"year": None}, {}, other("庆余年 第二季", 2021, fetched=False)),
        full({}, {}, other("庆余年 第二季", 2021, fetched=False)),
        Code.RIVALS_UNSEEN,
        "还有同名条目未查看",
        id="without a year a sequel of the cast may be it",
    ),
    pytest.param(
        thin(crowded=True),
        full(crowded=True),
        Code.FAMILY_UNSEEN,
        "同名条目太多，候选可能不全",
        id="a whole page of them",
    ),
    pytest.param(thin(complete=False), thin(), Code.INCOMPLETE, "候选不完整（有查询失败）", id="a call failed"),
    pytest.param(
        full(reverted=frozenset({SERIES_SUBJECT.douban_id})),
        full(reverted=frozenset({1})),
        Code.REVERTED_BEFORE,
        "此匹配曾被撤销，或在 CMS 后台被清空",
        id="undone before",
    ),
    pytest.param(
        full(linked={SERIES_SUBJECT.douban_id: ["庆余年 第二季", "庆余年 第三季"]}),
        full(linked={SERIES_SUBJECT.douban_id: ["庆余年2"], 1: ["庆余年 第三季"]}),
        Code.LINKED_ELSEWHERE,
        "该条目已关联到季数不同的另一部影片",
        id="another season is linked to it",
    ),
    pytest.param(
        full({"title": "歌手2024"}, {"title": "歌手2024"}, linked={SERIES_SUBJECT.douban_id: ["歌手2025"]}),
        full({"title": "歌手2024"}, {"title": "歌手2024"}, linked={SERIES_SUBJECT.douban_id: ["歌手2024"]}),
        Code.LINKED_ELSEWHERE,
        "该条目已关联到季数不同的另一部影片",
        id="another year of the show is linked to it",
    ),
    pytest.param(
        full(chosen=1),
        full(chosen=SERIES_SUBJECT.douban_id),
        Code.PERSON_CHOSE_OTHER,
        "审核员选定的是另一条目",
        id="a person chose another",
    ),
]
"""What one code alone refuses, beside its nearest neighbour that passes."""

TOGETHER = {Code.ACTORS_DISJOINT, Code.KIND_CONFLICT}
"""Conditions that cannot fail alone: others hold the same against the candidate."""


@pytest.mark.parametrize(("refused", "passed", "code", "sentence"), ALONE)
def test_every_condition_refuses_on_its_own(refused, passed, code, sentence):
    verdict = refused.verdict()
    assert (verdict.status, verdict.codes, verdict.douban_id) == (Status.REVIEW, (code,), None)
    assert sentence in verdict.explanation
    assert not re.search("[A-Z]{2,}_|None", verdict.explanation), "a sentence for people"
    verdict = passed.verdict()
    assert (verdict.status, verdict.codes) == (Status.CONFIRMED, ())
    assert verdict.douban_id == passed.subject.douban_id


def test_no_condition_goes_untested():
    tested = {param.values[2] for param in ALONE}
    assert tested | TOGETHER == {code for code, _ in gate._CONDITIONS}


def test_a_cast_without_a_common_name_is_refused_unless_the_director_settles_it():
    strangers = {"actors": ("甲一", "乙二", "丙三")}
    verdict = full({**strangers, "directors": ()}).verdict()
    assert set(verdict.codes) == {Code.ACTORS_DISJOINT, Code.UNCORROBORATED}
    assert "主演无交集：本地 甲一、乙二、丙三 / 豆瓣 张若昀、李沁、陈道明" in verdict.explanation
    assert full(strangers).verdict().status is Status.CONFIRMED


def test_a_kind_conflict_is_refused_by_the_gate_too():
    video = replace(FILM, kind=Kind.SERIES)
    assert refusals(Case(video, FILM_SUBJECT, compare(video, FILM_SUBJECT))) == (Code.KIND_CONFLICT,)
