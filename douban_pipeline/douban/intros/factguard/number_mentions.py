"""The numbers in a text, in any notation: 120, １２０, 一百二十, 二〇一八年, 3.5亿, 第二季, 九十年代, 百分之三十.

Many numerals of the language count nothing. These rules separate numbers from words: digits always count; so does a
numeral of two or more characters, unless it is part of a phrase (`_PHRASES`); a single numeral counts before a unit,
where 一 and 两 need more than a measure word: 两个人 is language, 两年 is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from douban_pipeline.douban.intros.factguard.plain_text import plain
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.matching.numerals import roman_value
from douban_pipeline.matching.titles import readings

# Only phrases that the rules of `number_mentions` would take for a number; 一 and most of 两 are excluded by the rules.
_PHRASES = """
万一 万千 万岁 千千万万 成千上万 成百上千 百里挑一 以一当十 以一敌百 十分(?!钟|之) 十万火急 十有八九 十之八九 十年寒窗
十八般武艺 十八层地狱 十八罗汉 十二生肖 十二星座 十二时辰 十万八千里 十月怀胎 十年如一日 十年磨一剑 双十一 二十四节气
二十四孝 二十四史 二十四小时营业 二十八星宿 三十六计 三十而立 四十不惑 五十知天命 三十年河东 三十年河西 七十二变
七十二家房客 七十二行 三百六十行 三百六十度 一百八十度 一百零八将 三六九等 三七二十一 不管三七二十一 九九八十一难
一五一十 一二三四 接二连三 独一无二 说一不二 一分为二 数一数二 三三两两 三番五次 三番两次 三番四次 三头六臂 三年五载
三天两头 三天三夜 三下五除二 三五成群 三五好友 三五知己 三分天下 三人成虎 三人行 三口之家 三代同堂 四代同堂 三九 再三
举一反三 事不过三 三回九转 两三 三两 三五 一两 一二 隔三差五 隔三岔五 丢三落四 颠三倒四 朝三暮四 推三阻四 不三不四
低三下四 张三李四 四分五裂 四季如春 四季更迭 四季更替 四季变换 四季流转 四季轮回 四季变化 四季轮转 四季美景 四季风光
四季的 四季分明 一年四季 四季里 四周 四起 四大名著 四大皆空 四大天王 四两拨千斤 五花八门 五大三粗 五四运动 五四时期
五四青年 五一 六根清净 六道轮回 六月飞雪 第六感 七零八落 七七八八 乱七八糟 横七竖八 七大姑八大姨 杂七杂八 七老八十
八九不离十 半斤八两 胡说八道 九天 九五之尊 九重天 九九归一 十九八九 七七事变 九一八 一二八 一二九 三八线 三八妇女节
六一儿童节 八一建军 十一黄金周 百分百 百分之百 千分之一 万分之一 二分之一 三次元 四次元 第二次世界大战 第二天 第二次
第二春 第二人生 第二个家 第二故乡 第三者 第三方 第三世界 第三只眼 第四面墙 第五纵队 第二性 五台山 三点一线 斤斤两两
三级跳 四两 万万千千 二话不说 二话 二元 两回事 两点一线 九成九 一传十 十传百 一百零一种 三三制 一一 七十二般 三餐四季
"""

_UNIT_NUMERALS = "零〇一二两三四五六七八九十百千万亿"


def _phrase(word: str) -> str:
    """Return the pattern of a phrase; it does not match within a numeral: 十分 in 九十分, 一二 in 二〇一二."""
    before = f"(?<![{_UNIT_NUMERALS}第])" if word[0] in _UNIT_NUMERALS else ""
    after = f"(?![{_UNIT_NUMERALS}])" if word[-1] in _UNIT_NUMERALS else ""
    return f"{before}{word}{after}"


@cache
def _phrases() -> re.Pattern[str]:
    """Return the pattern of any phrase, the longest first; compiled on first use, since few processes check texts."""
    return re.compile("|".join(map(_phrase, sorted(_PHRASES.split(), key=len, reverse=True))))


STRONG_UNITS = (
    "周年|年代|年级|个?年头|年|岁|旬|季|辑|集|话|回合|回|期|部曲|部|章|卷|篇|届|座|项|亿|万|元|块钱|美元|美金|英镑|欧元|日元"
    "|人次|人民币|个?世纪|个?小时|分钟|秒钟?|个?星期|个?月|个?礼拜|天|日|周(?!围|边|遭|折|旋|全|末)|夜|晚|号|点钟?"
    "|度电|米|公里|千米|厘米|英里|海里|里地|斤|公斤|千克|吨|亩|平方|光年|站路|国联军|个?国家|个?民族|个?省|个?城市"
    "|个?单元|分之|成(?=的|以|收|股|观)|集团军"
)
"""Before these units even 两 is a number: 两年, 两集, 两座城. So is a single 十 or 三."""

PLAIN_UNITS = (
    "个|位|名(?!著|叫|为|字)|人|口(?=人|之)|只|条|件|起|次|趟|场|轮|层|级|倍|种|类|段|对|双|张|本|门|道|关|局|颗|把|台"
    "|辆|艘|架|头|封|幅|间|栋|所|大|重|方(?=势|面|人|阵|力)|支|队|组|家|代|股|款|首|根|匹|枚|员|姐妹|兄弟|女性?|男"
    "|幕|弹|版|楼|胞胎|倍速|联|连冠|句|番|步(?=走|路)"
)
"""Before these units 三 to 九十九 are numbers, while 一 and 两 are language: 两个人, 一段, 两名少年."""

ORDINAL_UNITS = "季|辑|部|集|话|章|卷|篇|届|期|幕|弹|回"
"""Units that make 第一 a number: 第一季, but not 第一次 or 第一眼."""


_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_FORMAL_DIGITS = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟", "一二三四五六七八九十百千")
_FORMAL = re.compile("[壹贰叁肆伍陆柒捌玖拾佰仟零万亿]{2,}")
"""Formal numerals, as on cheques; a single one (大陆, 收拾) is part of a word."""
_NUMERALS = "".join((*_DIGITS, *_TENS, *_MYRIADS, "廿卅"))
_SAME_UNITS = (
    "季 辑",
    "集 话 回 期",
    "分钟 分 min",
    "年 周年 年头 个年头",
    "个 座",
    "天 日 夜 晚",
    "月 个月",
    "星期 个星期 周 礼拜 个礼拜",
    "小时 个小时",
    "世纪 个世纪",
    "国家 个国家",
    "元 块钱 人民币",
)
_KINDS = {unit: units.split()[0] for units in _SAME_UNITS for unit in units.split()}

_MENTION = re.compile(
    rf"""
    (?P<before>第|全|共|总共|共计|一共|[几数上])?\ ?
    (?:(?P<arabic>\d+(?:,\d{{3}})*(?:\.\d+)?)\ ?(?P<scale>[百千万亿]{{1,2}})?
     |(?P<chinese>[{_NUMERALS}]+)
     |(?<=第)(?P<roman>[IVX]+))
    (?P<about>[多余来几]*)\ ?
    (?P<unit>min(?![a-z])|[%‰]|分钟|分(?![之享手裂离别开析担布散外明])|{STRONG_UNITS}|{PLAIN_UNITS})?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HOURS = re.compile(
    rf"(?P<hours>\d{{1,4}}|[{_NUMERALS}]+)个?(?:小时|钟头)(?:零|又)?(?:(?P<minutes>\d{{1,4}}|[{_NUMERALS}]+)分钟?)?"
)
_STRONG = re.compile(STRONG_UNITS)
_ORDINAL = re.compile(ORDINAL_UNITS)
_PLAIN = re.compile(PLAIN_UNITS)
_LONGEST = 20  # characters; a longer one is not a number but a list
_LARGE = frozenset("百千万亿")
_COUNTED_LARGE = re.compile("元|美元|美金|人民币|块钱|人次|集|岁|部")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        value: Its value in plain digits, or its characters if they form no valid number (十百).
        kind: What it counts, one word for units that count the same; "" if the text does not say.
        piece: The number as written in the text.
    """

    value: str
    kind: str
    piece: str


def number_mentions(text: str) -> list[Number]:
    """Return the numbers of ``text``, in order, without words whose numerals count nothing."""
    found = []
    for match in _MENTION.finditer(_phrases().sub("_", _plain(text))):
        value = _value(match)
        if value is not None:
            found.append(Number(value, _kind((match["unit"] or "").lower()), match[0].strip()))
    return found


def _plain(text: str) -> str:
    return _FORMAL.sub(lambda match: match[0].translate(_FORMAL_DIGITS), plain(text))


def _kind(unit: str) -> str:
    """Return what a unit counts: 三个, 三位 and 三名 are the same."""
    return "个" if _PLAIN.fullmatch(unit) else _KINDS.get(unit, unit)


def _value(match: re.Match[str]) -> str | None:
    """Return the value of a match, None if it is a word and not a number."""
    before, unit = match["before"] or "", match["unit"] or ""
    if match["arabic"]:
        amount = Decimal(match["arabic"].replace(",", ""))
        for scale in match["scale"] or "":
            amount *= (_TENS | _MYRIADS)[scale]
        return f"{amount.normalize():f}"
    if match["roman"]:
        value = roman_value(match["roman"])
        return str(value) if value and unit else None
    if not _counts(before, match["chinese"], match["about"], unit):
        return None
    value = chinese_number(match["chinese"])
    return match["chinese"] if value is None else str(value)


def _counts(before: str, numeral: str, about: str, unit: str) -> bool:
    """Return whether a Chinese numeral is a number and not part of a word."""
    if set(numeral) <= _LARGE:  # 千万 and 百姓 are words, 几百 and 百万元 are numbers
        return before in ("几", "数") or _COUNTED_LARGE.fullmatch(unit) is not None
    if len(numeral) > 1:
        return not set(numeral) <= {"零", "〇"}
    if numeral in ("零", "〇"):
        return False
    if numeral == "一":
        return before not in ("", "几", "数", "上") and _ORDINAL.fullmatch(unit) is not None
    if before == "第":
        return True
    if numeral in ("二", "两"):
        return _STRONG.fullmatch(unit) is not None
    return bool(unit) or (numeral == "十" and bool(about or before == "几"))


def chinese_number(text: str) -> int | None:
    """Return the value of a Chinese numeral below ten thousand times a hundred million, or None.

    Both notations are read: 二千零一十八 with units, 二〇一八 digit by digit.
    """
    if len(text) > _LONGEST:
        return None
    text = text.replace("廿", "二十").replace("卅", "三十")
    if all(char in _DIGITS for char in text):
        return int("".join(str(_DIGITS[char]) for char in text)) if text else None
    total = section = 0
    digit: int | None = None
    for char in text:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
        elif char in _TENS:
            section += (1 if digit is None else digit) * _TENS[char]
            digit = None
        else:
            total = (total + section + (digit or 0) or 1) * _MYRIADS[char]
            section, digit = 0, None
    return total + section + (digit or 0)


def numbers_of(sheet: FactSheet, texts: Iterable[str]) -> Iterator[Number]:
    """Yield the numbers of a fact sheet: of some of its texts, its people and titles, year, episodes and duration."""
    for text in (*texts, *sheet.people):
        yield from number_mentions(text)
    for title in sheet.titles:
        for reading in readings(title):
            for number in (reading.number, reading.year):
                if number is not None:
                    yield Number(str(number), "", title)
    for value, kind in ((sheet.year, "年"), (sheet.episodes, "集"), (sheet.duration_minutes, "分钟")):
        if value:
            yield Number(str(value), kind, "")


def ungrounded_numbers(text: str, facts: Iterable[Number], duration_minutes: int | None) -> list[str]:
    """Return the numbers of ``text`` that no fact backs, as written in the text.

    A number needs a fact with its value that counts the same or has no unit (the 2 of a title); if the text has no unit
    either, the value is enough.

    Args:
        text: The introduction.
        facts: Numbers of the fact sheet.
        duration_minutes: The running time, which the text may express in hours.
    """
    held = {(fact.value, fact.kind) for fact in facts}
    values = {fact.value for fact in facts}

    def in_minutes(match: re.Match[str]) -> str:
        hours, minutes = (_whole(match[name] or "零") for name in ("hours", "minutes"))
        return "_" if 60 * hours + minutes == duration_minutes else match[0]

    found = []
    for number in number_mentions(_HOURS.sub(in_minutes, _plain(text))):
        spellings = _decades(number.value) if number.kind == "年代" else {number.value}
        kinds = {number.kind} if number.kind == "年代" else {number.kind, ""}
        if not any((value, kind) in held for value in spellings for kind in kinds) and not (
            number.kind == "" and number.value in values
        ):
            found.append(number.piece)
    return list(dict.fromkeys(found))


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else chinese_number(text) or 0


def _decades(value: str) -> set[str]:
    """Return the spellings of a decade: 90 and 1990."""
    return {value, value[-2:], f"19{value}"}
