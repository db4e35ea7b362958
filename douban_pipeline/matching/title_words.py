"""The words sites and catalogues hang on a title: junk, editions, ways to number. Tables only.

Patterns are matched against text after :func:`~douban_pipeline.matching.text.narrow` and without regard to
case; those of suffixes end at the end of the text. A word missing here stays part of the name, which can cost
a match but never make a wrong one. So when in doubt, leave it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from douban_pipeline.matching.numerals import CHINESE_DIGITS
from douban_pipeline.matching.text import HAN


def _suffix(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})$", re.IGNORECASE)


_NOT_LATIN_BEFORE = r"(?<![a-z])"

JUNK: tuple[re.Pattern[str], ...] = tuple(
    map(
        _suffix,
        (
            # Files and pictures.
            r"\.(?:mp4|mkv|avi|rmvb|rm|wmv|flv|mov|ts|m2ts|iso)",
            r"(?<![0-9])(?:240|360|480|540|576|720|1080|1440|2160|4320)\s*[pi]",
            r"(?<![0-9])[48]k(?:\s*版)?",
            r"(?<![0-9])\d{3,4}\s*[x*]\s*\d{3,4}",
            r"\d{3,4}分辨率",
            # The lookbehind also lets 1080PBD through.
            r"(?:(?<![a-z])|(?<=[0-9][pik]))(?:u?hd|fhd|hdr(?:10)?|bd|dvd|hdtv|hdtc|hdts|hdcam|tc|ts|cam|hc|web-?dl|web-?rip"
            r"|web|blu-?ray|bd-?rip|hd-?rip|dvd-?rip|bd-?hr|hr-hdtv|remux|x26[45]|h\.?26[45]|hevc|avc|aac|ac3|dts|flac"
            r"|10bit|60fps|dovi)+",
            # A release group comes after its codec: H264.AAC-RARBG.
            _NOT_LATIN_BEFORE + r"(?:h\.?26[45]|x26[45]|aac|ac3|dts|hevc|flac)(?![a-z0-9])[a-z0-9.&@-]*",
            r"(?:蓝光|超清|高清|标清|原画|杜比视界|杜比|枪版|抢先版?|清晰|全高清)(?:版|画质|原盘)?",
            r"无水印|在线观看|免费观看|迅雷下载|下载|正片|无字幕?|有字幕?|完整无删",
            # Subtitles: 中英双字幕, 国印双语中字, 韩语中字.
            r"(?:[国中粤英日韩法德俄泰西意印台](?:语|文)?){0,3}(?:双语|三语)(?:中字|双字|字幕)*",
            r"(?:[国中粤英日韩法德俄泰西意印](?:语|文)?){1,3}(?:双字幕?|中字|字幕版?)",
            r"中字|双字幕?|中文字幕|双语字幕|内嵌字幕|外挂字幕",
            # How far a series has got.
            r"(?:更新|连载|已更新?|同步更新)\s*(?:至|到)?\s*第?\s*[【\[]?\d+[】\]]?\s*(?:集|期|话|話|回)?(?:完结)?",
            r"(?:全|共)\s*\d+\s*(?:集|期|话|話|回)(?:全|完结)?",
            r"(?<![0-9])\d+\s*(?:集|话|話|回)\s*(?:全|完结?)",
            r"第\s*\d+(?:-\d+)?\s*(?:集|话|話)(?:完结?)?",
            r"(?:已完结|完结|全集完结)",
        ),
    )
)
"""Suffixes that say nothing of the work."""

ALIAS_TAIL = _suffix(
    r"\s*\((?:(?:港|台|臺|澳|新|马|大陆|内地|中国大陆|中国香港|中国台湾|香港|台湾|新加坡|马来西亚|豆瓣|电影节|网络|民间|字幕组|官方)"
    r"(?:版|译|译名|片名)?[/、,\s]*)+\)"
)
"""Where a name is used, as Douban appends it to an alias: ``(港/台)``, ``(豆瓣译名)``."""

PREFIX_TAG = re.compile(r"^(?:电影|电视剧|连续剧|综艺|动漫|纪录片)\s*(?=《)")


@dataclass(frozen=True, slots=True)
class Edition:
    """A way a work is told from its siblings.

    Attributes:
        code: Name of the edition, stored.
        pattern: Suffix that names it.
        distinct: Whether Douban gives it an entry of its own, so that it must agree. Dubbings and restorations
            share the entry of the work.
    """

    code: str
    pattern: re.Pattern[str]
    distinct: bool = True


def _edition(code: str, pattern: str, distinct: bool = True) -> Edition:
    return Edition(code, _suffix(pattern), distinct)


EDITIONS: tuple[Edition, ...] = (
    # Dubbings and pictures: the same entry.
    _edition("mandarin", r"(?:国语|国配|普通话|中文配音|国语配音|台配国语|台配|中配)(?:配音)?版?", False),
    _edition("cantonese", r"(?:粤语|粤配|广东话)(?:配音)?版?", False),
    _edition("dubbed", r"(?:(?:英|日|韩|法|德|俄|泰|闽南|原)(?:语|声|音)(?:配音)?版|原声|原版)", False),
    _edition("restored", r"(?:4k)?(?:全新)?(?:数码)?(?:修复|重映|重制收藏)版?", False),
    _edition("3d", _NOT_LATIN_BEFORE + r"(?:imax)?\s*[23]d版?|" + _NOT_LATIN_BEFORE + r"imax版?", False),
    _edition("uncut", r"(?:未删减|无删减|未删节|未分级|完整)(?:完整)?版?(?<!完整)", False),
    # Cuts that often have an entry of their own.
    _edition("cut", r"(?:导演剪辑|导剪|终极剪辑|加长|终极|特别剪辑|重剪|精编|黑白)版"),
    _edition("dvd", r"dvd版"),
    # Other works of the same name.
    _edition("movie", r"(?:剧场版|电影版|大电影|劇場版|the\s+movie)"),
    _edition("tv", r"(?:tv|电视剧?)版"),
    _edition("web", r"(?:网络|网剧|网络剧|竖屏)版"),
    _edition("animation", r"(?:动画|动漫|卡通)版"),
    _edition("motion-comic", r"动态漫画?(?:版)?"),
    _edition("live", r"真人版|真人"),
    _edition("stage", r"(?:舞台剧|话剧|音乐剧|舞台)版?"),
    _edition("ova", _NOT_LATIN_BEFORE + r"(?:ova|oad|ona)版?"),
    _edition(
        "special", r"(?:特别篇|番外篇?|特典|特番|特辑|特别节目|外传篇|" + _NOT_LATIN_BEFORE + r"(?:sp|specials?))"
    ),
    _edition("final", r"(?:最终季|最终章|完结篇|终章|终季|the\s+final\s+season)"),
    _edition("collection", r"(?:全集|合集|全系列|(?:全|第)?\s*1\s*[-~至]\s*\d{1,2}\s*(?:季|部)全?|全\s*\d{1,2}\s*季)"),
    _edition("upper", r"(?:上部|上集|上篇|上卷|前篇|前编|前編)"),
    _edition("middle", r"(?:中部|中集|中篇)(?<!高中部)(?<!初中部)"),
    _edition("lower", r"(?:下部|下集|下篇|下卷|后篇|后编|後編|後篇)"),
    # What variety shows are sliced into.
    _edition("pure", r"纯享版?|纯享"),
    _edition("extra", r"(?:加更|会员|超前|plus|抢鲜)版|加更|会员加长版?"),
    _edition("vlog", r"(?:直拍|日记|陪看|reaction)版?"),
    _edition("commentary", r"(?:电影|影视)?(?:解说|速看)版?"),
    _edition("trailer", r"(?:先导片|预告片?|花絮|片花|幕后(?:花絮|特辑)?|彩蛋|mv)"),
    _edition("drama-short", r"短剧版?"),
    # The same format in another country, or another shooting.
    _edition("us", r"美国?版"),
    _edition("gb", r"英国?版"),
    _edition("jp", r"日本?版"),
    _edition("kr", r"韩国?版"),
    _edition("cn", r"(?:中国|国产|内地|大陆)版"),
    _edition("hk", r"(?:香港|港)版"),
    _edition("tw", r"(?:台湾|台)版"),
    _edition("th", r"泰国?版"),
    _edition("in", r"印度版"),
    _edition("new", r"新版|重制版|重启版|翻拍版"),
    _edition("old", r"(?:老|旧|经典)版"),
)
"""Editions by suffix, tried in this order."""

DISTINCT_EDITIONS: frozenset[str] = frozenset(edition.code for edition in EDITIONS if edition.distinct)

BARE_PARTS = {"上": "upper", "前": "upper", "中": "middle", "下": "lower", "后": "lower", "後": "lower"}
"""Half of a work named by one character, read only inside brackets: 死亡圣器(上)."""

PART_INSIDE = re.compile(rf"[(\[](?P<part>[{''.join(BARE_PARTS)}])(?:部|集|篇)?[)\]]")

_N = rf"(?:[{CHINESE_DIGITS}]{{1,5}}|\d{{1,3}})"
_LATIN_ORDINAL = r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_LATIN_CARDINAL = r"one|two|three|four|five|six|seven|eight|nine|ten"

NUMBER_SUFFIXES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("season", _suffix(rf"第\s*(?P<n>{_N})\s*(?:季|期|辑|輯|シリーズ|クール|系列)")),
    ("season", _suffix(rf"(?<![0-9])(?P<n>[0-9]{{1,2}}|[{CHINESE_DIGITS}]{{1,3}})\s*季")),
    ("season", _suffix(r"(?:(?<=[^a-z0-9])|^)season\s*(?P<n>\d{1,2}|[ivx]{1,5})")),
    ("season", _suffix(rf"(?<![a-z])(?P<n>\d{{1,2}}(?=st|nd|rd|th)|{_LATIN_ORDINAL})(?:st|nd|rd|th)?\s+season")),
    ("season", _suffix(r"(?<![a-z0-9])s0?(?P<n>\d{1,2})(?:e\d{1,4})?")),
    ("season", _suffix(r"シーズン\s*(?P<n>\d{1,2})")),
    ("part", _suffix(rf"第\s*(?P<n>{_N})\s*(?:部分|部)")),
    ("part", _suffix(rf"(?<![a-z])(?:part|pt|vol|volume|cour)\.?\s*(?P<n>\d{{1,2}}|[ivx]{{1,5}}|{_LATIN_CARDINAL})")),
    ("part", _suffix(r"(?<![a-z])chapter\.?\s*(?P<n>\d{1,2}|[ivx]{1,5})")),
)
"""Numbers that name what they count, at the end of a title."""

NUMBER_INSIDE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("season", re.compile(rf"\s*第\s*(?P<n>{_N})\s*季[\s:·\-–—]*")),
    ("part", re.compile(rf"(?<=\s)第\s*(?P<n>{_N})\s*部[\s:·\-–—]+")),
    ("season", re.compile(r"(?<=\s)season\s*(?P<n>\d{1,2})[\s:·\-–—]+", re.IGNORECASE)),
    # 复仇者联盟3:无限战争; the space form only between Chinese words, else "Ocean 8 men".
    ("sequel", re.compile(r"(?<=[^\d\W])\s*(?P<n>\d{1,2})\s*(?::|\s[-–—]\s|·)\s*(?=[^\d\s])")),
    ("sequel", re.compile(rf"(?<=[{HAN}])(?P<n>\d{{1,2}})\s*(?:之|\s)(?=[{HAN}])")),
    ("sequel", re.compile(r"(?<=[^\d\W])\s+(?P<n>II|III|IV|VI{1,3}|IX|XI{1,2})\s*:\s*(?=\S)")),
)
"""Numbers in the middle of a title."""

BARE_NUMBER = _suffix(rf"(?:(?<=[{HAN}])|(?<=[a-z\u3040-\u30ff!?)\]~]{{2}})|(?<=\s))(?P<n>\d{{1,2}})")
BARE_ROMAN = re.compile(rf"(?:(?<=[{HAN}])|(?<=[{HAN}A-Za-z!?.]\s))(?P<n>II|III|IV|VI{{1,3}}|IX|XI{{1,3}}|XIV|XV|XVI)$")
BARE_CHINESE = re.compile(rf"(?<=[{HAN}]{{2}})(?P<n>[二三四五六七八九十]{{1,2}})$")
BARE_YEAR = re.compile(r"(?<![0-9])(?P<n>(?:19|20)\d{2})$")

FIRM_YEAR_SUFFIXES: tuple[re.Pattern[str], ...] = (
    _suffix(r"(?<![0-9])(?P<y>(?:19|20)\d{2})\s*年?版"),
    _suffix(r"(?<![0-9])(?P<y>[0-9]{2})\s*年?版"),
    _suffix(r"(?<=[._])(?P<y>(?:19|20)\d{2})"),
)
FIRM_YEAR_ALONE = re.compile(r"(?P<y>(?:19|20)\d{2})\s*年?\s*版?")
FIRM_YEAR_PREFIX = re.compile(r"^(?P<y>(?:19|20)\d{2})\s*(?:年|最新)")
