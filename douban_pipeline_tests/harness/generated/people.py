"""People that do not exist: some 90,000 names, a few of them in very many casts."""

from __future__ import annotations

from functools import cache

from douban_pipeline_tests.harness.generated.draws import SPAN, Draw
from douban_pipeline_tests.harness.generated.words import listed

_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴"
    "夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_GIVEN = (
    "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰春菊梅红志建国庆云飞龙海波宁辉鹏浩宇轩子涵雨欣梓怡思佳俊"
    "熙一诺语嫣晨曦若初知远景行书瑶嘉树望舒清和安然亦凡星河牧野青禾见微"
)
_LATIN_GIVEN = listed("""
    亚瑟 艾琳 贝拉 本杰明 卡罗尔 克莱尔 丹尼尔 黛安娜 爱德华 埃莉诺 弗兰克 弗洛拉 乔治 格蕾丝 亨利 海伦 伊恩 伊莎贝尔
    杰克 简 凯文 凯瑟琳 利奥 露西 马丁 玛丽安 尼克 娜奥米 奥斯卡 奥利维娅 保罗 佩内洛普 罗宾 罗莎 塞缪尔 索菲 汤姆
    特蕾莎 维克多 薇拉
""")
_LATIN_FAMILY = listed("""
    阿什福德 贝克 布莱克 坎贝尔 卡特 戴维斯 邓恩 艾略特 费舍尔 福斯特 加德纳 格林 哈珀 霍克 英格拉姆 詹金斯 凯勒
    金斯利 莱恩 朗 马洛 米勒 诺兰德 奥康奈 帕克 佩里 奎因 雷诺 罗斯 桑德斯 斯隆 泰勒 厄普顿 万斯 沃尔特 韦伯 怀特 伍德
    约克 泽尔纳 科瓦奇 莫罗 德尚 里奇 贝尔纳 罗西 费拉里 穆勒 施密特 伊万诺夫 佩特罗夫 林德 汉森 卡普尔 沙玛 梅塔
    阿隆索 加西亚
""")
_INITIALS = "ABCDEFGHJKLMRST"
_JAPANESE_FAMILY = listed("""
    佐藤 铃木 高桥 田中 伊藤 渡边 山本 中村 小林 加藤 吉田 山田 松本 井上 木村 清水 山崎 森田 池田 桥本 石川 小川 冈田
    长谷川 藤原 三浦 原田 中岛 前田 远藤 青木 坂本 村上 太田 金子 藤井 福田 西村 竹内 上野 大野 松田 中川 中野 河野
    小野 田村
""")
_JAPANESE_GIVEN = listed("""
    健一 翔太 直树 大辅 和也 雄介 诚 修平 隆之 阳介 美咲 由美 惠子 真由 彩香 千夏 奈绪 樱子 明日香 里美 沙织 结衣 茜
    琴音 遥 悠真 莲 凑 大和 阳翔 树 苍 新 直人 拓海 健太 亮 刚 悟 学 葵 芽衣 杏 凛 花 铃 爱 瞳 舞 步美 优子 智子
    久美子 典子 纯子
""")
_KOREAN_FAMILY = "金李朴崔郑姜赵尹张林韩吴徐申权黄安宋柳洪全高文孙梁裴白许南沈"
_KOREAN_GIVEN = listed("""
    敏俊 志勋 贤宇 道允 瑞俊 泰民 俊赫 宰贤 智恩 秀妍 惠珍 敏雅 多恩 荷娜 艺琳 素熙 允儿 恩彩 正浩 成勋 东旭 在元 美京
    宝拉 世荣 镇宇 胜贤 炳宪 秉俊 光洙 基范 钟硕 承宪 善宇 民基 恩惠 智媛 秀智 惠利 宥真 书贤 佳恩 采元 世京 多美 美娜
    静雅 宝英 智友 有美
""")


@cache
def pool(country: str) -> tuple[str, ...]:
    """Return everybody who may play in a work of ``country`` (``cn``, ``jp``, ``kr``, or anything for the rest)."""
    if country == "cn":
        short = [family + given for given in _GIVEN for family in _SURNAMES]
        # Not everybody there could be: names are to meet again.
        long = [
            family + first + second
            for n, family in enumerate(_SURNAMES)
            for first in _GIVEN[n % 5 :: 5]
            for second in _GIVEN[n % 4 :: 4]
        ]
        return (*short, *long)
    if country == "jp":
        return tuple(family + given for given in _JAPANESE_GIVEN for family in _JAPANESE_FAMILY)
    if country == "kr":
        return tuple(family + given for given in _KOREAN_GIVEN for family in _KOREAN_FAMILY)
    middles = ("·", *(f"·{initial}·" for initial in _INITIALS))
    return tuple(given + middle + family for middle in middles for given in _LATIN_GIVEN for family in _LATIN_FAMILY)


def cast(draw: Draw, country: str, count: int) -> list[str]:
    """Return ``count`` people of a country, now and then one less; takes ``2 * count`` numbers of ``draw``.

    The first of the pool come far more often than the last: a hundredth of them has a fifth of the parts.
    """
    names = pool(country)
    size = len(names)
    found: dict[str, None] = {}
    for _ in range(count):
        place = draw() / SPAN
        found[names[(int(place * place * place * size) + (draw() & 7)) % size]] = None
    return list(found)
