"""The files of an evaluation: what is read, and which line is at fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from douban_pipeline.matching import Kind
from douban_pipeline_tests.tools.evaluate.labelled_rows import FormatError, read_corpus, read_gold

SUBJECT = {
    "id": "90000101",
    "title": "长河落日记事",
    "original_title": "長河落日記事",
    "aka": ["长河", "Sunset River"],
    "year": 2021,
    "regions": ["中国大陆"],
    "directors": ["长河导"],
    "actors": ["甲一", "乙二"],
    "genres": ["剧情"],
    "duration_min": 118,
    "episodes": None,
    "kind": "movie",
    "imdb": None,
}
ROW = {
    "vod_name": "长河落日记事 HD",
    "vod_sub": "长河 / Sunset River",
    "vod_year": "2021",
    "vod_area": "大陆",
    "vod_director": "长河导",
    "vod_actor": "甲一,乙二",
    "vod_class": "剧情",
    "vod_remarks": "全30集",
    "type": "tv",
    "douban_id": "90000101",
    "source": "crosscrawl:somewhere",
    "label": "id",
    "tags": ["alias"],
    "gid": "g1",
}


@pytest.fixture
def write(tmp_path):
    def lines(*rows):
        path = tmp_path / "rows.jsonl"
        texts = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(texts), encoding="utf-8")
        return path

    return lines


def without(row, *keys):
    return {key: value for key, value in row.items() if key not in keys}


def test_a_subject_is_read_with_all_it_says(write):
    [(douban_id, subject)] = read_corpus(write(SUBJECT)).items()
    record = subject.record
    assert (douban_id, record.douban_id, subject.kind) == (90_000_101, 90_000_101, "movie")
    assert (record.title, record.original_title, record.aliases) == (
        "长河落日记事",
        "長河落日記事",
        ("长河", "Sunset River"),
    )
    assert (record.year, record.regions, record.genres) == (2021, ("中国大陆",), ("剧情",))
    assert (record.directors, record.actors) == (("长河导",), ("甲一", "乙二"))
    assert (record.duration_minutes, record.episodes, record.release_dates) == (118, None, ())


def test_a_row_is_read_as_the_site_means_it(write):
    [row] = read_gold(write(ROW))
    assert (row.file, row.row, row.gid, row.source, row.label, row.tags) == (
        "rows.jsonl",
        1,
        "g1",
        "crosscrawl",
        "id",
        ("alias",),
    )
    assert (row.expected, row.trap, row.rich) == (90_000_101, None, True)
    video = row.video
    assert (video.title, video.aliases, video.year, video.kind) == (
        "长河落日记事 HD",
        ("长河", "Sunset River"),
        2021,
        Kind.SERIES,
    )
    assert (video.regions, video.directors, video.actors) == (("大陆",), ("长河导",), ("甲一", "乙二"))
    assert (video.genres, video.episodes) == (("剧情",), 30)


@pytest.mark.parametrize(
    ("changes", "expected", "trap", "label"),
    [
        ({}, 90_000_101, None, "id"),
        ({"douban_id": 90_000_101, "label": None}, 90_000_101, None, "gold"),
        ({"douban_id": None, "expect": "none", "label": None}, None, None, "none"),
        ({"douban_id": None, "trap_id": "666", "expect": "not:666", "label": None}, None, 666, "trap"),
        ({"douban_id": None, "trap_id": 666}, None, 666, "id"),
    ],
)
def test_three_kinds_of_label(write, changes, expected, trap, label):
    [row] = read_gold(write(ROW | changes))
    assert (row.expected, row.trap, row.label) == (expected, trap, label)


@pytest.mark.parametrize(
    "line",
    [
        without(ROW, "douban_id"),
        without(ROW, "vod_name"),
        ROW | {"douban_id": None},
        ROW | {"douban_id": "none"},
        ROW | {"trap_id": "x"},
        "not JSON",
    ],
)
def test_a_bad_row_is_named(write, line):
    path = write(ROW, line)
    with pytest.raises(FormatError, match=r"rows\.jsonl, line 2: "):
        read_gold(path)


def test_rows_of_ones_own_are_read_as_the_cms_exports_them(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    text = "\ufeffvod_name,vod_year,vod_director,vod_actor,vod_douban_id,trap_id,expect\r\n"
    text += '英雄,2002,张艺谋,"李连杰,梁朝伟",90000001,,\r\n\r\n英雄,2003,,,,90000002,\r\n英雄传,,,,,,none\r\n'
    path.write_text(text, encoding="utf-8")
    hero, trap, none = read_gold(path)
    assert (hero.row, hero.expected, hero.source, hero.headline, hero.rich) == (2, 90_000_001, "unknown", True, True)
    assert (hero.video.title, hero.video.year, hero.video.actors) == ("英雄", 2002, ("李连杰", "梁朝伟"))
    assert (trap.row, trap.trap, none.row, none.expected, none.headline) == (4, 90_000_002, 5, None, False)
