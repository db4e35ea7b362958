"""Every list over all its rows: what is on its pages and in the CSV file; filters, orders, pages."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import sqlalchemy as sa
import yaml

from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.reports.lists import catalogue, spec, verdict_list
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import ListOrder, rows_of
from douban_pipeline_tests.douban.reports.planting import (
    HOSTILE,
    OF_ASSETS,
    change,
    decision,
    linked,
    listed,
    publish_asset,
    shown_page,
    task,
    verdict,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video
from douban_pipeline_tests.harness.fixtures.locations import fits_schema

SHARED, OTHER = 90_000_101, 90_000_102
COUNT = 23


@pytest.fixture
def populated(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library in which every list has rows, read in small steps; everything from outside is hostile."""
    monkeypatch.setattr(spec, "STEP", 4)
    monkeypatch.setattr(catalogue, "SIZE", 5)
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
    key = wanted.key if wanted.key.endswith("_id") and wanted.key != "douban_id" else "vod_id"
    return [row[key] for row in rows_of(library.services, wanted, asked or ListFilter(), ListOrder(**order))]


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
    assert keys_of(populated, "missing", ListFilter(chosen={"status": ["REVIEW"]})) == keys_of(populated, "review")
    assert sorted(keys_of(populated, "missing", ListFilter(chosen={"status": ["NOT_FOUND"]}))) == [11, 12]
    unchecked = keys_of(populated, "missing", ListFilter(chosen={"status": ["UNCHECKED"]}))
    assert sorted(unchecked) == [8, 9, 10, *range(13, COUNT + 1)]
    assert len(keys_of(populated, "missing", ListFilter(chosen={"status": ["UNCHECKED", "NOT_FOUND"]}))) == COUNT - 7
    wanted = LISTS["missing"](populated.services)
    statuses = {row["vod_id"]: row["status"] for row in rows_of(populated.services, wanted, ListFilter())}
    assert (statuses[5], statuses[11], statuses[13]) == ("待审核", "未找到", "未检查")
    assert keys_of(populated, "locked", ListFilter(chosen={"source": ["person"]})) == []
    assert keys_of(populated, "missing", ListFilter(text="12")) == [12]
    assert keys_of(populated, "missing", ListFilter(text=f"{HOSTILE}2", categories=[6])) != []
    assert keys_of(populated, "missing", ListFilter(text="100%_无")) == []
    assert sorted(keys_of(populated, "duplicates", ListFilter(text=str(SHARED)))) == [1, 2, 3]
    assert len(keys_of(populated, "log", ListFilter(chosen={"operator": ["person"]}))) == 3
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
def test_a_priority_is_said_in_words_and_rows_are_ordered_by_its_number(
    populated: Library, stage: str, task_type: str, priority: int, word: str
) -> None:
    table = populated.tables.task
    populated.execute(sa.update(table).values(stage=stage, task_type=task_type, priority=priority))
    assert {row["priority"] for row in listed(populated.services, "tasks")} == {word}
    page = shown_page(populated.services, "tasks", sort="priority up")
    assert not [cell for row in rows_on(page) for cell in re.findall(r"<div>(.*?)</div>", row) if str(priority) == cell]


def walked(library: Library, name: str, **asked: str) -> Iterator[str]:
    """Yield the pages of a list, one after the other."""
    while True:
        page = shown_page(library.services, name, **asked)
        yield page
        following = re.search(r'<a href="\?([^"]*)" rel="next">', page)
        if following is None:
            return
        asked = dict(parse_qsl(html.unescape(following[1]), keep_blank_values=True))


def rows_on(page: str) -> list[str]:
    section = page.partition('<section id="rows">')[2].partition("</section>")[0]
    return re.findall(r"<tr(?: data-id=\"\d+\")?>(.*?)</tr>", section.partition("<tbody>")[2], re.DOTALL)


@pytest.mark.parametrize("name", LISTS)
def test_pages_have_every_row_once_in_every_order_and_nothing_is_markup(name: str, populated: Library) -> None:
    before = populated.all_bytes()
    count = len(keys_of(populated, name))
    assert count
    orders = [f"{sort}{way}" for sort in LISTS[name](populated.services).rows.sorts for way in ("", " up")]
    for order in orders:
        pages = list(walked(populated, name, sort=order))
        assert len(pages) == -(-count // 5)
        rows = [row for page in pages for row in rows_on(page)]
        assert (len(rows), len(set(rows))) == (count, count)
        assert not re.search(r'<img (?!class="poster")', "".join(pages))
        assert all(f"共 {count} 行" in page for page in pages)
    assert populated.all_bytes() == before


def test_a_page_has_what_its_form_asks_for_and_goes_on_with_it(populated: Library) -> None:
    asked = {"status": "UNCHECKED", "category": "6", "q": "甲", "since": "2020-01-01", "until": "2030-01-01"}
    pages = list(walked(populated, "missing", **asked, sort="hits"))
    assert sum(len(rows_on(page)) for page in pages) == COUNT - 9
    for page in pages:
        assert '<option value="UNCHECKED" selected>未检查</option>' in page
        assert '<option value="hits" selected>播放 ▼</option>' in page
        assert 'name="since" value="2020-01-01"' in page
    assert 'href="?q=%E7%94%B2' in pages[1], "the way back to the first page"


@pytest.mark.parametrize(
    "asked",
    [
        {"after": "x"},
        {"after": "5~2026-13-99"},
        {"after": f"{'9' * 40}~1"},
        {"sort": "beauty", "status": "none", "category": "x", "since": "yesterday", "until": "0001-01-01"},
        {"q": ""},
    ],
)
def test_what_is_not_understood_restricts_nothing(asked: dict[str, str], populated: Library) -> None:
    assert rows_on(shown_page(populated.services, "missing", **asked)) == rows_on(
        shown_page(populated.services, "missing")
    )


@pytest.mark.parametrize("name", sorted({name for names in OF_ASSETS.values() for name in names}))
def test_the_csv_file_has_all_rows_and_no_formulas(name: str, populated: Library) -> None:
    [asset] = [asset for asset, names in OF_ASSETS.items() if name in names]
    assert publish_asset(populated.services, asset)[f"{name}_rows"] == len(keys_of(populated, name))
    path = populated.settings.home / "reports" / f"list_{name}.csv"
    assert path.read_bytes().startswith(b"\xef\xbb\xbf"), "a mark for Excel"
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.reader(file))
    place = table[0].index("影片 ID")
    assert [int(line[place]) for line in table[1:]] == [row["vod_id"] for row in listed(populated.services, name)]
    assert not [cell for line in table for cell in line if cell[:1] in "=+@" and cell]
    assert f'href="../lists/{name}.csv"' in shown_page(populated.services, name)


def test_links_of_rows_and_batches_open_what_there_is(populated: Library) -> None:
    repository = build_defs(settings=populated.settings).get_repository_def()
    seen = set()
    for name in LISTS:
        wanted = LISTS[name](populated.services)
        batches = [link.address.replace("{ids}", "1%2C%202") for link in wanted.batch]
        addresses = [*batches]
        for row in listed(populated.services, name):
            addresses += [wanted.links[key].filled(*given) for key, *given in row["links"]]
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


def test_an_empty_library_has_empty_lists(library: Library) -> None:
    for name in LISTS:
        page = shown_page(library.services, name)
        assert rows_on(page) == []
        assert "没有" in page


def test_a_dry_run_shows_what_a_verdict_would_write(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library = library.renewed([video(1, vod_name="旧名"), video(2)], **{**library.options, "dry_run": True})
    verdict(library, 1, (OTHER, 60.0), (SHARED, 91.0), status="CONFIRMED")
    verdict(library, 2, (OTHER, 71.0))
    record = SimpleNamespace(douban_id=SHARED)
    plan = SimpleNamespace(old={"vod_score": "0.0"}, new={"vod_score": "8.1"})
    monkeypatch.setattr(verdict_list, "judged_answer", lambda services, row: (record, None))
    monkeypatch.setattr(verdict_list, "plan_fields", lambda *given, **more: plan)
    found = {row["vod_id"]: row for row in listed(library.services, "verdicts")}
    assert "豆瓣 ID：" in found[1]["planned"]
    assert found[1]["planned"].endswith("0.0 → 8.1")
    assert (found[2]["planned"], found[2]["verdict"], found[2]["douban_id"]) == (None, "待审核", OTHER)
    live = library.renewed([video(1)], **{**library.options, "dry_run": False})
    verdict(live, 1, (SHARED, 91.0), status="CONFIRMED")
    assert [row["planned"] for row in listed(live.services, "verdicts")] == [None]


@pytest.mark.parametrize("name", ["tasks", "decisions", "log"])
def test_records_have_the_posters_of_their_videos(name: str, populated: Library) -> None:
    populated.set_cms(5, vod_pic="upload/5.jpg")
    populated.set_cms(3, vod_pic="upload/3.jpg")
    populated.options = {**populated.options, "site_url": "https://site.example.org/"}
    rows = [*rows_of(populated.services, LISTS[name](populated.services), ListFilter())]
    wanted = {5: "https://site.example.org/upload/5.jpg", 3: "https://site.example.org/upload/3.jpg"}
    assert rows
    assert {row["vod_id"]: row["picture"] for row in rows} == {row["vod_id"]: wanted.get(row["vod_id"]) for row in rows}
