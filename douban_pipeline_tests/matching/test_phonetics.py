"""Latin names and the Chinese ones that translators make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Subject, Video
from douban_pipeline.matching.people import heard
from douban_pipeline.matching.phonetics import SAME_SOUND, sounds_alike
from douban_pipeline.matching.scoring import ItemOutcome, compare

SAME = [
    ("Marten Solberg", "马尔滕·索尔贝里"),
    ("Tobias Grunwald", "托比亚斯·格伦瓦尔德"),
    ("Clara Whitfield", "克拉拉·惠特菲尔德"),
    ("Elena Petrova", "叶莲娜·彼得罗娃"),
    ("Rodrigo Almeida", "罗德里戈·阿尔梅达"),
    ("Edmund J. Carter", "埃德蒙·卡特"),
    ("Frédéric Lambert", "弗雷德里克·朗贝尔"),
    ("Oskar Lindström", "奥斯卡·林德斯特伦"),
    ("Liwei Tang", "唐立伟"),
    ("TANG Li-wei", "唐立伟"),
]
OTHERS = [
    ("Marten Solberg", "托比亚斯·格伦瓦尔德"),
    ("Marten Solberg", "马尔滕·尼尔森"),  # the first name alone
    ("Anders Solberg", "马尔滕·索尔贝里"),  # the last name alone
    ("Liwei Tang", "唐立华"),
    ("Liwei Tang", "唐伟"),
    ("Akio Moriyama", "森山明夫"),  # Japanese names are read, not sounded
    ("Ann Lee", "安·李"),  # too short to be one person's
    ("Solberg", "马尔滕·索尔贝里"),
]


@pytest.mark.parametrize(("latin", "han"), SAME)
def test_names_that_are_written_for_one_another_are_heard_either_way(latin: str, han: str) -> None:
    assert heard((latin,), (han,))
    assert heard((han,), (latin,))


@pytest.mark.parametrize(("latin", "han"), OTHERS)
def test_other_names_are_not_heard(latin: str, han: str) -> None:
    assert not heard((latin,), (han,))


def test_long_lists_are_not_compared_by_sound() -> None:
    many = tuple(f"托比亚斯·格伦瓦尔德{'甲' * n}" for n in range(12))
    assert heard(("Marten Solberg",), ("马尔滕·索尔贝里", *many[:11]))
    assert not heard(("Marten Solberg",), ("马尔滕·索尔贝里", *many))


def test_two_names_of_one_script_are_not_compared_by_sound() -> None:
    assert not heard(("Marten Solberg",), ("Marten Solberg",))
    assert not heard(("唐立伟",), ("唐立伟",))


@pytest.mark.parametrize(
    ("year", "outcome"),
    [(2016, ItemOutcome.AGREE), (2015, ItemOutcome.AGREE), (2014, ItemOutcome.UNKNOWN), (None, ItemOutcome.UNKNOWN)],
)
def test_a_sound_speaks_where_the_year_does(year: int | None, outcome: ItemOutcome) -> None:
    video = Video(1, "雾港来信", year=year, directors=("Marten Solberg",))
    subject = Subject(2, "雾港来信", year=2016, directors=("马尔滕·索尔贝里",))
    assert compare(video, subject).item("director").outcome is outcome


def test_a_sound_speaks_for_a_person_and_never_against() -> None:
    video = Video(1, "雾港来信", year=2016, directors=("Marten Solberg",))
    other = Subject(2, "雾港来信", year=2016, directors=("托比亚斯·格伦瓦尔德",))
    found = compare(video, other)
    assert found.item("director").outcome is ItemOutcome.UNKNOWN
    assert not found.rejects


_LATIN = st.lists(st.text("abcdefghijklmnopqrstuvwxyzéø' ", max_size=12), max_size=4).map(tuple)


_HAN = st.lists(
    st.text("马尔滕索贝里托比亚斯格伦瓦德克拉惠特菲唐立伟儿", min_size=1, max_size=8), min_size=1, max_size=4
)


@given(_LATIN, _HAN.map(tuple))
def test_likeness_is_a_share(latin: tuple[str, ...], han: tuple[str, ...]) -> None:
    assert 0 <= sounds_alike(latin, han) <= 1


@given(st.sampled_from(SAME), st.sampled_from(SAME))
def test_only_its_own_name_is_heard(one: tuple[str, str], other: tuple[str, str]) -> None:
    mine, theirs = tuple(one[0].split()), tuple(other[1].split("·"))
    assert (sounds_alike(mine, theirs) >= SAME_SOUND) == (one[1] == other[1])


_NAMES = st.lists(st.sampled_from([name for pair in (*SAME, *OTHERS) for name in pair]), max_size=4).map(tuple)


@given(_NAMES, _NAMES)
def test_who_is_heard_does_not_depend_on_the_side_or_the_order(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    found = heard(one, other)
    assert found == heard(other, one) == heard(one[::-1], other)


@given(_NAMES, _NAMES)
def test_one_more_name_is_never_less_unless_the_lists_are_long(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    if heard(one, other) and (len(one) + 1) * len(other) <= 12:
        assert heard((*one, "白井悠"), other)
