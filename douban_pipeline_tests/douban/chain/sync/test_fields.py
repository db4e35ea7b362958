"""What is written to a column, by its policy, in the site's own words, within what the column can hold."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.cms.vocabulary import SiteVocabulary
from douban_pipeline.douban.chain.sync.fields import is_empty, plan_fields
from douban_pipeline.douban.setting_values import DEFAULT_FIELD_POLICIES
from douban_pipeline.douban.sources.douban_php import SubjectRecord

WIDTHS = {
    "vod_name": 255, "vod_sub": 255, "vod_actor": 255, "vod_director": 255, "vod_writer": 100, "vod_class": 255,
    "vod_tag": 100, "vod_pic": 1024, "vod_area": 20, "vod_lang": 10, "vod_year": 10, "vod_pubdate": 100,
    "vod_duration": 10, "vod_blurb": 255, "vod_state": 30, "vod_author": 60, "vod_reurl": 255,
}  # fmt: skip
EMPTY = {
    **dict.fromkeys(DEFAULT_FIELD_POLICIES, ""),
    **dict.fromkeys(("vod_total", "vod_score_num", "vod_score_all"), 0),
    "vod_douban_score": Decimal("0.0"),
    "vod_score": Decimal("6.4"),
}
FULL = SubjectRecord(
    90_000_101,
    "长河落日记事",
    original_title="The River",
    aliases=("河", "长河"),
    year=2021,
    release_dates=("2021-05-01(中国大陆)",),
    regions=("中国大陆", "中国香港"),
    languages=("汉语普通话", "粤语"),
    genres=("剧情", "爱情"),
    directors=("张导",),
    writers=("李编",),
    actors=("甲", "乙"),
    duration_minutes=118,
    episodes=24,
    rating=7.95,
    votes=1200,
    summary="第一段。\n第二段 <b>&</b>。",
    picture="https://img1.doubanio.com/p1.jpg",
    tags=("剧情", "河"),
    state="正片",
    author="豆友",
    url="https://movie.douban.com/subject/90000101/",
)
NOTHING = SubjectRecord(90_000_101, "长河落日记事")
SITE = SiteVocabulary(("内地", "港台", "欧美", "日本"), ("国语", "粤语", "英语", "其它"))


def cms(utf8mb3=(), **widths):
    metadata = sa.MetaData()
    return Cms(sa.Table("v", metadata), sa.Table("t", metadata), {**WIDTHS, **widths}, frozenset(utf8mb3))


def plan(row=None, record=FULL, *, policies=None, site=SITE, undone=None, intro_locked=False, **cms_of):
    return plan_fields(
        {**EMPTY, **(row or {})},
        record,
        cms=cms(**cms_of),
        vocabulary=site,
        policies=DEFAULT_FIELD_POLICIES if policies is None else policies,
        undone=undone or {},
        intro_locked=intro_locked,
    )


def test_an_empty_row_is_filled():
    assert plan().new == {
        "vod_year": "2021",
        "vod_area": "内地",
        "vod_lang": "国语",
        "vod_actor": "甲,乙",
        "vod_director": "张导",
        "vod_sub": "The River,河,长河",
        "vod_writer": "李编",
        "vod_class": "剧情,爱情",
        "vod_tag": "剧情,河",
        "vod_pubdate": "2021-05-01(中国大陆)",
        "vod_duration": "118",
        "vod_total": 24,
        "vod_pic": "https://img1.doubanio.com/p1.jpg",
        "vod_content": "第一段。<br/>第二段 &amp;。",
        "vod_blurb": "第一段。 第二段 &amp;。",
        "vod_douban_score": Decimal("8.0"),
    }


def test_people_are_written_without_their_roles():
    record = replace(FULL, actors=("周迅 饰演 女主角", "陈坤 饰 乙", "周迅(客串)"), directors=("导演：张导",))
    new = plan(record=record).new
    assert (new["vod_actor"], new["vod_director"]) == ("周迅,陈坤", "张导")


def test_old_values_are_those_that_were_read():
    row = {"vod_actor": "内详", "vod_douban_score": Decimal("7.1"), "vod_total": 0}
    found = plan(row)
    assert {column: found.old[column] for column in row} == row
    assert set(found.old) == set(found.new)


STANDS = {
    "vod_name": "某个名字",
    "vod_year": "1999",
    "vod_area": "日本",
    "vod_lang": "日语",
    "vod_actor": "丙",
    "vod_director": "丁",
    "vod_sub": "戊",
    "vod_writer": "己",
    "vod_class": "庚",
    "vod_tag": "辛",
    "vod_pubdate": "1999",
    "vod_duration": "1",
    "vod_total": 3,
    "vod_pic": "upload/1.jpg",
    "vod_content": "<p>原有</p>",
    "vod_blurb": "原有",
    "vod_douban_score": Decimal("1.0"),
    "vod_score": Decimal("9.9"),
    "vod_score_num": 7,
    "vod_score_all": 70,
    "vod_state": "花絮",
    "vod_author": "编辑",
    "vod_reurl": "https://site.example/1",
}


@pytest.mark.parametrize("column", sorted(STANDS))
def test_each_policy_of_each_column(column):
    row = {column: STANDS[column]}
    assert plan(row, policies={column: "never"}).new == {}
    assert plan({}, policies={column: "never"}).new == {}
    assert plan(row, policies={column: "fill"}).new == {}, "what stands is left alone"
    written = plan(row, policies={column: "overwrite"}).new
    assert list(written) == [column]
    assert written[column] != STANDS[column]
    assert plan({column: written[column]}, policies={column: "overwrite"}).new == {}, "nothing to do twice"


@pytest.mark.parametrize("column", sorted(set(STANDS) - {"vod_name"}))
@pytest.mark.parametrize("policy", ["fill", "overwrite"])
def test_an_empty_answer_never_overwrites(column, policy):
    assert plan({column: STANDS[column]}, NOTHING, policies={column: policy}).new == {}
    assert plan({}, NOTHING, policies={column: policy}).new == {}


def test_what_the_collector_compares_is_not_rewritten_by_default():
    keys = ("vod_name", "vod_year", "vod_area", "vod_lang", "vod_actor", "vod_director")
    assert {DEFAULT_FIELD_POLICIES[column] for column in keys} <= {"never", "fill"}
    assert not set(plan(STANDS).new) & set(keys)
    assert plan(STANDS).new == {"vod_douban_score": Decimal("8.0")}
    # Themes sort by the site's own score, and the name is what people see.
    assert not {"vod_name", "vod_score"} & set(plan().new)


def test_every_column_with_a_policy_is_tried():
    assert set(STANDS) == set(DEFAULT_FIELD_POLICIES)


def test_the_sites_own_accounts_are_left_alone_unless_wanted():
    own = ("vod_score", "vod_score_num", "vod_score_all", "vod_state", "vod_author", "vod_reurl")
    assert {DEFAULT_FIELD_POLICIES[column] for column in own} == {"never"}
    wanted = plan(policies=dict.fromkeys(own, "overwrite")).new
    assert wanted == {
        "vod_score": Decimal("8.0"),
        "vod_score_num": 1200,
        "vod_score_all": 9540,
        "vod_state": "正片",
        "vod_author": "豆友",
        "vod_reurl": "https://movie.douban.com/subject/90000101/",
    }


@pytest.mark.parametrize(
    ("votes", "rating", "number", "total"),
    [
        (1200, 7.9, 1200, 9480),
        (16_777_215, 1.0, 16_777_215, 16_777_215),
        (2_562_776, 9.6, 2_562_776, None),
        (16_777_216, 1.0, None, None),
        (1200, None, 1200, None),
        (None, 7.9, None, None),
    ],
)
def test_a_count_that_does_not_fit_is_not_cut_off(votes, rating, number, total):
    policies = {"vod_score_num": "overwrite", "vod_score_all": "overwrite"}
    found = plan(record=replace(FULL, votes=votes, rating=rating), policies=policies).new
    assert (found.get("vod_score_num"), found.get("vod_score_all")) == (number, total)


@pytest.mark.parametrize(
    ("column", "value", "empty"),
    [
        ("vod_actor", "内详", True),
        ("vod_actor", "内详,未知", True),
        ("vod_actor", "暂无,张三", False),
        ("vod_director", "未知", True),
        ("vod_director", "0", True),
        ("vod_writer", None, True),
        ("vod_class", "剧情", False),
        ("vod_year", "0", True),
        ("vod_year", "", True),
        ("vod_year", "2021", False),
        ("vod_total", 0, True),
        ("vod_total", 1, False),
        ("vod_douban_score", Decimal("0.0"), True),
        ("vod_douban_score", Decimal("0.1"), False),
        ("vod_douban_id", 0, True),
        ("vod_content", "<p></p>", True),
        ("vod_content", "<p>暂无简介</p>", True),
        ("vod_content", "<p>一部电影。</p>", False),
        ("vod_area", "未知", True),
        ("vod_area", "其它", False),
        ("vod_pic", "-", True),
    ],
)
def test_what_counts_as_empty(column, value, empty):
    assert is_empty(column, value) is empty
    if column in DEFAULT_FIELD_POLICIES:
        assert (column in plan({column: value}, policies={column: "fill"}).new) is empty


def fields(**facts: Any):
    return SubjectRecord(90_000_101, "片", **facts)


@pytest.mark.parametrize("picture", ["https://img1.doubanio.com/" + "p" * 1024, ""])
def test_an_address_that_does_not_fit_is_not_cut(picture):
    assert "vod_pic" not in plan(record=fields(picture=picture)).new


def test_characters_a_column_cannot_hold_fall_out_and_are_reported():
    record = fields(actors=("𠮷田", "张三"), summary="好看😀的片👨‍👩‍👧子", original_title="𠮷")
    narrow = plan(record=record, utf8mb3=["vod_actor", "vod_content", "vod_blurb", "vod_sub"])
    assert narrow.new["vod_actor"] == "田,张三"
    assert narrow.new["vod_content"] == "好看的片子"
    assert "vod_sub" not in narrow.new, "nothing is left of it"
    assert set(narrow.dropped) == set("𠮷😀👨👩👧")
    wide = plan(record=record)
    assert (wide.new["vod_actor"], wide.new["vod_sub"], wide.dropped) == ("𠮷田,张三", "𠮷", "")


def test_a_locked_synopsis_is_left_alone():
    columns = {"vod_content": "overwrite", "vod_blurb": "overwrite", "vod_writer": "overwrite"}
    assert set(plan(policies=columns, intro_locked=True).new) == {"vod_writer"}
    assert set(plan(policies=columns).new) == set(columns)


def test_what_a_person_took_back_is_not_written_again():
    undone = {"vod_writer": ["李编"], "vod_douban_score": [Decimal("8.0")], "vod_actor": ["丙"]}
    found = plan(undone=undone).new
    assert not {"vod_writer", "vod_douban_score"} & set(found)
    assert found["vod_actor"] == "甲,乙", "another value is another matter"


@given(
    st.lists(st.text(max_size=30), max_size=6),
    st.text(max_size=60),
    st.integers(1, 40),
    st.sampled_from(["fill", "overwrite"]),
)
def test_whatever_douban_says_fits_and_is_no_markup(names, text, width, policy):
    record = fields(actors=tuple(names), summary=text, aliases=tuple(names), tags=tuple(names))
    columns = ("vod_actor", "vod_sub", "vod_tag", "vod_blurb", "vod_content")
    found = plan(record=record, policies=dict.fromkeys(columns, policy), **dict.fromkeys(columns, width)).new
    for column, value in found.items():
        assert value
        assert column == "vod_content" or len(value) <= width
        assert not set("<>\"'") & set(value.replace("<br/>", ""))
