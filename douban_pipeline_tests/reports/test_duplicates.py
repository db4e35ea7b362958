"""Videos that may be one are shown in groups, the one worth keeping first; nothing is ever merged."""

from __future__ import annotations

from douban_pipeline.reports.duplicates import duplicate_groups
from douban_pipeline_tests.library import video


def named(vod_id, name, **columns):
    return video(vod_id, vod_name=name, **columns)


def groups(scenario):
    return [
        (group.by, group.key, [member.vod_id for member in group.members])
        for group in duplicate_groups(scenario.services)
    ]


def test_videos_with_one_subject_are_a_group(stage):
    scenario = stage(
        [
            named(4, "甲的故事", vod_douban_id=90_000_101, vod_hits=5),
            named(5, "乙的故事", vod_douban_id=90_000_101, vod_hits=50),
            named(6, "丙的故事", vod_douban_id=90_000_101, vod_hits=50),
            named(7, "丁的故事", vod_douban_id=90_000_102),
        ]
    )
    assert groups(scenario) == [("subject", "90000101", [5, 6, 4])]


def test_videos_of_one_name_number_year_and_kind_are_a_group(stage):
    scenario = stage(
        [
            named(4, "长河落日记事"),
            named(5, "長河落日記事 1080P"),
            named(6, "长河落日记事", vod_year="2019"),
            named(7, "长河落日记事", type_id=13, type_id_1=2),
            named(8, "长河落日记事 第二季"),
            named(9, "长河落日记事 导演剪辑版"),
        ]
    )
    [(by, key, members)] = groups(scenario)
    assert (by, members) == ("title", [4, 5])
    assert key.endswith("2024")


def test_the_linked_one_is_kept_and_known_works_are_told_apart(stage):
    scenario = stage(
        [
            named(4, "长河落日记事", vod_hits=900),
            named(5, "长河落日记事", vod_douban_id=90_000_101),
            named(10, "蓝鲸与灯塔", vod_douban_id=90_000_102),
            named(11, "蓝鲸与灯塔", vod_douban_id=90_000_103),
        ]
    )
    found = [members for _, _, members in groups(scenario)]
    assert found == [[5, 4]], "two subjects are two works, however they are called"


def test_the_recycle_bin_does_not_count(stage):
    scenario = stage([named(4, "长河落日记事", vod_recycle_time=1), named(5, "长河落日记事")], taken_in=True)
    assert groups(scenario) == []


def test_the_largest_group_comes_first(stage):
    scenario = stage([*(named(n, "蓝鲸与灯塔") for n in (4, 5)), *(named(n, "长河落日记事") for n in (6, 7, 8))])
    assert [len(members) for _, _, members in groups(scenario)] == [3, 2]


def test_what_the_report_shows(stage):
    hostile = "甲<img src=x onerror=alert(1)>|`乙`"
    scenario = stage(
        [
            named(4, f"{hostile}的故事", vod_douban_id=90_000_101),
            named(5, f"{hostile}的事", vod_douban_id=90_000_101),
            named(6, "长河落日记事"),
            named(7, "长河落日记事"),
        ]
    )
    before = scenario.library.all_bytes()
    run = scenario.launch("nightly_reports")
    found = run.metadata("duplicate_reports")
    assert (run.success, found["groups_by_subject"], found["groups_by_title"], found["videos"]) == (True, 1, 1, 4)
    assert "[90000101](https://movie.douban.com/subject/90000101/)" in found["by_subject"]
    assert "<img" not in found["by_subject"]
    assert "6 长河落日记事" in found["by_title"]
    assert "7 长河落日记事" in found["by_title"]
    assert scenario.library.all_bytes() == before


def test_no_duplicates(stage):
    found = stage([named(4, "长河落日记事")]).launch("nightly_reports").metadata("duplicate_reports")
    assert (found["videos"], found["by_subject"], found["by_title"]) == (0, "—", "—")
