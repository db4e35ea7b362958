"""The index of names on disk: who is found, in what order, and that a file is replaced whole or not at all."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.known_subjects.name_index import IndexUnusable, NameIndex, build
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject

FAREWELL = NamedSubject(1_291_546, "霸王别姬", "", ("再见，我的妾", "Farewell My Concubine"), 1993)
SEASONS = [
    NamedSubject(20_000 + number, f"黑镜 第{number}季", "Black Mirror", (), 2010 + number, True)
    for number in range(1, 7)
]
HIDE_1992 = NamedSubject(30_001, "捉迷藏", "", (), 1992)
HIDE_2005 = NamedSubject(30_002, "捉迷藏", "Hide and Seek", (), 2005)
ONE = NamedSubject(30_003, "她", "Her", (), 2013)
ALL = [FAREWELL, *SEASONS, HIDE_1992, HIDE_2005, ONE]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "subjects.sqlite"
    contents = build(path, iter(ALL), {"a file": len(ALL)})
    assert (contents.subjects, contents.sources) == (len(ALL), {"a file": len(ALL)})
    opened = NameIndex(path)
    assert opened.contents == contents
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("title", "year", "first"),
    [
        ("霸王别姬", None, FAREWELL),
        ("覇王別姬", None, FAREWELL),
        ("霸王别姬 修复版", None, FAREWELL),
        ("ＦＡＲＥＷＥＬＬ my  concubine", None, FAREWELL),
        ("再见我的妾", None, FAREWELL),
        ("捉迷藏", 2005, HIDE_2005),
        ("捉迷藏", 1992, HIDE_1992),
        ("捉迷藏", 1993, HIDE_1992),
        ("黑镜 第3季", None, SEASONS[2]),
        ("黑镜", 2016, SEASONS[5]),
        ("她", None, ONE),
    ],
)
def test_the_likest_comes_first(index, title, year, first):
    assert index.find([title], year=year)[0] == first


@pytest.mark.parametrize("title", ["", " ", "完全无关", "……"])
def test_what_is_not_there_is_not_found(index, title):
    assert index.find([title]) == []


def test_all_namesakes_and_the_whole_family_are_found(index):
    assert set(index.find(["捉迷藏"])) == {HIDE_1992, HIDE_2005}
    assert set(index.find(["Black Mirror"])) == set(SEASONS)
    assert len(index.find(["Black Mirror"], limit=2)) == 2
    assert set(index.find(["捉迷藏", "霸王别姬"])) == {FAREWELL, HIDE_1992, HIDE_2005}


def test_threads_may_share_it(index):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda each: index.find([each.title], year=each.year)[0], ALL * 20))
    assert found == ALL * 20


def test_all_of_it_can_be_read_back(index):
    assert list(index.subjects()) == ALL


_TITLES = st.text(st.sampled_from("天地玄黄宇宙洪荒日月盈昃AbC 1·"), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=40, deadline=None)
@given(titles=st.lists(_TITLES, min_size=1, max_size=15))
def test_everything_is_found_by_its_own_names(tmp_path_factory, titles):
    subjects = [NamedSubject(50_000 + number, title, "", (), None) for number, title in enumerate(titles)]
    path = tmp_path_factory.mktemp("any") / "subjects.sqlite"
    build(path, subjects, {})
    index = NameIndex(path)
    for subject in subjects:
        if any(sign.isalnum() for sign in subject.title):
            assert subject in index.find([subject.title], limit=len(subjects))
    index.close()


def test_a_build_that_fails_leaves_the_one_before(tmp_path):
    path = tmp_path / "subjects.sqlite"
    build(path, [FAREWELL], {})

    def broken():
        yield HIDE_1992
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        build(path, broken(), {})
    assert NameIndex(path).find(["霸王别姬"]) == [FAREWELL]
    assert list(tmp_path.iterdir()) == [path]


def test_a_build_removes_what_killed_ones_left_and_nothing_else(tmp_path):
    path = tmp_path / "subjects.sqlite"
    with subprocess.Popen(["true"]) as ended:
        pass
    here, other = owner_name("").rpartition(":")[0], "subjects.sqlite@elsewhere:1.part"
    alive = f"subjects.sqlite{here}:{os.getppid()}.part"
    for name in (f"subjects.sqlite{here}:{ended.pid}.part", alive, other, "more.sqlite.part"):
        (tmp_path / name).touch()
    build(path, iter(ALL), {})
    assert {item.name for item in tmp_path.iterdir()} == {path.name, alive, other, "more.sqlite.part"}


def test_one_that_is_open_is_not_disturbed_by_the_next(tmp_path):
    path = tmp_path / "subjects.sqlite"
    build(path, [FAREWELL], {})
    before = NameIndex(path)
    build(path, [HIDE_1992], {})
    assert before.find(["霸王别姬"]) == [FAREWELL]
    assert NameIndex(path).find(["霸王别姬"]) == []


def test_what_is_no_index_says_how_to_make_one(tmp_path):
    path = tmp_path / "subjects.sqlite"
    with pytest.raises(FileNotFoundError):
        NameIndex(path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(IndexUnusable, match="index load FILE"):
        NameIndex(path)
    path.unlink()
    build(path, [FAREWELL], {})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value = '0' WHERE name = 'format'")
    with pytest.raises(IndexUnusable, match="of format 0"):
        NameIndex(path)
