"""Cells of a sheet are read as they were meant: numbers, subjects, actions; what may mean something else is refused."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.review.imports.cells import CellError, action_named, subject_id, whole_number
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("", 0),
        (" ", 0),
        ("0", 0),
        ("1234", 1234),
        (" 1234\u00a0", 1234),
        ("1234.0", 1234),
        ("1234.00", 1234),
        ("2.", 2),
        ("1,234", 1234),
        ("12,345,678", 12_345_678),
        ("1,234.00", 1234),
        ("１２３４", 1234),
        ("'1234", 1234),
        ('="1292052"', 1_292_052),
        ("\ufeff1234", 1234),
        ("007", 7),
    ],
)
def test_numbers_as_excel_saves_them(cell, number):
    assert whole_number(cell) == number


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("1.23457E+07", "科学计数法，Excel 已丢掉末尾的数字"),
        ("1E5", "科学计数法"),
        ("-5", "不是不带正负号的整数"),
        ("+5", "不是不带正负号的整数"),
        ("12.5", "不是不带正负号的整数"),
        ("1.000", "不是不带正负号的整数"),
        ("1,23", "不是不带正负号的整数"),
        ("1 234", "不是不带正负号的整数"),
        ("12a", "不是不带正负号的整数"),
        ("####", "Excel 的错误提示"),
        ("#N/A", "Excel 的错误提示"),
        ("1234567890123456", "位数太多，Excel 只保留 15 位"),
        ("=1+1", "不是不带正负号的整数"),
        ("一", "不是不带正负号的整数"),
        ("9" * 10_000, "位数太多"),
    ],
)
def test_numbers_that_may_mean_something_else_are_refused(cell, sentence):
    with pytest.raises(CellError) as caught:
        whole_number(cell)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 120, "however long the cell is"


@pytest.mark.parametrize(
    ("cell", "douban_id"),
    [
        ("", 0),
        ("90000101", 90_000_101),
        ("https://movie.douban.com/subject/90000101/", 90_000_101),
        ("https://m.douban.com/movie/subject/90000101/?from=x", 90_000_101),
    ],
)
def test_a_subject_is_named_by_its_id_or_its_page(cell, douban_id):
    assert subject_id(cell) == douban_id


@pytest.mark.parametrize(
    "cell",
    [
        "https://movie.douban.com/",
        "https://book.douban.com/subject/1292052/",
        "https://movie.douban.com/subject/90000101/ https://movie.douban.com/subject/90000102/",
    ],
)
def test_an_address_of_something_else_is_refused(cell):
    with pytest.raises(CellError, match="不是一个豆瓣条目的网址"):
        subject_id(cell)


@pytest.mark.parametrize("action", DecisionAction)
def test_every_action_is_known_by_name_and_by_word(action):
    word = ACTIONS[action]
    written = [action.name, action.name.upper(), action.name.replace("_", " "), f" {action.name} ", word]
    assert {action_named(text) for text in [*written, word.replace(" ", ""), word.lower()]} == {action}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("comfirm_top1", "是不是：确认首选候选（confirm_top1）"),
        ("锁定ID", "锁定豆瓣 ID（lock_id）"),
        ("解锁", "解锁简介（unlock_intro）"),
        ("删除", "可以填：确认首选候选（confirm_top1）、选择候选（choose）"),
        ("x" * 5000, f"没有“{'x' * 40}…”这种决定"),
    ],
)
def test_an_unknown_action_is_reported_with_those_that_are_near(text, sentence):
    with pytest.raises(CellError) as caught:
        action_named(text)
    assert sentence in str(caught.value)
