"""What identifies a work of which a site says little more than name and year: original titles, numbers, editions."""

from __future__ import annotations

import pytest

from douban_pipeline.matching import Code, Kind, Status
from douban_pipeline_tests.matching.trials import both, full, other, thin

WORD = {"title": "Zephyr"}
ITS_WORK = {"title": "西风", "original_title": "Zephyr"}


@pytest.mark.parametrize(
    ("video", "subject", "rivals", "confirmed"),
    [
        pytest.param(WORD, ITS_WORK, (), True, id="a word that nobody else bears"),
        pytest.param({"title": "Zeph"}, {**ITS_WORK, "original_title": "Zeph"}, (), True, id="of four letters"),
        pytest.param({"title": "Zep"}, {**ITS_WORK, "original_title": "Zep"}, (), False, id="of three"),
        pytest.param(WORD, {**ITS_WORK, "year": 2018}, (), False, id="a year off"),
        pytest.param({**WORD, "year": None}, ITS_WORK, (), False, id="no year"),
        pytest.param(
            WORD, {"title": "西风", "aliases": ("Zephyr",)}, (), False, id="an alias, which translators share"
        ),
        pytest.param({"title": "微风", "aliases": ("Zephyr",)}, ITS_WORK, (), False, id="an alias of the video"),
        pytest.param(WORD, WORD, (), False, id="a work without a Chinese title"),
        pytest.param(WORD, {**ITS_WORK, "original_title": "Zephyrs"}, (), False, id="a letter more"),
        pytest.param(WORD, ITS_WORK, (other("风", 1990, original_title="Zephyr"),), False, id="another, long before"),
        pytest.param(WORD, ITS_WORK, (other("风", 1990, aliases=("Zephyr",)),), False, id="another's alias"),
        pytest.param(WORD, ITS_WORK, (other("西风2", 2019, original_title="Zephyr 2"),), False, id="a sequel"),
        pytest.param(WORD, ITS_WORK, (other("和风", 2017, original_title="Zephyrus"),), True, id="a longer word"),
        pytest.param({**WORD, "actors": ("甲",)}, {**ITS_WORK, "actors": ("乙",)}, (), False, id="other people"),
        pytest.param({"title": "1917"}, {"title": "西风", "original_title": "1917"}, (), False, id="a number"),
    ],
)
def test_an_original_title_of_one_word_is_its_works_if_no_other_in_sight_bears_it(video, subject, rivals, confirmed):
    verdict = thin(video, subject, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed, verdict.codes


SERIES = {"kind": Kind.SERIES}


@pytest.mark.parametrize(
    ("video", "subject", "rivals", "confirmed"),
    [
        pytest.param({"title": "追凶 第二季"}, {"title": "追凶2"}, (), True, id="both state the season"),
        pytest.param({"title": "追凶"}, {"title": "追凶"}, (), False, id="neither does"),
        pytest.param({"title": "追凶"}, {"title": "追凶 第一季"}, (), False, id="one does"),
        pytest.param({"title": "追凶 第二季"}, {"title": "追凶2", "year": 2018}, (), False, id="a year off"),
        pytest.param({"title": "追凶 第二季", "kind": None}, {"title": "追凶2"}, (), False, id="nothing beside it"),
        pytest.param({"title": "追凶 第二季"}, {"title": "追凶2"}, (other("追凶Ⅱ", 2017),), False, id="a namesake"),
    ],
)
def test_a_number_that_both_state_makes_up_for_a_short_name(video, subject, rivals, confirmed):
    verdict = thin({**SERIES, **video}, {**SERIES, **subject}, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed, verdict.codes


@pytest.mark.parametrize(
    ("title", "subject", "rivals", "confirmed"),
    [
        pytest.param("海边的守灯人们", "灯塔故事之海边的守灯人们", (), True, id="what follows a franchise's name"),
        pytest.param("海边的守灯人们", "灯塔故事6 海边的守灯人们", (), True, id="and its number"),
        pytest.param("灯塔故事：海边的守灯人们", "海边的守灯人们", (), True, id="the site says more"),
        pytest.param("海边的守灯人们", "灯塔故事之海边的守灯人们2", (), False, id="a number of the tail's own"),
        pytest.param(
            "灯塔故事会之守灯人们", "灯塔故事6 灯塔故事会之守灯人们", (), True, id="it begins like the franchise"
        ),
        pytest.param("海边的守灯人们", "守灯人们 海边的守灯人们", (), False, id="a title in two writings"),
        pytest.param("海边守灯人", "灯塔故事之海边守灯人", (), False, id="five letters"),
        pytest.param("边的守灯人们", "灯塔故事之海边的守灯人们", (), False, id="a piece of it"),
        pytest.param("海边的守灯人们", "灯塔故事之海边的守灯人们归来", (), False, id="not at its end"),
        pytest.param(
            "海边的守灯人们", "灯塔故事之海边的守灯人们", (other("海边的守灯人们", 1990),), False, id="a namesake"
        ),
        pytest.param(
            "海边的守灯人们",
            "灯塔故事之海边的守灯人们",
            (other("渔村往事之海边的守灯人们", 2010),),
            False,
            id="another franchise's",
        ),
    ],
)
def test_a_long_tail_of_the_exact_year_is_as_good_as_a_name(title, subject, rivals, confirmed):
    verdict = thin({**SERIES, "title": title}, {**SERIES, "title": subject}, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed, verdict.codes
    if confirmed:
        changed = [{"year": 2016}, {"year": None}, {"kind": None}, {"actors": ("甲",)}]
        for change in changed:
            doubtful = thin(
                {**SERIES, "title": title, **change}, {**SERIES, "title": subject, "actors": ("乙",)}, *rivals
            ).verdict()
            assert doubtful.status is not Status.CONFIRMED, change


PLACED = {"regions": ("日本",), "genres": ("动画",), "kind": Kind.ANIMATION}
SPECIAL = {**PLACED, "title": "灯塔守望 OVA"}


@pytest.mark.parametrize(
    ("rival", "alone"),
    [
        pytest.param(other("灯塔守望", 2017, **PLACED), True, id="a namesake without the mark"),
        pytest.param(other("灯塔守望", 2017, fetched=False), False, id="nobody asked about its other names"),
        pytest.param(other("灯塔守望OVA", 2017, **PLACED), False, id="one with it"),
        pytest.param(other("灯塔守望", 2017, aliases=("灯塔守望 OVA",), **PLACED), False, id="one with it in an alias"),
    ],
)
def test_an_edition_that_the_title_states_rules_out_a_namesake_without_it(rival, alone):
    verdict = thin(SPECIAL, SPECIAL, rival).verdict()
    assert (verdict.status is Status.CONFIRMED) is alone, verdict.codes
    assert (verdict.lead is None) is alone or not rival.fetched


def test_a_namesake_of_unknown_format_may_be_the_film_that_the_title_names():
    film = {"regions": ("日本",), "genres": ("动画",), "kind": Kind.FILM}
    unknown = other("灯塔守望", 2017, regions=("日本",), genres=("动画",))
    assert thin(
        {**film, "title": "灯塔守望 剧场版"}, {**film, "title": "灯塔守望 剧场版"}, unknown
    ).verdict().status is (Status.REVIEW)


SUBTITLED = "灯塔守望：海边的守灯人们"


@pytest.mark.parametrize(
    ("video", "subject", "code"),
    [
        pytest.param({"title": f"剧场版 {SUBTITLED}"}, {"title": SUBTITLED}, None, id="a film of that subtitle"),
        pytest.param({"title": "剧场版 灯塔守望"}, {"title": "灯塔守望"}, Code.EDITION_CONFLICT, id="no subtitle"),
        pytest.param(
            {"title": f"剧场版 {SUBTITLED}"}, {"title": SUBTITLED, "year": 2018}, Code.EDITION_CONFLICT, id="a year off"
        ),
        pytest.param(
            {"title": f"剧场版 {SUBTITLED}"}, {"title": SUBTITLED, "serial": True}, Code.KIND_CONFLICT, id="a series"
        ),
        pytest.param(
            {"title": f"剧场版 {SUBTITLED}", "kind": Kind.SERIES},
            {"title": SUBTITLED},
            Code.EDITION_CONFLICT,
            id="the site takes it for a series",
        ),
        pytest.param(
            {"title": f"{SUBTITLED} 总集篇"},
            {"title": SUBTITLED},
            Code.EDITION_CONFLICT,
            id="an edition of another kind",
        ),
        pytest.param(
            {"title": "The Movie: Lighthouse Keepers - Last Night"},
            {"title": "守灯人", "original_title": "Lighthouse Keepers - Last Night"},
            None,
            id="in an alphabet, with a sign",
        ),
    ],
)
def test_a_film_of_a_subtitle_need_not_be_called_a_film_on_both_sides(video, subject, code):
    known = {"regions": ("日本",), "genres": ("动画",)}
    verdict = thin({"kind": Kind.FILM, **known, **video}, {**known, **subject}).verdict()
    assert (code in verdict.codes) if code else (verdict.status is Status.CONFIRMED), verdict.codes


OVA = {"title": "灯塔守望OVA4：最后的守灯人", "original_title": "灯台の見守り人 最後の守り人"}


@pytest.mark.parametrize(
    ("changes", "confirmed"),
    [
        pytest.param({}, True, id="of the year"),
        pytest.param({"year": 2018}, True, id="a year later"),
        pytest.param({"year": 2019}, False, id="two years later"),
        pytest.param({"year": None}, False, id="no year"),
        pytest.param({"kind": Kind.SERIES}, False, id="a series"),
        pytest.param({"aliases": ("灯台の見守り人",)}, False, id="an original title without a subtitle"),
    ],
)
def test_an_ova_goes_by_the_subtitle_of_its_original_title(changes, confirmed):
    video = {"title": "灯塔守望 最后的守灯人", "aliases": (OVA["original_title"],), "regions": ("日本",), **changes}
    verdict = thin(video, {**OVA, "regions": ("日本",)}).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed, verdict.codes


EPISODE = "Lone Star: Episode V - The Long Winter"


@pytest.mark.parametrize(
    ("video", "subject", "numbers"),
    [
        pytest.param({"title": EPISODE}, {"title": "孤星2", "original_title": EPISODE}, "agree", id="the original's"),
        pytest.param(
            {"title": "孤星5", "aliases": (EPISODE,)},
            {"title": "孤星2", "original_title": EPISODE},
            "conflict",
            id="both have a Chinese title with a number",
        ),
        pytest.param({"title": EPISODE}, {"title": "孤星2", "aliases": (EPISODE,)}, "conflict", id="an alias"),
        pytest.param(
            {"title": EPISODE},
            {"title": "孤星2", "original_title": EPISODE.replace("V", "IV")},
            "conflict",
            id="another original title",
        ),
    ],
)
def test_the_original_title_with_its_number_outweighs_the_translators(video, subject, numbers):
    people = {"directors": ("王伟",), "kind": Kind.FILM}
    trial = full({**both(**people)[0], "aliases": (), **video}, {**people, "aliases": (), **subject})
    verdict = trial.verdict()
    assert verdict.best is not None
    assert verdict.best.comparison.title.numbers == numbers
    assert (Code.SEASON_CONFLICT in verdict.codes) is (numbers == "conflict")


FINAL = {"title": "灯塔风暴5：最终章", "kind": Kind.FILM, "directors": ("王伟",)}
LAST = {"title": "灯塔风暴5", "kind": Kind.FILM, "directors": ("王伟",)}
ENGLISH = "Lighthouse Storm: The Last of Them"


@pytest.mark.parametrize(
    ("video", "subject", "code"),
    [
        pytest.param(FINAL, LAST, None, id="films of one number"),
        pytest.param(FINAL, {**LAST, "title": "灯塔风暴"}, Code.EDITION_CONFLICT, id="of no number"),
        pytest.param(FINAL, {**LAST, "year": 2018}, Code.EDITION_CONFLICT, id="a year off"),
        pytest.param(
            {**FINAL, "kind": Kind.SERIES}, {**LAST, "kind": Kind.SERIES}, Code.EDITION_CONFLICT, id="a series' halves"
        ),
        pytest.param(
            {**LAST, "title": ENGLISH},
            {**LAST, "title": "灯塔风暴：终章", "original_title": ENGLISH},
            None,
            id="the video's title is the original one",
        ),
        pytest.param(
            {**LAST, "title": "守灯人", "aliases": (ENGLISH,)},
            {**LAST, "title": "灯塔风暴：终章", "original_title": ENGLISH},
            Code.EDITION_CONFLICT,
            id="an alias of the video is",
        ),
    ],
)
def test_the_last_film_of_a_series_need_not_be_called_so_on_both_sides(video, subject, code):
    verdict = thin(video, subject).verdict()
    assert (code in verdict.codes) if code else (verdict.status is Status.CONFIRMED), verdict.codes


@pytest.mark.parametrize(
    ("original", "changes", "code"),
    [
        pytest.param("灯台の見守り人 最後の守り人", {}, None, id="a subtitle of its language"),
        pytest.param("灯台の見守り人", {}, Code.MEDIUM_CONFLICT, id="no subtitle: the film of an animation"),
        pytest.param("灯台の見守り人 最後の守り人", {"year": 2018}, Code.MEDIUM_CONFLICT, id="a year off"),
        pytest.param("Lighthouse Keepers: Last Night", {}, Code.MEDIUM_CONFLICT, id="an English title"),
    ],
)
def test_an_animation_that_douban_does_not_call_one_goes_by_its_original_subtitle(original, changes, code):
    video = {"title": "灯塔守望", "aliases": (original,), "kind": Kind.ANIMATION, "regions": ("日本",)}
    subject = {"title": "灯塔守望", "original_title": original, "genres": ("剧情",), "regions": ("日本",), **changes}
    verdict = thin(video, subject).verdict()
    assert (code in verdict.codes) if code else (verdict.status is Status.CONFIRMED), verdict.codes
