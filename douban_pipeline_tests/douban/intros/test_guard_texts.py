"""The fact guard over whole introductions: length, copies, and inventions put anywhere into a faithful text."""

from __future__ import annotations

import dataclasses
import re

import opencc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.douban.intros.factguard import LengthLimits, candidates_for_people, inspect, marks
from douban_pipeline.douban.intros.factguard.known_people import MAX_CANDIDATES
from douban_pipeline_tests.douban.intros.sheets import BARE, FAITHFUL, FILM, SERIES, TRANSLATED

LIMITS = LengthLimits(120, 300)
ROOMY = LengthLimits(0, 10_000)
ALIENS = (
    "刘德华", "周星驰", "成龙", "宋佳", "王力宏", "役所广司", "欧阳娜娜", "汤姆·汉克斯", "莱昂纳多·迪卡普里奥",
    "tom hanks", "朴海日", "范伟", "章子怡", "木村拓哉", "黄渤", "海涛", "大鹏", "广濑铃", "吉尔莫·德尔·托罗",
)  # fmt: skip

faithful = st.sampled_from(FAITHFUL)


def found(text, sheet, *, known=(), others=(), limits=ROOMY):
    """Return what the guard says of anything but plots, which has tests of its own."""
    violations = inspect(text, sheet, known_people=known, others=others, limits=limits)
    return [each for each in violations if each.code != "plot"]


def codes(text, sheet, **options):
    return {violation.code for violation in found(text, sheet, **options)}


def put_in(text, sentence, place):
    """Return ``text`` with one more sentence, behind the ``place``-th."""
    sentences = re.findall("[^。]*。", text)
    sentences.insert(place % (len(sentences) + 1), sentence)
    return "".join(sentences)


class TestLength:
    @pytest.mark.parametrize(
        ("characters", "passes"), [(119, False), (120, True), (300, True), (301, False), (0, False)]
    )
    def test_both_ends_are_allowed(self, characters, passes):
        sentences = [violation.text for violation in found("山" * characters, BARE, limits=LIMITS)]
        assert sentences == ([] if passes else [f"共{characters}个汉字，应在120至300之间"])


class TestOrder:
    def test_all_violations_are_reported_each_once_in_the_order_of_the_checks(self):
        text = "<b>成龙</b>成龙在1987年的《风月》里😀，评分9分，点击www.a.com，本站推荐成龙。"
        said = [violation.code for violation in found(text, FILM, known={"成龙"}, limits=LIMITS)]
        order = ["length", "address", "markup", "emoji", "number", "title", "person", "claim", "advert", "meta"]
        assert list(dict.fromkeys(said)) == order
        assert said.count("person") == 1


class TestInventionsAnywhere:
    @given(faithful, st.sampled_from(ALIENS), st.integers(0, 30))
    def test_a_known_person_of_another_video_is_always_caught(self, pair, name, place):
        sheet, text = pair
        changed_text = put_in(text, f"{name}的加入带来惊喜。", place)
        assert codes(changed_text, sheet, known={*ALIENS, *sheet.people}) == {"person"}

    @given(
        faithful,
        st.integers(3, 9999),
        st.sampled_from(["年", "集", "岁", "分钟", "亿元", "位", "座", "个国家", ""]),
        st.integers(0, 30),
    )
    def test_an_alien_number_is_always_caught(self, pair, number, unit, place):
        sheet, text = pair
        facts = str(sheet.to_payload()) + text
        if str(number) not in facts and _chinese(number) not in facts:
            assert "number" in codes(put_in(text, f"其中出现了{number}{unit}。", place), sheet)

    @given(faithful, st.integers(11, 9999), st.integers(0, 30))
    def test_so_is_one_in_chinese_writing(self, pair, number, place):
        sheet, text = pair
        facts = str(sheet.to_payload()) + text
        if str(number) not in facts and _chinese(number) not in facts:
            assert "number" in codes(put_in(text, f"那是{_chinese(number)}年的往事。", place), sheet)

    @given(faithful, st.text("山海风月春秋夜雨江城", min_size=2, max_size=8), st.integers(0, 30))
    def test_an_alien_title_is_always_caught(self, pair, title, place):
        sheet, text = pair
        assert "title" in codes(put_in(text, f"令人想起《{title}》。", place), sheet)

    @given(
        faithful,
        st.sampled_from(["https://", "http://www.", "www.", ""]),
        st.text("abcdefghijkmnopqrstuvwxyz0123456789", min_size=2, max_size=12),
        st.sampled_from(["com", "cn", "net", "top", "tv", "xyz", "cc"]),
        st.integers(0, 30),
    )
    def test_an_address_is_always_caught(self, pair, scheme, host, ending, place):
        sheet, text = pair
        assert "address" in codes(put_in(text, f"更多见{scheme}{host}.{ending}。", place), sheet)

    @given(faithful, st.integers(0, 200), st.sampled_from("\u200b\u200d\u202e\u2060\ufeff\x00\x1b\ue000"))
    def test_a_hidden_character_is_always_caught(self, pair, place, character):
        sheet, text = pair
        assert "markup" in codes(text[:place] + character + text[place:], sheet)

    @given(faithful, st.integers(0, 400), st.text(max_size=30))
    @settings(max_examples=200)
    def test_no_text_whatever_breaks_it(self, pair, place, noise):
        sheet, text = pair
        for violation in found(text[:place] + noise + text[place:], sheet, known=ALIENS, others=[text]):
            assert violation.text


def _chinese(number):
    """Return a number below ten thousand as it is spoken."""
    digits = "零一二三四五六七八九"
    said = ""
    for value, unit in zip(
        (number // 1000, number // 100 % 10, number // 10 % 10, number % 10), "千百十 ", strict=True
    ):
        if value:
            said += digits[value] + unit.strip()
        elif said and not said.endswith("零"):
            said += "零"
    return said.rstrip("零")


@pytest.mark.parametrize(
    "text",
    [
        "1" * 6000,
        "一二三四五" * 1200,
        "一万亿" * 1500,
        "由" + "等" * 60 + "主演",
        "a." * 3000,
        "《" * 3000,
        "@" * 3000,
        "甲·" * 2000,
    ],
    ids=lambda text: text[:4],
)
def test_a_hostile_text_is_judged_like_any_other(text):
    assert codes(text, FILM, limits=LIMITS)


class TestFaithfulTexts:
    @given(faithful, st.randoms(use_true_random=False))
    def test_sentences_in_any_order_pass(self, pair, rng):
        sheet, text = pair
        sentences = re.findall("[^。]*。", text)
        rng.shuffle(sentences)
        assert found("".join(sentences), sheet, known=sheet.people) == []

    @pytest.mark.parametrize(("sheet", "text"), FAITHFUL)
    def test_a_text_in_traditional_characters_passes_as_well(self, sheet, text):
        assert found(opencc.OpenCC("s2t").convert(text), sheet, known=sheet.people) == []

    @pytest.mark.parametrize(("sheet", "text"), FAITHFUL)
    def test_a_sheet_in_traditional_characters_is_the_same_sheet(self, sheet, text):
        convert = opencc.OpenCC("s2t").convert
        names = {
            field: tuple(map(convert, getattr(sheet, field))) for field in ("aliases", "directors", "writers", "actors")
        }
        other = dataclasses.replace(sheet, title=convert(sheet.title), synopsis=convert(sheet.synopsis), **names)
        assert found(text, other, known=sheet.people) == []

    @given(
        st.sampled_from([FILM, TRANSLATED, SERIES]),
        st.sampled_from(["是", "是一部", "讲述的是"]),
        st.sampled_from(["由{}执导", "导演{}", "导演为{}", "{}执导"]),
        st.sampled_from(["{}主演", "主演{}", "由{}领衔主演", "{}等人出演", "演员包括{}", "{}联袂演绎"]),
        st.sampled_from(["、", "和", "与", "，"]),
    )
    def test_the_sheets_own_facts_pass_in_any_wording(self, sheet, verb, directed, played, between):
        actors = between.join(sheet.actors[:3]) if between == "、" else between.join(sheet.actors[:2])
        text = (
            f"《{sheet.title}》{verb}{'、'.join(sheet.genres)}作品，{sheet.year}年推出，来自{sheet.regions[0]}，"
            f"{directed.format(sheet.directors[0])}，{played.format(actors)}，片长{sheet.duration_minutes}分钟。"
        )
        assert found(text, sheet, known=sheet.people) == []


class TestCopies:
    def test_the_synopsis_over_again_is_a_copy(self):
        assert codes(FILM.synopsis, FILM) == {"copy"}

    def test_two_clauses_of_it_are_too(self):
        text = FAITHFUL[0][1] + "此后半个世纪风云变幻，三人的恩怨随着时代起落，最终以一场悲剧收场。"
        [violation] = found(text, FILM)
        assert violation.code == "copy"
        assert "此后半个世纪风云变幻" in violation.text

    def test_a_short_synopsis_is_copied_if_all_of_it_is(self):
        sheet = dataclasses.replace(BARE, synopsis="牧人赶着羊群走过漫长的冬天。")
        assert codes("牧人赶着羊群，走过漫长的冬天。" + FAITHFUL[-1][1], sheet) == {"copy"}
        assert codes("牧人赶着羊群。" + FAITHFUL[-1][1], sheet) == set()

    def test_an_introduction_with_other_names_is_a_near_copy(self):
        text = FAITHFUL[-1][1]
        other = text.replace("山海之间", "江河入梦").replace("林晓峰", "陈默").replace("中国大陆", "日本")
        [violation] = found(text, BARE, others=[other])
        assert violation.code == "near_copy"
        assert "《江河入梦》" in violation.text

    def test_other_introductions_are_none(self):
        for sheet, text in FAITHFUL:
            assert found(text, sheet, others=[other for _, other in FAITHFUL if other != text]) == []


class TestMarks:
    def test_a_near_copy_shares_some_and_another_text_none(self):
        sheet, text = FAITHFUL[-1]
        twin = dataclasses.replace(sheet, title="江河入梦", directors=("陈默",))
        copied = text.replace("山海之间", "江河入梦").replace("林晓峰", "陈默")
        assert marks(text, sheet) == marks(copied, twin)
        half = copied[: len(copied) // 2] + FAITHFUL[0][1][: len(copied) // 2]
        assert set(marks(text, sheet)) & set(marks(half, twin))
        for other_sheet, other in FAITHFUL[:-1]:
            assert not set(marks(text, sheet)) & set(marks(other, other_sheet))

    def test_they_are_the_same_in_every_process(self):
        assert marks("一二三四五六七八", BARE) == (7789890791656695327,)


class TestCandidates:
    @given(faithful, st.sampled_from(ALIENS), st.integers(0, 30))
    def test_every_name_in_a_text_is_among_them(self, pair, name, place):
        _, text = pair
        found = candidates_for_people(put_in(text, f"{name.upper()}也在其中。", place))
        assert name in found
        assert len(found) <= MAX_CANDIDATES

    def test_they_are_bounded_whatever_the_text(self):
        assert len(candidates_for_people("".join(chr(0x4E00 + at) for at in range(5000)))) == MAX_CANDIDATES
        assert candidates_for_people("，。！ 12") == set()
