"""Videos that may be one are shown in groups, the one worth keeping first; nothing is ever merged."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists import duplicates
from douban_pipeline.douban.reports.lists.duplicate_groups import equal_titles, members_of, title_groups
from douban_pipeline.douban.reports.lists.duplicates import duplicates_list, store_same_titles
from douban_pipeline.douban.reports.lists.keepers import LinkOrigin
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import rows_of
from douban_pipeline_tests.douban.reports.planting import (
    change,
    days_before,
    linked,
    opened,
    verdict,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import unix, video

RIVER, WHALE = 90_000_101, 90_000_102


def named(vod_id, name, **columns):
    return video(vod_id, vod_name=name, **columns)


def subjects(library):
    """Return the rows of the list of videos that share a subject."""
    return list(rows_of(library.services, duplicates_list(library.services), ListFilter()))


def titles(library):
    """Return the table of groups by name, as the page has it after the asset found them."""
    store_same_titles(library.services)
    [table] = duplicates_list(library.services).figures().tables
    return table


def groups(library, most=100):
    """Return the names and the members of groups by name, the one to keep first."""
    found = title_groups(library.services, equal_titles(library.services), most=most)
    return [(group.name, [member.vod_id for member in group.members]) for group in found]


def keeping(rows):
    """Return the row of the video to keep, and the others."""
    [kept] = [row for row in rows if row["advice"] == "保留"]
    return kept, [row for row in rows if row is not kept]


def test_videos_with_one_subject_are_a_group(library):
    library = library.renewed(
        [
            named(4, "甲的故事", vod_douban_id=RIVER, vod_hits=5),
            named(5, "乙的故事", vod_douban_id=RIVER, vod_hits=50),
            named(6, "丙的故事", vod_douban_id=RIVER, vod_hits=50),
            named(7, "丁的故事", vod_douban_id=WHALE),
        ]
    )
    kept, others = keeping(subjects(library))
    assert (kept["vod_id"], kept["why"]) == (5, "其余相同，入库最早（ID 最小）")
    assert {row["vod_id"] for row in others} == {4, 6}
    assert {row["douban_id"] for row in (kept, *others)} == {RIVER}


def test_an_id_in_doubt_or_of_a_video_in_the_recycle_bin_says_nothing(library):
    library = library.renewed([named(n, f"影片{'甲乙丙丁'[n]}", vod_douban_id=RIVER) for n in range(4)][1:])
    library.set_state(1, douban_review_status="REVIEW")
    library.set_state(2, douban_next_sync_at=None)
    assert (subjects(library), groups(library)) == ([], [])


def test_videos_of_one_name_number_year_and_kind_are_a_group(library):
    library = library.renewed(
        [
            named(4, "长河落日记事"),
            named(5, "長河落日記事 1080P"),
            named(6, "长河落日记事", vod_year="2019"),
            named(7, "长河落日记事", type_id=13, type_id_1=2),
            named(8, "长河落日记事 第二季"),
            named(9, "长河落日记事 导演剪辑版"),
        ]
    )
    [(name, members)] = groups(library)
    assert members == [4, 5]
    assert name.endswith("2024")


def test_the_linked_one_is_kept_and_known_works_are_distinguished(library):
    library = library.renewed(
        [
            named(4, "长河落日记事", vod_hits=900),
            named(5, "长河落日记事", vod_douban_id=RIVER),
            named(10, "蓝鲸与灯塔", vod_douban_id=WHALE),
            named(11, "蓝鲸与灯塔", vod_douban_id=90_000_103),
        ]
    )
    found = [members for _, members in groups(library)]
    assert found == [[5, 4]], "two subjects are two works, however they are called"
    library.set_state(11, douban_review_status="REVIEW")
    assert [10, 11] in [members for _, members in groups(library)], "one of them is in doubt"


def test_what_is_ignored_or_in_the_recycle_bin_is_no_duplicate_any_more(library):
    names = [named(n, "长河落日记事") for n in (4, 5, 6)]
    library = library.renewed([*names, named(7, "长河落日记事", vod_recycle_time=1)])
    library.set_state(5, douban_review_status="IGNORED")
    assert [members for _, members in groups(library)] == [[4, 6]]
    library.set_state(6, douban_review_status="IGNORED")
    assert groups(library) == []


def test_videos_without_a_name_are_not_the_same(library):
    assert groups(library.renewed([named(n, "") for n in (4, 5)])) == []


def test_the_largest_group_comes_first_and_all_are_counted(library, monkeypatch):
    library = library.renewed(
        [
            *(named(n, "蓝鲸与灯塔") for n in (4, 5)),
            *(named(n, "长河落日记事") for n in (6, 7, 8)),
            *(named(n, f"影片{'甲乙丙丁'[n % 4]}", vod_douban_id=RIVER + n // 20) for n in (10, 11, 20, 21)),
        ]
    )
    assert [len(members) for _, members in groups(library)] == [3, 2]
    assert [row["size"] for row in subjects(library)] == [2, 2, 2, 2]
    assert [len(members) for _, members in groups(library, most=1)] == [3]
    monkeypatch.setattr(duplicates, "MOST_GROUPS", 1)
    table = titles(library)
    assert (table.title, "这里是前 1 组" in table.note) == ("同名同年同类（2 组）", True)
    counts = duplicates_list(library.services).figures().counts
    assert dict(counts) == {"groups_by_subject": 2, "groups_by_title": 2, "videos": 9}


def test_what_is_known_of_the_members_is_read_from_the_tables(library):
    added = START - timedelta(days=400)
    library = library.renewed([named(n, f"影片{'甲乙丙丁戊'[n]}", vod_time_add=unix(added)) for n in range(1, 5)])
    linked(library, 1, RIVER, douban_id_source="person")
    linked(library, 2, RIVER, douban_id_confidence=91.5)
    linked(library, 3, RIVER, douban_id_source="cms")
    linked(library, 4, RIVER, douban_id_locked=True)
    verdict(library, 3, (WHALE, 99.0), (RIVER, 71.0))
    change(library, 2, "link", new_values={"vod_douban_id": WHALE}, at=days_before(9))
    change(library, 2, "link", new_values={"vod_douban_id": RIVER}, at=days_before(8))
    change(library, 2, "sync", new_values={"vod_pic": "x"}, at=days_before(1))
    change(library, 1, "set_id", new_values={"vod_douban_id": RIVER}, at=days_before(3))
    with library.engine.connect() as connection:
        members = members_of(library.services, connection, [4, 1, 2, 3])
    assert sorted((member.vod_id, member.origin, member.score, member.linked_at) for member in members.values()) == [
        (1, LinkOrigin.PERSON, None, days_before(3)),
        (2, LinkOrigin.AUTO, 91.5, days_before(8)),
        (3, LinkOrigin.CMS, 71.0, added),
        (4, LinkOrigin.LOCKED, None, None),
    ]
    kept, others = keeping(subjects(library))
    assert (kept["vod_id"], {row["advice"] for row in others}) == (4, {"清除"})


def test_the_batch_for_a_subject_clears_the_others_and_first_only_shows(library):
    library = library.renewed([named(n, f"影片{'甲乙丙丁戊'[n]}", vod_hits=n) for n in range(1, 4)])
    for vod_id in (1, 2, 3):
        linked(library, vod_id, RIVER)
    kept, others = keeping(subjects(library))
    job, config = opened(duplicates_list(library.services), kept, "clear_others")
    assert (kept["vod_id"], job) == (3, "record_batch_decisions")
    assert config["ops"]["select_and_record"]["config"] == {
        "reviewer": "",
        "note": "与影片 3 重复",
        "dry_run": True,
        "action": "clear_id",
        "duplicates_of": RIVER,
        "except_vod_ids": [3],
    }
    assert [[key for key, *_ in row["links"]] for row in others] == [["clear", "history"]] * 2


def test_a_video_that_changes_while_the_list_is_made_is_in_no_group_of_its_old_id(library, monkeypatch):
    library = library.renewed([named(n, f"影片{'甲乙丙丁戊'[n]}") for n in range(1, 4)])
    for vod_id in (1, 2, 3):
        linked(library, vod_id, RIVER)
    read = duplicates.members_of

    def relinked_in_the_meantime(*given):
        found = read(*given)
        return {**found, 3: replace(found[3], douban_id=WHALE, origin=LinkOrigin.LOCKED)} if 3 in found else found

    monkeypatch.setattr(duplicates, "members_of", relinked_in_the_meantime)
    assert {row["vod_id"]: row["size"] for row in subjects(library)} == {1: 2, 2: 2}


def test_the_batch_for_a_name_ignores_those_nobody_linked(library):
    library = library.renewed([named(n, "长河落日记事") for n in range(1, 6)])
    linked(library, 3, RIVER)
    linked(library, 4, WHALE)
    table = titles(library)
    _, config = opened(table, table.rows[0], "ignore_others")
    given = config["ops"]["select_and_record"]["config"]
    assert (given["action"], given["vod_ids"], given["dry_run"]) == ("ignore", [1, 2, 5], True)
    assert given["note"] == "与影片 3 重复"
    assert "except_vod_ids" not in given
    assert [(row["vod_id"], row["advice"]) for row in table.rows] == [
        (3, "保留"),
        (4, "已关联，请核对"),
        (1, "忽略"),
        (2, "忽略"),
        (5, "忽略"),
    ]


def test_where_all_are_linked_since_nothing_is_proposed(library):
    library = library.renewed([named(1, "长河落日记事"), named(2, "长河落日记事")])
    store_same_titles(library.services)
    linked(library, 1, RIVER)
    linked(library, 2, WHALE)
    [table] = duplicates_list(library.services).figures().tables
    kept = table.rows[0]
    assert [key for key, *_ in kept["links"]] == ["history"]
    assert kept["why"].endswith("其他影片都已关联条目：请在 CMS 中核对，不建议批量处理")


def test_locked_members_are_named_and_no_batch_is_about_them(library):
    library = library.renewed([named(n, f"影片{'甲乙丙丁戊'[n]}") for n in range(1, 4)])
    linked(library, 1, RIVER, douban_id_locked=True)
    linked(library, 2, RIVER, douban_id_locked=True)
    linked(library, 3, RIVER)

    def advised():
        kept, others = keeping(subjects(library))
        advice = {row["vod_id"]: (row["advice"], row["why"]) for row in others}
        return "clear_others" in [key for key, *_ in kept["links"]], advice

    assert advised() == (True, {2: ("已锁定", "要清除须先解锁"), 3: ("清除", None)})
    library.set_state(3, douban_id_locked=True)
    assert advised() == (False, dict.fromkeys((2, 3), ("已锁定", "要清除须先解锁")))


def test_the_link_of_a_large_group_is_not_too_long_and_says_so(library):
    size = links.BATCH + 30
    library = library.renewed([named(n, "长河落日记事") for n in range(1_000_000, 1_000_000 + size)])
    table = titles(library)
    assert (len(table.rows), table.rows[0]["size"]) == (size, size)
    assert f"超过 {links.BATCH} 部，一次只处理 {links.BATCH} 部" in table.rows[0]["why"]
    [given] = [given for key, *given in table.rows[0]["links"] if key == "ignore_others"]
    assert len(table.links["ignore_others"].filled(*given)) <= MOST_CHARACTERS
    _, config = opened(table, table.rows[0], "ignore_others")
    assert len(config["ops"]["select_and_record"]["config"]["vod_ids"]) == links.BATCH
    for vod_id in range(1_000_000, 1_000_000 + size):
        linked(library, vod_id, RIVER)
    kept, _ = keeping(subjects(library))
    assert "如此之多，多半是采集时写入的固定 ID" in kept["why"]


def test_the_list_says_how_each_is_linked_and_why_one_is_kept(library):
    library = library.renewed([named(1, "影片甲", vod_hits=1200), named(2, "影片乙")])
    linked(library, 1, RIVER, douban_id_source="cms")
    linked(library, 2, RIVER, douban_id_confidence=91.5)
    kept, [other] = keeping(subjects(library))
    assert kept["why"] == "豆瓣 ID 由自动匹配确认（其次：豆瓣 ID 为 CMS 原有）"
    assert [kept[key] for key in ("vod_id", "source", "score", "hits")] == [2, "自动匹配", 91.5, 0]
    assert [other[key] for key in ("source", "score", "hits")] == ["CMS 原有", None, 1200]
    assert f"{other['since']:%Y-%m-%d}" == "2026-02-19"
