"""Detects instructions to the model in an article's text by patterns, without relying on a model. Pure.

A match does not change the score. It prevents an automatic push, so that a person checks the article first.
"""

from __future__ import annotations

import re
import unicodedata

_NUMBER = r"(?:\d{2,3}|满|最高|一百|九十|八十)"
_WANTED = r"(?:请|务必|必须|应当?|直接|一律|帮忙|麻烦|给|把|将|返回|输出|填写?)"
_MODEL = r"(?:AI|人工智能|大?语言模型|大模型|模型|阅读本文的机器|分析程序)"
_ROLE = (
    r"(?:(?:AI|人工智能)\s*的?(?:助手|模型|评委|编辑)|语言模型|大模型|评分员|分析模型|"
    r"assistant|language model|grader|scorer|DAN\b)"
)
_PATTERNS: dict[str, tuple[str, ...]] = {
    "要求忽略指令": (
        r"(?:忽略|无视|忘记|抛开|不要理会|disregard|ignore|forget|override).{0,12}"
        r"(?:以上|上面|上述|之前|前面|先前|此前|所有|一切|原有|previous|above|prior|earlier|all).{0,12}"
        r"(?:指令|指示|要求|规则|提示|内容|设定|标准|instruction|prompt|rule|message|direction|context)",
    ),
    "要求给出分数": (
        rf"{_WANTED}[^。\n]{{0,12}}(?:评分|打分|分数|得分|score)[^。\n]{{0,8}}{_NUMBER}",
        rf"{_WANTED}[^。\n]{{0,12}}(?:打|给|评|记)[^。\n]{{0,8}}{_NUMBER}\s*分",
        r"(?:set|give|assign|return|output|rate|mark|must)\b[^.\n]{0,40}\b(?:score|rating)\b[^.\n]{0,20}\d{2,3}",
        r"\b(?:rate|score)\b[^.\n]{0,20}\b(?:this|it|article)\b[^.\n]{0,20}(?:100|9\d|as high)",
    ),
    "仿造答案": (r"[\"'“”]?(?:score|has_opportunity)[\"'“”]?\s*[:：=]\s*(?:\d{2,3}|true)",),
    "仿造对话角色": (
        r"<\|?/?(?:im_start|im_end|system|assistant|user|endoftext)\|?>|\[/?(?:INST|SYS|system)\]|<<SYS>>",
        r"^\s*(?:#{1,6}\s*)?(?:system|assistant|developer|系统|系统提示|系统消息)\s*[:：]",
    ),
    "仿造边界": (
        r"</?\s*article[-_ ]?[0-9a-f]*\s*>",
        r"(?:文章|正文|数据|资料|article|document)\s*(?:到此)?(?:结束|完毕|ends?\b)[^。\n]{0,20}"
        r"(?:以下|下面|现在|新的|now|new|following)",
    ),
    "对模型说话": (
        rf"(?:作为|你是|身为|假装|扮演|act as|you are|pretend)[^。\n]{{0,12}}{_ROLE}",
        rf"(?:致|对|给|告诉|提示|提醒)[^。\n]{{0,6}}{_MODEL}[^。\n]{{0,4}}[:：]",
        r"(?:dear|attention|note to)\s+(?:ai|llm|language model|assistant|model)",
    ),
    "要求隐瞒或输出提示": (
        r"(?:输出|打印|重复|泄露|告诉我|reveal|print|repeat|show)[^。\n]{0,12}"
        r"(?:系统提示|提示词|system prompt|your (?:instructions|prompt))",
        r"(?:不要|别|do not|don't)[^。\n]{0,8}(?:提及|说明|透露|mention|reveal|disclose)[^。\n]{0,12}"
        r"(?:本段|这段|这条|此指令|this (?:note|instruction|message))",
    ),
    "新的指令": (
        r"(?:新的?|最新|真正的?|更新后的?|new|updated|real|actual)\s*"
        r"(?:指令|任务|系统提示|评分标准|instructions?|task|system prompt)\s*(?:[:：是为]|\bis\b|\bare\b|如下)",
    ),
}
_COMPILED = {name: re.compile("|".join(some), re.IGNORECASE | re.MULTILINE) for name, some in _PATTERNS.items()}


def suspicions_of(*texts: str) -> list[str]:
    """Return the kinds of instructions to a model found in an article's texts; empty for an ordinary article."""
    folded = "\n".join(_folded(text) for text in texts)
    return [name for name, pattern in _COMPILED.items() if pattern.search(folded)]


def _folded(text: str) -> str:
    """Return normalised text: full-width and styled letters as plain ones, invisible characters removed."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(sign for sign in plain if unicodedata.category(sign) not in ("Cf", "Mn", "Co"))
