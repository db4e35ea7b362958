"""Tables of the words that distinguish a work from other works of the same name; see ``title_words``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from douban_pipeline.matching.text import HAN
from douban_pipeline.matching.title_words import APART, NOT_LATIN_BEFORE, Words, suffix


@dataclass(frozen=True)
class Edition:
    """An edition of a work, which distinguishes it from other works of the same name.

    Attributes:
        code: Stored name of the edition.
        words: Suffix that names it.
        distinct: Whether Douban gives it an entry of its own, so that it must agree. Dubbed and restored versions
            share the entry of the work.
    """

    code: str
    words: Words
    distinct: bool = True


def _edition(code: str, pattern: str, distinct: bool = True) -> Edition:
    return Edition(code, suffix(pattern), distinct)


EDITIONS: tuple[Edition, ...] = (
    # Dubbed versions and picture formats: the same entry.
    _edition("mandarin", r"(?:国语|国配|普通话|中文配音|国语配音|台配国语|台配|中配)(?:配音)?版?", False),
    _edition("cantonese", r"(?:粤语|粤配|广东话)(?:配音)?版?", False),
    _edition(
        "dubbed",
        r"(?:(?:英|日|韩|法|德|俄|泰|闽南|原)(?:语|声|音)(?:配音)?版|原版)|"
        + APART
        + r"(?:原声|(?:英|日|韩|法|德|俄|泰|闽南)语)",
        False,
    ),
    _edition(
        "restored",
        r"(?:4k)?(?:全新)?(?:数码|数字)?(?:修复|重映|重制收藏|珍藏|收藏|纪念)版?(?<!纪念)(?<!收藏)(?<!珍藏)",
        False,
    ),
    _edition("3d", NOT_LATIN_BEFORE + r"(?:imax)?\s*[23]d版?|" + NOT_LATIN_BEFORE + r"imax版?", False),
    _edition("uncut", r"(?:未删减|无删减|未删节|未分级|完整)(?:完整)?版|未删减|无删减|未删节", False),
    # Cuts that often have an entry of their own.
    _edition(
        "cut",
        r"(?:(?:导演|终极|特别|电影|重新)?剪辑|导剪|加长|终极|重剪|精编|精华|精简|特别编集|编集|黑白|删减)版(?<!未删减版)(?<!无删减版)"
        r"|(?:^|(?<=[\s.:]))(?<!^the )(?:the\s+)?(?:assembly|director'?s|extended|ultimate)[\s.]+cut"
        r"|(?<=[\s.:])extended[\s.]+edition",
    ),
    _edition("dvd", r"dvd版"),
    # Other works of the same name.
    _edition("live", r"真人(?:电影|剧场|剧集?)?版|" + APART + "真人"),
    _edition("movie", r"(?<![新旧])(?:剧场版|电影版|影院版|大电影)|(?<=[\s:])the\s+movie"),
    _edition("web", r"(?:网络|网剧|网络剧|竖屏)版"),
    _edition("stage", r"(?:舞台剧|话剧|音乐剧|歌舞剧|舞台)版|" + APART + r"(?:舞台剧|话剧|音乐剧|歌舞剧)"),
    _edition("drama-short", r"短剧版|" + APART + "短剧"),
    _edition("tv", r"(?:tv|电视剧?|剧集)版|(?<=[\s(])剧版"),
    _edition("animation", r"(?:动画|动漫|卡通)版"),
    _edition("motion-comic", r"动态漫画?(?:版)?"),
    _edition("ova", NOT_LATIN_BEFORE + r"(?:ova|oad|ona)版?"),
    _edition("recap", r"[总総]集[篇编]"),
    _edition("pilot", APART + r"试播集"),
    _edition(
        "special",
        r"特别篇|番外篇?|特典|特番|特辑|特别节目|外传篇|第\s*[0零]{1,2}\s*[话集回]|第\s*\d{1,3}\.5\s*[话集回]|"
        # Midnight Special is a name.
        + NOT_LATIN_BEFORE
        + r"(?:sp|specials)|(?<![a-z])(?<![a-z'’][\s.])special",
    ),
    _edition("final", r"最终季|最终章|完结篇|" + APART + r"(?:终章|终季)|(?:the\s+)?final\s+season"),
    # All episodes, or all films: the kind of the work decides which.
    _edition("complete", r"全集"),
    _edition(
        "collection",
        r"合集|全系列|上中?下(?:集|部|篇|两集|两部)?(?<=[集部篇])"
        r"|(?:全|第)?\s*[\d一二三四五六七八九十]{1,3}\s*[-~至、到]\s*[\d一二三四五六七八九十]{1,3}\s*(?:季|部)全?"
        r"|全\s*[\d一二三四五六七八九十]{1,2}\s*[季部]|(?<=\s)\d{1,2}\s*季全|(?<![a-z0-9])s\d{1,2}\s*[-~]\s*s\d{1,2}"
        r"|(?<![a-z])seasons?\s*\d{1,2}\s*[-~]\s*\d{1,2}",
    ),
    _edition(
        "upper", r"上部|上集|上篇|上卷|前篇|前编|" + APART + r"(?:(?<=[\s季部期])[上前]半?)|[上前]半(?:部分|部|季|篇)"
    ),
    _edition("middle", r"中集|中篇|" + APART + r"(?:中部|中卷|(?<=[\s季部期])中)"),
    _edition(
        "lower", r"下部|下集|下篇|下卷|后篇|后编|" + APART + r"(?:(?<=[\s季部期])[下后]半?)|[下后]半(?:部分|部|季|篇)"
    ),
    # Excerpts and extra programmes of variety shows.
    _edition("pure", r"纯享版?|纯享"),
    _edition("extra", r"(?:加更|会员|超前|plus|抢鲜|超前加更|会员加更)[版篇]|会员加长版?|" + APART + r"(?:加更|plus)"),
    _edition("vlog", r"(?:直拍|日记|陪看|reaction)版|(?<=[季期])\s*(?:直拍|日记|陪看|reaction)"),
    _edition("commentary", r"(?:电影|影视)解说|(?:解说|速看)版|" + APART + r"(?:解说|速看)"),
    _edition("trailer", r"先导片|预告片|幕后(?:花絮|特辑)|" + APART + r"(?:预告|花絮|片花|彩蛋|mv)"),
    # The same format in another country, or another production.
    _edition("us", r"美国?版"),
    _edition("gb", r"英国?版"),
    _edition("jp", r"(?<![今生昔节往])日本?版"),
    _edition("kr", r"韩国?版"),
    _edition("cn", r"(?:中国|国产|内地|大陆)版"),
    _edition("hk", r"(?:香港|港)版"),
    _edition("tw", r"(?:台湾|台)版"),
    _edition("th", r"泰国?版"),
    _edition("in", r"印度版"),
    _edition("new", r"(?<![最全创])新版|重制版|重置版|重启版|翻拍版"),
    _edition("old", r"(?:老|旧|经典)版"),
)
"""Editions by suffix, tried in this order."""

DISTINCT_EDITIONS: frozenset[str] = frozenset(edition.code for edition in EDITIONS if edition.distinct)

_NAMES = {
    "cut": "另一剪辑版",
    "dvd": "DVD 版",
    "live": "真人版",
    "movie": "剧场版",
    "web": "网络版",
    "stage": "舞台版",
    "drama-short": "短剧版",
    "tv": "电视版",
    "animation": "动画版",
    "motion-comic": "动态漫",
    "ova": "OVA",
    "recap": "总集篇",
    "pilot": "试播集",
    "special": "特别篇",
    "final": "最终季",
    "complete": "全集",
    "collection": "合集",
    "upper": "上部",
    "middle": "中部",
    "lower": "下部",
    "pure": "纯享版",
    "extra": "加更版",
    "vlog": "直拍、陪看",
    "commentary": "解说",
    "trailer": "预告、花絮",
    "us": "美国版",
    "gb": "英国版",
    "jp": "日本版",
    "kr": "韩国版",
    "cn": "中国版",
    "hk": "香港版",
    "tw": "台湾版",
    "th": "泰国版",
    "in": "印度版",
    "new": "新版",
    "old": "旧版",
}


def edition_name(code: str) -> str:
    """Return the name of a distinct edition for people."""
    return _NAMES[code] if code in _NAMES else f"第 {code.removeprefix('part-')} 部分"


BARE_PARTS = {"上": "upper", "前": "upper", "中": "middle", "下": "lower", "后": "lower", "後": "lower"}
"""Half of a work named by one character, recognised only inside brackets: 死亡圣器(上)."""

BRACKET_EDITIONS = BARE_PARTS | {
    "电影": "movie",
    "电视剧": "tv",
    "剧版": "tv",
    "tv": "tv",
    "动画": "animation",
    "真人": "live",
    "舞台剧": "stage",
}
"""Words that name an edition only when alone in brackets after the name."""

PART_INSIDE = Words(rf"[(\[](?P<part>[{''.join(BARE_PARTS)}])(?:部|集|篇)?[)\]]")

PREFIX_EDITIONS: tuple[tuple[str, Words], ...] = (
    ("movie", Words(rf"^(?:剧场版|电影版)[\s::·]*(?=[{HAN}\u3040-\u30ffa-z「『])", re.IGNORECASE)),
    ("movie", Words(r"^(?:电影|映画)[\s::]+(?=\S)")),
    ("tv", Words(r"^tv版[\s::]*(?=\S)", re.IGNORECASE)),
    ("ova", Words(r"^(?:ova|oad)[\s::]+(?=\S)", re.IGNORECASE)),
    ("motion-comic", Words(r"^动态漫画?[\s::·]+(?=\S)")),
)
"""Editions in front: 剧场版 空之境界."""

INSIDE_EDITIONS: tuple[tuple[str, Words], ...] = (
    ("movie", Words(r"(?<=[^\s新旧])\s*(?:剧场版|电影版|大电影)(?:[\s::·]+(?=\S)|\s*(?=\d))")),
    ("movie", Words(r"(?<=[^\s新旧])大电影(?=之\S\S)")),
    ("movie", Words(r"[\s:]+the movie(?:[\s:]+(?=\d)|\s*:\s*(?=\S))", re.IGNORECASE)),
    ("live", Words(r"(?<=\S)\s*真人(?:电影|剧场|剧)?版[\s::·]+(?=\S)")),
    ("ova", Words(r"(?<=[^\sa-z])\s*(?:ova|oad)[\s::·]*(?=[\s::·\d「『])\s*(?=\S)", re.IGNORECASE)),
    ("special", Words(r"(?<=\S)\s*(?:特别篇|番外篇?)[\s::·]+(?=\S)|(?<=[\s季])sp[\s::]+(?=\S)", re.IGNORECASE)),
    ("special", Words(r"(?<=\S)\s*第\s*\d{1,3}\.5\s*话\s*(?=\S)")),
    ("recap", Words(r"(?<=\S)\s*[总総]集[篇编][\s::·]+(?=\S)")),
    ("upper", Words(r"(?<=[^\s空从])\s*(?:前篇|前编|上篇)[\s::·?]+(?=\S)")),
    ("lower", Words(r"(?<=\S)\s*(?:后篇|后编|下篇)[\s::·?]+(?=\S)")),
    ("motion-comic", Words(r"(?<=\S)\s*动态漫画?[\s::·]+(?=\S)")),
)
"""Editions between a name and its subtitle: 名侦探柯南剧场版 引爆摩天楼."""

MAYBE_INSIDE = Words(
    "版|映画|电影|特别篇|番外|总集|総集|动态漫|话|前[篇编]|上[篇编]|后[篇编]|下[篇编]"
    "|o(?i:va|ad)|O(?i:va|ad)|s(?i:p)|S(?i:p)|t(?i:he movie)|T(?i:he movie)"
)
"""Present in every title with an edition in front or in the middle; written like `title_numbers.MAYBE_INSIDE`."""
