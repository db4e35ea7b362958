"""The dictionary of people: what is a name, how it is kept, and that the same ones cost next to nothing."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from douban_pipeline.cms.people import People, name_key, name_keys, names_of_row
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(7)], taken_in=False)


@pytest.fixture
def people(library):
    return People(library.engine, library.tables.person, library.clock)


def stored(library):
    with library.engine.connect() as connection:
        return dict(connection.execute(sa.select(library.tables.person.c.name, library.tables.person.c.seen_at)).all())


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("张国荣", ("张国荣",)),
        (" 王 菲 ", ("王菲",)),
        ("Tom  Hanks", ("tom hanks",)),
        ("ＴＯＭ　ＨＡＮＫＳ", ("tom hanks",)),
        ("汤姆・汉克斯", ("汤姆·汉克斯",)),
        ("汤姆 · 汉克斯", ("汤姆·汉克斯",)),
        ("白井悠介 Yusuke Shirai", ("白井悠介", "yusuke shirai")),
        ("张国荣 饰 程蝶衣", ("张国荣",)),
        ("张国荣（饰 程蝶衣）", ("张国荣",)),
        ("张国荣等", ("张国荣",)),
        ("のん", ("のん",)),
        ("아이유", ("아이유",)),
        ("陳凱歌", ("陳凱歌",)),
        ("内详", ()),
        ("未知", ()),
        ("-", ()),
        ("王", ()),
        ("", ()),
        ("12345", ()),
        ("这是一部讲述少年成长的电影。", ()),
        ("www.example.com", ()),
        ("字" * 41, ()),
        ("字" * 40, ("字" * 40,)),
    ],
)
def test_what_an_entry_of_a_list_names(written, keys):
    assert name_keys(written) == keys


@pytest.mark.parametrize("written", ["汤姆・汉克斯", " Tom  HANKS", "王 菲", "陳凱歌", "", "J·K·罗琳"])
def test_a_key_is_its_own_key(written):
    assert name_key(name_key(written)) == name_key(written)


def test_the_people_of_a_row_are_all_its_lists_without_what_was_cut():
    row = video(1, vod_actor="张国荣,张丰毅,内详", vod_director="陈凯歌 / 李碧", vod_writer="")
    assert list(names_of_row(row, {})) == ["张国荣", "张丰毅", "陈凯歌", "李碧"]
    assert list(names_of_row(row, {"vod_director": 8})) == ["张国荣", "张丰毅", "陈凯歌"]


def test_names_are_kept_once_and_found_in_any_writing(library, people):
    assert people.remember(["张国荣", "张国荣 ", "Tom Hanks", "内详", "汤姆・汉克斯"]) == 3
    assert stored(library) == dict.fromkeys(("张国荣", "tom hanks", "汤姆·汉克斯"), START)
    assert people.known({"张国荣", "TOM HANKS", "汤姆·汉克斯", "国荣", "周星驰"}) == {
        "张国荣",
        "tom hanks",
        "汤姆·汉克斯",
    }
    assert people.known([]) == set()


def test_case_tells_nothing_and_accents_do(people):
    people.remember(["José", "Anna"])
    assert people.known(["jose", "ANNA", "josé"]) == {"anna", "josé"}


def test_names_outside_the_first_plane_are_kept(people):
    people.remember(["𠮷田羊", "李𬀩"])
    assert people.known(["𠮷田羊", "李𬀩"]) == {"𠮷田羊", "李𬀩"}


def test_the_first_sight_of_a_name_stays(library, people):
    people.remember(["张国荣"])
    library.clock.advance(days=3)
    assert People(library.engine, library.tables.person, library.clock).remember(["张国荣", "巩俐"]) == 1
    assert stored(library)["张国荣"] == START
    assert stored(library)["巩俐"] == library.clock.now()


def test_what_was_answered_before_asks_the_database_nothing(library, people):
    people.remember(["张国荣", "巩俐"])
    with sent_statements(library.engine) as sent:
        assert people.remember(["巩俐", "张国荣", "内详"]) == 0
    assert sent == []


def test_many_names_take_few_statements(library, people):
    names = [f"{surname}{chr(0x4E00 + at)}某" for surname in "王李张" for at in range(700)]
    with sent_statements(library.engine) as sent:
        assert people.remember(names) == 2100
    assert len(sent) < 20
    assert people.known(names) == set(names)


def test_two_processes_that_tell_the_same_names_do_not_meet(library):
    names = [f"王{chr(0x4E00 + at)}{chr(0x4E00 + at)}" for at in range(600)]
    start = threading.Barrier(3)
    failed = []

    def tell(mine):
        dictionary = People(library.engine, library.tables.person, library.clock)
        start.wait()
        try:
            for at in range(0, len(mine), 100):
                dictionary.remember(mine[at : at + 100])
        except sa.exc.SQLAlchemyError as error:
            failed.append(error)

    threads = [threading.Thread(target=tell, args=(mine,)) for mine in (names, names[::-1], names[300:] + names[:300])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert set(stored(library)) == set(names)
