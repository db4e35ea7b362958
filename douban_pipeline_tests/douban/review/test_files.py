"""Files of decisions are read as they were meant, whatever saved them; what may mean something else is refused."""

from __future__ import annotations

import contextlib
import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from douban_pipeline.core.ui.lists.list_table import protected, unprotected
from douban_pipeline.douban.review.imports import files
from douban_pipeline.douban.review.imports.files import READING, FileError, export_csv, parse_decisions
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.queue import QueueEntry
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS

PLAIN = "vod_id,决定,豆瓣ID,备注\r\n4,指定豆瓣 ID,90000101,海报一致\r\n5,,,\r\n"
"""A decision and a line without one."""

HEADS = "vod_id,决定,豆瓣ID,候选序号,天数,锁定,备注"
SUBJECT = "https://movie.douban.com/subject/90000101/"
FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def refusal(text: str) -> str:
    """Return why the only row of a file is refused."""
    [why] = parse_decisions(text.encode()).refused.values()
    return why


def workbook(*rows: list[Any]) -> bytes:
    """Return a workbook whose first sheet has these rows; the second is somebody's own."""
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("别的").append(["vod_id", "决定"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


# --- files


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.encode("gb18030"),
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
        b"\xff\xfe" + PLAIN.replace(",", "\t").encode("utf-16-le"),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace("\r\n", "\n").encode(),
        PLAIN.replace("\r\n", "\r").rstrip().encode(),
        PLAIN.replace("vod_id", '"vod_id"').replace("4,", '"4",').encode(),
        workbook(["vod_id", "决定", "豆瓣ID", "备注"], [4.0, "set_id", 90_000_101, "海报一致"], [5]),
    ],
    ids=["utf-8", "marked", "gb18030", "utf-16-be", "Excel's Unicode", "semicolons", "unix", "mac", "quoted", "xlsx"],
)
def test_whatever_saved_it(data):
    found = parse_decisions(data, "a.csv")
    wanted = Decision(4, DecisionAction.set_id, 90_000_101, note="海报一致", where="a.csv 第 2 行")
    assert (found.decisions, found.refused, found.undecided, found.ignored) == ({2: wanted}, {}, 1, ())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "文件是空的"),
        (b"\xef\xbb\xbf \r\n ", "文件是空的"),
        (workbook(), "文件是空的"),
        (b"PK\x03\x04\x14\x00", "工作簿无法读取（BadZipFile），可能已损坏或有密码；请重新保存"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "请另存为 xlsx，或在 Excel 或 WPS 中另存为“CSV UTF-8（逗号分隔）”"),
        (b"vod_id,action\n4,ig\0nore\n", "编码无法识别"),
        (PLAIN.encode("utf-16-le"), "编码无法识别"),
        (b"vod_id,action\n4,\xff\xff\n", "编码无法识别"),
        (b'vod_id,action\n4,ignore\n5,"ignore\n6,ignore\n', "从第 3 行起无法分成单元格，多半是引号没有闭合"),
        ("片名,年份\n长河,2021\n".encode(), "第 1 行不是表头：没有一列的名字认得，读到的是“片名，年份”"),
        (b"\n\n4,ignore\n", "第 3 行不是表头：没有一列的名字认得，读到的是“4，ignore”"),
        (workbook(["甲", "乙"], [1, 2]), "没有一列的名字认得"),
        ("vod_id,备注\n4,\n".encode(), "第 1 行（表头）：缺少“决定”一列"),
        ("决定\nignore\n".encode(), "第 1 行（表头）：缺少“vod_id”一列"),
        ("vod_id,决定,锁订\n4,ignore,是\n".encode(), "没有“锁订”这一列；若是“锁定”请改名，否则请删去"),
        ("vod_id,决定,action\n4,ignore,lock_id\n".encode(), "“决定”一列有两个：第 2 列和第 3 列，请删去一列"),
    ],
)
def test_a_file_that_cannot_be_read_at_all(data, sentence):
    with pytest.raises(FileError) as caught:
        parse_decisions(data)
    [problem] = caught.value.problems
    assert sentence in problem


def test_a_file_that_is_too_large(monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 100)
    with pytest.raises(FileError, match="文件太大"):
        parse_decisions(workbook(["vod_id", "决定"], [4, "忽略"]))
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    with pytest.raises(FileError, match=r"文件太大：1\.7 MB，最多 1 MB；请分成几个文件"):
        parse_decisions(b"vod_id,action\n" + b"4,ignore\n" * 200_000)


@pytest.mark.parametrize(
    "header",
    [
        "vod_id,action,douban_id,rank,days,lock,accept_conflicts,override_cms_lock,note,verdict_id",
        "影片,决定,豆瓣ID,候选序号,天数,锁定,接受冲突,写入CMS锁定,备注,判定ID",
        "ｖｏｄ＿ｉｄ,Action,Douban-ID,Rank,Days, Lock ,acceptConflicts,写入CMS 锁定,Note,verdict id",
    ],
)
def test_columns_are_known_in_chinese_and_as_the_config_has_them(header):
    found = parse_decisions(f"导演,{header}\n甲,4,choose,,2,,是,1,是,好,77\n".encode())
    meant = {"lock": True, "accept_conflicts": True, "override_cms_lock": True, "note": "好", "verdict_id": 77}
    assert found.decisions == {2: Decision(4, DecisionAction.choose, rank=2, where="第 2 行", **meant)}
    assert found.ignored == ("导演",)


# --- rows


def test_rows_are_those_of_the_sheet():
    rows = [[], ["vod_id", "决定", "备注"], [4, "忽略", "两行\n备注"], []]
    rows += [[5, "忽咯"], [6], [7, "忽略", "一", "二"], [8, "忽略"]]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    for data in (workbook(*rows), text.getvalue().encode()):
        found = parse_decisions(data)
        assert {row: (each.vod_id, each.note) for row, each in found.decisions.items()} == {
            3: (4, "两行\n备注"),
            8: (8, ""),
        }
        assert list(found.refused) == [5, 7]
        assert found.undecided == 1, "an empty line is no line"


def test_rows_that_a_stray_pair_of_quotes_swallows_are_reported():
    found = parse_decisions('vod_id,决定,备注\n4,忽略,"开头\n5,忽略,中间\n6,忽略,结尾"\n7,忽略,\n'.encode())
    assert "引号不成对" in found.refused[2]
    assert [each.vod_id for each in found.decisions.values()] == [7]


def test_lines_without_a_decision_are_counted_unless_something_was_filled_in():
    text = "vod_id,决定,豆瓣ID,锁定,备注\n4,,,,\n5, ,,,以后再看\n6,,0,否,\n7,,90000101,是,\n"
    found = parse_decisions(text.encode())
    assert (found.undecided, found.decisions) == (3, {})
    assert found.refused == {5: "填写了豆瓣ID、锁定，但“决定”一格是空的：请填写决定，或清空这些格"}


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("4,忽略,,,30.0,,", {"days": 30}),
        ("4,忽略,,,1,TRUE,", {"days": 1, "lock": True}),
        ("4,忽略,,,,√,", {"lock": True}),
        ("4,忽略,,,,×,'=1+1", {"note": "=1+1"}),
        ("'4,忽略,,,,否,", {}),
        ("４.00,忽略,,,,,", {}),
        ('"=""4""",忽略,,,,,', {}),
        ("\ufeff 4\u00a0,忽略,,0,,,", {}),
        ('4,忽略,,,"36,500",,', {"days": 36_500}),
        (f"4,set_id,{SUBJECT}?from=x,,,,", {"action": DecisionAction.set_id, "douban_id": 90_000_101}),
        ('4,SET id,"90,000,101.0",,,,', {"action": DecisionAction.set_id, "douban_id": 90_000_101}),
    ],
)
def test_cells_as_people_and_excel_write_them(row, wanted):
    found = parse_decisions(f"{HEADS}\n{row}\n".encode())
    assert found.decisions == {2: Decision(**{"vod_id": 4, "action": DecisionAction.ignore, **wanted}, where="第 2 行")}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("四,忽略,,,,,", "vod_id“四”不是最多 15 位、不带正负号的整数：请重新填写"),
        (",忽略,,,,,", "vod_id 是空的：请填写影片的 vod_id"),
        ("4,set_id,1.23457E+07,,,,", "豆瓣ID“1.23457E+07”是科学计数法，Excel 已丢掉末尾的数字：请把这一列设为文本格式"),
        ("4,choose,,-1,,,", "候选序号“-1”不是"),
        ("4,ignore,,,12.5,,", "天数“12.5”不是"),
        ("4,ignore,,,1.000,,", "天数“1.000”不是"),
        ('4,ignore,,,"1,23",,', "天数“1,23”不是"),
        ("4,ignore,,,#N/A,,", "天数“#N/A”不是"),
        ("4,ignore,,,=1+1,,", "天数“=1+1”不是"),
        ("1234567890123456,ignore,,,,,", "不是最多 15 位"),
        (f"{'9' * 10_000},ignore,,,,,", f"vod_id“{'9' * 40}”不是"),
        ("4,忽略,,,,也许,", "锁定“也许”应为 是 或 否"),
        ("4,set_id,https://book.douban.com/subject/1292052/,,,,", "不是一个豆瓣条目的网址"),
        (f"4,set_id,{SUBJECT} {SUBJECT.replace('101', '102')},,,,", "不是一个豆瓣条目的网址"),
        ("4,comfirm_top1,,,,,", "决定“comfirm_top1”不是一种决定；是不是：确认首选候选（confirm_top1）"),
        ("4,删除,,,,,", "可以填：确认首选候选（confirm_top1）、选择候选（choose）"),
    ],
)
def test_what_may_mean_something_else_is_refused_with_column_value_and_remedy(row, sentence):
    assert sentence in refusal(f"{HEADS}\n{row}\n")


def test_all_that_is_wrong_with_a_row_is_reported_at_once():
    why = refusal(f"{HEADS}\n四,确认首选,1E5,-1,,也许,\n")
    assert [each[:3] for each in why.split("；")] == ["vod", "决定“", "是不是", "豆瓣I", "候选序", "锁定“"]


@pytest.mark.parametrize("action", DecisionAction)
def test_every_action_is_known_by_name_and_by_word(action):
    for text in (action.name, action.name.upper(), action.name.replace("_", " "), ACTIONS[action]):
        [decision] = parse_decisions(f"vod_id,决定\n4,{text}\n".encode()).decisions.values()
        assert decision.action is action


# --- what is written


def candidate(rank, title="长河落日记事", **given):
    values = {"year": 2021, "score": 88.0, "conflicts": {}, "items": (), **given}
    return ReviewCandidate(77, rank, 90_000_100 + rank, title, rejects=(), facts={}, fetched=True, **values)


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
    }
    rest = {"score": 88.0, "lead": 3.0, "value": 0.5, "doubt": 0.5, "franchise": "长河落日记事", "facts": {}}
    return QueueEntry(vod_id=vod_id, updated=datetime(2026, 3, 1, tzinfo=UTC), **{**values, **given}, **rest)


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
    best = candidate(1, items=({"name": "title", "points": 36.0, "weight": 45.0},))
    second = candidate(2, "长河落日", year=None, score=70.25, conflicts={"YEAR_OFF": "年份差 1 年", "X": "另一项"})
    further = [candidate(rank) for rank in range(3, 9)]
    data = export_csv([waiting(candidates=(best, second, *further), douban_id=90_000_777)])
    assert data.startswith(b"\xef\xbb\xbfvod_id,")
    header, row = rows_in(data)
    assert tuple(header[1:14]) == READING
    assert header[14:18] == ["决定", "豆瓣ID", "候选序号", "天数"]
    assert header[18:] == ["锁定", "接受冲突", "写入CMS锁定", "备注", "verdict_id"]
    assert row[:8] == ["4", "长河落日记事", "2021", "动作片", "1200", "90000777", "待审核", "得分未达自动确认线"]
    assert row[8] == "1. 长河落日记事（2021）90000101 88.0"
    assert row[9] == "2. 长河落日（?）90000102 70.2 冲突：年份差 1 年；另一项"
    assert [cell[:2] for cell in row[8:13]] == ["1.", "2.", "3.", "4.", "5."], "as many as there are columns"
    assert row[13:] == ["0.80", *[""] * 8, "77"], "nothing is filled in beforehand"


def test_filled_in_and_read_back():
    data = export_csv([waiting(4), waiting(5, verdict_id=0), waiting(6), waiting(7, title='甲,"乙"\n丙')])
    found = parse_decisions(
        filled(
            data,
            (0, {"决定": "选择候选", "候选序号": "2", "锁定": "是", "备注": "导演一致"}),
            (1, {"决定": "指定豆瓣 ID", "豆瓣ID": "90,000,101.0", "接受冲突": "TRUE"}),
            (3, {"决定": "ignore", "天数": "30"}),
        )
    )
    first = Decision(4, DecisionAction.choose, rank=2, lock=True, verdict_id=77, note="导演一致", where="第 2 行")
    assert found.decisions == {
        2: first,
        3: Decision(5, DecisionAction.set_id, 90_000_101, accept_conflicts=True, where="第 3 行"),
        5: Decision(7, DecisionAction.ignore, days=30, verdict_id=77, where="第 5 行"),
    }
    assert (found.undecided, found.refused, found.ignored) == (1, {}, ())
    assert parse_decisions(export_csv([])).decisions == {}


@pytest.mark.parametrize("text", [f"{sign}1+1" for sign in (*FORMULA_SIGNS, "\t=", "\r=", " =")])
def test_no_title_becomes_a_formula(text):
    data = export_csv([waiting(title=text, year=text, category=text, reason=text, candidates=(candidate(1, text),))])
    _, row = rows_in(data)
    assert not any(cell.lstrip().startswith(FORMULA_SIGNS) for cell in row)
    assert unprotected(row[1]) == text.strip()


# --- invariants


@given(st.text())
def test_what_is_protected_is_no_formula_and_comes_back(text):
    shown = protected(text)
    assert not shown.startswith((*FORMULA_SIGNS, "\t", "\r"))
    assert "\n" not in shown
    assert unprotected(shown) == " ".join(text.replace("\0", " ").split())


@given(st.binary(max_size=300))
def test_no_bytes_whatever_are_more_than_refused(data):
    for start in (b"", b"vod_id,action\n", b"\xef\xbb\xbfvod_id,action,note\r\n", b"\xff\xfe"):
        with contextlib.suppress(FileError):
            found = parse_decisions(start + data)
            assert all(row > 0 and why for row, why in found.refused.items())


# A line of a text that begins with a number may be a row that a quote swallowed.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Nd"]), max_size=20)


@given(
    st.lists(st.tuples(st.integers(1, 2**32 - 1), TEXTS, st.sampled_from(DecisionAction), TEXTS), max_size=6),
    st.sampled_from(["utf-8-sig", "gb18030", "utf-16"]),
)
def test_odd_titles_and_notes_neither_break_rows_nor_get_lost(entries, encoding):
    data = export_csv(
        waiting(vod_id, title=title, reason=title, candidates=(candidate(1, title),)) for vod_id, title, _, _ in entries
    )
    assert data.decode("utf-8-sig").count("\r\n") == len(entries) + 1, "one line a video"
    cells = ((at, {"决定": each[2].name, "备注": each[3]}) for at, each in enumerate(entries))
    found = parse_decisions(filled(data, *cells).decode("utf-8-sig").encode(encoding))
    read = [(each.vod_id, each.action, each.verdict_id, each.note) for each in found.decisions.values()]
    notes = [unprotected(each[3].replace("\r\n", "\n").replace("\r", "\n")) for each in entries]
    assert read == [(each[0], each[2], 77, note) for each, note in zip(entries, notes, strict=True)]
    assert (list(found.decisions), found.refused) == (list(range(2, len(entries) + 2)), {})
