"""Finds sentences of an article that may be addressed to the model. Pure.

They are no evidence of anything: news about models, ratings and rules have such sentences, too. The article is analysed
once more without them, and only if that changes what becomes of it did they matter; see `analysis`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from douban_pipeline.matching.text import simplify

_MOST_SHARE = 0.5
"""Largest share of a text's sentences that is left out, the most suspicious first."""
_ENOUGH = 2
_SHORTEST_QUOTE = 4
_MARKS: Sequence[tuple[int, str]] = (
    # Marks of a conversation, of an answer, of the end of the data.
    (3, r"<\|?/?[a-z_]{3,}[-_|0-9a-f]*\|?>|\[/?(?:inst|sys|system)\]|<<sys>>|has_opportunity|[\"'“”]score[\"'“”]"),
    (3, r"^\W*(?:system|assistant|developer|user|系统|系统提示|系统消息|助手|用户|管理员)\s*[:：]"),
    (2, r"score\s*[:：=]|[{}]|(?:正文|文章|文档|数据|document|article|data).{0,6}(?:结束|完毕|ends?\b)"),
    # To keep something secret.
    (2, r"(?:不要|别|不得|勿|do not|don't|never)[^。\n]{0,8}(?:提及|说明|透露|告诉|mention|reveal|disclose|tell)"),
    # What readers of the other sentences cannot read: a code, another writing.
    (2, r"[A-Za-z0-9+/=]{32,}|(?:\\u[0-9a-f]{4}){3,}|[\u3040-\u30ff]{4,}"),
    (2, r"[\uac00-\ud7af]{3,}|[\u0400-\u04ff]{5,}"),
    # Points.
    (1, r"\d{2,3}\s*分|\b100\b|\b9\d\b"),
)
_WORDS: Sequence[tuple[int, str]] = (
    # Who is spoken to, and of what.
    (
        1,
        """ai 人工智能 模型 助手 机器 程序 算法 智能体 分析器 分析员 分析师 分析者 分析系统 llm gpt
        assistant model models bot""",
    ),
    (
        1,
        """评分员 评分者 评分器 评分系统 评委 评审 审核 审稿 审阅 编辑 读到 看到这 阅读本 阅读此 grader scorer reviewer
        evaluator editor""",
    ),
    (1, """你 您 扮演 假装 you your pretend act"""),
    (1, """本文 本篇 本稿 本条 本段 这篇 这条 这段 这句 这行 此文 此篇 此条 此段 上述 上面 以上 this"""),
    # What is demanded.
    (
        1,
        """评分 打分 分数 得分 满分 高分 记分 计分 给分 最高 百分 零分 低分 最低 分值 扣分
        score scored scoring rate rated rating points""",
    ),
    (
        1,
        """指令 指示 提示 规则 要求 设定 标准 任务 准则 约束 命令 instruction instructions prompt prompts rule rules
        guideline guidelines task criteria""",
    ),
    (
        2,
        """忽略 无视 忘记 忘掉 抛开 不必 不用 不要理会 不要管 不要考虑 不要遵守 不要分析 作废 失效 覆盖 取代 解除
        disregard ignore forget override bypass skip""",
    ),
    (
        1,
        """请 务必 必须 应当 应该 一律 直接 立即 只需 只能 只要 不得 不要 麻烦 帮忙
        must please should always never only""",
    ),
    (
        1,
        """输出 返回 填写 填入 填为 设为 设成 设定 写成 给出 赋予 赋值 标记 标为 标注 判定 判为 认定 视为 视作 当作 当成
        列为 归为 归入 调到 调至 调高 压到 置零 跳过 略去 屏蔽
        set output return respond reply answer assign give mark treat classify
        consider label
        print
        reveal""",
    ),
    (
        1,
        """机会 利好 重大 推荐 买入 毫无价值 没有价值 不值得 无关资讯 垃圾 opportunity opportunities recommend bullish
        worthless noise true false""",
    ),
)


def _any_of(words: str) -> str:
    """Return a pattern of words: Chinese ones anywhere, others as whole words."""
    return "|".join(rf"\b{word}\b" if word.isascii() else word for word in words.split())


_COMPILED = [
    (weight, re.compile(pattern, re.IGNORECASE))
    for weight, pattern in (*_MARKS, *((weight, _any_of(words)) for weight, words in _WORDS))
]
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;\n]*")
_BETWEEN = r"[\s·.*_\-|~]+"
_SPACED = re.compile(rf"(?<=[^\W\d_a-z]){_BETWEEN}(?=[^\W\d_a-z])|(?<=\b[a-z]){_BETWEEN}(?=[a-z]\b)", re.IGNORECASE)


def suspicious_sentences(*texts: str) -> list[str]:
    """Return the sentences of an article's texts that may speak to the model, the most suspicious first.

    At most half of the article's sentences, so that something is left to be analysed.
    """
    sentences = [each for text in texts for each in _sentences(text)]
    weighed = [(weight, each) for each in dict.fromkeys(sentences) if (weight := _weight(each)) >= _ENOUGH]
    weighed.sort(key=lambda found: -found[0])
    return [each for _, each in weighed[: max(1, int(len(sentences) * _MOST_SHARE))]]


def sentences_with(quotes: Sequence[str], *texts: str) -> list[str]:
    """Return the sentences of an article's texts that hold one of these quotes, or are part of one."""
    wanted = [folded for quote in quotes if len(folded := _folded(quote)) >= _SHORTEST_QUOTE]
    every = ((each, _folded(each).strip()) for text in texts for each in _sentences(text))
    return [each for each, plain in every if plain and any(quote in plain or plain in quote for quote in wanted)]


def without(text: str, sentences: Sequence[str]) -> str:
    """Return a text without these of its sentences."""
    left_out = frozenset(sentences)
    return "".join(each for each in _sentences(text) if each not in left_out)


def _sentences(text: str) -> list[str]:
    return _SENTENCE.findall(text)


def _weight(sentence: str) -> int:
    folded = _folded(sentence)
    return sum(weight for weight, pattern in _COMPILED if pattern.search(folded))


def _folded(text: str) -> str:
    """Return a text simplified, with full-width and styled letters as plain ones, without what hides its words."""
    plain = unicodedata.normalize("NFKC", text)
    seen = "".join(sign for sign in plain if unicodedata.category(sign) not in ("Cf", "Mn", "Co"))
    return _SPACED.sub("", simplify(seen))
