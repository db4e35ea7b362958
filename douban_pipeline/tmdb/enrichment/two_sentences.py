"""Questions of two sentences: the first names something, the last asks about it ("I just saw Roma. Who directed it?").
Pure.

The last sentence is read with a name in the place of its pronoun; if it then asks for a fact of that name, the first
sentence is searched for what it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from douban_pipeline.tmdb.enrichment.route import Asked, Phrased, tidied

Read = Callable[[str], Phrased]
_NAME = "Xyzzy"
"""What stands in the place of a pronoun; no title or person is called that."""

_C_END = re.compile(r"(?<=.)[。！？!?；;，,]+(?=.)")
_C_PARTS = re.compile(r"[。！？!?；;，,]+")
_C_PRONOUN = re.compile(
    r"^(?:那么?|就是|请问|想问(?:一下)?|问下)?(?:他们|她们|它们|他俩|两人|他|她|它|其|(?:这|那)(?:一?部|个|片子?|剧|电影)?"
    r"(?:电影|片子|剧|片|动画|纪录片)?)?(?:的)?(?=.)"
)
_C_LIKE = re.compile(
    r"^(?:还)?(?:有没有|有啥|有什么|有|求|推荐|想找|想看|找)?(?:几部|一些|点)?(?:类似|差不多|同类型?|相似)(?:的|的?推荐)?"
)
_C_BEFORE = re.compile(
    r"^.{0,14}?(?:看了|重温了?|重看了?|[让叫劝]我看|看完了?|看过|在看|刷完了?|刷了|追完了?|在追|在补|补完了?|迷上了?|爱上了?|推荐了?|安利了?|听说过?|听.{1,4}说|想看|"
    r"带.{1,4}看|爱看|超爱|最爱|在聊|聊起|最喜欢的(?:电影|演员|导演|剧|片子|动画)是|(?<!不)喜欢(?:看)?|(?:有|这)(?:一?部|个|本)?(?:电影|剧|片子?|动画)叫做?|"
    r"知道|认识|提到)(?:了)?"
)
_C_BEHIND = re.compile(
    r"(?:(?:这|那)(?:部|个)?(?:电影|片子?|剧|人)?|是(?:谁|哪位|什么人)|(?:都|也|真的?|好像|特别|非常|挺|很|太|超|还)?"
    r"(?:很|挺)?(?:是影帝|是影后|经典|不错|好看|火|精彩|感人|有名|厉害|棒)|没?看不?懂|看了?一半|看完了?|的预告片?|第一集)?(?:了|吗|呢|吧|啊|么|的)*$"
)

_E_END = re.compile(r"(?<=\w)[\"')]?[.?!]+\s+(?=[A-Za-z])")
_E_ITS = re.compile(r"(?i)\b(?:its|his|her|their)(?= \w)")
_E_IT = re.compile(r"(?i)\b(?:it|he|she|they|him|her|them)\b(?: all)?")
_E_NAMES = re.compile(
    r"(?:\b(?:The|A|An) )?\b[A-Z0-9][\w'’.:-]*(?:(?: (?:of|the|and|in|to|for|on|de|von|van|da|a|&|at))*"
    r" [A-Z0-9][\w'’.:-]*)*"
)
_E_NO_NAME = re.compile(
    r"(?i)^(?:i|i'm|i've|i'd|we|we're|we've|my|our|have|has|do|did|does|there|there's|who|what|tell|someone|somebody|thinking|"
    r"just|so|ok|hey|the|a|an|this|that|is|was|can|last|yesterday|tonight|everyone|finally|please)$"
)


def read_two(text: str, read: Read, *, chinese: bool) -> Phrased | None:
    """Return what a question of two sentences says; None if it is none.

    Args:
        text: The question.
        read: Reads one sentence.
        chinese: Whether it is in Chinese.
    """
    text = text.strip().rstrip(" ?？!！。.")
    for first, last in _cut(text, _C_END if chinese else _E_END):
        asked = _asked(last, read, chinese=chinese)
        if asked is None:
            continue
        parts = [part for part in (_C_PARTS if chinese else _E_END).split(first) if part.strip()]
        told = [part for part in parts if _asked(part, read, chinese=chinese) is None]
        name = tidied((_chinese_name if chinese else _english_name)(told[-1])) if told else ""
        if not name:
            continue
        names: tuple[str, ...] = (name,)
        if asked in (Asked.TOGETHER, Asked.WORKS):
            both = [part for part in re.split(r"\s*(?:和|与|跟|、|\band\b|&)\s*", name) if len(part) > 1]
            names, asked = (tuple(both), Asked.TOGETHER) if len(both) == 2 else (names, Asked.WORKS)
        return Phrased(names, asked, text.replace(name, " ", 1))
    return None


def _cut(text: str, end: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the parts before and behind the last end of a sentence, then the one before it."""
    for match in list(end.finditer(text))[:-3:-1]:
        yield text[: match.start()], text[match.end() :]


def _asked(last: str, read: Read, *, chinese: bool) -> Asked | None:
    if chinese and _C_LIKE.fullmatch(last.strip(" 吗呢呀啊的吧？?")):
        return Asked.LIKE
    for each in _with_name(last, chinese=chinese):
        said = read(each)
        if said.asked not in (None, Asked.ABOUT) and (
            said.names == (_NAME,) or (said.asked is Asked.TOGETHER and _NAME in said.names)
        ):
            return said.asked
    return None


def _with_name(last: str, *, chinese: bool) -> Iterator[str]:
    """Yield a sentence with a name in the place of its pronoun, or added where it has none."""
    if chinese:
        without = _C_PRONOUN.sub("", last.strip(), count=1)
        yield _NAME + without
        if re.match(r"(?:一起|合作|共同|同台)", without):
            yield f"{_NAME}和{_NAME}{without}"
        return
    if (its := _E_ITS.sub(f"{_NAME}'s", last)) != last:
        yield its
    elif (it := _E_IT.sub(_NAME, last, count=1)) != last:
        yield it
    else:
        there = re.sub(r"(?i) (?:are|is) there$", "", last)
        yield from (f"{there} {joined} {_NAME}" for joined in ("of", "in", "to", "like"))


def _chinese_name(first: str) -> str:
    """Return what a Chinese sentence names: what remains without the words of seeing, liking and hearing."""
    name = _C_BEFORE.sub("", first.strip(), count=1)
    return re.sub(r"(?<=..)(?:电影|电视剧|这部片)$", "", _C_BEHIND.sub("", name))


def _english_name(first: str) -> str:
    """Return what an English sentence names: the last words with capitals, if there are any."""
    found = [match[0].strip(" .,'") for match in _E_NAMES.finditer(first)]
    found = [name for name in found if not _E_NO_NAME.match(name)]
    return found[-1] if found else ""
