"""A CSV file is read as it was meant, whatever program saved it; what may mean something else is refused."""

from __future__ import annotations

import contextlib
import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.lists.list_table import protected, unprotected
from douban_pipeline.douban.review.imports import csv_files
from douban_pipeline.douban.review.imports.csv_files import CsvError, parse_csv
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS

PLAIN = "vod_id,决定,豆瓣ID,备注\r\n4,指定豆瓣 ID,90000101,海报一致\r\n5,,,\r\n"
"""A decision and a line without one."""

SAVE_AS = "请在 Excel 或 WPS 中另存为“CSV UTF-8（逗号分隔）”"

WISH = Decision(4, DecisionAction.set_id, 90_000_101, note="海报一致", where="第 2 行")


def parse(text, encoding="utf-8"):
    return parse_csv(text.encode(encoding))


def refused(text):
    return parse(text).refused


def problems(data):
    with pytest.raises(CsvError) as caught:
        parse_csv(data)
    return caught.value.problems


# --- encodings and separators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        PLAIN.encode("utf-8-sig"),
        b"\xff\xfe" + PLAIN.encode("utf-16-le"),
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
        PLAIN.encode("gb18030"),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", "\t").encode("gb18030"),
        b"\xff\xfe" + PLAIN.replace(",", "\t").encode("utf-16-le"),
        PLAIN.replace("\r\n", "\n").encode(),
        PLAIN.replace("\r\n", "\r").encode(),
        PLAIN.rstrip().encode(),
        PLAIN.replace("vod_id", '"vod_id"').replace("4,", '"4",').encode(),
    ],
    ids=[
        "utf-8",
        "utf-8 with mark",
        "utf-16-le",
        "utf-16-be",
        "gb18030",
        "semicolons",
        "tabs of an old Excel",
        "Excel's Unicode text",
        "unix",
        "old mac",
        "no last line end",
        "quoted",
    ],
)
def test_whatever_saved_it(data):
    found = parse_csv(data)
    assert (found.decisions, found.refused, found.undecided, found.ignored) == ((WISH,), (), 1, ())


def test_excels_own_line_about_the_separator_is_understood():
    found = parse("sep=;\nvod_id;决定\n4;锁定豆瓣 ID\n")
    assert found.decisions == (Decision(4, DecisionAction.lock_id, where="第 3 行"),)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "文件是空的"),
        (b"\xef\xbb\xbf \r\n ", "文件是空的"),
        (b"PK\x03\x04\x14\x00", "工作簿无法读取（BadZipFile），可能已损坏或有密码；请重新保存"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1",
            f"这是 Excel 97–2003 的工作簿（xls）或有密码的工作簿：请另存为 xlsx，或{SAVE_AS.removeprefix('请')}",
        ),
        (
            b"vod_id,action\n4,ig\0nore\n",
            f"第 2 行含有空字符（NUL）：这不是纯文本，或是没有标记的 UTF-16；{SAVE_AS}",
        ),
        (
            PLAIN.encode("utf-16-le"),
            f"第 1 行含有空字符（NUL）：这不是纯文本，或是没有标记的 UTF-16；{SAVE_AS}",
        ),
        (
            b"\xef\xbb\xbfvod_id,action\n4,ignore\n5,\xff\n",
            f"第 3 行的编码无法识别（不是完整的 UTF-8 文本）：{SAVE_AS}",
        ),
        (
            b"vod_id,action\n4,\xff\xff\n",
            f"第 2 行的编码无法识别（不是完整的 UTF-8 文本）：{SAVE_AS}",
        ),
        (
            "片名,年份\n长河,2021\n".encode(),
            "第 1 行不是表头：没有一列的名字认得，读到的是“片名，年份”；第一行请保留导出时的列名",
        ),
        (
            b"\n\n4,ignore\n",
            "第 3 行不是表头：没有一列的名字认得，读到的是“4，ignore”；第一行请保留导出时的列名",
        ),
        ("vod_id,备注\n4,\n".encode(), "第 1 行（表头）：缺少“决定”一列"),
        ("决定\nignore\n".encode(), "第 1 行（表头）：缺少“vod_id”一列"),
    ],
)
def test_a_file_that_cannot_be_read_at_all(data, sentence):
    assert problems(data) == (sentence,)


def test_a_file_that_is_too_large(monkeypatch):
    monkeypatch.setattr(csv_files, "MOST_BYTES", 2**20)
    assert problems(b"vod_id,action\n" + b"4,ignore\n" * 200_000) == ("文件太大：1.7 MB，最多 1 MB；请分成几个文件",)


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "vod_id,action,douban_id,rank,days,lock,accept_conflicts,override_cms_lock,note,verdict_id",
        "影片,决定,豆瓣ID,候选序号,天数,锁定,接受冲突,写入CMS锁定,备注,判定ID",
        " VOD_ID ,决 定,豆瓣 ID,候选 序号,天数,锁定,接受冲突,写入CMS 锁定,备注,verdict id",
        "ｖｏｄ＿ｉｄ,Action,Douban-ID,Rank,Days,Lock,acceptConflicts,OverrideCmsLock,Note,VerdictID",
    ],
)
def test_columns_are_known_in_chinese_and_as_the_config_has_them(header):
    found = parse(f"{header}\n4,choose,,2,,是,1,是,好,77\n")
    [decision] = found.decisions
    assert decision == Decision(
        4,
        DecisionAction.choose,
        rank=2,
        lock=True,
        accept_conflicts=True,
        override_cms_lock=True,
        note="好",
        verdict_id=77,
        where="第 2 行",
    )


def test_columns_stand_in_any_order_among_others():
    found = parse("导演,决定,片名,vod_id\n甲,rematch,长河,4\n")
    assert found.decisions == (Decision(4, DecisionAction.rematch, where="第 2 行"),)
    assert found.ignored == ("导演",), "片名 is one of ours, to be read"


def test_a_misspelt_column_is_not_passed_over():
    assert problems("vod_id,决定,豆瓣号,锁订\n4,ignore,90000101,是\n".encode()) == (
        "第 1 行（表头）：没有“豆瓣号”这一列；若是“豆瓣ID”请改名，否则请删去",
        "第 1 行（表头）：没有“锁订”这一列；若是“锁定”请改名，否则请删去",
    )


def test_one_column_twice():
    assert problems("vod_id,决定,action\n4,ignore,lock_id\n".encode()) == (
        "第 1 行（表头）：“决定”一列有两个：第 2 列和第 3 列",
    )


# --- rows -------------------------------------------------------------------------------------------------------------


def test_line_numbers_are_those_of_the_file():
    text = (
        "vod_id,决定,备注\n"  # 1
        '4,忽略,"两行\n备注"\n'  # 2, 3
        "\n"  # 4
        ",,\n"  # 5
        "5,忽咯,\n"  # 6
        '6,"忽略"了,\n'  # 7
        "7\n"  # 8
        "8,忽略,一,二\n"  # 9
        "9,忽略\n"  # 10
    )
    found = parse(text)
    assert [(decision.vod_id, decision.note, decision.where) for decision in found.decisions] == [
        (4, "两行\n备注", "第 2 行"),
        (9, "", "第 10 行"),
    ]
    assert found.refused == (
        (6, "决定：没有“忽咯”这种决定；是不是：忽略（ignore）"),
        (7, "引号不成对，或引号后面还有文字：含逗号、引号或换行的单元格要整个放在引号里，其中的引号写两遍"),
        (8, "只有 1 格，表头有 3 列：这一行不完整，或被格内的换行拆开"),
        (9, "有 4 格，表头只有 3 列：多半是某格里的逗号没有用引号括住"),
    )
    assert found.undecided == 0, "an empty line is no line"


@pytest.mark.parametrize("rest", ["5,忽略,\n6,忽略,\n", '5,忽略,\n6,忽略,"好"\n', '5,忽略,\n6,忽略,"又一个\n'])
def test_a_quote_that_is_never_closed_costs_its_own_line_only(rest):
    found = parse(f'vod_id,决定,备注\n4,忽略,"没有闭合\n{rest}')
    assert [decision.vod_id for decision in found.decisions][:1] == [5]
    assert found.refused[0][0] == 2
    assert len(found.decisions) + len(found.refused) == 3, "no line is lost"


def test_rows_that_a_stray_pair_of_quotes_swallows_are_not_lost():
    found = parse('vod_id,决定,备注\n4,忽略,"开头\n5,忽略,中间\n6,忽略,结尾"\n')
    assert [line for line, _ in found.refused] == [2]
    assert [decision.vod_id for decision in found.decisions] == [5, 6]


def test_many_stray_quotes_take_no_longer_than_their_lines():
    lines = 20_000
    found = parse("vod_id,决定,备注\n" + '4,忽略,"没有闭合\n' * lines)
    assert len(found.refused) + len(found.decisions) == lines


def test_a_cell_without_end():
    found = parse(f'vod_id,决定,备注\n4,忽略,"{"长" * 200_000}\n5,忽略,\n')
    assert found.refused == ((2, "一个单元格超过 131072 个字符，多半是引号没有闭合"),)
    assert [decision.vod_id for decision in found.decisions] == [5]


def test_lines_without_a_decision_are_counted_unless_something_was_filled_in():
    found = parse("vod_id,决定,豆瓣ID,锁定,备注\n4,,,,\n5, ,,,以后再看\n6,,0,否,\n7,,90000101,是,\n")
    assert (found.undecided, found.decisions) == (3, ())
    assert found.refused == ((5, "填写了豆瓣ID、锁定，但“决定”一格是空的"),)


def test_all_that_is_wrong_with_a_line_is_reported_at_once():
    header = "vod_id,决定,豆瓣ID,候选序号,锁定"
    assert refused(f"{header}\n四,确认首选,1.23457E+07,-1,也许\n,ignore,,,\n") == (
        (
            2,
            "vod_id：“四”不是不带正负号的整数；决定：没有“确认首选”这种决定；是不是：确认首选候选（confirm_top1）；"
            "豆瓣ID：“1.23457E+07”是科学计数法，Excel 已丢掉末尾的数字：请把这一列设为文本格式，再重新填写；"
            "候选序号：“-1”不是不带正负号的整数；锁定：“也许”应为 是 或 否",
        ),
        (3, "vod_id：是空的"),
    )


# --- locked, or not ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", ["是", "TRUE", "true", "1", "1.0", "yes", "Y", "√", "１", " 是 "])
def test_a_cell_that_says_yes(yes):
    [decision] = parse(f"vod_id,决定,锁定\n4,忽略,{yes}\n").decisions
    assert decision.lock is True


@pytest.mark.parametrize("no", ["", "否", "FALSE", "0", "no", "N", "×", " "])
def test_a_cell_that_says_no(no):
    [decision] = parse(f"vod_id,决定,锁定\n4,忽略,{no}\n").decisions
    assert decision.lock is False


# --- invariants -------------------------------------------------------------------------------------------------------


@given(st.text())
def test_what_is_protected_is_no_formula_and_comes_back(text):
    shown = protected(text)
    assert not shown.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r"))
    assert "\n" not in shown
    assert unprotected(shown) == " ".join(text.replace("\0", " ").split())


@given(st.binary(max_size=300))
def test_no_bytes_whatever_are_more_than_refused(data):
    for start in (b"", b"vod_id,action\n", b"\xef\xbb\xbfvod_id,action,note\r\n", b"\xff\xfe"):
        with contextlib.suppress(CsvError):
            found = parse_csv(start + data)
            assert all(line > 0 and why for line, why in found.refused)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**32 - 1),
            st.sampled_from(DecisionAction),
            st.integers(0, 2**32 - 1),
            st.booleans(),
            # A line of a note that begins with a number may be a row that a quote swallowed.
            st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Nd"]), max_size=20),
        ),
        max_size=8,
    ),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "gb18030", "utf-16"]),
)
def test_what_a_spreadsheet_writes_is_read_back(rows, delimiter, encoding):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["vod_id", "决定", "豆瓣ID", "锁定", "备注"])
    for vod_id, action, douban_id, lock, note in rows:
        writer.writerow([vod_id, ACTIONS[action], douban_id, "是" if lock else "否", note])
    found = parse_csv(text.getvalue().encode(encoding))
    read = [
        (decision.vod_id, decision.action, decision.douban_id, decision.lock, decision.note)
        for decision in found.decisions
    ]
    assert (read, found.refused) == ([(*row[:4], unprotected(row[4])) for row in rows], ())
