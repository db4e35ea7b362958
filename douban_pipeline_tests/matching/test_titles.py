"""Titles as sites write them, and what they have to be read as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import cache_key, clean_title, normalise, parse_title, readings
from douban_pipeline.matching.numerals import numeral
from douban_pipeline.matching.titles import lone_mark, wider_readings

# raw, base, number, kind of the number, editions, year
CASES: list[tuple[str, str, int | None, str | None, set[str], int | None]] = [
    # Plain names stay as they are.
    ("霸王别姬", "霸王别姬", None, None, set(), None),
    ("  霸王别姬  ", "霸王别姬", None, None, set(), None),
    ("哈利·波特与魔法石", "哈利波特与魔法石", None, None, set(), None),
    ("蜘蛛侠：英雄归来", "蜘蛛侠英雄归来", None, None, set(), None),
    ("The Third Man", "thethirdman", None, None, set(), None),
    ("Third Man, The", "thethirdman", None, None, set(), None),
    ("Matter of Life and Death, A", "amatteroflifeanddeath", None, None, set(), None),
    ("Léon", "leon", None, None, set(), None),
    ("ＷＡＬＬ・Ｅ", "walle", None, None, set(), None),
    ("Some Like It Hot", "somelikeithot", None, None, set(), None),
    ("战狼2 HOT", "战狼", 2, "sequel", set(), None),
    # The Turkish letter is no I.
    ("Kurtlar Vadisi Vol. İX", "kurtlarvadisivolix", None, None, set(), None),
    # Numbers that are the name.
    ("2046", "2046", None, None, set(), None),
    ("1917", "1917", None, None, set(), None),
    ("2012", "2012", None, None, set(), None),
    ("24", "24", None, None, set(), None),
    ("９号秘事", "9号秘事", None, None, set(), None),
    ("9号秘事", "9号秘事", None, None, set(), None),
    ("12怒汉", "12怒汉", None, None, set(), None),
    ("第九区", "第九区", None, None, set(), None),
    ("第二十条", "第二十条", None, None, set(), None),
    ("9-1-1 紧急救援", "911紧急救援", None, None, set(), None),
    ("F1：狂飙飞车", "f1狂飙飞车", None, None, set(), None),
    ("K-19", "k19", None, None, set(), None),
    ("007", "007", None, None, set(), None),
    ("寄生虫100", "寄生虫100", None, None, set(), None),
    ("新世纪福音战士新剧场版：3.0+1.0", "新世纪福音战士新剧场版3010", None, None, set(), None),
    ("乱马1/2", "乱马12", None, None, set(), None),
    ("星期三", "星期三", None, None, set(), None),
    ("十三罗汉", "十三罗汉", None, None, set(), None),
    ("V字仇杀队", "v字仇杀队", None, None, set(), None),
    ("X战警", "x战警", None, None, set(), None),
    ("二十五，二十一", "二十五二十一", None, None, set(), None),
    # Sequels.
    ("战狼2", "战狼", 2, "sequel", set(), None),
    ("战狼２", "战狼", 2, "sequel", set(), None),
    ("战狼Ⅱ", "战狼", 2, "sequel", set(), None),
    ("战狼II", "战狼", 2, "sequel", set(), None),
    ("战狼②", "战狼", 2, "sequel", set(), None),
    ("战狼 2", "战狼", 2, "sequel", set(), None),
    ("速度与激情10", "速度与激情", 10, "sequel", set(), None),
    ("速度与激情Ⅹ", "速度与激情", 10, "sequel", set(), None),
    ("洛奇Ⅳ", "洛奇", 4, "sequel", set(), None),
    ("Rocky IV", "rocky", 4, "sequel", set(), None),
    ("Apollo 13", "apollo", 13, "sequel", set(), None),
    ("复仇者联盟3：无限战争", "复仇者联盟无限战争", 3, "sequel", set(), None),
    ("复仇者联盟3:无限战争", "复仇者联盟无限战争", 3, "sequel", set(), None),
    ("复仇者联盟 3 ： 无限战争", "复仇者联盟无限战争", 3, "sequel", set(), None),
    ("复仇者联盟4：终局之战", "复仇者联盟终局之战", 4, "sequel", set(), None),
    ("暮光之城3：月食", "暮光之城月食", 3, "sequel", set(), None),
    ("唐人街探案3(2021)", "唐人街探案", 3, "sequel", set(), 2021),
    ("咒术回战 0", "咒术回战", 0, "sequel", set(), None),
    ("招魂（2）", "招魂", 2, "sequel", set(), None),
    # Seasons and parts.
    ("庆余年 第二季", "庆余年", 2, "season", set(), None),
    ("庆余年第二季", "庆余年", 2, "season", set(), None),
    ("庆余年 第2季", "庆余年", 2, "season", set(), None),
    ("庆余年 第２季", "庆余年", 2, "season", set(), None),
    ("庆余年第 二 季", "庆余年", 2, "season", set(), None),
    ("庆余年(第二季)", "庆余年", 2, "season", set(), None),
    ("庆余年【第二季】", "庆余年", 2, "season", set(), None),
    ("庆余年 2季", "庆余年", 2, "season", set(), None),
    ("慶餘年 第二季", "庆余年", 2, "season", set(), None),
    ("庆余年第一季", "庆余年", 1, "season", set(), None),
    ("犯罪心理 第十五季", "犯罪心理", 15, "season", set(), None),
    ("犯罪心理 第二十季", "犯罪心理", 20, "season", set(), None),
    ("犯罪心理 第廿一季", "犯罪心理", 21, "season", set(), None),
    ("辛普森一家 第三十五季", "辛普森一家", 35, "season", set(), None),
    ("Friends Season 3", "friends", 3, "season", set(), None),
    ("我的英雄学院 2nd Season", "我的英雄学院", 2, "season", set(), None),
    ("OVERLORD Second Season", "overlord", 2, "season", set(), None),
    ("白夜追凶S01E05", "白夜追凶", 1, "season", set(), None),
    ("白夜追凶 S2", "白夜追凶", 2, "season", set(), None),
    ("银魂 第4期", "银魂", 4, "season", set(), None),
    ("大侦探波洛 第八季 - 古墓之谜", "大侦探波洛古墓之谜", 8, "season", set(), None),
    ("凡人修仙传 第三季：星海飞驰篇", "凡人修仙传星海飞驰篇", 3, "season", set(), None),
    ("指环王 第二部", "指环王", 2, "part", set(), None),
    ("三体 第一部分", "三体", 1, "part", set(), None),
    ("Kill Bill: Vol. 2", "killbill", 2, "part", set(), None),
    ("Dune: Part Two", "dune", 2, "part", set(), None),
    ("疾速追杀 Chapter 4", "疾速追杀", 4, "part", set(), None),
    ("进击的巨人 第三季 Part.2", "进击的巨人", 3, "season", {"part-2"}, None),
    # Brands of a year, and years a site adds.
    ("歌手2024", "歌手", 2024, "year", set(), None),
    ("歌手 2025", "歌手", 2025, "year", set(), None),
    ("银翼杀手2049", "银翼杀手", 2049, "year", set(), None),
    ("唐人街探案1900", "唐人街探案", 1900, "year", set(), None),
    ("红楼梦 (1987)", "红楼梦", None, None, set(), 1987),
    ("红楼梦（1987）", "红楼梦", None, None, set(), 1987),
    ("红楼梦[1987]", "红楼梦", None, None, set(), 1987),
    ("红楼梦 1987版", "红楼梦", None, None, set(), 1987),
    ("红楼梦 1987年版", "红楼梦", None, None, set(), 1987),
    ("红楼梦87版", "红楼梦", None, None, set(), 1987),
    ("神雕侠侣06版", "神雕侠侣", None, None, set(), 2006),
    # Junk of a site.
    ("霸王别姬HD", "霸王别姬", None, None, set(), None),
    ("霸王别姬BD1080P", "霸王别姬", None, None, set(), None),
    ("霸王别姬 4K REMUX (1993)", "霸王别姬", None, None, set(), 1993),
    ("霸王别姬 1080p.BluRay.x264-CHD", "霸王别姬", None, None, set(), None),
    ("霸王别姬.1993.720P.H264.mp4", "霸王别姬", None, None, set(), 1993),
    ("霸王别姬 中英双字", "霸王别姬", None, None, set(), None),
    ("霸王别姬 BD中英双字幕无水印", "霸王别姬", None, None, set(), None),
    ("霸王别姬 蓝光", "霸王别姬", None, None, set(), None),
    ("霸王别姬[HD中字]", "霸王别姬", None, None, set(), None),
    ("霸王别姬【高清】", "霸王别姬", None, None, set(), None),
    ("三体 全30集", "三体", None, None, set(), None),
    ("三体30集全", "三体", None, None, set(), None),
    ("三体 更新至12集", "三体", None, None, set(), None),
    ("三体更新至【12】集", "三体", None, None, set(), None),
    ("三体 更新至第12集", "三体", None, None, set(), None),
    ("三体 已完结", "三体", None, None, set(), None),
    ("三体 第30集", "三体", None, None, set(), None),
    ("庆余年第二季全36集", "庆余年", 2, "season", set(), None),
    ("庆余年 第二季 4K 国语中字", "庆余年", 2, "season", set(), None),
    ("战狼2 HD国语", "战狼", 2, "sequel", {"mandarin"}, None),
    ("2018年悬疑剧情《风语咒》HD国语中英双字", "风语咒", None, None, set(), 2018),
    ("2012最新《无敌大电影/大无敌》720p.BD中英双字", "无敌", None, None, {"movie"}, 2012),
    ("1024分辨率/08最新高分《海角七号》BD中字无水印", "海角七号", None, None, set(), None),
    ("《战狼》2", "战狼", 2, "sequel", set(), None),
    ("《战狼2》BD1080P", "战狼", 2, "sequel", set(), None),
    ("电影《你好，李焕英》", "你好李焕英", None, None, set(), None),
    # Editions.
    ("无间道 国语版", "无间道", None, None, {"mandarin"}, None),
    ("无间道粤语", "无间道", None, None, {"cantonese"}, None),
    ("【国语】无间道", "无间道", None, None, {"mandarin"}, None),
    ("無間道國語版", "无间道", None, None, {"mandarin"}, None),
    ("功夫3D", "功夫", None, None, {"3d"}, None),
    ("色戒 未删减版", "色戒", None, None, {"uncut"}, None),
    ("天堂电影院 导演剪辑版", "天堂电影院", None, None, {"cut"}, None),
    ("名侦探柯南 剧场版", "名侦探柯南", None, None, {"movie"}, None),
    ("火影忍者剧场版2", "火影忍者", 2, "sequel", {"movie"}, None),
    ("全职高手 第二季 OVA", "全职高手", 2, "season", {"ova"}, None),
    ("夏目友人帐 特别篇", "夏目友人帐", None, None, {"special"}, None),
    ("中餐厅 第九季 纯享版", "中餐厅", 9, "season", {"pure"}, None),
    ("中餐厅 第九季 加更版", "中餐厅", 9, "season", {"extra"}, None),
    ("男子高中生的日常 真人版", "男子高中生的日常", None, None, {"live"}, None),
    ("办公室(美版)第三季", "办公室", 3, "season", {"us"}, None),
    ("办公室(美版) 第三季", "办公室", 3, "season", {"us"}, None),
    ("流星花园 台版", "流星花园", None, None, {"tw"}, None),
    ("进击的巨人 最终季", "进击的巨人", None, None, {"final"}, None),
    ("哈利·波特与死亡圣器(上)", "哈利波特与死亡圣器", None, None, {"upper"}, None),
    ("赛德克·巴莱(下)：彩虹桥", "赛德克巴莱彩虹桥", None, None, {"lower"}, None),
    ("浪客剑心 最终章", "浪客剑心", None, None, {"final"}, None),
    ("老友记 1-10季", "老友记", None, None, {"collection", "part-1-10"}, None),
    ("绝望主妇 第一季 全集", "绝望主妇", 1, "season", set(), None),
    ("三体 预告片", "三体", None, None, {"trailer"}, None),
    # Words that look like junk or numbers but are the name.
    ("国语老师", "国语老师", None, None, set(), None),
    ("特别篇", "特别篇", None, None, set(), None),
    ("第二季", "第二季", None, None, set(), None),
    ("高清", "高清", None, None, set(), None),
    ("完美世界", "完美世界", None, None, set(), None),
    ("？？", "??", None, None, set(), None),
    ("无间道 没人认识的尾巴", "无间道没人认识的尾巴", None, None, set(), None),
]


@pytest.mark.parametrize(("raw", "base", "number", "kind", "editions", "year"), CASES, ids=[case[0] for case in CASES])
def test_title_is_taken_apart(raw, base, number, kind, editions, year):
    parsed = parse_title(raw)
    assert (parsed.base, parsed.number, parsed.number_kind, set(parsed.editions), parsed.year) == (
        base,
        number,
        kind,
        editions,
        year,
    )
    assert parsed.raw == raw


def test_the_table_is_large_enough_to_mean_something():
    assert len({case[0] for case in CASES}) >= 120


@pytest.mark.parametrize(
    ("raw", "others"),
    [
        ("碟仙2019", [("碟仙", None, 2019)]),
        ("无间道二", [("无间道", 2, None)]),
        ("2018年剧情《小偷家族/小偷一家》BD中字", [("小偷一家", None, 2018)]),
        ("計程車司機", [("出租车司机", None, None)]),
        ("战狼2", []),
        ("2046", []),
    ],
)
def test_other_readings_are_offered(raw, others):
    assert [(r.base, r.number, r.year) for r in readings(raw)[1:]] == others


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("慶餘年", "庆余年"),
        ("鍾馗捉妖記", "钟馗捉妖记"),
        ("侏儸紀公園", "侏罗纪公园"),
        ("執著的愛", "执着的爱"),
        ("妳的名字", "你的名字"),
        ("牠", "它"),
        ("機動戰士", "机动战士"),
        ("Ｄｒ．ＳＴＯＮＥ", "Dr.STONE"),
        ("泽野弘之", "沢野弘之"),
        ("鬼滅の刃", "鬼灭的刃"),
        ("A.I.", "ai"),
        ("蓦然回首！", "蓦然回首"),
    ],
)
def test_writings_that_are_the_same(a, b):
    assert normalise(a) == normalise(b)


@pytest.mark.parametrize(
    ("a", "b"), [("战狼", "战狼2"), ("？？", "？"), ("か", "が"), ("第一季", "第二季"), ("歌手", "歌王")]
)
def test_writings_that_differ(a, b):
    assert normalise(a) != normalise(b)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("庆余年 第二季 更新至12集", "庆余年 第二季"),
        ("庆余年第二季[国语]", "庆余年第二季"),
        ("2019年惊悚《寄生虫》BD", "寄生虫"),
        ("中餐厅 第九季 纯享版 HD", "中餐厅 第九季 纯享版"),
        ("哈利·波特与死亡圣器(上) 1080P", "哈利·波特与死亡圣器(上)"),
        ("慶餘年", "庆余年"),
        ("Third Man, The", "The Third Man"),
    ],
)
def test_clean_title_is_for_people(raw, shown):
    assert clean_title(raw) == shown


def test_cache_key_joins_writings_and_parts_works():
    assert cache_key("庆余年 第二季 HD") == cache_key("慶餘年第2季") == cache_key("庆余年2")
    assert len({cache_key(t) for t in ("庆余年", "庆余年2", "庆余年 特别篇", "庆余年(2019)")}) == 4


def test_marks_are_kept_apart_from_the_base():
    one, two = parse_title("干物妹！小埋"), parse_title("干物妹！小埋R")
    assert one.base != two.base
    assert parse_title("工作细胞！！").marks == "!!"
    assert parse_title("工作细胞！！").base == parse_title("工作细胞！").base


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("一", 1),
        ("十", 10),
        ("十二", 12),
        ("二十", 20),
        ("二十三", 23),
        ("廿三", 23),
        ("卅", 30),
        ("两", 2),
        ("一百", 100),
        ("一百零八", 108),
        ("三百二十一", 321),
        ("二〇", 20),
        ("12", 12),
        ("iv", 4),
        ("XXXIX", 39),
        ("third", 3),
        ("Ten", 10),
        ("", None),
        ("十百", None),
        ("一二三四五", None),
        ("IIII", None),
        ("上", None),
        ("abc", None),
        ("12345", None),
    ],
)
def test_numerals(text, value):
    assert numeral(text) == value


@given(st.text(max_size=30))
def test_normalise_is_idempotent(text):
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(max_size=40))
def test_any_text_can_be_read(text):
    for reading in readings(text):
        assert reading.raw == text
        assert reading.number is None or reading.number >= 0
        # A title of something never becomes a title of nothing.
        assert bool(reading.base) == bool(normalise(text)) or "《" in text


def said(parsed):
    """Return the name, with a year that belongs to it, the number of the part, the stated year, and the episode."""
    brand = str(parsed.number) if parsed.number_kind == "year" and parsed.number is not None else ""
    number = None if brand else parsed.number
    return (
        parsed.base + brand,
        number,
        parsed.year,
        parsed.episodes[1] if parsed.episodes and not parsed.complete else None,
    )


@pytest.mark.parametrize(
    ("raw", "name", "number", "year", "episode", "by"),
    [
        ("新精武门1991 (1991)", "新精武门1991", None, 1991, None, "first"),
        ("哆啦A梦：大雄的宇宙小战争 2021 (2022)", "哆啦A梦:大雄的宇宙小战争2021", None, 2022, None, "first"),
        ("Jade Dynasty 2022 S01E07 2160p WEB-DL H265 AAC-PTerWEB", "Jade Dynasty", 1, 2022, 7, "first"),
        ("无敌浩克.国英双语双字", "无敌浩克", None, None, None, "first"),
        ("The.Bourne.Supremacy.谍影重重2.至尊伯恩.双语字幕", "谍影重重 至尊伯恩", 2, None, None, "wider"),
        ("不 (2022)", "不", None, 2022, None, "first"),
        ("当男人恋爱时", "当男人恋爱时", None, None, None, "first"),
        ("Midnight.Special.2016.720p.BluRay.x264-GECKOS", "Midnight Special", None, 2016, None, "first"),
        (
            "Resident.Evil.The.Final.Chapter.2016.1080p.BluRay.DTS.x264-PriMaLHD",
            "Resident Evil The Final Chapter",
            None,
            2016,
            None,
            "first",
        ),
        ("I'm a Cyborg But Thats OK 2006", "I'm a Cyborg But Thats OK", None, 2006, None, "other"),
        ("Форрест Гамп / Forrest Gump (1994)", "Forrest Gump", None, 1994, None, "other"),
        ("Re：从零开始的异世界生活 第二季 后半部分", "Re:从零开始的异世界生活", 2, None, None, "first"),
        ("Re：从零开始的异世界生活 第二季 前半部分", "Re:从零开始的异世界生活", 2, None, None, "first"),
        ("咒术回战 死灭回游", "咒术回战 死灭回游", None, None, None, "first"),
        ("DDDD恶魔的破坏 TV版", "DDDD恶魔的破坏", None, None, None, "first"),
        ("死神少爺與黑女僕 第二季（僅限港澳台地區）", "死神少爷与黑女仆", 2, None, None, "first"),
        ("神探狄仁杰第一部", "神探狄仁杰", 1, None, None, "first"),
        ("WandaVision.S01E08.2021.1080p.WEB-DL.x265.10bit.AC3-BitsTV", "WandaVision", 1, 2021, 8, "first"),
        ("冰与火之歌S02.列王的纷争.2012.1080p.Blu-ray.x265.10bit.AC3", "冰与火之歌", 2, 2012, None, "wider"),
        ("摇曳露营", "摇曳露营", None, None, None, "first"),
        ("没有辣妹会对阿宅温柔!?", "没有辣妹会对阿宅温柔!?", None, None, None, "first"),
        ("2012末日浩劫", "2012末日浩劫", None, None, None, "first"),
        ("The Long Season S01E05 2023 1080p WEB-DL H265 AAC-ADWeb", "The Long Season", 1, 2023, 5, "first"),
        ("名侦探柯南 犯人犯泽先生", "名侦探柯南 犯人犯泽先生", None, None, None, "first"),
        ("美しい彼　第４話【萩原利久・八木勇征ダブル主演★ドラマ特区】[字]", "美しい彼", None, None, 4, "first"),
        ("[FSP DN] Sword of Coming Episode 12 4K HEVC AAC EAC-3", "Sword of Coming", None, None, 12, "first"),
        (
            "[NEOQSW] MACROSS7 THE MOVIE [The_Galaxy_Is_Calling_Me][1440x1080 10Bit-HEVC FLAC]",
            "MACROSS7 THE MOVIE The Galaxy Is Calling Me",
            None,
            None,
            None,
            "wider",
        ),
        ("狐妖小红娘月红篇", "狐妖小红娘月红篇", None, None, None, "first"),
        (
            "2022年10月新番 点满农民相关技能后，不知为何就变强了。 / 農民関連のスキルばっか 第02集 *内封简繁软字幕*",
            "点满农民相关技能后，不知为何就变强了。",
            None,
            2022,
            2,
            "first",
        ),
        ("唐朝诡事录第二季", "唐朝诡事录", 2, None, None, "first"),
        (
            "負けヒロインが多すぎる！ - S01E01 - プロ幼馴染み八奈見杏菜の負けっぷり",
            "負けヒロインが多すぎる!",
            1,
            None,
            1,
            "first",
        ),
        ("二十不惑 D", "二十不惑 D", None, None, None, "first"),
        (
            "Yes, Prime Minister s01e01 (The Grand Design) [PAL][DVD][DD2] x264",
            "Yes, Prime Minister",
            1,
            None,
            1,
            "first",
        ),
        ("One.Piece.S01E01.2023.1080p.NF.WEB-DL.DDP5.1.Atmos.H264-HHWEB", "One Piece", 1, 2023, 1, "first"),
        ("BanG Dream! PICO 第二季", "BanG Dream! PICO", 2, None, None, "first"),
        ("死神少爷与黑女仆 全25话", "死神少爷与黑女仆", None, None, None, "first"),
        ("间谍过家家 S00E06", "间谍过家家", 0, None, 6, "first"),
        ("[Sub-Raws] Sword of Coming S3 - 01 [1080p]", "Sword of Coming", 3, None, 1, "first"),
        ("[Sub-Raws] Sword of Coming - 05v2 [1080p]", "Sword of Coming", None, None, 5, "first"),
        ("剑来 S3 - 01", "剑来", 3, None, 1, "first"),
        ("歌手 2024 S01E02", "歌手2024", 1, None, 2, "other"),
        ("剑来 第二季(仅限台湾地区)", "剑来", 2, None, None, "first"),
        ("异形3 Assembly Cut", "异形", 3, None, None, "first"),
        ("Alien 3 (Assembly Cut)", "Alien", 3, None, None, "first"),
        ("The Ultimate Cut", "The Ultimate Cut", None, None, None, "first"),
        ("[REC] 2", "REC", 2, None, None, "first"),
        ("教父 第2集", "教父", 2, None, None, "first"),
        ("Star Wars: Episode 4 - A New Hope", "Star Wars: Episode: A New Hope", 4, None, None, "first"),
    ],
)
def test_what_people_name_files_and_broadcasts(raw, name, number, year, episode, by):
    """*by*: the first reading, another one, or only one that omits words, which finds works but never links them."""
    first, *others = map(said, readings(raw))
    found = {"first": [first], "other": others, "wider": list(map(said, wider_readings(raw)))}
    assert (normalise(name), number, year, episode) in found[by]
    assert by == "first" or (normalise(name), number, year, episode) != first


NAMES = st.sampled_from(["长安十二时辰", "繁花", "狂飙", "琅琊榜", "白夜追凶", "甄嬛传"])
JUNK = st.lists(
    st.sampled_from(
        [" HD", "BD1080P", " 更新至12集", "全76集", " 中英双字", "[国语]", "（粤语版）", " 4K", "蓝光", " 已完结"]
    ),
    max_size=3,
)


@given(NAMES, st.integers(2, 30), JUNK)
def test_junk_neither_hides_nor_invents_a_number(name, number, junk):
    tail = "".join(junk)
    assert parse_title(name + tail).number is None
    seasoned = parse_title(f"{name} 第{number}季{tail}")
    assert (seasoned.base, seasoned.number) == (name, number)


def test_a_text_that_is_too_long_for_a_mark_is_not_read_as_one():
    assert lone_mark("第二季 " * 5) is not None
    assert lone_mark("第二季 " * 500) is None
