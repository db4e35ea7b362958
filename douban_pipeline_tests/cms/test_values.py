"""Values as the CMS stores them: read forgivingly, written exactly."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from douban_pipeline.cms.numbers import episodes_of, minutes_of, score, year_of
from douban_pipeline.cms.values import (
    aliases_of,
    blurb,
    content_html,
    content_text,
    escape,
    fit_text,
    join_list,
    join_titles,
    one_line,
    people_of,
    person_name,
    readable,
    split_list,
    storable,
    unescape,
    year_shown,
)

ENTITY = re.compile(r"&(?:amp|lt|gt|quot|#039);")
TEXTS = st.text(max_size=60) | st.text(alphabet="&<>\"'ap;mlt#039, /甲乙·é\\nu😀", max_size=60)
NAMES = st.text(alphabet="abcé甲乙丙·&'\"()-。 ", min_size=1, max_size=12)


def assert_whole_entities(text: str) -> None:
    assert not set("<>\"'") & set(text)
    assert "&" not in ENTITY.sub("", text)


@pytest.mark.parametrize(
    ("plain", "stored"),
    [
        ("Ocean's Eleven", "Ocean&#039;s Eleven"),
        ("Tom & Jerry", "Tom &amp; Jerry"),
        ('"7" <3', "&quot;7&quot; &lt;3"),
        ("&amp;", "&amp;amp;"),
        ("重庆森林", "重庆森林"),
    ],
)
def test_escaping_is_phps(plain: str, stored: str) -> None:
    assert escape(plain) == stored
    assert unescape(stored) == plain


@settings(deadline=None)
@given(TEXTS)
def test_unescape_undoes_escape(text: str) -> None:
    assert_whole_entities(escape(text))
    assert unescape(escape(text)) == text


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("Ocean&#039;s Eleven", "Ocean's Eleven"),
        ("Ocean&#39;s Eleven", "Ocean's Eleven"),
        ("&amp;quot;片名&amp;quot;", '"片名"'),
        ("&amp;amp;amp;", "&"),
        (r"\u003cb\u003e片名\u003c/b\u003e", "片名"),
        (r"\ud83d\ude00片名", "😀片名"),
        (r"\ud83d片名", "片名"),
        (r"一行\r\n二行", "一行 二行"),
        ("一行\r\n二行", "一行 二行"),
        ("　　缩进　文字 ", "缩进 文字"),
        ("A&nbsp;B", "A B"),
        ("null", ""),
        (None, ""),
        ("R&D", "R&D"),
        ("?a=1&copy=2", "?a=1&copy=2"),
        ("I <3 U", "I <3 U"),
        ("I &lt;3 U", "I <3 U"),
        ("a<!-- x -->b<script>alert(1)</script>c", "abc"),
        ("a\x00b\u200bc", "a bc"),
    ],
)
def test_dirt_of_live_rows_is_read_through(stored: str | None, text: str) -> None:
    assert readable(stored) == text


@pytest.mark.parametrize(
    ("stored", "text"),
    [("2021", "2021"), ("0", ""), ("0000", ""), ("", ""), (None, ""), ("2020-2021", "2020-2021"), ("2000", "2000")],
)
def test_no_year_is_shown_as_none(stored: str | None, text: str) -> None:
    assert year_shown(stored) == text


@settings(deadline=None)
@given(TEXTS)
def test_one_line_is_one_line_of_visible_text(text: str) -> None:
    line = one_line(text)
    assert line == line.strip()
    assert not re.search(r"[\x00-\x1f\x7f\ud800-\udfff]|  ", line)


@pytest.mark.parametrize(
    ("stored", "items"),
    [
        ("甲,乙", ("甲", "乙")),
        ("甲 / 乙", ("甲", "乙")),
        ("甲 , 乙", ("甲", "乙")),
        ("甲，乙、丙|丁｜戊;己；庚／辛", ("甲", "乙", "丙", "丁", "戊", "己", "庚", "辛")),
        ("甲\n乙\r\n丙", ("甲", "乙", "丙")),
        ("甲,乙,", ("甲", "乙")),
        ("甲 / / 乙 /", ("甲", "乙")),
        ("甲,乙,甲", ("甲", "乙")),
        ("白井悠介 Yusuke Shirai,Tom Hanks", ("白井悠介 Yusuke Shirai", "Tom Hanks")),
        ("安东尼·罗素,乔·罗素", ("安东尼·罗素", "乔·罗素")),
        ("Conan O&#039;Brien,乙", ("Conan O'Brien", "乙")),
        ("<a href='/a,b/c'>甲</a>,乙<br>丙", ("甲", "乙", "丙")),
        ("角色一：甲\n角色二:乙\n丙", ("甲", "乙", "丙")),
        (r"角色一：甲\n角色二：乙", ("甲", "乙")),
        ("角色一：甲\n角色二：", ("甲",)),
        ("内详", ()),
        ("未知", ()),
        ("暂无", ()),
        ("不详", ()),
        ("未知主演", ()),
        ("暂无资料", ()),
        ("无", ()),
        ("N/A", ()),
        ("n/a,甲", ("甲",)),
        ("null", ()),
        ("其他,甲,...", ("甲",)),
        ("", ()),
        (None, ()),
    ],
)
def test_lists_are_split_whoever_wrote_them(stored: str | None, items: tuple[str, ...]) -> None:
    assert split_list(stored) == items


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("周迅 饰 甲", "周迅"),
        ("周迅 饰演 女主角", "周迅"),
        ("周迅饰演女主角", "周迅"),
        ("周迅 饰：甲", "周迅"),
        ("周迅（饰 甲）", "周迅"),
        ("周迅(客串)", "周迅"),
        ("山寺宏一 配音", "山寺宏一"),
        ("配音：山寺宏一", "山寺宏一"),
        ("Tom Hanks as Forrest Gump", "Tom Hanks"),
        ("Tom Hanks ... Forrest Gump", "Tom Hanks"),
        ("Tom Hanks (voice)", "Tom Hanks"),
        ("李明(导演)", "李明(导演)"),
        ("Asa Butterfield", "Asa Butterfield"),
        ("饰演", "饰演"),
        ("O'Brien, Jr.", "O'Brien, Jr."),
    ],
)
def test_a_role_is_no_part_of_a_name(entry: str, name: str) -> None:
    assert person_name(entry) == name


def test_a_role_on_one_line_is_taken_off_a_persons_name_only() -> None:
    assert people_of("角色一：甲 / 角色二:乙") == ("甲", "乙")
    assert split_list("战争：历史") == ("战争：历史",)


@pytest.mark.parametrize(
    ("stored", "items"),
    [("甲甲,乙乙", ("甲甲",)), ("甲甲,乙 /", ("甲甲", "乙")), ("甲甲甲乙乙", ("甲甲甲乙乙",)), ("甲,乙", ("甲", "乙"))],
)
def test_the_last_item_of_a_full_column_may_be_cut(stored: str, items: tuple[str, ...]) -> None:
    assert split_list(stored, width=5) == items
    assert people_of(stored, width=5) == items


@pytest.mark.parametrize(
    ("items", "width", "stored"),
    [
        (["甲", "乙"], 255, "甲,乙"),
        (["甲", "乙"], 3, "甲,乙"),
        (["甲", "乙"], 2, "甲"),
        (["甲甲甲", "乙"], 2, ""),
        (["O'Brien", "乙"], 12, "O&#039;Brien"),
        (["O'Brien", "乙"], 11, ""),
        (["O'Brien", "乙"], 14, "O&#039;Brien,乙"),
        (["甲", "内详", "", "甲", "乙"], 255, "甲,乙"),
        (["Sammy Davis, Jr."], 255, "Sammy Davis Jr."),
        (["<b>甲</b>", "Tom &amp; Jerry"], 255, "甲,Tom &amp; Jerry"),
        ([], 255, ""),
    ],
)
def test_lists_are_cut_at_an_item(items: list[str], width: int, stored: str) -> None:
    assert join_list(items, width) == stored


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=8), st.integers(0, 80))
@example(["&am<b>p;x"], 80)
@example(["a<p", "b>"], 80)
def test_a_list_fits_and_reads_back_as_the_start_of_what_was_written(items: list[str], width: int) -> None:
    stored = join_list(items, width)
    whole = split_list(join_list(items, 10_000))
    assert len(stored) <= width
    assert_whole_entities(stored)
    assert split_list(stored) == whole[: len(split_list(stored))]
    assert join_list(whole, 10_000) == join_list(items, 10_000)


@settings(deadline=None)
@given(st.lists(NAMES.map(one_line).filter(lambda name: split_list(name) == (name,)), unique=True, max_size=12))
def test_clean_names_survive_the_column(names: list[str]) -> None:
    assert split_list(join_list(names, 10_000)) == tuple(names)


@pytest.mark.parametrize(
    ("text", "width", "stored"),
    [
        ("Tom & Jerry", 255, "Tom &amp; Jerry"),
        ("Tom & Jerry", 9, "Tom &amp;"),
        ("Tom & Jerry", 8, "Tom"),
        ("<b>片名</b>\r\n二", 255, "片名 二"),
        ("2023-03-29(泰国)", 100, "2023-03-29(泰国)"),
        ("甲", 0, ""),
    ],
)
def test_text_is_cut_before_an_entity(text: str, width: int, stored: str) -> None:
    assert fit_text(text, width) == stored


@settings(deadline=None)
@given(TEXTS, st.integers(0, 80))
def test_cut_text_fits_and_is_the_start_of_the_whole(text: str, width: int) -> None:
    stored = fit_text(text, width)
    assert len(stored) <= width
    assert_whole_entities(stored)
    assert one_line(text).startswith(unescape(stored))


@pytest.mark.parametrize(
    ("text", "charset", "kept", "dropped"),
    [
        ("片名😀", "utf8", "片名", "😀"),
        ("片名😀", "utf8mb3", "片名", "😀"),
        ("片名😀", "utf8mb4", "片名😀", ""),
        ("𠮷野家𠮷", "utf8mb3", "野家", "𠮷"),
        ("👨\u200d👩", "utf8mb3", "", "👨👩"),
        ("❤\ufe0f", "utf8mb3", "❤\ufe0f", ""),
        ("\ud800x", "utf8mb4", "x", "\ud800"),
    ],
)
def test_what_a_column_cannot_hold_is_left_out_and_named(text: str, charset: str, kept: str, dropped: str) -> None:
    found = storable(text, charset)
    assert (found.text, found.dropped) == (kept, dropped)


def test_an_unknown_character_set_is_refused() -> None:
    with pytest.raises(ValueError, match="latin1"):
        storable("x", "latin1")


@settings(deadline=None)
@given(st.text(st.characters(), max_size=60), st.sampled_from(["utf8", "utf8mb3", "utf8mb4"]))
def test_storable_text_is_storable(text: str, charset: str) -> None:
    found = storable(text, charset)
    assert storable(found.text, charset) == type(found)(found.text, "")
    assert charset == "utf8mb4" or all(ord(character) <= 0xFFFF for character in found.text)
    assert bool(found.dropped) == (found.text != text)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("<p>　　第一段。</p><p>第二段&amp;nbsp;。</p>", "第一段。\n第二段 。"),
        ("&amp;quot;引&amp;quot;", '"引"'),
        (r"\u003cp\u003e一段\u003c/p\u003e", "一段"),
        (r"一段\r\n　　二段", "一段\n二段"),
        ("一<br/>二<BR>三", "一\n二\n三"),
        ("一<style>p{}</style>二", "一二"),
        ("一<!-- <script> -->二<SCRIPT src=x>a<b</Script >三<!-- x", "一二三<!-- x"),
        ("<!--" * 20_000 + "一", "<!--" * 20_000 + "一"),
        ("<script>" * 10_000 + "一", "一"),
        ("null", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_synopsis_is_read_as_plain_paragraphs(stored: str | None, text: str) -> None:
    assert content_text(stored) == text


def test_a_synopsis_is_written_as_escaped_paragraphs() -> None:
    assert content_html("　　一 & 二\n\n'三'") == "一 &amp; 二<br/>&#039;三&#039;"
    assert content_html("") == ""


@settings(deadline=None)
@given(TEXTS)
def test_a_written_synopsis_brings_no_markup_of_its_own(text: str) -> None:
    assert_whole_entities(content_html(text).replace("<br/>", ""))


@settings(deadline=None)
@given(st.text(alphabet="甲乙a&\"'; \n　", max_size=60))
def test_a_written_synopsis_reads_back(text: str) -> None:
    assert content_text(content_html(text)) == content_text(text)


def test_a_blurb_is_the_first_hundred_characters() -> None:
    assert blurb("<p>" + "甲" * 60 + "</p><p>" + "乙" * 60 + "</p>") == "甲" * 60 + " " + "乙" * 39
    assert blurb("一 & 二", width=3) == "一 &amp;"


@settings(deadline=None)
@given(TEXTS.map(lambda text: text * 9))
def test_a_blurb_fits_its_column(text: str) -> None:
    found = blurb(text)
    assert len(found) <= 255
    assert len(unescape(found)) <= 100
    assert_whole_entities(found)


@pytest.mark.parametrize(
    ("stored", "aliases"),
    [
        ("オーバーロードⅡ（2018）", ("オーバーロードⅡ",)),
        ("复联3,复仇者联盟：无限之战(台)", ("复联3", "复仇者联盟：无限之战")),
        ("哈利波特3：阿兹卡班的逃犯(港/台) / 哈3", ("哈利波特3：阿兹卡班的逃犯", "哈3")),
        ("刺激1995(台) (1994)", ("刺激1995",)),
        ("甲；乙;丙|丁\n戊", ("甲", "乙", "丙", "丁", "戊")),
        ("甲/乙", ("甲", "乙")),
        ("Fate/Zero", ("Fate/Zero",)),
        ("22/7", ("22/7",)),
        ("Yes, Madam", ("Yes, Madam",)),
        ("Friends,Amigos", ("Friends", "Amigos")),
        ("Amélie，天使爱美丽", ("Amélie", "天使爱美丽")),
        ("你好，李焕英", ("你好，李焕英",)),
        ("Ocean&#039;s  Eleven", ("Ocean's Eleven",)),
        ("片名 片名,片名", ("片名 片名", "片名")),
        ("Unknown", ("Unknown",)),
        ("暂无", ()),
        ("（2018）", ("（2018）",)),
        ("", ()),
        (None, ()),
    ],
)
def test_other_titles(stored: str | None, aliases: tuple[str, ...]) -> None:
    assert aliases_of(stored) == aliases


def test_the_last_title_of_a_full_column_may_be_cut() -> None:
    assert aliases_of("甲甲甲,乙乙", width=6) == ("甲甲甲",)
    assert aliases_of("甲甲甲,乙乙", width=255) == ("甲甲甲", "乙乙")


@pytest.mark.parametrize(
    ("titles", "width", "stored"),
    [
        (["你好，李焕英", "Hi, Mom"], 255, "你好，李焕英,Hi, Mom"),
        (["哈利波特3：逃犯(港/台)", "哈3"], 255, "哈利波特3：逃犯(港/台),哈3"),
        (["Fate/Zero", "命运/零"], 255, "Fate/Zero,命运 零"),
        (["Ocean's", "乙"], 12, "Ocean&#039;s"),
        (["甲(", "乙)"], 255, "甲,乙"),
        (["甲", "甲", "暂无", ""], 255, "甲"),
        ([], 255, ""),
    ],
)
def test_titles_keep_their_own_punctuation(titles: list[str], width: int, stored: str) -> None:
    assert join_titles(titles, width) == stored


@settings(deadline=None)
@given(
    st.lists(TEXTS | st.text(alphabet="甲乙aB1,/，、()（） ;2018年港台", max_size=12), max_size=6), st.integers(0, 80)
)
def test_written_titles_fit_and_read_back_as_the_start_of_what_was_written(titles: list[str], width: int) -> None:
    stored = join_titles(titles, width)
    whole = aliases_of(join_titles(titles, 10_000))
    assert len(stored) <= width
    assert_whole_entities(stored)
    assert set(aliases_of(stored)) <= set(whole)
    assert len(whole) <= len(titles)


@settings(deadline=None)
@given(TEXTS | st.none())
def test_nothing_stored_is_unreadable(stored: str | None) -> None:
    for item in (*split_list(stored), *people_of(stored), *aliases_of(stored), *content_text(stored).split("\n")):
        assert "\n" not in item
        assert item == item.strip()
    assert year_of(stored) is None or 1880 <= (year_of(stored) or 0) <= 2100
    assert minutes_of(stored) is None or 0 < (minutes_of(stored) or 0) <= 1440
    assert 0 <= score(stored) <= 10
    episodes_of(stored, stored)
