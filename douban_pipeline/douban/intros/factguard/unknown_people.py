"""Invented people: names that are recognised by their context (由…执导, 饰演…, 主人公…) or their form.

The facts of the sheet are masked first; a name in the rest of the text is invented.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from douban_pipeline.douban.intros.factguard.name_words import (
    COMPOUND_SURNAMES,
    GIVEN,
    ORDINARY_LONG,
    ORDINARY_NAMES,
    STRONG_SURNAMES,
    SURNAMES,
    WORD_TAILS,
)
from douban_pipeline.douban.intros.factguard.plain_text import folded
from douban_pipeline.matching.text import HAN

_OWN = "\ue000"
"""Placeholder for names of the fact sheet."""

_CLAUSE = re.compile(r"[。!?;,:\"“”‘’()\n…—「」『』\[\]【】《》〈〉]+")
_SEPARATOR = re.compile(r"、|和|与|以及|及|跟|携手|搭档|联手|/|&")
_VERB = (
    "自编自导自演|自编自导|执导|导演|编剧|领衔主演|领衔|主演|出演|饰演|扮演|饰(?!品|物|以|有|面)|监制|制片|配音"
    "|献声|客串|参演|加盟|担纲|操刀|掌镜|作曲|联袂|担任"
)
_BY = re.compile(rf"(?<![自理缘不任])由(?!于|此|来|衷|不得)(?P<list>[^由]{{2,60}}?)(?={_VERB})")
_BEFORE_VERB = re.compile(rf"(?P<list>[^。]{{2,60}}?)(?:{_VERB})")
_AFTER_NOUN = re.compile(
    "(?:总?导演|编剧|主演|演员|监制|制片人|出品人|配音|饰演|扮演|男主角|女主角|主角|主人公|男主|女主|影星|歌手|名叫|叫做|化名|少年|少女|青年|女孩|男孩|刑警|警察|警官|侦探|医生|律师|记者|老师|教师|将军|书生|杀手|特工|队长|总裁|设计师|大学生|高中生)(?:[为是有由的了]|包括)?(?P<list>.{2,60})"
)
_HONORIFICS = re.compile(
    "^(?:著名|知名|新锐|资深|金牌|鬼才|实力派?|青年|年轻|国际|内地|香港|台湾|好莱坞|日本|韩国|老戏骨|影帝|影后|巨星|影星|明星|歌手|艺人|女?演员|男演员|导演|编剧|主演|女星|男星|新人|小生|花旦|大师|名导|女神|男神|的|影片|电影|该片|本片|该剧|本剧|剧集|全片|全剧|并|而|且|则|又|也|还|均|都|是|由|有|请来|邀请|邀请了|汇集了?|集结了?|汇聚了?|云集了?|包括)+"
)
_FILLERS = re.compile(
    "(?:等.{0,6}|众人|[两二三四五]人|[两二三四五]位|共同|联合|联袂|联手|携手|倾情|倾力|领衔|亲自|再度|首次|特别|友情|担纲|分别|一起|双双|担任|负责|的|为|所)+$"
)
_STOP = re.compile(
    "等|的|以|用|将|把|在|于|向|对|从|被|为|是|因|与|和|曾|又|则|也|还|继|再|却|即|便|就|都|已|会|能|要|想|只|并|而"
    "|且|让|使|令|给|凭|通过|带领|率领|带着|倾力|倾情|精心|悉心|亲自|首次|打造|创作|拍摄|呈现|作品|讲述|擅长|意外"
    "|遭|身|突然|决定|一|这|那|不|没|来到|回到|进入|成为|发现|面对|经历|开始|饰|执|主演|出演|联袂|带|到|去|来|了|说"
)
_GROUPS = re.compile(
    "团队|班底|演员|导演|阵容|人马|公司|影业|剧组|明星|新人|小说|漫画|故事|事件|作者|原著|新秀|主创|幕后|学生|青年"
    "|孩子|群众|工作室|电视|电影|出品|专业|实力|众星|群星|家族|本人|自己|他|她|原班|两|三|多位|各|谁|此|内|外|心|浅"
    "|衷|来|自"
)
_NAME = re.compile(f"[{HAN}]{{2,4}}")
_LATIN_NAME = re.compile(r"[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f0-9.'’-]+")
_CAPITAL = r"[A-Z\u00c0-\u00de][\w.'’-]*"
_CAPITALISED = re.compile(
    rf"(?<![A-Za-z]){_CAPITAL}(?: (?:(?:de|del|van|von|der|da|di|la|le|of|the|and|&) )*{_CAPITAL})+"
)
_LATIN = r"[A-Za-z\u00c0-\u024f.'-]+"
_DOTTED = re.compile(rf"(?:[{HAN}]{{1,6}}|{_LATIN})(?:·(?:[{HAN}]{{1,8}}|{_LATIN}))+")
_LINKS = frozenset("由和与及、的是为在让被跟同")


def unknown_people(text: str, own: Collection[str], story: str, sheet_text: str) -> list[str]:
    """Return names in ``text`` that the fact sheet does not contain.

    Args:
        text: The introduction as `plain_text.plain` returns it.
        own: The sheet's people and titles, `folded`.
        story: The sheet's text apart from its people, `folded`: 廖曦 in it allows 廖曦勇敢地.
        sheet_text: All text of the sheet, `folded`.
    """
    masked = _masked(text, own)
    found = [*_foreign(masked, sheet_text)]
    for clause in _CLAUSE.split(masked):
        found += [*_in_roles(clause), *_by_looks(clause)]
    names = [name for name in dict.fromkeys(found) if not _is_known(name, own, story, sheet_text)]
    return [name for name in names if not any(name != other and name in other for other in names)]


def _is_known(name: str, own: Collection[str], story: str, sheet_text: str) -> bool:
    """Return whether the sheet contains a name, or its first two characters as a name."""
    stem = name[:2] if len(name) == 3 and _NAME.fullmatch(name) else name
    return name.casefold() in sheet_text or stem in story or stem in own


def _masked(text: str, own: Iterable[str]) -> str:
    for name in sorted(own, key=len, reverse=True):
        if len(name) > 1:
            text = re.sub(re.escape(name), _OWN, text, flags=re.IGNORECASE)
    return text


def _foreign(text: str, sheet_text: str) -> Iterator[str]:
    """Yield transliterated names, and Latin names of several words."""
    told = [match[0].split("·") for match in _DOTTED.finditer(sheet_text)]
    for match in _DOTTED.finditer(text):
        said = folded(match[0]).split("·")
        windows = (name[at : at + len(said)] for name in told for at in range(len(name) - len(said) + 1))
        if not any(_is_one_name(said, window) for window in windows):
            yield match[0]
    for match in _CAPITALISED.finditer(text):
        if match[0].casefold().rstrip(".'’-") not in sheet_text:
            yield match[0]


def _is_one_name(said: list[str], told: list[str]) -> bool:
    """Return whether two names with dots are one, though other words may stand before the first and behind the last."""
    if said[1:-1] != told[1:-1]:
        return False
    return _is_one_word(said[0][::-1], told[0][::-1]) and _is_one_word(said[-1], told[-1])


def _is_one_word(said: str, told: str) -> bool:
    """Return whether two words begin with the same name: with two characters, or one that is a name or all of one."""
    alike = sum(takewhile(bool, (a == b for a, b in zip(said, told, strict=False))))
    if said.isascii() or alike in (len(said), len(told)):
        return said == told or not said.isascii()
    return alike > 1 or (alike == 1 and (said[0] in SURNAMES or said[1:2] in _LINKS))


def _in_roles(clause: str) -> Iterator[str]:
    """Yield the names beside a role word."""
    for match in _BY.finditer(clause):
        for item in _SEPARATOR.split(match["list"]):
            yield from _named(item, by=True)
    for match in _BEFORE_VERB.finditer(clause):
        *listed, last = _SEPARATOR.split(match["list"])
        for item in (*listed[1:], *([last] if listed else [])):
            yield from _named(item)
        first = _FILLERS.sub("", listed[0] if listed else last)
        yield from _named(first) or _at_end(first)
    for match in _AFTER_NOUN.finditer(clause):
        for at, item in enumerate(_SEPARATOR.split(match["list"])):
            cut = _up_to_stop(item)
            yield from _named(cut) or (_at_start(cut) if at == 0 else [])
            if cut != item:
                break


def _up_to_stop(item: str) -> str:
    """Return ``item`` up to a word that no name contains; the first two characters may be anything (赵一鸣)."""
    stop = _STOP.search(item, 2)
    return item[: stop.start()] if stop else item


def _named(item: str, *, by: bool = False) -> list[str]:
    """Return the name in an item of a list; none if the item is a word or known."""
    item = _FILLERS.sub("", _HONORIFICS.sub("", item.strip())).strip()
    if _OWN in item:
        return []
    if _LATIN_NAME.fullmatch(item):
        return [item]
    if by and re.fullmatch(f"[{HAN}]{{2,6}}", item) and not _GROUPS.search(item):
        return [item]
    return [item] if _NAME.fullmatch(item) and (_looks_like_name(item) or _ends_like_name(item)) else []


def _ends_like_name(word: str) -> bool:
    """Return whether a word is a name although it begins like another word: 江南乔, but not 安排得."""
    return len(word) == 3 and word[0] in SURNAMES and word[2] in GIVEN and word[1:] not in ORDINARY_NAMES


def _looks_like_name(word: str) -> bool:
    if word[:2] in COMPOUND_SURNAMES:
        return len(word) in (3, 4)
    return word[0] in SURNAMES and len(word) <= 3 and word[:2] not in ORDINARY_NAMES and word not in ORDINARY_LONG


def _at_end(text: str) -> list[str]:
    """Return the name that ``text`` ends with: 影片是林晓峰."""
    for length in (3, 2):
        name = text[-length:]
        strong = name[:1] in STRONG_SURNAMES and text[-length - 1 : 1 - length] not in WORD_TAILS
        if len(name) == length and strong and _NAME.fullmatch(name) and _looks_like_name(name):
            return [name]
    return []


def _at_start(text: str) -> list[str]:
    """Return the name that ``text`` begins with: 林晓峰钟情文艺."""
    name = text[:3]
    return (
        [name]
        if len(text) > 3 and name[0] in STRONG_SURNAMES and _NAME.fullmatch(name) and _looks_like_name(name)
        else []
    )


def _by_looks(clause: str) -> Iterator[str]:
    """Yield words that can only be names by their form: a surname and characters of given names."""
    for at in range(len(clause) - 2):
        name = clause[at : at + 3]
        surname = 2 if name[:2] in COMPOUND_SURNAMES else 1
        if surname == 1 and name[0] not in STRONG_SURNAMES:
            continue
        if (
            GIVEN.issuperset(name[surname:])
            and clause[max(0, at - 1) : at + 1] not in WORD_TAILS
            and _looks_like_name(name)
            and name[1:] not in ORDINARY_NAMES
        ):
            yield name
