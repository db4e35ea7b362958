"""Region, language and genre words, as Douban, the CMS and English lists write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.cms.vocabulary import (
    ANY,
    DEFAULT_AREAS,
    DEFAULT_LANGUAGES,
    LANGUAGE_LEXICON,
    REGION_GROUPS,
    Regions,
    SiteVocabulary,
    compatible,
    genres_of,
    regions_of,
)


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["中国大陆"], "CN"),
        (["大陆"], "CN"),
        (["内地"], "CN"),
        (["國產"], "CN"),
        (["国产剧"], "CN"),
        (["China"], "CN"),
        (["中国香港"], "HK"),
        (["中國香港"], "HK"),
        (["中国（香港）"], "HK"),
        (["港产"], "HK"),
        (["港"], "HK"),
        (["Hong Kong"], "HK"),
        (["hk"], "HK"),
        (["台灣"], "TW"),
        (["臺灣"], "TW"),
        (["中国台湾地区"], "TW"),
        (["台湾省"], "TW"),
        (["Macau"], "MO"),
        (["美国"], "US"),
        (["美國"], "US"),
        (["U.S.A."], "US"),
        (["usa"], "US"),
        (["United States of America"], "US"),
        (["United States"], "US"),
        (["英國"], "GB"),
        (["UK"], "GB"),
        (["Britain"], "GB"),
        (["南韓"], "KR"),
        (["South Korea"], "KR"),
        (["Korea"], "KR"),
        (["北韩"], "KP"),
        (["西德"], "DE"),
        (["东德"], "DE"),
        (["義大利"], "IT"),
        (["紐西蘭"], "NZ"),
        (["USSR"], "SU"),
        (["Czechoslovakia"], "CS"),
        (["南斯拉夫联盟共和国"], "YU"),
        (["捷克 Czech Republic"], "CZ"),
        (["印度India"], "IN"),
        (["俄罗斯Ru"], "RU"),
        (["巴哈马 Bahamas"], "BS"),
        (["Côte d'Ivoire"], "CI"),
        (["Bosnia & Herzegovina"], "BA"),
        (["印度尼西亚"], "ID"),
        (["美国,英国"], "US GB"),
        (["美国 / 英国"], "US GB"),
        (["美国、英国，法国｜德国;日本"], "US GB FR DE JP"),
        (["美国 英国"], "US GB"),
        (["USA UK"], "US GB"),
        (["United States United Kingdom"], "US GB"),
        (["中国大陆中国香港"], "CN HK"),
        (["美国", "英国"], "US GB"),
        (["日剧"], "JP"),
    ],
)
def test_a_region_word_has_one_code_whoever_writes_it(words: list[str], codes: str) -> None:
    assert regions_of(words) == Regions(frozenset(codes.split()), frozenset())


@pytest.mark.parametrize(
    ("word", "wildcard"),
    [
        ("欧美", "欧美"),
        ("歐美剧", "欧美"),
        ("日韩", "日韩"),
        ("港臺", "港台"),
        ("华语", "华语"),
        ("海外", "海外"),
        ("其它", ANY),
        ("其他", ANY),
        ("未知", ANY),
        ("other", ANY),
        ("N/A", ANY),
        ("戛纳电影节", ANY),
        ("四月", ANY),
        ("中国大", ANY),
    ],
)
def test_groups_and_unknown_words_are_wildcards(word: str, wildcard: str) -> None:
    assert regions_of([word]) == Regions(frozenset(), frozenset({wildcard}))


def test_what_is_known_of_a_half_known_list_is_kept() -> None:
    assert regions_of(["美国 戛纳电影节"]) == Regions(frozenset({"US"}), frozenset({ANY}))


def test_no_words_are_no_region() -> None:
    assert regions_of([]) == regions_of(["", " / "]) == Regions()


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("中国大陆", "大陆", True),
        ("美国,英国", "英国,法国", True),
        ("美国", "日本", False),
        ("中国香港", "美国", False),
        ("中国大陆", "中国台湾", False),
        ("苏联", "俄罗斯", True),
        ("苏联", "乌克兰", True),
        ("苏联", "美国", False),
        ("俄罗斯", "乌克兰", False),
        ("西德", "德国", True),
        ("东德", "西德", True),
        ("捷克斯洛伐克", "捷克", True),
        ("捷克斯洛伐克", "Slovakia", True),
        ("Yugoslavia", "塞尔维亚", True),
        ("南斯拉夫", "捷克", False),
        ("港台", "中国香港", True),
        ("港台", "美国", None),
        ("日韩", "韩国", True),
        ("欧美", "美国", None),
        ("欧美", "中国大陆", None),
        ("海外", "中国大陆", None),
        ("其它", "美国", None),
        ("美国,其它", "日本", None),
        ("美国,其它", "美国", True),
        ("戛纳电影节", "法国", None),
        ("", "美国", None),
        ("", "", None),
    ],
)
def test_origins_agree_disagree_or_cannot_be_known(a: str, b: str, verdict: bool | None) -> None:
    left, right = regions_of([a]), regions_of([b])
    assert compatible(left, right) is verdict
    assert compatible(right, left) is verdict


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_words_can_be_read_and_unknown_ones_never_conflict(words: list[str]) -> None:
    regions = regions_of(words)
    assert compatible(regions, Regions(frozenset({"US"}), frozenset({ANY}))) is not False
    for code in regions.codes:
        assert compatible(regions, Regions(frozenset({code}))) is True


@settings(deadline=None)
@given(st.text(alphabet="甲乙丙丁戊己庚辛", min_size=1, max_size=8))
def test_an_unknown_word_is_never_a_conflict(word: str) -> None:
    assert compatible(regions_of([word]), regions_of(["美国"])) is None


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["汉语普通话"], "cmn"),
        (["普通话"], "cmn"),
        (["国语"], "cmn"),
        (["國語"], "cmn"),
        (["华语"], "cmn"),
        (["国语版"], "cmn"),
        (["粤语"], "yue"),
        (["廣東話"], "yue"),
        (["闽南语"], "nan"),
        (["汉语"], "zh"),
        (["四川话"], "zh"),
        (["英语"], "en"),
        (["English"], "en"),
        (["日语", "韩语"], "ja ko"),
        (["法语/德语"], "fr de"),
        (["国粤双语"], "cmn yue"),
        (["国语 粤语"], "cmn yue"),
        (["塞尔维亚-克罗地亚语"], "sr"),
        (["无对白"], "zxx"),
        (["四月"], ""),
        (["七月"], ""),
        (["国语,四月"], "cmn"),
        (["其它"], ""),
        ([], ""),
    ],
)
def test_language_words(words: list[str], codes: str) -> None:
    assert set(LANGUAGE_LEXICON.read(words)[0]) == set(codes.split())


@pytest.mark.parametrize(
    ("words", "genres"),
    [
        (["动作片"], "动作"),
        (["動作片"], "动作"),
        (["喜剧片"], "喜剧"),
        (["喜剧"], "喜剧"),
        (["劇情"], "剧情"),
        (["剧情片"], "剧情"),
        (["动漫"], "动画"),
        (["动画片"], "动画"),
        (["纪录片"], "纪录片"),
        (["记录片"], "纪录片"),
        (["古装剧"], "古装"),
        (["警匪"], "犯罪"),
        (["Sci-Fi"], "科幻"),
        (["Science Fiction"], "科幻"),
        (["剧情 / 爱情"], "剧情 爱情"),
        (["剧情,喜剧,,"], "剧情 喜剧"),
        (["动作喜剧"], "动作 喜剧"),
        (["黑色电影"], "黑色电影"),
        (["国产剧"], ""),
        (["欧美剧"], ""),
        (["综艺"], ""),
        (["泡面", "声控"], ""),
        ([], ""),
    ],
)
def test_genre_words(words: list[str], genres: str) -> None:
    assert genres_of(words) == frozenset(genres.split())


@pytest.mark.parametrize(
    ("areas", "regions", "word"),
    [
        (None, ["中国大陆"], "大陆"),
        (None, ["中国大陆", "中国香港"], "大陆"),
        (None, ["中国香港", "中国大陆"], "香港"),
        (None, ["美国 / 英国"], "美国"),
        (None, ["美国／英国"], "美国"),
        (None, ["意大利", "法国"], "法国"),
        (None, ["马耳他", "美国"], "美国"),
        (None, ["苏联"], None),
        (None, ["戛纳电影节", "法国"], "法国"),
        (None, ["其它"], None),
        (None, ["欧美"], None),
        (None, [], None),
        (None, [""], None),
        ("内地,香港", ["中国大陆"], "内地"),
        ("内地,大陆", ["中国大陆"], "内地"),
        ("中国,美国", ["中国大陆"], "中国"),
        ("大陆,美国", ["意大利"], None),
        ("大陆,美国,其他", ["意大利"], None),
        ("大陆,美国,其他", ["意大利", "西班牙", "美国"], "美国"),
        ("大陆,欧美,美国", ["意大利", "美国"], "欧美"),
        ("大陆,港台,日韩,欧美,其它", ["中国香港"], "港台"),
        ("大陆,港台,日韩,欧美,其它", ["韩国"], "日韩"),
        ("大陆,港台,日韩,欧美,其它", ["法国"], "欧美"),
        ("大陆,港台,日韩,欧美,其它", ["泰国"], None),
        ("欧美,欧洲,其它", ["法国"], "欧洲"),
        ("大陆,海外", ["泰国"], "海外"),
        ("大陆,海外", ["中国香港"], None),
        ("大陆,德国", ["西德"], "德国"),
        ("中國大陸,美國", ["美国"], "美國"),
        ("美国和一切说英语的国家以及其它许多别的地方,其它", ["美国"], None),
    ],
)
def test_the_area_written_is_one_of_the_sites_own_words(
    areas: str | None, regions: list[str], word: str | None
) -> None:
    site = SiteVocabulary() if areas is None else SiteVocabulary(areas=tuple(areas.split(",")))
    assert site.area_for(regions) == word


@pytest.mark.parametrize(
    ("languages", "spoken", "word"),
    [
        (None, ["汉语普通话"], "国语"),
        (None, ["汉语普通话", "英语"], "国语"),
        (None, ["粤语", "汉语普通话"], "粤语"),
        (None, ["英语"], "英语"),
        (None, ["意大利语"], "其它"),
        (None, ["汉语"], "国语"),
        (None, ["四月"], None),
        (None, [], None),
        ("普通话,英语", ["汉语普通话"], "普通话"),
        ("中文,英文", ["粤语"], "中文"),
        ("中文,英文", ["英语"], "英文"),
        ("国语,英语", ["粤语"], None),
        ("国语,英语", ["意大利语"], None),
    ],
)
def test_the_language_written_is_one_of_the_sites_own_words(
    languages: str | None, spoken: list[str], word: str | None
) -> None:
    site = SiteVocabulary() if languages is None else SiteVocabulary(languages=tuple(languages.split(",")))
    assert site.language_for(spoken) == word


@settings(deadline=None)
@given(st.sampled_from(sorted(frozenset().union(*REGION_GROUPS.values()))))
def test_every_region_has_a_word_on_a_site_that_lists_it(code: str) -> None:
    assert SiteVocabulary().area_for([code]) in {*DEFAULT_AREAS, None}
    assert SiteVocabulary(areas=("大陆", "港台", "澳门", "海外")).area_for([code]) is not None


def _extend(**fields: object) -> str:
    return json.dumps({"class": "动作,喜剧", **fields})


def test_a_category_without_words_inherits_its_parents() -> None:
    rows = [
        (1, 0, _extend(area="内地, 美国 ,其它", lang="")),
        (6, 1, _extend(area="", lang="国语，英语")),
        (60, 6, ""),
        (2, 0, _extend(area="港台")),
    ]
    assert SiteVocabulary.by_type(rows) == {
        1: SiteVocabulary(("内地", "美国", "其它"), DEFAULT_LANGUAGES),
        6: SiteVocabulary(("内地", "美国", "其它"), ("国语", "英语")),
        60: SiteVocabulary(("内地", "美国", "其它"), ("国语", "英语")),
        2: SiteVocabulary(("港台",), DEFAULT_LANGUAGES),
    }


@pytest.mark.parametrize(
    "broken",
    ["", "{", "null", "[]", "3", '"大陆"', '{"area": null}', '{"area": ["大陆"], "lang": 3}', '{"area": " , "}'],
)
def test_broken_settings_are_the_shipped_ones(broken: str) -> None:
    assert SiteVocabulary.by_type([(1, 0, broken)])[1] == SiteVocabulary()


def test_parents_in_a_circle_end_at_the_shipped_words() -> None:
    assert SiteVocabulary.by_type([(1, 2, ""), (2, 1, "")])[1] == SiteVocabulary()


def test_settings_saved_html_escaped_are_read() -> None:
    assert SiteVocabulary.by_type([(1, 0, "{&quot;area&quot;:&quot;港台&quot;}")])[1].areas == ("港台",)
