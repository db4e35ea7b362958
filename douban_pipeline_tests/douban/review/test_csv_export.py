"""What is exported opens in Excel as it is meant, calculates nothing, and comes back as it went out."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.lists.list_table import unprotected
from douban_pipeline.douban.review.imports.csv_files import FIELDS, READING, export_csv, parse_csv
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.queue import QueueEntry
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    "=cmd|' /C calc'!A0",
]


def candidate(rank, title="长河落日记事", **given):
    values = {"year": 2021, "score": 88.0, "conflicts": {}, **given}
    return ReviewCandidate(
        verdict_id=77,
        rank=rank,
        douban_id=90_000_100 + rank,
        title=title,
        items=(),
        rejects=(),
        facts={},
        fetched=True,
        **values,
    )


def waiting(vod_id=4, **given):
    values = {
        "title": "长河落日记事",
        "year": "2021",
        "category": "动作片",
        "hits": 1200,
        "douban_id": 0,
        "status": "REVIEW",
        "reason": "得分未达自动确认线",
        "verdict_id": 77,
        "candidates": (),
        **given,
    }
    return QueueEntry(
        vod_id=vod_id,
        updated=datetime(2026, 3, 1, tzinfo=UTC),
        score=88.0,
        lead=3.0,
        value=0.5,
        doubt=0.5,
        franchise="长河落日记事",
        facts={},
        **values,
    )


def rows_in(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def filled(data, *decided):
    """Return the file with the cells of some rows filled in, as Excel would save it."""
    header, *rows = rows_in(data)
    for at, cells in decided:
        for head, text in cells.items():
            rows[at][header.index(head)] = text
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode("utf-8-sig")


def test_what_a_line_shows():
    second = candidate(2, "长河落日", year=None, score=70.25, conflicts={"YEAR_OFF": "年份差 1 年", "X": "另一项"})
    data = export_csv([waiting(candidates=(candidate(1), second), douban_id=90_000_777)])
    assert data.startswith(b"\xef\xbb\xbfvod_id,")
    header, row = rows_in(data)
    assert header == ["vod_id", *READING, *(names[0] for names in list(FIELDS.values())[1:])]
    assert row[:13] == [
        "4",
        "长河落日记事",
        "2021",
        "动作片",
        "1200",
        "90000777",
        "待审核",
        "得分未达自动确认线",
        "1. 长河落日记事（2021）90000101 88.0",
        "2. 长河落日（?）90000102 70.2 冲突：年份差 1 年；另一项",
        "",
        "",
        "",
    ]
    assert row[13:] == [*[""] * 9, "77"], "nothing is filled in beforehand"


def test_no_more_candidates_than_there_are_columns():
    header, row = rows_in(export_csv([waiting(candidates=tuple(candidate(rank) for rank in range(1, 9)))]))
    assert len(row) == len(header)
    assert [cell[:2] for cell in row[8:13]] == ["1.", "2.", "3.", "4.", "5."]


def test_an_empty_queue_is_a_header():
    assert len(rows_in(export_csv([]))) == 1
    assert parse_csv(export_csv([])).decisions == ()


@pytest.mark.parametrize("text", FORMULAS)
def test_no_title_becomes_a_formula(text):
    data = export_csv([waiting(title=text, year=text, category=text, reason=text, candidates=(candidate(1, text),))])
    _, row = rows_in(data)
    for cell in row:
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert unprotected(row[1]) == text.strip()


def test_filled_in_and_read_back():
    data = export_csv([waiting(4), waiting(5, verdict_id=0), waiting(6), waiting(7, title='甲,"乙"\n丙')])
    found = parse_csv(
        filled(
            data,
            (0, {"决定": "选择候选", "候选序号": "2", "锁定": "是", "备注": "导演一致"}),
            (1, {"决定": "指定豆瓣 ID", "豆瓣ID": "90,000,101.0", "接受冲突": "TRUE"}),
            (3, {"决定": "ignore", "天数": "30"}),
        )
    )
    assert found.decisions == (
        Decision(4, DecisionAction.choose, rank=2, lock=True, verdict_id=77, note="导演一致", where="第 2 行"),
        Decision(5, DecisionAction.set_id, 90_000_101, accept_conflicts=True, where="第 3 行"),
        Decision(7, DecisionAction.ignore, days=30, verdict_id=77, where="第 5 行"),
    )
    assert (found.lines, found.undecided, found.refused, found.ignored) == ((2, 3, 5), 1, (), ())


TITLES = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.lists(st.tuples(st.integers(1, 2**32 - 1), TITLES, TITLES, st.sampled_from(DecisionAction)), max_size=6))
def test_odd_titles_neither_break_lines_nor_get_lost(entries):
    data = export_csv(
        waiting(vod_id, title=title, reason=reason, candidates=(candidate(1, title),))
        for vod_id, title, reason, _ in entries
    )
    header, *rows = rows_in(data)
    assert data.decode("utf-8-sig").count("\r\n") == len(entries) + 1, "one line a video"
    shown = [" ".join(title.replace("\0", " ").split()) for _, title, _, _ in entries]
    assert [unprotected(row[header.index("片名")]) for row in rows] == shown
    found = parse_csv(filled(data, *((at, {"决定": entry[3].name}) for at, entry in enumerate(entries))))
    assert [(decision.vod_id, decision.action, decision.verdict_id) for decision in found.decisions] == [
        (vod_id, action, 77) for vod_id, _, _, action in entries
    ]
    assert found.lines == tuple(range(2, len(entries) + 2))
    assert found.refused == ()


def test_how_alike_the_titles_are_is_a_column():
    best = replace(candidate(1), items=({"name": "title", "points": 36.0, "weight": 45.0},))
    header, row = rows_in(export_csv([waiting(candidates=(best, candidate(2)))]))
    assert row[header.index("相似度")] == "0.80"
