"""Words, people, titles and synopses that do not exist, each drawn from numbers that are the same on every machine."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from itertools import accumulate

Draw = Callable[[], int]
"""Gives the next number of a sequence, 0 to 65,535: ``draw() * n >> 16`` is one of ``n`` things."""

SPAN = 1 << 16
"""How many numbers a draw can give."""

_PER_BLOCK = 32
_numbers = tuple(struct.Struct(f"<{_PER_BLOCK * blocks}H").unpack for blocks in range(1, 4))
_MASK = (1 << 64) - 1


def draws(purpose: bytes, seed: int, number: int, blocks: int = 1) -> Draw:
    """Return the sequence for one thing: 32 numbers for each of up to three ``blocks``, then `StopIteration`.

    Several times quicker than seeding a `random.Random` and drawing as often.
    """
    key = b"%s:%d:%d" % (purpose, seed, number)
    data = blake2b(key).digest()
    if blocks > 1:
        data += blake2b(key, salt=b"1").digest()
    if blocks > 2:
        data += blake2b(key, salt=b"2").digest()
    return iter(_numbers[blocks - 1](data)).__next__


def single(purpose: int, seed: int, number: int) -> int:
    """Return one number alone, as a draw gives, at a fraction of the cost."""
    mixed = (number * 0x9E3779B97F4A7C15 + seed * 0xD1342543DE82EF95 + purpose * 0xDA942042E4DD58B5) & _MASK
    mixed = ((mixed ^ (mixed >> 32)) * 0xBF58476D1CE4E5B9) & _MASK
    return ((mixed ^ (mixed >> 29)) * 0x94D049BB133111EB & _MASK) >> 48


def shares(*weights: tuple[str, float]) -> tuple[str, ...]:
    """Return 1,000 slots filled with the things in proportion to their weights, for `picked`."""
    total = sum(weight for _, weight in weights)
    ends = [round(1000 * end / total) for end in accumulate(weight for _, weight in weights)]
    slots: list[str] = []
    for (thing, _), end in zip(weights, ends, strict=True):
        slots += [thing] * (end - len(slots))
    return tuple(slots)


def picked(slots: tuple[str, ...], draw: Draw) -> str:
    """Return one of `shares`."""
    return slots[draw() * 1000 >> 16]


def listed(text: str) -> tuple[str, ...]:
    """Return the words of a list between spaces."""
    return tuple(text.split())


HEADS = "孤长远冷暖青白黑红金银铁石寒雨风云星夜晨暮春夏秋冬南北东西荒古旧空静深浅轻浮沉醉醒暗归迷烈清浊素玄赤苍碧残幽飞"
TAILS = (
    "城桥灯河江海岭谷峰原野林花叶草雪光影火烟尘沙剑刀弓旗鼓钟琴笛歌舞书画镜船帆港岸岛街巷门窗楼塔院客将军徒心梦魂"
    "誓局案途"
)
"""Any of the first with any of the second is a word of two characters that could stand in a title: 寒江, 旧桥."""

NOUNS = listed("""
    灯塔 码头 列车 站台 钟楼 图书馆 渡口 屋顶 花园 旅馆 邮局 剧院 车站 雪山 沙漠 草原 荒岛 麦田 果园 茶馆 铁轨 电台
    信箱 雨伞 棋局 风筝 陀螺 木偶 候鸟 蝴蝶 鲸鱼 野马 白鹭 狐狸 猎犬 乌鸦 葡萄 玫瑰 银杏 苔藓 极光 潮汐 彗星 黄昏 黎明
    午夜 盛夏 初雪 梅雨 边境 密室 迷宫 地图 日记 遗嘱 契约 谎言 秘密 证词 来信 回声 余烬 裂痕 假面 倒影 约定 传说 年代
    往事 故乡 远方 归期 法则 游戏 航线 轨道 星球 机器 密码 信号 实验 病房 课堂 球场 厨房 食堂 工厂 矿井
""")

PEOPLE = listed("""
    守望者 摆渡人 侦探 裁缝 邮差 医生 律师 船长 猎人 木匠 厨师 画师 琴师 说书人 镖师 捕快 特工 飞行员 记者 修表匠
    养蜂人 牧羊人 法医 警长 教授 间谍 刺客 将军 公主 书生 掌柜 继承人 逃亡者 陌生人 邻居 房客 新娘 少年 歌手 教练
""")

VERBS = listed("""
    寻找 追踪 告别 拯救 重返 走进 逃离 穿越 守护 遇见 唤醒 点亮 破解 夺回 潜入 征服 遗忘 等待 跨过 绕过 迷失 梦回 决战
    突围 直击 远征 漫游 偷渡 飞越 沉入
""")

PLACES = listed("尽头 以南 以北 深处 对岸 之外 背后 边缘 上空 下方 中央 两端")

TRAITS = listed("""
    沉默 温柔 疯狂 隐秘 最后 遥远 透明 倔强 完美 危险 无声 燃烧 失落 逆行 漂流 平凡 滚烫 未知 流浪 永恒
""")

VARIETY = listed("挑战 歌会 厨房 旅行 派对 大会 课堂 出发 擂台 夜话 之王 训练营 研究所 练习生 生活 请回答")

SHORT_DRAMAS = listed("闪婚后 重生后 离婚后 穿书后 退婚后 失忆后 替嫁后 归来后")
SHORT_FATES = listed("""
    我成了首富 她惊艳全城 总裁追悔莫及 全家跪求原谅 我在古代开酒楼 马甲藏不住了 三个哥哥宠上天 我继承了龙王殿
""")

LATIN_TRAITS = listed("""
    Silent Hidden Golden Broken Distant Frozen Crimson Quiet Last Burning Hollow Secret Wild Bitter Gentle Lost
    Endless Paper Velvet Northern Southern Midnight Summer Winter Restless Shallow Iron Silver Fallen Borrowed
""")
LATIN_NOUNS = listed("""
    Harbor River Tower Garden Letter Bridge Station Orchard Mirror Island Valley Lantern Promise Witness Stranger
    Captain Tailor Postman Raven Whale Fox Rose Comet Tide Border Maze Map Diary Echo Ember Mask Shadow Oath Signal
    Engine Machine Ward Kitchen Factory Mine Desert Prairie Lighthouse Railway Theatre Hotel Rooftop Heir Guest Bride
""")
KANA = listed("の と は から まで")
HANGUL = listed(
    "바다 겨울 편지 기차 등대 정원 거울 약속 그림자 새벽 도시 비밀 시간 소년 나비 항구 마지막 여름 노래 골목"
)

SCENES = listed("""
    小城 海边渔村 江南古镇 北方矿区 边境哨所 老式公寓 山间寺院 大学校园 跨国公司 破旧剧院 荒岛营地 环形空间站 王朝都城
    地下码头 乡镇医院
""")

SYLLABLES = listed("""
    an bai bei chang chen cheng chun dao deng dong fei feng gu guang hai han he hong hua huang huo jiang jin jing ju
    ke lan lang leng li lin ling liu long lu mei men meng mi nan ning pu qi qiao qin qing qiu ren sha shan shen shi
    shu shuang song tang tian tu wan wei wu xi xia xian xiang xin xing xue yan yang ye yi yin ying you yu yuan yun
    zhan zhang zhao zhen zheng zhi zhong zhou zhu zi
""")
"""What slugs are made of; like pinyin in length, without being that of the title."""


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


_DIGITS = "零一二三四五六七八九十"


def name(draw: Draw, kind: str, country: str) -> str:
    """Return a name for a work of a ``kind``; takes 6 numbers of ``draw``.

    Of 100,000 some three have a name of two characters that dozens of others have; most are alone with theirs.
    """
    form, a, b, c, d, e = draw() % 100, draw(), draw(), draw(), draw(), draw()
    first = _of(HEADS, a) + _of(TAILS, b)
    if kind == "variety":
        return f"{_of(TRAITS, c)}的{first}{_of(VARIETY, d)}" if form < 40 else first + _of(VARIETY, d)
    if kind == "short":
        return f"{_of(SHORT_DRAMAS, a)}{_of(SHORT_FATES, b)}之{_of(HEADS, c)}{_of(TAILS, d)}"
    second = _of(HEADS, c) + _of(TAILS, d)
    if country not in ("cn", "jp", "kr") and form >= 70:
        given = _of(pool(country), e).partition("·")[0]
        return f"{given}的{first}" if form < 80 else f"{given}与{first}{_of(NOUNS, c)}"
    if form < 2:
        return first
    if form < 30:
        return first + second
    if form < 45:
        return f"{first}的{_of(NOUNS, c)}"
    if form < 58:
        return _of(VERBS, e) + first + _of(NOUNS, c)
    if form < 70:
        return f"{_of(NOUNS, e)}与{second}"
    if form < 80:
        return f"{first}{_of(PLACES, e)}的{_of(PEOPLE, c)}"
    if form < 90:
        return f"{_of(TRAITS, e)}{_of(PEOPLE, c)}之{first}"
    return f"{_of(PEOPLE, e)}{second}{_of(NOUNS, a)}"


def subtitle(draw: Draw) -> str:
    """Return the second half of a sequel's name; takes 2 numbers of ``draw``."""
    return _of(VERBS, draw()) + _of(NOUNS, draw())


def latin(draw: Draw) -> str:
    """Return a name in English; takes 4 numbers of ``draw``."""
    form, a, b, c = draw() % 10, draw(), draw(), draw()
    trait, noun, other = _of(LATIN_TRAITS, a), _of(LATIN_NOUNS, b), _of(LATIN_NOUNS, c)
    if form < 3:
        return f"The {trait} {noun}"
    if form < 6:
        return f"{trait} {noun} of the {other}"
    if form < 8:
        return f"The {other}'s {trait} {noun}"
    return f"{trait} {noun} & {other}"


def native(draw: Draw, country: str) -> str:
    """Return the name in the country's own writing, empty for Chinese; takes 4 numbers of ``draw``."""
    if country == "jp":
        a, b, c, _ = draw(), draw(), draw(), draw()
        return f"{_of(TAILS, a)}{_of(KANA, b)}{_of(HEADS, c)}い{_of(TAILS, c ^ b)}"
    if country == "kr":
        a, b, c, _ = draw(), draw(), draw(), draw()
        return " ".join((_of(HANGUL, a), _of(HANGUL, b), _of(HANGUL, c)))
    return "" if country == "cn" else latin(draw)


def counted(number: int) -> str:
    """Return a season's number in Chinese, 1 to 10."""
    return _DIGITS[number]


def slug(title: str) -> str:
    """Return something like the pinyin that the CMS makes of a title."""
    return "".join(_syllable(character) for character in title)


@cache
def _syllable(character: str) -> str:
    if character.isascii():
        return character.lower() if character.isalnum() else ""
    return SYLLABLES[ord(character) % len(SYLLABLES)]


def _of(things: str | tuple[str, ...], number: int) -> str:
    return things[number * len(things) >> 16]


MOST = 12
"""Sentences of the longest synopsis."""

_OPENINGS = (
    "%(who)s回到阔别多年的%(where)s，却发现记忆里的%(what)s早已不在原处。",
    "一场突如其来的变故打破了%(where)s的平静，%(who)s不得不重新面对当年的%(what)s。",
    "故事发生在%(where)s，身为%(role)s的%(who)s过着与世无争的日子，直到%(what)s出现。",
    "二十年前，%(who)s在%(where)s失去了最重要的人；二十年后，同样的%(what)s再次摆在面前。",
    "初来乍到的%(who)s在%(where)s谋得一份%(role)s的差事，从此卷入与%(what)s有关的风波。",
    "没有人知道%(who)s为什么要守着%(where)s，除了那个同样惦记%(what)s的%(role)s。",
)
_MIDDLES = (
    "%(other)s的到来让事情变得更加复杂，两人从互相提防到并肩而行，一步步接近被掩埋的真相。",
    "随着调查深入，看似毫无关联的几起事件，竟都指向一位%(trait)s的%(role)s。",
    "为了保护家人，%(who)s与%(other)s达成了一个%(trait)s的约定，代价却远比想象中沉重。",
    "昔日好友%(other)s带来一封旧信，信里只有一张画着%(what)s的地图和半句没有写完的话。",
    "在资金断绝、人心涣散的关头，%(other)s挺身而出，用自己的方式替大家守住了%(what)s。",
    "而远在%(where)s的%(other)s，正策划着一场足以改变所有人命运的行动。",
    "误会与隔阂让两代人渐行渐远，直到%(what)s把他们重新带回同一张饭桌前。",
    "%(who)s渐渐明白，自己追逐了半生的%(what)s，其实一直藏在最%(trait)s的角落。",
    "训练、失败、争吵、和解，这支由%(role)s们临时拼凑起来的队伍，终于等来了属于他们的夜晚。",
    "与此同时，神秘的%(role)s频频现身，每一次都恰好赶在线索断掉之前。",
    "面对步步紧逼的对手，%(other)s选择独自承担一切，只留下一句让人费解的嘱托。",
    "战火蔓延至%(where)s，普通人被推上命运的岔路口，离别成了每天都要练习的功课。",
)
_ENDINGS = (
    "当最后一班车驶离%(where)s，%(who)s终于做出了那个迟到多年的决定。",
    "风波过后，%(who)s与%(other)s站在%(what)s前，谁也没有先开口。",
    "真相大白之日，所有人都要为自己的选择付出代价……",
    "这一次，%(who)s能否守住心中那份%(trait)s的信念？",
    "一段关于%(what)s的传奇，就此拉开序幕。",
)


def synopsis(draw: Draw, people: list[str], sentences: int) -> str:
    """Return a synopsis of so many sentences (some 35 characters each); takes ``sentences + 6`` numbers of ``draw``."""
    words = {
        "who": people[0] if people else "他",
        "other": people[-1] if len(people) > 1 else "老友",
        "where": SCENES[draw() * len(SCENES) >> 16],
        "what": NOUNS[draw() * len(NOUNS) >> 16],
        "role": PEOPLE[draw() * len(PEOPLE) >> 16],
        "trait": TRAITS[draw() * len(TRAITS) >> 16],
    }
    parts = [_OPENINGS[draw() * len(_OPENINGS) >> 16]]
    first = draw()
    # In the pool's order from anywhere on: no sentence comes twice.
    parts += [_MIDDLES[(first + n) % len(_MIDDLES)] for n in range(min(sentences - 2, len(_MIDDLES)))]
    if sentences > 1:
        parts.append(_ENDINGS[draw() * len(_ENDINGS) >> 16])
    return "".join(parts) % words
