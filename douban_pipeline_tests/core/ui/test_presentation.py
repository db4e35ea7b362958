"""Tables for people: what came from outside is text in a cell, whatever it holds."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.presentation import Markdown, counted, local_time, subject_link, table
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.matching import Status


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("甲|乙", "甲\\|乙"),
        ("甲\n乙\r\n\t丙", "甲 乙 丙"),
        ("`rm -rf`", "\\`rm -rf\\`"),
        ("*粗* _斜_", "\\*粗\\* \\_斜\\_"),
        ("[点我](javascript:alert(1))", "\\[点我\\](javascript:alert(1))"),
        ("\\|", "\\\\\\|"),
        ("", ""),
        (None, ""),
        (97.25, "97.2"),
        (0, "0"),
        (True, "True"),
        ("  007  ", "007"),
        ("1e5", "1e5"),
        (Markdown("**已经是**"), "**已经是**"),
    ],
)
def test_a_cell_is_text(value, shown):
    line = table([{"列": value, "尾": "|"}]).splitlines()[2]
    assert line.startswith(f"| {shown}")
    assert line.removeprefix(f"| {shown}").split() == ["|", "\\|", "|"]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_no_text_makes_a_row_or_a_column_more(rows):
    shown = table([{"a": first, "b": second} for first, second in rows])
    lines = shown.split("\n")
    assert len(lines) == len(rows) + 2
    for line in lines:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 3
        assert "<" not in line
        assert "`" not in bare.replace("\\`", "")


def test_a_long_table_says_what_it_leaves_out():
    rows = [{"n": n} for n in range(25)]
    shown = table(rows)
    assert shown.endswith("\n\n… and 5 more")
    assert shown.count("\n| ") == 20
    assert "more" not in table(rows, most=25)


def test_what_is_left_out_is_said_in_the_language_of_the_heads():
    assert table([{"影片": "Film", "": 1}] * 3, most=2).endswith("\n\n…… 另有 1 条")
    assert table([{"title": "影片"}] * 3, most=2).endswith("\n\n… and 1 more")
    assert table([]) == "—"
    assert table([], empty="nothing") == "nothing"


def test_links_and_times():
    assert subject_link(1_292_052) == "[1292052](https://movie.douban.com/subject/1292052/)"
    assert subject_link(0) == ""
    moment = datetime(2026, 3, 1, 20, 30, 59, tzinfo=UTC)
    assert local_time(moment, ZoneInfo("Asia/Shanghai")) == "2026-03-02\u00a004:30"
    assert local_time(None, ZoneInfo("Asia/Shanghai")) == ""


def test_counts_are_reported_by_kind() -> None:
    kinds = Counter([ReviewStatus.REVIEW, Status.NOT_FOUND, ReviewStatus.REVIEW])
    assert counted("videos judged", kinds) == "3 videos judged (2 REVIEW, 1 NOT_FOUND)"
    assert counted("videos judged", Counter()) == "0 videos judged"
