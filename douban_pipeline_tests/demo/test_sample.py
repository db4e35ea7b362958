"""The bundled sample is sound, and `validate` would notice if it were not."""

from __future__ import annotations

import copy
import html
import json
from collections import Counter
from importlib import resources
from typing import Any

import pytest

from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.sample import SampleSubject, SampleVideo, cms_columns, load_subjects, load_videos
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.fixtures.sample_rules import CONSTANT_WRONG_ID, INVENTED_IDS, validate

WIDTHS = {
    "vod_name": 255,
    "vod_sub": 255,
    "vod_area": 20,
    "vod_lang": 10,
    "vod_year": 10,
    "vod_actor": 255,
    "vod_director": 255,
    "vod_writer": 100,
    "vod_class": 255,
    "vod_pubdate": 100,
    "vod_duration": 10,
    "vod_remarks": 100,
}
LIMIT_BYTES = 350_000


@pytest.fixture(scope="module")
def subjects() -> list[SampleSubject]:
    return load_subjects()


@pytest.fixture(scope="module")
def videos() -> list[SampleVideo]:
    return load_videos()


def test_the_sample_is_sound(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    assert validate(subjects, videos) == []


def test_there_is_enough_of_it(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    assert 180 <= len(subjects) <= 220
    assert 300 <= len(videos) <= 340


def test_the_files_are_small_readable_and_in_order() -> None:
    folder = resources.files("douban_pipeline.demo").joinpath("data")
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("subjects.jsonl", "videos.jsonl")}
    assert sum(len(text.encode()) for text in texts.values()) < LIMIT_BYTES
    for (name, text), key in zip(texts.items(), ("id", "vod_id"), strict=True):
        records = [json.loads(line) for line in text.splitlines()]
        assert "\\u" not in text, f"{name} hides its characters"
        assert [record[key] for record in records] == sorted(record[key] for record in records)
    assert folder.joinpath("SOURCES.md").is_file()


def test_ids_are_unique(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    assert len({subject["id"] for subject in subjects}) == len(subjects)
    assert len({video["vod_id"] for video in videos}) == len(videos)
    assert all(1 <= video["vod_id"] <= 4000 for video in videos)


def test_invented_ids_are_distinguished_from_real_ones(subjects: list[SampleSubject]) -> None:
    invented = [subject["id"] for subject in subjects if subject["id"] >= 90_000_000]
    assert invented
    assert all(number in INVENTED_IDS for number in invented)


def test_every_shard_has_work(videos: list[SampleVideo]) -> None:
    shards = Counter(video["vod_id"] % SHARDS for video in videos)
    assert len(shards) == SHARDS
    assert min(shards.values()) >= 3


@pytest.mark.parametrize(
    ("expect", "least"),
    [
        ("CONFIRMED", 150),
        ("REVIEW", 40),
        ("NOT_FOUND", 30),
        ("SYNCED", 15),
        ("EXCLUDED", 5),
        ("LOCKED", 5),
        ("IGNORED", 4),
        ("FAILED", 4),
    ],
)
def test_every_ending_is_there(videos: list[SampleVideo], expect: str, least: int) -> None:
    assert sum(video["expect"] == expect for video in videos) >= least


def test_about_half_is_clean_enough_to_be_confirmed(videos: list[SampleVideo]) -> None:
    assert 0.5 <= sum(video["expect"] == "CONFIRMED" for video in videos) / len(videos) <= 0.6


def test_no_column_is_cut_once_escaped(videos: list[SampleVideo]) -> None:
    too_wide = [
        (video["vod_id"], key)
        for video in videos
        for key, width in WIDTHS.items()
        if len(html.escape(str(cms_columns(video).get(key, "")), quote=True)) > width
    ]
    assert too_wide == []


def test_no_text_needs_four_bytes(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    text = json.dumps([*subjects, *videos], ensure_ascii=False)
    assert [character for character in text if ord(character) > 0xFFFF] == []


def test_categories_are_those_of_the_demo_library(videos: list[SampleVideo]) -> None:
    parents = {row["type_id"]: row["type_pid"] for row in default_types()}
    assert all(parents.get(video["type_id"]) == video["type_id_1"] for video in videos)
    assert {video["expect"] for video in videos if video["type_id"] == 20} == {"EXCLUDED"}
    assert {video["type_id"] for video in videos if video["expect"] == "EXCLUDED"} == {20}


def test_update_times_reach_every_tier(videos: list[SampleVideo]) -> None:
    bounds = (30, 180, 365, 730, float("inf"))
    tiers = Counter(next(n for n, bound in enumerate(bounds) if video["age_days"] < bound) for video in videos)
    assert all(tiers[n] >= 30 for n in range(len(bounds)))


def test_each_fault_is_met(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    faults = {subject["id"]: subject["fault"] for subject in subjects if "fault" in subject}
    assert sorted(faults.values()) == ["empty", "server_error", "wrong_id"]
    assert {video["expect_id"] for video in videos if video["expect"] == "FAILED"} == set(faults)


def test_the_constant_wrong_id_is_another_work(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    (stand_in,) = [subject for subject in subjects if subject["id"] == CONSTANT_WRONG_ID]
    marked = [video for video in videos if video.get("vod_douban_id") == CONSTANT_WRONG_ID]
    assert len(marked) >= 4
    for video in marked:
        assert video["vod_name"] != stand_in["title"]
        assert (video["expect"], video["expect_id"] != CONSTANT_WRONG_ID) == ("REVIEW", True)


def test_works_are_there_twice_under_different_spellings(videos: list[SampleVideo]) -> None:
    names: dict[int, set[str]] = {}
    for video in videos:
        if video["expect"] in ("CONFIRMED", "SYNCED") and video["expect_id"] is not None:
            names.setdefault(video["expect_id"], set()).add(video["vod_name"])
    assert sum(len(spellings) > 1 for spellings in names.values()) >= 15


def test_namesakes_are_there(subjects: list[SampleSubject]) -> None:
    times = Counter(subject["title"] for subject in subjects)
    assert {"花木兰", "倩女幽魂", "红楼梦", "神雕侠侣", "狮子王"} <= {title for title, n in times.items() if n > 1}


def test_the_dirt_of_a_real_site_is_there(videos: list[SampleVideo]) -> None:
    def some(key: str, *words: str) -> bool:
        return all(any(word in str(cms_columns(video).get(key, "")) for video in videos) for word in words)

    assert some("vod_name", "HD", "BD1080P", "国语版", "更新至", "全46集", "慶餘年", "Ｏ", "S03")
    assert some("vod_sub", "'", "&", "é", "（2018）")
    assert some("vod_actor", " / ", "、", "：", "内详", "未知")
    assert some("vod_area", ",", " / ", "大陆", "中国大陆", "内地", "其它")
    assert some("vod_lang", "四月")
    assert any("vod_year" not in video for video in videos)
    assert any(video.get("vod_year") == "0" for video in videos)


def test_people_decided_before_the_first_run(videos: list[SampleVideo]) -> None:
    states = [(video["expect"], state) for video in videos for state in video.get("state", {})]
    assert ("LOCKED", "douban_id_locked") in states
    assert ("IGNORED", "ignored") in states
    assert ("SYNCED", "intro_locked") in states


def test_cms_columns_leave_out_what_the_demo_alone_needs() -> None:
    video = load_videos()[0]
    assert set(cms_columns(video)) == set(video) - {"age_days", "note", "expect", "expect_id", "state"}


# What `validate` must notice: the record to take, what to change (None takes a key away), words of the complaint.
BREAKAGES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("subject", {}, {"title": ""}, "no title"),
    ("subject", {}, {"title": None}, "lacks title"),
    ("subject", {}, {"colour": "red"}, "unknown colour"),
    ("subject", {}, {"kind": "film"}, "movie or tv"),
    ("subject", {}, {"year": 0}, "year 0"),
    ("subject", {}, {"id": 77}, "no such ids"),
    ("subject", {}, {"aka": "别名"}, "aka must be a list"),
    ("subject", {}, {"actors": ["甲", ""]}, "actors must be a list"),
    ("subject", {}, {"actors": ["甲", "甲"]}, "repeats"),
    ("subject", {}, {"fault": "bored"}, "fault bored"),
    ("subject", {}, {"summary": "好看\U0001f600"}, "utf8mb3"),
    ("subject", {}, {"genres": ["\U00020000"]}, "utf8mb3"),
    ("video", {}, {"vod_id": 0}, "above 0"),
    ("video", {}, {"vod_name": " "}, "name"),
    ("video", {}, {"note": ""}, "why it is there"),
    ("video", {}, {"age_days": -1.0}, "age_days"),
    ("video", {}, {"age_days": None}, "lacks age_days"),
    ("video", {}, {"vod_colour": "red"}, "no column vod_colour"),
    ("video", {}, {"vod_writer": "'" * 20}, "wider than 100"),
    ("video", {}, {"vod_area": "美" * 21}, "wider than 20"),
    ("video", {}, {"vod_name": "好看\U0001f600"}, "utf8mb3"),
    ("video", {}, {"expect": "MAYBE"}, "MAYBE"),
    ("video", {"expect": "CONFIRMED"}, {"expect_id": None}, "lacks expect_id"),
    ("video", {"expect": "CONFIRMED"}, {"expect_id": 5}, "no subject"),
    ("video", {"expect": "CONFIRMED"}, {"vod_douban_id": CONSTANT_WRONG_ID}, "must be empty"),
    ("video", {"expect": "CONFIRMED"}, {"expect": "FAILED"}, "fault"),
    ("video", {"expect": "CONFIRMED"}, {"expect": "SYNCED"}, "in vod_douban_id"),
    ("video", {"expect": "SYNCED"}, {"vod_douban_id": 5}, "no subject"),
    ("video", {"expect": "LOCKED"}, {"state": {}}, "locked id"),
    ("video", {"expect": "IGNORED"}, {"state": {}}, "ignored state"),
    ("video", {"expect": "CONFIRMED"}, {"state": {"ignored": True}}, "ignored state"),
]


@pytest.mark.parametrize(("what", "where", "change", "complaint"), BREAKAGES)
def test_validate_notices(
    subjects: list[SampleSubject],
    videos: list[SampleVideo],
    what: str,
    where: dict[str, Any],
    change: dict[str, Any],
    complaint: str,
) -> None:
    broken: dict[str, list[Any]] = {"subject": copy.deepcopy(list(subjects)), "video": copy.deepcopy(list(videos))}
    record = next(record for record in broken[what] if where.items() <= record.items())
    for key, value in change.items():
        if value is None:
            del record[key]
        else:
            record[key] = value
    problems = validate(broken["subject"], broken["video"])
    assert any(complaint in problem for problem in problems), problems


def test_validate_notices_an_id_twice(subjects: list[SampleSubject], videos: list[SampleVideo]) -> None:
    problems = validate([*subjects, subjects[0]], [*videos, videos[0]])
    assert problems == [
        f"subject {subjects[0]['id']}: the id is there 2 times",
        f"video {videos[0]['vod_id']}: the id is there 2 times",
    ]


def test_validate_needs_a_subject_for_what_is_confirmed(
    subjects: list[SampleSubject], videos: list[SampleVideo]
) -> None:
    broken = copy.deepcopy(videos)
    video = next(video for video in broken if video["expect"] == "CONFIRMED")
    video["expect_id"] = None
    assert validate(subjects, broken) == [f"video {video['vod_id']}: CONFIRMED needs an expect_id"]
