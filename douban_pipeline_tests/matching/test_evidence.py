"""What evidence makes a link, and what makes none: people, short names, rivals, seasons; whatever the gate is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Code, Kind, Status
from douban_pipeline.matching.acceptance import refusals
from douban_pipeline.matching.case import Case
from douban_pipeline.matching.scoring import compare
from douban_pipeline_tests.matching.drawn import matches
from douban_pipeline_tests.matching.trials import both, full, other, thin

CREW = {"directors": ("王伟",)}
NOBODY = {"directors": (), "actors": ()}


@pytest.mark.parametrize(
    ("video", "subject"),
    [
        pytest.param(CREW, CREW, id="director"),
        pytest.param({"actors": ("潘粤明", "甲一")}, {"actors": ("潘粤明", "甲一", "乙二")}, id="actors"),
        pytest.param({"actors": ("潘粤明",)}, {"actors": ("潘粤明", "乙二")}, id="all the actors there are"),
    ],
)
@pytest.mark.parametrize("doubt", ["short name", "rival", "unseen rival", "crowded", "alias", "no year"])
def test_people_tell_works_of_one_name_apart(video, subject, doubt):
    fields, rivals, options = {}, (), {}
    if doubt == "short name":
        fields = {"title": "追凶"}
    elif doubt == "alias":
        video, subject = {**video, "title": "追凶"}, {**subject, "aliases": ("追凶",)}
    elif doubt == "no year":
        video = {**video, "year": None}
    elif doubt == "crowded":
        options = {"crowded": True}
    else:
        rivals = (other("白夜追凶", 2017, fetched=doubt == "rival"),)
    assert thin({**fields, **video}, {**fields, **subject}, *rivals, **options).verdict().status is Status.CONFIRMED
    nobody = thin({**fields, **video, **NOBODY}, {**fields, **subject, **NOBODY}, *rivals, **options).verdict()
    assert nobody.status is Status.REVIEW


@pytest.mark.parametrize(
    ("title", "traits", "confirmed"),
    [
        ("追凶", {}, False),
        ("追凶", {"kind": Kind.SERIES}, False),
        ("追凶", {"kind": Kind.SERIES, "episodes": 32}, True),
        ("追凶", {"regions": ("中国大陆",), "genres": ("悬疑",)}, True),
        ("追凶", {"regions": ("中国大陆",), "aliases": ("Day and Night",)}, True),
        ("追凶者", {}, True),
        ("Coco", {}, False),
        ("Coco", {"kind": Kind.FILM, "duration_minutes": 105}, True),
        ("Zodiac", {}, False),
        ("Zodiac", {"duration_minutes": 157}, True),
        ("Paprika X", {}, False),
        ("The Wolf of Wall", {}, True),
        ("1917", {}, False),
    ],
)
def test_the_shorter_a_name_the_more_has_to_agree(title, traits, confirmed):
    verdict = thin(*both(title=title, **traits)).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed


@pytest.mark.parametrize(
    ("title", "changes", "rivals", "confirmed"),
    [
        pytest.param("白夜追凶往事", {"kind": Kind.FILM}, (), True, id="a title of its own, and a trait"),
        pytest.param("白夜追凶往事", {}, (), False, id="nothing beside it"),
        pytest.param("白夜追凶往事", {"kind": Kind.SERIES}, (), True, id="a series of a long name"),
        pytest.param("白夜追凶", {"kind": Kind.SERIES}, (), False, id="a series may have a season a year"),
        pytest.param("白夜追凶", {"kind": Kind.FILM}, (), True, id="a film of four letters"),
        pytest.param("追凶者", {"kind": Kind.FILM}, (), False, id="a title that may be another's"),
        pytest.param("白夜追凶往事", {"kind": Kind.FILM}, (other("白夜追凶往事", 1999),), False, id="a namesake"),
        pytest.param("白夜追凶往事", {"kind": Kind.FILM}, (other("白夜追凶往事2", 2019),), False, id="a sequel"),
        pytest.param("白夜追凶往事", {"kind": Kind.FILM, "directors": ("王伟",)}, (), True, id="people"),
    ],
)
def test_a_year_off_by_one_needs_a_title_that_nobody_else_bears(title, changes, rivals, confirmed):
    video, subject = both(title=title, **changes)
    verdict = thin(video, {**subject, "year": 2018}, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed
    strangers = thin({**video, "actors": ("甲一",)}, {**subject, "year": 2018, "actors": ("乙二",)}, *rivals).verdict()
    assert (strangers.status is Status.CONFIRMED) is (confirmed and "directors" in changes), "people that do not agree"


ANIME = both(year=2019, regions=("日本",), genres=("动画",))
ANIME_SERIES = {**ANIME[0], "kind": Kind.SERIES, "title": "灯塔守望", "aliases": ("灯台の見守り人",)}
CAST = {"directors": ("王伟",), "actors": ("潘粤明", "王泷正", "梁缘")}
SEQUEL = {"title": "孤星战士2", "original_title": "Lone Star Warriors: The Long Winter", "year": 2019}


@pytest.mark.parametrize(
    ("video", "subject", "code"),
    [
        # Specials whose mark stands in the original title alone.
        (ANIME_SERIES, {"original_title": "灯台の見守り人"}, None),
        (ANIME_SERIES, {"original_title": "OVA 灯台の見守り人"}, Code.EDITION_CONFLICT),
        (ANIME_SERIES, {"original_title": "灯台の見守り人 第13.5話 休日"}, Code.EDITION_CONFLICT),
        (ANIME_SERIES, {"original_title": "灯台の見守り人 総集編"}, Code.EDITION_CONFLICT),
        (ANIME_SERIES | {"title": "灯塔守望 OVA"}, {"original_title": "OVA 灯台の見守り人"}, None),
        # Halves and parts: before a colon, as a pair, in another name of the video.
        (
            {**CAST, "title": "灯塔守望后篇：归途"},
            {**CAST, "title": "灯塔守望前篇：出航", "aliases": ("Keepers of Light",)},
            Code.EDITION_CONFLICT,
        ),
        ({**CAST, "title": "灯塔守望后篇：归途"}, {**CAST, "title": "灯塔守望 后篇 归途"}, None),
        ({**CAST, "title": "灯塔守望 第三、四部"}, {**CAST, "title": "灯塔守望 第一、二部"}, Code.EDITION_CONFLICT),
        ({**CAST, "title": "灯塔守望 第三、四部"}, {**CAST, "title": "灯塔守望 第三、四部"}, None),
        ({**CAST, "aliases": ("Part 2",)}, {**CAST, "title": "白夜追凶 第一季"}, Code.EDITION_CONFLICT),
        ({**CAST, "aliases": ("Part 2",)}, {**CAST, "title": "白夜追凶 第一季 Part.2"}, None),
        ({**CAST, "aliases": ("Part 1",)}, {**CAST, "title": "白夜追凶 第一季"}, None),
        ({**CAST, "aliases": ("第二季",)}, {**CAST, "title": "白夜追凶 第一季"}, Code.SEASON_CONFLICT),
        # A sequel by a name of its own is that sequel; a season's is the whole series'.
        ({"title": "Lone Star Warriors: The Long Winter", "year": 2019, "kind": Kind.FILM}, SEQUEL, None),
        ({"title": "孤星战士", "year": 2019, "kind": Kind.FILM}, SEQUEL, Code.SEASON_ONE_SIDED),
        (
            {"title": "Lone Star Warriors: The Long Winter", "year": 2019, "kind": Kind.SERIES},
            SEQUEL | {"title": "孤星战士 第二季"},
            Code.SEASON_ONE_SIDED,
        ),
        (
            {"title": "Lone Star Warriors: The Long Winter", "year": 2018, "kind": Kind.FILM},
            SEQUEL,
            Code.SEASON_ONE_SIDED,
        ),
        # What has one part is no series.
        ({"kind": Kind.SERIES}, {"kind": Kind.ANIMATION, "episodes": 1}, Code.KIND_CONFLICT),
    ],
)
def test_specials_parts_and_sequels_are_kept_apart(video, subject, code):
    known = {name: value for name, value in ANIME[1].items() if video.get("year") == 2019 and "regions" in video}
    title = {"title": video["title"]} if known and "title" not in subject else {}
    if video.get("title") == "灯塔守望 OVA":
        title = {"title": "灯塔守望"}
    verdict = thin(video, {**known, **title, **subject}).verdict()
    assert (code in verdict.codes) if code else (verdict.status is Status.CONFIRMED), verdict.codes


@pytest.mark.parametrize(
    ("changes", "rivals", "confirmed"),
    [
        pytest.param({}, (), True, id="director and cast"),
        pytest.param({"directors": ()}, (), False, id="the cast alone"),
        pytest.param({"actors": ("潘粤明",)}, (), False, id="the director and one of the cast"),
        pytest.param({"year": 2020, "kind": Kind.FILM}, (), False, id="three years off"),
        pytest.param({}, (other("白夜追凶2", 2022),), False, id="a work with sequels"),
    ],
)
def test_a_year_off_by_two_needs_the_whole_cast(changes, rivals, confirmed):
    verdict = thin({**CAST, "year": 2019, **changes}, CAST, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed


@pytest.mark.parametrize(
    ("rival", "live"),
    [
        pytest.param(other("白夜追凶", 2017), True, id="of the year"),
        pytest.param(other("白夜追凶", 2016), True, id="of the year before"),
        pytest.param(other("白夜追凶", 2015), False, id="two years older"),
        pytest.param(other("白夜追凶"), False, id="asked about, and Douban knows no year"),
        pytest.param(other("白夜追凶", fetched=False), True, id="nobody asked about its year"),
        pytest.param(other("白夜追凶", 2017, kind=Kind.FILM), False, id="of another kind"),
        pytest.param(other("白夜追凶 第二季", 2019), False, id="with a number"),
        pytest.param(other("白夜追凶之破晓", 2017), False, id="with a longer name"),
        pytest.param(other("破晓", 2017, aliases=("白夜追凶",)), True, id="under an alias"),
        pytest.param(other("暗夜行者", 2017), False, id="named otherwise"),
    ],
)
def test_a_thin_record_is_confirmed_only_without_a_live_rival(rival, live):
    kind = {"kind": Kind.SERIES}
    verdict = thin(kind, kind, rival).verdict()
    assert (verdict.status is Status.CONFIRMED) is not live
    assert (Code.UNCORROBORATED in verdict.codes) is live


@pytest.mark.parametrize(
    ("local", "subject"),
    [
        ("庆余年 第三季", "庆余年 第二季"),
        ("庆余年", "庆余年 第二季"),
        ("庆余年 第二季", "庆余年"),
        ("庆余年 第1-2季", "庆余年 第二季"),
        ("庆余年 全2季", "庆余年 第一季"),
        ("庆余年 1-2季", "庆余年"),
        ("歌手2025", "歌手2024"),
        ("战狼", "战狼2"),
    ],
)
def test_seasons_are_never_mixed_whatever_else_agrees(local, subject):
    assert full({"title": local}, {"title": subject, "aliases": ()}).verdict().status is Status.REVIEW


@st.composite
def cases(draw):
    video, (subject, *rivals) = draw(matches())
    seldom = st.sampled_from([False, False, False, True])
    return Case(
        video,
        subject,
        compare(video, subject),
        [(rival, compare(video, rival)) for rival in rivals],
        complete=not draw(seldom),
        crowded=draw(seldom),
        has_siblings=draw(seldom),
        reverted=draw(st.frozensets(st.integers(1, 9), max_size=2)),
        linked=draw(st.lists(st.sampled_from([video.title, "战狼2", "歌手2024"]), max_size=1)),
        chosen=draw(st.sampled_from([None, None, subject.douban_id, 0])),
    )


@given(cases(), st.sampled_from(["complete", "crowded", "has_siblings", "reverted", "linked", "chosen", "fetched"]))
def test_more_doubt_never_lifts_a_refusal(case, doubt):
    worse = {
        "complete": {"complete": False},
        "crowded": {"crowded": True},
        "has_siblings": {"has_siblings": True},
        "reverted": {"reverted": case.reverted | {case.subject.douban_id}},
        "linked": {"linked": [*case.linked, "战狼7"]},
        "chosen": {"chosen": case.subject.douban_id + 1},
        "fetched": {"subject": replace(case.subject, fetched=False)},
    }
    assert set(refusals(case)) <= set(refusals(replace(case, **worse[doubt])))


@given(cases())
def test_what_passes_keeps_the_promises_of_the_gate(case):
    if refusals(case):
        return
    comparison, title = case.comparison, case.comparison.title
    assert case.complete
    assert case.subject.fetched
    assert case.subject.douban_id not in case.reverted
    assert case.chosen in (None, case.subject.douban_id)
    assert case.exact_year or case.person
    alike = comparison.agrees("actors") and not title.contained
    assert title.near_exact or (case.exact_year and (alike or title.tail))
    assert comparison.kind is not False
    assert title.numbers != "conflict"
    assert not title.editions_local or (title.editions_local == {"movie"} and title.subtitled)
    assert not title.editions_subject


@pytest.mark.parametrize(
    ("original", "rival", "confirmed"),
    [
        pytest.param("はくやのついせき", "まよなかのおいかけっこ", True, id="the originals tell them apart"),
        pytest.param("はくやのついせき", "はくやのついせき 2", False, id="originals that are alike"),
        pytest.param("はくやのついせき", "", False, id="a rival without one"),
        pytest.param("ハル", "ナツのできごと", False, id="too short to be one work's alone"),
        pytest.param("White Night", "Black Morning", False, id="Latin names differ by translation"),
    ],
)
def test_a_rival_of_another_original_title_is_no_rival(original, rival, confirmed):
    video, subject = {"aliases": (original,), "kind": Kind.SERIES}, {"original_title": original, "kind": Kind.SERIES}
    verdict = thin(video, subject, other("白夜追凶", 2017, original_title=rival, kind=Kind.SERIES)).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed
    assert (verdict.lead is None) is confirmed
