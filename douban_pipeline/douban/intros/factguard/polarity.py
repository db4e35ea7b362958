"""Whether a clause tells a fact, and whether it denies it: denials, outcomes that exclude each other, and modality."""

from __future__ import annotations

import re
from collections.abc import Sequence

FACT = "fact"
MODALITIES = {"intended": "只是打算或愿意", "possible": "只是猜测", "reported": "只是有人这样说"}
"""How a source may tell what is not a fact, and what a reviewer reads of it."""
MARKS = {
    "intended": re.compile("[想要愿肯欲盼梦拟约]|打算|计划|准备|试图|企图|决定|希望|提出|主张|为了?"),
    "possible": re.compile("[疑似]|可能|也许|大概|以为|怀疑|猜|觉得|认为|相信|认定|看似|好像"),
    "reported": re.compile("[说称据]|听|告诉|自认|坚持|声言|传言|咬定|认定|相信|认为|承认"),
}


_NOT = re.compile(
    "(?:不|没有?人?|未|无法|无人)(?:曾|再|肯|想|愿|能|敢|会|让|许|准|去|人|(?:把|将|对|向|给|和|与|跟|为|替)[^不没未]{1,4})?"
    "(?=[^了着过的])"
)
_NO_NOT = re.compile(
    "淹没|沉没|埋没|吞没|出没|没收|没落|不得不|不仅|不但|不久|不断|不过|无论|没想到|不料|不少|不同|不禁|未来|未婚|不顾|不惜|不停"
    "|不安|不幸|不知"
)
_DENIED = re.compile("(?:不|没有?|未|无|从没|别|并非|没能)(?:曾|再|肯|想|愿|能|敢|会|让|许|准|予|有|去|把|将|对)?$")
_ENDED = frozenset("断绝停止离失缺拒忘难免戒禁反空否假败")
"""Characters with which a clause may deny without a word like 不."""
_NO_ACTION = frozenset("有是在到来去人一错")
"""Characters that are no action by themselves."""
_OPPOSITES_TEXT = """
赢 胜 战胜 击败 夺冠 获胜 / 输 落败 失利 败给
活着 生还 幸存 救活 活了下来 / 死去 死了 死于 身亡 丧生 遇难 牺牲 去世 病逝 尸体 骸骨
好转 痊愈 康复 病愈 好了 好起来 / 恶化 病重 不见好
答应 同意 批准 允许 应允 / 拒绝 不肯 不愿
相信 听信 / 怀疑 疑心 不信
抓住 被捕 落网 抓获 制服 / 逃走 逃脱 逃跑 跑掉 跑了
留下 留在 / 离开 离去 走了 休学
收下 / 退还 不肯收
考上 考取 录取 / 落榜
得奖 获奖 / 取消资格
开始 继续 / 停止 终止 中止
有罪 被判 / 无罪
兴高采烈 高兴 欣喜 大笑 笑着 笑了 / 哭着 哭诉 流泪 流着泪 含泪
爱上 喜欢 / 不喜欢 讨厌 恨
伪造 冒充 假的 伪 / 真的 为真 是真
运出 送出 / 运进 运来
买下 买来 / 卖掉 变卖
真心 / 假意
之前 前夜 前夕 / 之后
"""
OPPOSITES = tuple(
    (tuple(left.split()), tuple(right.split()))
    for line in _OPPOSITES_TEXT.strip().splitlines()
    for left, right in [line.split("/")]
)
"""Pairs of outcomes that exclude each other."""


def denies_anything(clause: str) -> bool:
    """Return whether something is denied in a clause."""
    return "除了" not in clause and bool(_NOT.search(_NO_NOT.sub("|", clause)))


def denies(one: str, other: str) -> bool:
    """Return whether a clause denies an action that another, which denies nothing, tells."""
    one, other = _NO_NOT.sub("|", one), _NO_NOT.sub("|", other)
    if _ENDED & set(other) or _NOT.search(other):
        return False
    for match in _NOT.finditer(one):
        action = one[match.end() : match.end() + 2]
        forms = [action] if action[0] in _NO_ACTION or action[-1] == "错" else [action, action[0]]
        if any(form in other and not _DENIED.search(other[: other.find(form)]) for form in forms):
            return True
    return False


def opposite(clause: str, quoted: Sequence[str], *, converse: bool) -> str:
    """Return the word of a clause whose opposite the quoted clauses have in its place, "" if there is none.

    With ``converse``, who wins or loses is not looked at: both are true if the people are exchanged, too.
    """
    told = "|".join(quoted)
    for pair in OPPOSITES[1:] if converse else OPPOSITES:
        here, there = _sides(clause, pair), _sides(told, pair)
        if len(here) == 1 and there and not here & there:
            return next(word for side in pair for word in side if word in clause)
    return ""


def opposite_sides(one: str, other: str) -> bool:
    """Return whether a word of one text has its opposite in the other, so that a denial makes both say the same."""
    return any(_words_in(one, pair) and _words_in(other, pair) for pair in OPPOSITES)


def _words_in(text: str, pair: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    return any(word in text for words in pair for word in words)


def _sides(text: str, pair: tuple[tuple[str, ...], tuple[str, ...]]) -> set[int]:
    """Return which sides of a pair a text is on; a word that is denied stands on the other side."""
    sides: set[int] = set()
    for side, words in enumerate(pair):
        for word in words:
            at = text.find(word)
            while at >= 0:
                sides.add(side ^ bool(_DENIED.search(text[:at])))
                at = text.find(word, at + 1)
    return sides


LIKE_DENIAL = frozenset("不没未无别否非缺禁拒失空难休免瞎盲瞒除停止终")
"""Characters of words that deny without 不 or 没, which the rules below do not all know."""
