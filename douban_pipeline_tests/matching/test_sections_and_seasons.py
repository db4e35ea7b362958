"""What a section of a site and a first season's number say of a work: films filed as series, entries without number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Code, Kind, Status
from douban_pipeline_tests.matching.trials import other, thin

ORIGINAL = "灯台ものがたり 〜海をわたる子供たち〜"
FILED = {
    "title": "灯塔物语 渡海的孩子们",
    "aliases": (ORIGINAL,),
    "kind": Kind.SERIES,
    "regions": ("日本",),
    "genres": ("动漫",),
}
FILM = {
    "title": "灯塔物语：渡海的孩子们",
    "original_title": "灯台ものがたり 海をわたる子供たち",
    "kind": Kind.ANIMATION,
    "regions": ("日本",),
    "genres": ("剧情", "动画"),
    "duration_minutes": 92,
}


def test_title_and_original_with_a_subtitle_of_the_exact_year_are_one_work_wherever_it_is_filed():
    verdict = thin(FILED, FILM).verdict()
    assert verdict.status is Status.CONFIRMED, verdict.codes


@pytest.mark.parametrize(
    ("video", "subject"),
    [
        pytest.param({"year": 2018}, {}, id="a year off"),
        pytest.param({"year": None}, {}, id="no year"),
        pytest.param({"aliases": ()}, {}, id="the title alone"),
        pytest.param({}, {"title": "灯塔物语 外海的船"}, id="the original alone, which may be the series'"),
        pytest.param({"aliases": ("灯台ものがたり",)}, {"original_title": "灯台ものがたり"}, id="the franchise's name"),
        pytest.param({"episodes": 12}, {}, id="the site has counted episodes"),
        pytest.param({"genres": ("剧情",)}, {}, id="the site does not call it animated"),
        pytest.param({}, {"kind": Kind.FILM, "genres": ("剧情",)}, id="Douban does not"),
        pytest.param({}, {"title": "灯塔物语 剧场版：渡海的孩子们"}, id="Douban's title states an edition"),
    ],
)
def test_otherwise_a_film_is_no_series(video, subject):
    verdict = thin({**FILED, **video}, {**FILM, **subject}).verdict()
    assert verdict.status is not Status.CONFIRMED
    assert Code.KIND_CONFLICT in {*verdict.codes, *verdict.candidates[0].comparison.codes}


SEASON = {"title": "渡海的孩子们 第一季", "kind": Kind.SERIES}
BARE = {"title": "渡海的孩子们", "kind": Kind.SERIES}


@pytest.mark.parametrize(
    ("rival", "confirmed"),
    [
        pytest.param(None, True, id="nothing else"),
        pytest.param("渡海的孩子们 第二季", False, id="Douban numbers the second season"),
        pytest.param("渡海的孩子们 第五季", False, id="or a later one"),
        pytest.param("渡海的孩子们2", True, id="a sequel is counted otherwise"),
        pytest.param("守灯人 第二季", True, id="another show's season"),
    ],
)
def test_a_first_season_is_not_the_entry_without_a_number_where_douban_numbers_the_others(rival, confirmed):
    rivals = () if rival is None else (other(rival, 2019, kind=Kind.SERIES),)
    verdict = thin(SEASON, BARE, *rivals).verdict()
    assert (verdict.status is Status.CONFIRMED) is confirmed, verdict.codes
    assert (Code.SEASON_ONE_SIDED in verdict.codes) is not confirmed


@given(st.integers(2, 20))
def test_no_season_beside_it_makes_a_video_without_a_number_another_work(number):
    """The other way round nothing changes: a show without a number is linked to its first season as before."""
    alone = thin(BARE, SEASON).verdict()
    beside = thin(BARE, SEASON, other(f"渡海的孩子们 第{number}季", 2017 + number, kind=Kind.SERIES)).verdict()
    assert alone.status is beside.status is Status.CONFIRMED
