"""What a section of a site and a first season's number say of a work: films filed as series, entries without number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Code, Kind, Status
from douban_pipeline_tests.matching.trials import other, thin

SUBTITLED = {"regions": ("日本",), "kind": Kind.ANIMATION, "genres": ("剧情", "动画")}
FILED = {**SUBTITLED, "title": "灯塔物语 渡海的孩子们", "aliases": ("灯台ものがたり 〜海をわたる子供たち〜",)}
FILM = {
    **SUBTITLED,
    "title": "灯塔物语：渡海的孩子们",
    "original_title": "灯台ものがたり 海をわたる子供たち",
    "duration_minutes": 92,
}


def test_a_film_that_is_filed_as_a_series_goes_to_a_person_whatever_names_they_have_in_common():
    """A series and the film cut from it have their names, their year and their people in common."""
    assert thin(FILED, FILM).verdict().status is Status.CONFIRMED
    verdict = thin({**FILED, "kind": Kind.SERIES}, FILM).verdict()
    assert verdict.status is Status.REVIEW
    assert Code.KIND_CONFLICT in verdict.codes


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
