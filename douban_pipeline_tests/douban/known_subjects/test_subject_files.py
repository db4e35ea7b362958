"""Files of subjects: whatever columns and compression they come in, what is wrong with them, what is passed over."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pytest

from douban_pipeline.douban.known_subjects.subject_files import (
    FileReport,
    NamedSubject,
    SubjectFileError,
    subjects_in,
)

WANTED = NamedSubject(1_300_267, "乱世佳人", "Gone with the Wind", ("飘", "随风而逝"), 1939)


def read(path):
    report = FileReport()
    return list(subjects_in(path, report)), report


ROWS = [
    {
        "id": 1300267,
        "title": "乱世佳人",
        "original_title": "Gone with the Wind",
        "aka": ["飘", "随风而逝"],
        "year": 1939,
    },
    {
        "douban_id": "1300267",
        "name": "乱世佳人",
        "original_name": "Gone with the Wind",
        "alias": "飘 / 随风而逝",
        "year": "1939",
    },
    {
        "url": "https://movie.douban.com/subject/1300267/",
        "TITLE": " 乱世佳人 ",
        "orig_title": "Gone with the Wind",
        "aliases": "飘|随风而逝|乱世佳人",
        "pubdate": "1939-12-15(美国)",
        "type": "movie",
    },
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("ending", "opener"), [("", open), (".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)])
def test_json_lines_are_read_whatever_the_keys_are_called(tmp_path, row, ending, opener):
    path = tmp_path / f"subjects.jsonl{ending}"
    with opener(path, "wb") as file:
        file.write((json.dumps(row, ensure_ascii=False) + "\n\n").encode())
    assert read(path) == ([WANTED], FileReport(read=1))


@pytest.mark.parametrize(("ending", "sign"), [(".csv", ","), (".tsv", "\t")])
def test_tables_are_read_as_spreadsheets_write_them(tmp_path, ending, sign):
    path = tmp_path / f"subjects{ending}"
    rows = [
        ("Id", "Title", "Original_Title", "AKA", "Year"),
        ("1300267", "乱世佳人", "Gone with the Wind", "飘/随风而逝", "1939"),
    ]
    path.write_text("\r\n".join(sign.join(row) for row in rows), encoding="utf-8-sig")
    assert read(path)[0] == [WANTED]


def test_rows_that_are_no_subject_are_counted_with_their_lines_and_passed_over(tmp_path):
    path = tmp_path / "subjects.jsonl"
    lines = [
        "{",
        "[1]",
        '{"id": 7, "title": "x"}',
        '{"id": 1300267}',
        '{"id": 1300267, "title": "乱世佳人", "type": "TV"}',
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    subjects, report = read(path)
    assert subjects == [NamedSubject(1_300_267, "乱世佳人", series=True)]
    assert (report.read, report.refused) == (1, 4)
    assert [problem.split(":")[0] for problem in report.problems] == ["line 1", "line 2", "line 3", "line 4"]
    assert "'7' is no id" in report.problems[2]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("subjects.txt", b"", "give JSON lines"),
        ("subjects.json", b'[{"id": 1}]', "one JSON array"),
        ("subjects.csv", "编号,片名\n1,2\n".encode(), "no column for the id"),
        ("subjects.csv", b"id,x\n1,2\n", "no column for the title"),
        ("subjects.csv", b"", "no heads"),
        ("subjects.jsonl.gz", b"\x1f\x8bnot gzip", "cannot be read"),
        ("subjects.jsonl.xz", b"\xfd7zXZ\x00not xz", "cannot be read"),
        ("subjects.jsonl", b"\xff\xfe\xff", "cannot be read"),
    ],
)
def test_a_file_that_is_none_says_what_to_do(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SubjectFileError, match=words):
        read(path)


def test_a_file_that_is_cut_off_or_missing_says_so(tmp_path):
    path = tmp_path / "subjects.jsonl.gz"
    with pytest.raises(SubjectFileError, match="cannot be read"):
        read(path)
    path.write_bytes(gzip.compress(b'{"id": 1300267, "title": "x"}\n' * 5000)[:-40])
    with pytest.raises(SubjectFileError, match="cannot be read"):
        read(path)
