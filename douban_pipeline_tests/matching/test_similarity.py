"""Names of a video and a subject, measured over all their forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import Kind, Subject, Video
from douban_pipeline.matching.similarity import NEAR_EXACT, match_titles, similarity
from douban_pipeline_tests.matching.drawn import SUBJECTS, VIDEOS


def titles(local: str, subject: str, *, aka=(), **known):
    return match_titles(Video(1, local, aliases=aka), Subject(1, subject, **known))


@pytest.mark.parametrize(
    ("local", "subject", "known", "numbers"),
    [
        ("庆余年2", "庆余年 第二季", {}, "agree"),
        ("战狼2", "战狼Ⅱ", {}, "agree"),
        (
            "哈利波特3：阿兹卡班的逃犯",
            "哈利·波特与阿兹卡班的囚徒",
            {"aliases": ("哈利波特3：阿兹卡班的逃犯(港/台)",)},
            "agree",
        ),
        ("庆余年", "庆余年", {}, "neither"),
        ("傲慢与偏见", "傲慢与偏见", {"aliases": ("傲慢与偏见2005",), "year": 2005}, "neither"),
        ("碟仙2019", "碟仙", {"year": 2019}, "neither"),
        ("歌手2024", "歌手2024", {"year": 2024}, "agree"),
        ("歌手2024", "歌手2025", {"year": 2025}, "conflict"),
        ("歌手", "歌手2024", {"year": 2024}, "one-sided"),
        ("歌手 第八季", "歌手2020", {"year": 2020}, "one-sided"),
        ("中餐厅 第九季", "中餐厅 第十季", {}, "conflict"),
        ("中餐厅", "中餐厅 第一季", {}, "one-sided"),
        ("中餐厅", "中餐厅", {"aliases": ("中餐厅 第三季",)}, "one-sided"),
        ("中餐厅", "中餐厅", {"original_title": "中餐厅 第2期"}, "one-sided"),
        ("流人", "流人", {"original_title": "Slow Horses Season 4"}, "one-sided"),
        # The translators count otherwise than the original.
        (
            "惊爆危机 校园篇",
            "全金属狂潮2",
            {"aka": ("フルメタル・パニック? ふもっふ",), "original_title": "フルメタル・パニック? ふもっふ"},
            "neither",
        ),
        ("庆余年 第三季", "庆余年 第二季", {"aka": ("庆余年2",), "aliases": ("庆余年2",)}, "conflict"),
    ],
)
def test_numbers_of_both_sides(local, subject, known, numbers):
    assert titles(local, subject, **known).numbers == numbers


@pytest.mark.parametrize(
    ("local", "subject", "known"),
    [
        ("战狼", "战狼2", {}),
        ("战狼2", "战狼3", {}),
        ("庆余年", "庆余年 第二季", {}),
        ("中餐厅 第九季", "中餐厅 第十季", {}),
        ("红楼梦", "红楼梦之金玉良缘", {}),
        ("英雄", "英雄本色", {}),
        ("凡人修仙传", "凡人修仙传 第三季", {}),
        ("复仇者联盟3：无限战争", "复仇者联盟4：终局之战", {}),
        ("歌手2024", "歌手2025", {"year": 2025}),
        ("碟仙2019", "碟仙", {"year": 1980}),
        ("碟仙2019", "碟仙", {}),
        ("三生三世十里桃花", "十里桃花后传", {}),
        ("路人女主的养成方法♭", "路人女主的养成方法 Fine", {}),
        ("老友记", "六人行", {"original_title": "Friends"}),
        ("", "战狼", {}),
        ("战狼", "", {}),
        ("", "", {}),
        ("《》", "战狼", {}),
        ("远去灯塔", "远去的灯塔", {}),
        ("灯和塔", "灯与塔", {}),
        ("和平年代的灯塔", "与平年代的灯塔", {}),
        # Without 的 they differ in a letter at the end: as much as a season may.
        ("守着渡海的灯塔上唯一一位守灯人X", "守着渡海的灯塔上唯一一位守灯人", {}),
    ],
)
def test_other_works_are_never_near_exact(local, subject, known):
    assert not titles(local, subject, **known).near_exact


@pytest.mark.parametrize(
    ("local", "subject", "known"),
    [
        ("戰狼2", "战狼Ⅱ", {}),
        ("庆余年第2季 更新至12集", "庆余年 第二季", {}),
        ("寻梦环游记 Coco", "寻梦环游记", {"original_title": "Coco"}),
        ("全面启动", "盗梦空间", {"aliases": ("全面启动(台)",)}),
        ("計程車司機", "出租车司机", {}),
        ("2019年惊悚《铤而走险》BD", "铤而走险", {}),
        ("碟仙2019", "碟仙", {"year": 2019}),
        ("Third Man, The", "第三人", {"original_title": "The Third Man"}),
        ("Third Man", "第三人", {"original_title": "The Third Man"}),
        ("《调音师/调琴师》", "调琴师", {}),
        ("庆余年", "庆余年 第一季", {}),
        ("某片", "另一名", {"aka": ("原来如此",), "aliases": ("原来如此",)}),
        ("表错七日情", "表错7日情", {}),
        ("十二怒汉", "12怒汉", {}),
        ("12 Years a Slave", "为奴", {"aliases": ("Twelve Years a Slave",)}),
        ("桂宝大电影之爆笑闯宇宙", "桂宝之爆笑闯宇宙", {}),
        ("守灯人渡海时刻", "守灯人的渡海时刻", {}),
        ("灯塔奇怪的旅行", "灯塔的奇怪旅行", {}),
        ("守灯的灯塔人2", "守灯灯塔人2", {}),
        ("阿松和小灯", "阿松与小灯", {}),
    ],
)
def test_same_works_are_near_exact(local, subject, known):
    assert titles(local, subject, **known).near_exact


@pytest.mark.parametrize(
    ("local", "subject", "known", "via", "only"),
    [
        ("英雄", "英雄", {"aliases": ("英雄",)}, False, False),
        ("全面启动", "盗梦空间", {"aliases": ("全面启动",)}, True, True),
        ("全面启动", "盗梦空间", {"aka": ("盗梦空间",)}, True, False),
        # Of two common names the subject's own title says more.
        ("全面启动", "盗梦空间", {"aka": ("盗梦空间",), "aliases": ("全面启动",)}, True, False),
        ("Inception", "盗梦空间", {"original_title": "Inception"}, False, False),
        # Of one script, the shorter original is no title of the second film.
        ("赛德克·巴莱", "赛德克·巴莱(下)：彩虹桥", {"original_title": "賽德克·巴萊"}, True, True),
    ],
)
def test_titles_are_preferred_to_aliases(local, subject, known, via, only):
    found = titles(local, subject, **known)
    assert (found.near_exact, found.via_alias, found.only_alias) == (True, via, only)


@pytest.mark.parametrize(
    ("local", "subject", "known", "names"),
    [
        ("盗梦空间", "盗梦空间", {}, 1),
        ("盗梦空间", "盗梦空间", {"original_title": "Inception"}, 1),
        ("盗梦空间", "盗梦空间", {"aka": ("Inception",), "original_title": "Inception"}, 2),
        ("盗梦空间", "盗梦空间", {"aka": ("Inception", "全面启动"), "aliases": ("INCEPTION", "全面启动")}, 3),
        ("盗梦空间 Inception", "盗梦空间", {"original_title": "Inception"}, 1),
        ("盜夢空間", "盗梦空间", {"aka": ("盗梦空间",), "aliases": ("盜夢空間",)}, 1),
        ("战狼2", "战狼2", {"aka": ("Wolf Warrior 2",), "aliases": ("Wolf Warrior 2",)}, 2),
        ("战狼2", "战狼2", {"aka": ("Wolf Warrior",), "aliases": ("Wolf Warrior 2",)}, 1),
        ("战狼", "英雄", {}, 0),
    ],
)
def test_names_that_both_bear_are_counted_once_each(local, subject, known, names):
    assert titles(local, subject, **known).names == names


@pytest.mark.parametrize(
    ("local", "subject", "known", "tail"),
    [
        ("龙行天下", "黄飞鸿'92之龙行天下", {}, True),
        ("霸王花之皇家赌船", "皇家赌船", {}, True),
        ("Monty Python's Life of Brian", "万世魔星", {"original_title": "Life of Brian"}, True),
        ("英雄本色", "新英雄本色", {}, False),
        ("黄飞鸿", "黄飞鸿之龙行天下", {}, False),
        ("归来", "英雄之归来", {}, False),
        ("龙行天下", "龙行天下", {}, False),
    ],
)
def test_the_tail_of_a_name_is_what_follows_a_mark(local, subject, known, tail):
    found = titles(local, subject, **known)
    assert found.tail is tail
    assert not (tail and found.near_exact)


@pytest.mark.parametrize(
    ("aka", "original", "subtitled"),
    [
        ("名探偵コナン ロンドンからの秘指令", "名探偵コナン ロンドンからの秘指令", True),
        ("名探偵コナン ロンドンからの秘指令 OVA", "名探偵コナン ロンドンからの秘指令", False),
        ("グリザイアの迷宮", "グリザイアの迷宮", False),
        ("Detective Conan: The London Order", "Detective Conan: The London Order", False),
    ],
)
def test_an_original_with_a_subtitle_is_more_than_a_franchises(aka, original, subtitled):
    found = titles("名侦探柯南", "名侦探柯南", aka=(aka,), original_title=original)
    assert found.same_subtitled is subtitled


@pytest.mark.parametrize(
    ("local", "subject", "contained"),
    [
        ("庆余年传", "庆余年", True),
        ("庆余年", "庆余年传", True),
        ("庆余年", "庆余年", False),
        ("庆余年 第二季", "庆余年 第一季", False),
        ("庆裕年", "庆余年", False),
    ],
)
def test_a_piece_of_a_name_is_known_as_one(local, subject, contained):
    found = titles(local, subject)
    assert found.contained is contained
    assert not (contained and found.near_exact)


@pytest.mark.parametrize(
    ("local", "aka", "original", "differ"),
    [
        ("海贼王", "ワンピース", "ルフィの冒険", True),
        ("海贼王", "ワンピース", "ワンピース", False),
        ("海贼王", "ワンピース", "ワンピース フィルム", False),
        ("信号", "시그널", "신호등 아래에서", True),
        ("信号", "시그널", "", False),
        ("信号", "", "시그널", False),
        # Pinyin, English and the original may differ in Latin letters; two scripts cannot be compared.
        ("信号", "Xin Hao", "Signal", False),
        ("信号", "シグナル", "시그널", False),
    ],
)
def test_originals_in_a_script_of_their_own_have_to_be_alike(local, aka, original, differ):
    assert titles(local, local, aka=(aka,) if aka else (), original_title=original).originals_differ is differ


def test_marks_alone_are_seen():
    assert titles("工作细胞！！", "工作细胞").marks_differ
    assert titles("工作细胞！！", "工作细胞!!").marks_differ is False


@pytest.mark.parametrize(
    ("local", "subject", "known", "mine", "theirs"),
    [
        ("庆余年 第三季", "庆余年 第二季", {}, 3, 2),
        ("庆余年", "庆余年 第二季", {}, None, 2),
        ("庆余年", "庆余年", {"aliases": ("庆余年 第三季",)}, None, 3),
        ("庆余年 第三季", "庆余年 第二季", {"aka": ("庆余年2",), "aliases": ("庆余年2",)}, 3, 2),
    ],
)
def test_the_numbers_said_are_those_that_clash(local, subject, known, mine, theirs):
    found = titles(local, subject, **known)
    assert (found.local_number, found.subject_number) == (mine, theirs)


@pytest.mark.parametrize(
    ("local", "kind", "theirs", "subject", "left"),
    [
        ("名侦探柯南 剧场版", Kind.FILM, Kind.FILM, "名侦探柯南", set()),
        ("名侦探柯南 剧场版", Kind.FILM, Kind.SERIES, "名侦探柯南", {"movie"}),
        ("名侦探柯南 剧场版", None, None, "名侦探柯南", {"movie"}),
        ("名侦探柯南 OVA", None, None, "名侦探柯南 OVA", set()),
        ("名侦探柯南 国语版", None, None, "名侦探柯南", set()),
        ("名侦探柯南 第1-3季", None, None, "名侦探柯南", {"collection", "part-1-3"}),
        ("西游新记 第三、四部", None, None, "西游新记 第一、二部", {"part-3-4", "part-1-2"}),
        ("名侦探柯南", Kind.FILM, Kind.FILM, "名侦探柯南 特别篇", {"special"}),
    ],
)
def test_a_kind_says_what_an_edition_says(local, kind, theirs, subject, left):
    found = match_titles(Video(1, local, kind=kind), Subject(1, subject, kind=theirs))
    assert found.editions_local | found.editions_subject == left


TEXTS = st.text("战狼英雄本色二2三", min_size=1, max_size=8)


@given(TEXTS, TEXTS)
def test_similarity_is_symmetric_and_containment_alone_is_never_near_exact(a, b):
    value = similarity(a, b)
    assert value == pytest.approx(similarity(b, a))
    assert 0 <= value <= 1
    assert (value == 1) is (a == b)
    if a != b and (a in b or b in a):
        assert value < NEAR_EXACT


@given(TEXTS, TEXTS, st.floats(0, 1))
def test_the_short_cut_never_hides_a_better_pair(a, b, best):
    value = similarity(a, b)
    if value > best and value >= 0.4:
        assert similarity(a, b, best) == value


@given(VIDEOS, SUBJECTS)
def test_any_names_can_be_measured(video, subject):
    found = match_titles(video, subject)
    assert 0 <= found.similarity <= 1
    if found.names and not found.local_years:
        assert found.near_exact, "a common name is an equal pair"
