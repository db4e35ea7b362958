"""The lists by the command line: pages, filters, CSV, and what is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.fixtures.calling import Caller, caller  # noqa: F401 (a fixture)
from douban_pipeline_tests.harness.fixtures.full_disk import largest_file
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, days_ago, video


@pytest.fixture
def library(sqlite_url: str) -> Library:
    """A library whose videos have no id, the newest of the largest number."""
    rows = [
        video(n, vod_name=f"=影片{n}号", type_id=6 if n % 2 else 7, vod_time=days_ago(40 - n), vod_hits=100 - n)
        for n in range(1, 31)
    ]
    return build_library(sqlite_url, rows)


def listed(call: Caller, library: Library, *arguments: str) -> str:
    told = call("list", *arguments, DOUBAN_PIPELINE_DATABASE_URL=library.url)
    assert told.status == 0, told.said
    return told.said


def ids(said: str) -> list[int]:
    """Return the ids of the CSV that was printed."""
    return [int(row["影片 ID"]) for row in csv.DictReader(io.StringIO(said))]


def test_a_page_says_whether_there_are_more(call: Caller, library: Library) -> None:
    first = listed(call, library, "missing", "--size", "20")
    assert "=影片30号" in first
    assert "=影片10号" not in first
    assert "page 1, 20 rows; --page 2 has more" in first
    second = listed(call, library, "missing", "--size", "20", "--page", "2")
    assert "=影片10号" in second
    assert "page 2, 10 rows\n" in second


def test_all_rows_as_csv_in_the_order_and_of_the_filters_asked_for(call: Caller, library: Library) -> None:
    def found(*arguments: str) -> list[int]:
        return ids(listed(call, library, "missing", "--csv", "-", *arguments))

    assert found() == list(range(30, 0, -1))
    assert found("--sort", "hits") == list(range(1, 31))
    assert found("--sort", "id", "--ascending") == list(range(1, 31))
    assert found("--category", "7") == list(range(30, 0, -2))
    assert found("--category", "7", "--category", "6") == list(range(30, 0, -1))
    assert found("--text", "影片12号") == [12]
    assert found("--source", "REVIEW") == []
    assert found("--since", "2026-02-15") == found("--since", "2026-02-15 00:00")
    since = found("--since", "2026-02-15")
    assert since == list(range(30, 30 - len(since), -1))
    assert since + found("--until", "2026-02-15") == list(range(30, 0, -1))


def test_a_csv_file_has_a_mark_for_excel_and_no_formulas(call: Caller, library: Library, tmp_path: Path) -> None:
    path = tmp_path / "missing.csv"
    assert "30 rows" in listed(call, library, "missing", "--csv", str(path))
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert {row["影片"][:2] for row in rows} == {"'="}
    assert listed(call, library, "locked", "--csv", "-").count("\n") == 1, "an empty list has its heads"


def test_a_csv_file_that_cannot_be_written_whole_leaves_the_one_before(
    call: Caller, library: Library, tmp_path: Path
) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    path = folder / "missing.csv"
    path.write_text("before")
    with largest_file(1000):
        told = call("list", "missing", "--csv", str(path), DOUBAN_PIPELINE_DATABASE_URL=library.url)
    assert (told.status, "File too large" in told.said) == (2, True)
    assert path.read_text() == "before"
    assert [each.name for each in folder.iterdir()] == ["missing.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing",), "there is no list 'nothing'"),
        (("missing", "--sort", "beauty"), "can be ordered by updated, hits, id"),
        (("missing", "--since", "yesterday"), "--since"),
        (("missing", "--since", "99999999999d"), "--since"),
        (("missing", "--csv", "nowhere/missing.csv"), "error: nowhere/missing.csv: No such file or directory"),
    ],
)
def test_what_is_wrong_is_told(arguments: tuple[str, ...], told: str, call: Caller, library: Library) -> None:
    called = call("list", *arguments, DOUBAN_PIPELINE_DATABASE_URL=library.url, COLUMNS="200", TERM="dumb")
    assert called.status == 2
    assert told in " ".join(called.said.replace("│", " ").split())
