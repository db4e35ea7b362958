"""The names of one work, read once."""

from __future__ import annotations

import pytest
from hypothesis import given

from douban_pipeline.matching import Subject, Video
from douban_pipeline.matching.forms import names_of
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS


@pytest.mark.parametrize(
    ("work", "titles", "aliases"),
    [
        (Video(1, "战狼2"), {"战狼#2"}, set()),
        (Video(1, "庆余年 第一季"), {"庆余年#1", "庆余年"}, set()),
        (Video(1, "Third Man, The"), {"thethirdman", "thirdman"}, set()),
        (Subject(1, "寻梦环游记", "Coco"), {"寻梦环游记", "coco", "寻梦环游记coco"}, set()),
        (Subject(1, "盗梦空间", "", ("全面启动(台)",)), {"盗梦空间"}, {"全面启动"}),
        (Subject(1, "盗梦空间", "盜夢空間"), {"盗梦空间"}, set()),
        # Of one script the shorter original is an alias; so it is told from a title that goes on.
        (Subject(1, "赛德克·巴莱(下)：彩虹桥", "賽德克·巴萊"), {"赛德克巴莱彩虹桥"}, {"赛德克巴莱"}),
        (Subject(1, ""), set(), set()),
    ],
)
def test_forms_of_a_work(work, titles, aliases):
    forms = names_of(work).forms
    assert {form.text for form in forms if not form.is_alias} >= titles
    assert {form.text for form in forms if form.is_alias} >= aliases
    assert not titles & {form.text for form in forms if form.is_alias}


@pytest.mark.parametrize(
    ("work", "claimed"),
    [
        (Video(1, "庆余年"), set()),
        (Video(1, "庆余年 第二季"), {2}),
        (Video(1, "庆余年 第二季", aliases=("庆余年3",)), {2}),
        (Video(1, "庆余年", aliases=("庆余年2", "庆余年 第二季")), {2}),
        (Video(1, "庆余年", aliases=("别的剧 第二季",)), set()),
        (Subject(1, "庆余年", "Joy of Life Season 2"), {2}),
        (Subject(1, "哥斯拉大战金刚", "Godzilla 2"), set()),
        (Subject(1, "傲慢与偏见", "", ("傲慢与偏见2005",)), set()),
        (Video(1, "2046"), set()),
    ],
)
def test_numbers_a_work_carries(work, claimed):
    assert names_of(work).claimed == claimed


def test_a_year_at_the_end_holds_only_for_works_of_that_year():
    soft = {form.text: form.soft_year for form in names_of(Video(1, "碟仙2019")).forms}
    assert soft["碟仙"] == 2019
    assert "碟仙" not in names_of(Video(1, "碟仙2019")).by_text


def test_names_in_a_script_of_their_own():
    own = names_of(Subject(1, "海贼王", "ワンピース", ("원피스", "One Piece"))).own
    assert own == {"kana": ("ワンピース",), "hangul": ("원피스",)}


@given(VIDEOS | SUBJECTS)
def test_titles_come_before_aliases_and_no_form_is_empty(work):
    names = names_of(work)
    assert all(form.text for form in names.forms)
    assert set(names.by_text) == {form.text for form in names.forms if form.soft_year is None}
    for form in names.forms:
        if form.is_alias and form.soft_year is None:
            assert names.by_text[form.text] is form or names.by_text[form.text].equal_only or form.equal_only


@pytest.mark.parametrize(
    ("title", "otherwise"),
    [
        ("守灯人的渡海时刻", {"守灯人渡海时刻"}),
        ("守灯人的海的时刻", {"守灯人海时刻"}),
        ("守灯的渡海人2", {"守灯渡海人#2"}),
        ("阿松和小灯", {"阿松与小灯"}),
        ("阿松和小灯的渡海", {"阿松和小灯渡海", "阿松与小灯的渡海"}),
        ("远去的灯塔", set()),
        ("灯和塔", set()),
        ("和平灯塔的守灯人和", {"和平灯塔守灯人和"}),
    ],
)
def test_how_others_write_a_name(title, otherwise):
    assert {form.text for form in names_of(Subject(1, title)).forms if form.equal_only} == otherwise


def test_another_writing_takes_no_name_away_that_is_measured():
    names = names_of(Subject(1, "守灯人的渡海时刻", "", ("守灯人渡海时刻",)))
    assert {form.text for form in names.measured} == {"守灯人的渡海时刻", "守灯人渡海时刻"}
    assert not names.by_text["守灯人渡海时刻"].is_alias
