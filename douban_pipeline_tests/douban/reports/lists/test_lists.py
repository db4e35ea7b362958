"""Every list over all its rows: what is on the page, in its pieces and in the CSV file; filters, orders, pages."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
import yaml

from douban_pipeline.core.ui.lists import list_files
from douban_pipeline.core.ui.lists.list_page import ColumnKind
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.reports.lists import keyset
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.named_list import rows_of
from douban_pipeline_tests.douban.reports.planting import (
    HOSTILE,
    change,
    decision,
    linked,
    task,
    verdict,
    written,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video
from douban_pipeline_tests.harness.fixtures.locations import fits_schema

SHARED, OTHER = 90_000_101, 90_000_102
COUNT = 23


@pytest.fixture
def populated(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library in which every list has rows, read in small steps; everything from outside is hostile."""
    monkeypatch.setattr(keyset, "STEP", 4)
    monkeypatch.setattr(list_files, "PIECE", 5)
    rows = [
        video(n, vod_name=f"{HOSTILE}{n}", vod_area=HOSTILE, vod_time=days_ago(n % 7), vod_hits=n % 5)
        for n in range(1, COUNT + 1)
    ]
    library = library.renewed(rows, **{"ui_url": "https://dagster.example.org/", **library.options})
    now = library.clock.now()
    for vod_id in (1, 2, 3, 4):
        linked(library, vod_id, SHARED if vod_id < 4 else OTHER)
    library.set_state(3, douban_id_locked=True, douban_id_lock_time=now, intro_locked=True)
    library.set_cms(3, vod_douban_id=OTHER)
    decision(library, 3, "lock_id", note=HOSTILE, reviewer="小李")
    for vod_id in (5, 6, 7):
        library.set_state(vod_id, douban_review_status="REVIEW", douban_review_reason=HOSTILE)
        verdict(library, vod_id, (SHARED, 71.0 + vod_id), (OTHER, 60.0))
    library.set_state(8, intro_ai_fail_count=2, intro_ai_last_fail_at=now, intro_ai_last_fail_reason=HOSTILE)
    library.set_state(9, intro_locked=True, intro_ai_source="model/x", intro_ai_last_at=now)
    searched = {"douban_last_sync_at": now, "douban_review_reason": HOSTILE}
    for vod_id in (11, 12):
        library.set_state(vod_id, **searched)
    for vod_id in (5, 8, 21):
        task(library, vod_id, "SYNC_DOUBAN", "sync", "PENDING", last_error=HOSTILE)
        change(library, vod_id, "sync", reason=HOSTILE, operator=HOSTILE[:60])
    return library


def keys_of(library: Library, name: str, asked: ListFilter | None = None, **order: Any) -> list[int]:
    wanted = LISTS[name](library.services)
    key = "vod_id" if name not in ("tasks", "decisions", "log") else wanted.page.key
    return [row[key] for row in rows_of(library.services, wanted, asked or ListFilter(), **order)]


EXPECTED: Mapping[str, Sequence[int]] = {
    "review": (5, 6, 7),
    "missing": tuple(range(5, COUNT + 1)),
    "duplicates": (1, 2, 3),
    "locked": (3,),
    "intros": (3, 8, 9),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_list_has_all_its_videos(name: str, populated: Library) -> None:
    assert sorted(keys_of(populated, name)) == sorted(EXPECTED[name])


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("ascending", [False, True])
def test_every_order_has_every_row_once(name: str, ascending: bool, populated: Library) -> None:
    everything = sorted(keys_of(populated, name))
    assert everything
    for sort in LISTS[name](populated.services).rows.sorts:
        assert sorted(keys_of(populated, name, sort=sort, ascending=ascending)) == everything, sort


def test_orders_are_the_columns_and_the_other_way_round(populated: Library) -> None:
    newest = keys_of(populated, "missing")
    times = [populated.row(vod_id)["vod_time"] for vod_id in newest]
    assert times == sorted(times, reverse=True)
    assert keys_of(populated, "missing", sort="updated", ascending=True) == newest[::-1]
    hits = [populated.row(vod_id)["vod_hits"] for vod_id in keys_of(populated, "missing", sort="hits")]
    assert hits == sorted(hits, reverse=True)


def test_rows_without_what_they_are_ordered_by_come_last_and_none_is_lost(populated: Library) -> None:
    by_written = keys_of(populated, "intros", sort="written")
    assert by_written[0] == 9
    assert sorted(by_written) == [3, 8, 9]
    assert keys_of(populated, "intros", sort="written", ascending=True) == by_written[::-1]


def test_filters_restrict_and_add_up(populated: Library) -> None:
    populated.set_cms(10, type_id=7)
    populated.set_state(10, type_id=7)
    assert keys_of(populated, "missing", ListFilter(categories=[7])) == [10]
    recent = keys_of(populated, "missing", ListFilter(since=START - timedelta(days=2, hours=1)))
    assert sorted(recent) == [n for n in range(5, COUNT + 1) if n % 7 <= 2]
    early = keys_of(populated, "missing", ListFilter(until=START - timedelta(days=2, hours=1)))
    assert sorted([*recent, *early]) == list(EXPECTED["missing"])
    assert keys_of(populated, "missing", ListFilter(sources=["REVIEW"])) == keys_of(populated, "review")
    assert sorted(keys_of(populated, "missing", ListFilter(sources=["NOT_FOUND"]))) == [11, 12]
    unchecked = keys_of(populated, "missing", ListFilter(sources=["UNCHECKED"]))
    assert sorted(unchecked) == [8, 9, 10, *range(13, COUNT + 1)]
    assert len(keys_of(populated, "missing", ListFilter(sources=["UNCHECKED", "NOT_FOUND"]))) == COUNT - 7
    wanted = LISTS["missing"](populated.services)
    statuses = {row["vod_id"]: row["status"] for row in rows_of(populated.services, wanted, ListFilter())}
    assert (statuses[5], statuses[11], statuses[13]) == ("待审核", "未找到", "未检查")
    assert keys_of(populated, "locked", ListFilter(sources=["person"])) == []
    assert keys_of(populated, "missing", ListFilter(text="12")) == [12]
    assert keys_of(populated, "missing", ListFilter(text=f"{HOSTILE}2", categories=[6])) != []
    assert keys_of(populated, "missing", ListFilter(text="100%_无")) == []
    assert sorted(keys_of(populated, "duplicates", ListFilter(text=str(SHARED)))) == [1, 2, 3]
    assert len(keys_of(populated, "log", ListFilter(sources=[HOSTILE[:60]]))) == 3
    assert len(keys_of(populated, "tasks", ListFilter(text="21"))) == 1


def test_tasks_are_found_by_what_is_shown_of_them(populated: Library) -> None:
    every = LISTS["tasks"](populated.services)
    shown = {row["task_id"]: row for row in rows_of(populated.services, every, ListFilter())}
    task_id = max(shown)
    table = populated.tables.task
    said = {"last_error": "douban: no connection (ConnectError)", "task_type": "RECHECK", "priority": 900}
    populated.execute(sa.update(table).where(table.c.task_id == task_id).values(**said))
    [row] = [row for row in rows_of(populated.services, every, ListFilter()) if row["task_id"] == task_id]
    assert (row["error"], row["kind"], row["priority"]) == ("豆瓣：连接不上", "复查", "自动复查")
    assert keys_of(populated, "tasks", ListFilter(text="连接不上")) == [task_id]
    assert keys_of(populated, "tasks", ListFilter(text="复查")) == [task_id]
    assert keys_of(populated, "tasks", ListFilter(text="没有按时应答")) == []
    assert len(keys_of(populated, "decisions", ListFilter(text="等待执行"))) == sum(
        row["state"] == "等待执行"
        for row in rows_of(populated.services, LISTS["decisions"](populated.services), ListFilter())
    )


@pytest.mark.parametrize(
    ("stage", "task_type", "priority", "word"),
    [
        ("search", "MATCH_DOUBAN_ID", 50, "新片：30 天内更新"),
        ("search", "MATCH_DOUBAN_ID", 40, "定期：180 天内更新"),
        ("sync", "SYNC_DOUBAN", 10, "定期：很久没有更新的影片"),
        ("sync", "SYNC_DOUBAN", 7, "定期"),
        ("search", "MATCH_DOUBAN_ID", 900, "人工提前"),
        ("search", "RECHECK", 900, "自动复查"),
        ("sync", "SYNC_DOUBAN", 1000, "人工决定"),
        ("intro", "AI_INTRO", 29_923_306, "刚同步的在前"),
        ("intro", "AI_INTRO", 2**30, "人工决定"),
    ],
)
def test_a_priority_is_said_in_words_and_is_what_the_column_is_sorted_by(
    populated: Library, stage: str, task_type: str, priority: int, word: str
) -> None:
    table = populated.tables.task
    populated.execute(sa.update(table).values(stage=stage, task_type=task_type, priority=priority))
    written(populated.services, "tasks")
    given, rows, csv, page = pieces_of(populated, "tasks")
    places = {column["key"]: place for place, column in enumerate(given["columns"])}
    column = given["columns"][places["priority"]]
    assert [column["labels"][row[places["priority"]]] for row in rows] == [word] * len(rows)
    assert {row[places[column["by"]]] for row in rows} == {priority}
    assert word in csv[1]
    assert "29,923,306" not in page


def pieces_of(library: Library, name: str) -> tuple[dict[str, Any], list[list[Any]], list[list[str]], str]:
    """Return what a published list holds: what its page says of it, the rows of all pieces, the CSV file, the page."""
    reports = library.settings.home / "reports"
    page = (reports / f"list_{name}.html").read_text("utf-8")
    given = json.loads(re.search(r'id="list-data">(.*?)</script>', page)[1])
    rows: list[list[Any]] = []
    for number in range(-(-given["count"] // given["piece"])):
        script = (reports / given["files"].replace("{}", f"{number:04d}")).read_text("utf-8")
        head, _, body = script.partition(f'listPiece("list_{name}",{number},')
        assert head == ""
        rows += json.loads(body.removesuffix(");\n"))
    with (reports / f"list_{name}.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.reader(file))
    return given, rows, table, page


@pytest.mark.parametrize("name", LISTS)
def test_page_pieces_and_csv_have_the_same_rows_and_nothing_is_markup_or_formula(name: str, populated: Library) -> None:
    before = populated.all_bytes()
    count = written(populated.services, name).rows
    given, rows, table, page = pieces_of(populated, name)
    assert (given["count"], len(rows), len(table) - 1) == (count, count, count)
    assert count == len(keys_of(populated, name))
    assert not re.search(r'<img (?!class="poster")', page)
    section = page.partition('<section id="rows">')[2].partition("</section>")[0]
    assert section.count("<tr>") == count + 1, "the first rows are there without scripts"
    place = [column["key"] for column in given["columns"]].index("vod_id")
    assert [row[place] for row in rows] == [int(line[1]) for line in table[1:]]
    assert not [cell for line in table for cell in line if cell[:1] in "=+@" and cell]
    assert populated.all_bytes() == before


def test_links_of_rows_and_batches_open_what_there_is(populated: Library) -> None:
    repository = build_defs(settings=populated.settings).get_repository_def()
    seen = set()
    for name in LISTS:
        written(populated.services, name)
        given, rows, _, _ = pieces_of(populated, name)
        kinds = [column["kind"] for column in given["columns"]]
        place = kinds.index(ColumnKind.LINKS)
        batches = [address.replace("{ids}", "1%2C%202") for _, address in given["batch"]]
        addresses = [*batches]
        for row in rows:
            for key, *parts in row[place]:
                address = given["links"][key][1]
                for number, part in enumerate(parts):
                    address = address.replace(f"{{{number}}}", str(part))
                addresses.append(address)
        for address in addresses:
            assert "{" not in unquote(address).partition("config=")[0]
            if address.startswith("/locations/"):
                path, _, config = address.partition("/setup?config=")
                found = yaml.safe_load(unquote(config))
                assert fits_schema(repository.get_job(path.split("/")[-2]), found), address
                if address in batches:
                    [op] = found["ops"].values()
                    assert [1, 2] in op["config"].values(), "the batch is about the selected rows"
                seen.add(path.split("/")[-2])
    assert seen >= {"record_decisions", "record_batch_decisions", "queue_matches", "settle_duplicates", "redo_intros"}


def test_a_choice_of_the_review_list_names_what_was_seen(populated: Library) -> None:
    wanted = LISTS["review"](populated.services)
    row = next(row for row in rows_of(populated.services, wanted, ListFilter()) if row["vod_id"] == 5)
    verdict_id = populated.query("select max(verdict_id) as it from mac_douban_verdict where vod_id = 5")[0]["it"]
    assert ("choose", 5, SHARED, verdict_id) in row["links"]
    assert (row["best_id"], row["score"], row["second"]) == (SHARED, 76.0, f"条目{OTHER}（2020）60.0")


def test_the_members_of_a_group_come_together_and_say_who_is_kept(populated: Library) -> None:
    linked(populated, 22, OTHER)
    wanted = LISTS["duplicates"](populated.services)
    found = [
        (row["douban_id"], row["vod_id"], row["advice"]) for row in rows_of(populated.services, wanted, ListFilter())
    ]
    assert [subject for subject, _, _ in found] == [SHARED] * 3 + [OTHER] * 2
    assert [advice for _, _, advice in found].count("保留") == 2
    assert (SHARED, 3, "保留") in found, "a locked id is the surest"


def test_a_second_writing_replaces_the_first_and_clears_away_those_before(populated: Library) -> None:
    folder = populated.settings.home / "reports" / "list_missing.rows"
    for _ in range(3):
        written(populated.services, "missing")
        populated.clock.advance(minutes=1)  # type: ignore[attr-defined]
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 2
    assert pieces_of(populated, "missing")[0]["files"].split("/")[1] in kept


def test_an_empty_library_has_empty_lists(library: Library) -> None:
    for name in LISTS:
        written(library.services, name)
        given, rows, table, page = pieces_of(library, name)
        assert (given["count"], rows, len(table)) == (0, [], 1)
        assert "没有" in page


@pytest.mark.parametrize("name", ["tasks", "decisions", "log"])
def test_records_have_the_posters_of_their_videos(name: str, populated: Library) -> None:
    populated.set_cms(5, vod_pic="upload/5.jpg")
    populated.set_cms(3, vod_pic="upload/3.jpg")
    populated.options = {**populated.options, "site_url": "https://site.example.org/"}
    rows = [*rows_of(populated.services, LISTS[name](populated.services), ListFilter())]
    wanted = {5: "https://site.example.org/upload/5.jpg", 3: "https://site.example.org/upload/3.jpg"}
    assert rows
    assert {row["vod_id"]: row["picture"] for row in rows} == {row["vod_id"]: wanted.get(row["vod_id"]) for row in rows}
