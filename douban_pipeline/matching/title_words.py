"""Tables of the words that sites add to a title and that do not describe the work.

Patterns are matched against text after :func:`~douban_pipeline.matching.text.narrow`, ignoring case; suffix patterns
end at the end of the text. A word missing here stays part of the name, which can lose a match but never causes a
wrong one. When in doubt, do not add a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from douban_pipeline.matching.numerals import CHINESE_DIGITS
from douban_pipeline.matching.pattern_ends import ANYTHING, ends
from douban_pipeline.matching.text import HAN


@dataclass(frozen=True)
class Words:
    """Words of a title, as a pattern that is compiled when it is first needed.

    Compiling a hundred of them takes as long as loading SQLAlchemy, and most processes read few titles or none.
    """

    source: str
    flags: re.RegexFlag = re.NOFLAG

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.source, self.flags)


def suffix(source: str) -> Words:
    """Return the words of a pattern that ends where the text ends."""
    return Words(rf"(?:{source})$", re.IGNORECASE)


_NO_LITERALS = re.compile(r"\(\?P<\w+>|\(\?<?[=!](?:\[[^\]]*\])+\)|\\[a-zA-Z]")
_DIGITS, _LETTERS = frozenset("0123456789"), frozenset("abcdefghijklmnopqrstuvwxyz")


def _mentioned(source: str) -> frozenset[str]:
    found = frozenset(_NO_LITERALS.sub("", source).casefold())
    if "[^" in source:
        return found | _DIGITS | _LETTERS | frozenset("!$%&'*+@£")
    if "\\d" in source or re.search("[0-9]-[0-9]", source):
        found |= _DIGITS
    return found | _LETTERS if "a-z" in _NO_LITERALS.sub("", source) else found


@lru_cache(maxsize=512)
def endings(source: str) -> frozenset[str]:
    """Return the characters, casefolded, that a match of a pattern may end in, from the pattern's source.

    A suffix ends in a character that its pattern contains, so most patterns can be skipped for most titles.
    """
    mentioned, last = _mentioned(source), ends(source)
    return mentioned if last is ANYTHING else mentioned & last


NOT_LATIN_BEFORE = r"(?<![a-z])"
APART = r"(?:(?<=[\s:·.,_|\-–—\])}】」季期部集])|^)"
"""Prefix for words that may also end a name (吸血鬼日记, 死亡预告): matched only after a separator or a season."""

_NOT_IN_LATIN = r"(?<![a-z])(?<![a-z'’][ ])"
"""Prefix for words that a Latin name may end with: Madame Web, Cam, Some Like It Hot."""

_VIDEO = (
    # Unmistakable anywhere.
    r"u?hd|fhd|hdr(?:10)?|hdtv|hdtc|hdts|hdcam|hdrip|web-?dl|web-?rip|blu-?ray|bd-?rip|bd-?hr|dvd-?rip|dvd-?scr|hr-hdtv"
    r"|remux|x26[45]|h\.?26[45]|hevc|10-?bit|60fps|dovi"
)
_VIDEO_WEAK = r"bd|dvd|tc|ts|cam|hc|web|avc|aac|ac3|dts|flac|r5"
_OTHER = r"[英日韩法德俄泰西意印][语文]?"
# Several languages only in the order sites write them: 末日国语中字 and 祖国国语中字 have one language each.
_LANGUAGES = (
    rf"(?:国[语配]?(?:粤语?)?(?:中?{_OTHER})?(?:{_OTHER})?|中文?(?:{_OTHER})?"
    rf"|粤语?(?:国语?|{_OTHER})?|台[语配]|{_OTHER})"
)
_FILE = r"mp4|mkv|avi|rmvb|rm|wmv|flv|mov|ts|m2ts|iso|mpg|m4v|webm"

JUNK: tuple[Words, ...] = tuple(
    map(
        suffix,
        (
            # Files and pictures.
            rf"(?:\.|^)(?:{_FILE})",
            # Before the sizes, so that BD is removed together with 1080P after a Latin name too.
            rf"{NOT_LATIN_BEFORE}(?:{_VIDEO}|bd|dvd)+[\s._]*\d{{3,4}}\s*[pi]",
            NOT_LATIN_BEFORE + r"u?[hb]d\s?(?:480|720|1080|1280|2160)",
            r"(?<![0-9])(?:240|360|480|540|576|720|1080|1440|2160|4320)\s*[pi]",
            r"(?<![0-9])[48]k(?:\s*版)?",
            r"(?<![0-9])4k?[\s.]*remux",
            r"(?<![0-9])\d{3,4}\s*[x*]\s*\d{3,4}",
            r"\d{3,4}分辨率",
            # The lookbehind also admits 1080PBD.
            rf"(?:{NOT_LATIN_BEFORE}|(?<=[0-9][pik]))(?:{_VIDEO})+版?",
            rf"(?:{_NOT_IN_LATIN}|(?<=[0-9][pik]))(?:{_VIDEO}|{_VIDEO_WEAK})+版?(?<!dvd版)",
            # A release group comes after its codec: H264.AAC-RARBG.
            NOT_LATIN_BEFORE + r"(?:h\.?26[45]|x26[45]|aac|ac3|dts|hevc|flac)(?![a-z0-9])[a-z0-9.&@()-]*",
            # Any text without Chinese characters after a picture size or a source: 1080p.Korean.CHS.
            rf"(?:(?<=[\s._\-])|[\[(])(?:\d{{3,4}}p|bd\d{{3,4}}p|blu-?ray|web-?dl|web-?rip|hdtv|bdrip)(?![a-z0-9])[^{HAN}]*",
            r"(?:蓝光|超清|高清|标清|杜比视界|杜比|枪版|抢先版|全高清)(?:版|画质|原盘)?|(?:原画|清晰|流畅|抢先|尝鲜)版",
            APART + r"(?:清晰|原画|抢先|流畅|原盘|正片|下载|有字幕?|无字|无删)",
            APART + _NOT_IN_LATIN + "hot",
            rf"[\[(]仅?限[{HAN}、/]{{2,12}}?(?:地区|观看|播出)[\])]|仅限[{HAN}、/]{{2,12}}?(?:地区|观看|播出)",
            r"无水印|无字幕|在线观看|在线播放|免费观看|迅雷下载|百度云|完整无删|全剧终|未完结|\d{2,3}帧",
            # Subtitles and sound: 中英双字幕, 国印双语中字, 韩语中字, 国粤双音轨.
            rf"(?:{_LANGUAGES})?(?:双语|三语)(?:{_LANGUAGES})?(?:中字|双字|字幕)*版?",
            rf"{_LANGUAGES}(?:双字幕?|中字|无字|字幕)版?",
            rf"(?:{_LANGUAGES})?(?:双|三|多|[2-9])?音[轨频]",
            r"(?:官方|特效|内封|内嵌|外挂|简体|繁体|简繁|简|繁)*(?:中英)?(?:中字|双字|双字幕|字幕)版?|(?:国语|粤语)?[简繁]中",
            # The dated episode of a show: 20240315期.
            r"(?:第\s*)?(?<![0-9])(?:19|20)\d{2}[-./]?(?:0[1-9]|1[0-2])[-./]?(?:[0-2]\d|3[01])\s*期?",
            # The release progress of a series.
            r"(?:已完结|完结|全集完结|更新中|连载中|热播中|大结局完结)",
        ),
    )
)
"""Suffixes that do not describe the work."""

EPISODES: tuple[Words, ...] = (
    suffix(
        r"(?:(?<=[\s\])】])已更新?|(?:同步|持续)?更新?|连载)\s*(?:至|到)?\s*第?\s*[【\[(]?(?P<to>\d{1,4})[】\])]?"
        r"\s*(?:集|期|话|回)?\s*(?:已?完结)?"
    ),
    suffix(r"(?P<all>全|共)\s*(?P<to>\d{1,4})\s*(?:集|期|话|回)\s*(?:全|已?完结)?"),
    suffix(r"(?<![0-9])(?P<to>\d{1,4})\s*(?:集|话|回)\s*(?P<all>全集?|已?完结|全\s*完结)"),
    suffix(r"第\s*(?:(?P<from>\d{1,4})\s*[-~至]\s*)?(?P<to>0[1-9]|\d{2,4})\s*(?:集|话)\s*(?:已?完结)?"),
    suffix(rf"(?<=[季部期])\s*第\s*(?P<to>\d{{1,3}}|[{CHINESE_DIGITS}]{{1,5}})\s*[集话]"),
    suffix(r"(?:(?<=[\s.\]】])|^)(?P<to>\d{1,3})集"),
    suffix(r"(?<=[\s.\]】])(?:ep|e)(?P<to>\d{2,4})(?:\s*(?:end|完))?"),
    suffix(
        r"(?:(?<=[\[(])|(?<= )(?=0)|^)(?P<from>0\d|1)\s*[-~]\s*(?P<to>\d{2,3})(?:集|话)?(?:\s*(?:end|fin|完结?|全))?"
    ),
    suffix(r"(?:(?<=季)|(?<=\ss\d)|(?<=\ss\d\d))\s*-\s*(?P<to>\d{1,3})"),
)
"""Suffixes that state episodes. Episode 0 is a special, and 教父第三集 is the third film."""

ALIAS_TAIL = suffix(
    r"\s*\((?:(?:港|台|臺|澳|新|马|大陆|内地|中国大陆|中国香港|中国台湾|香港|台湾|新加坡|马来西亚|豆瓣|电影节|网络|民间|字幕组|官方)"
    r"(?:版|译|译名|片名)?[/、,\s]*)+\)"
)
"""Where a name is used, which Douban appends to an alias: ``(港/台)``, ``(豆瓣译名)``."""

ALIAS_HEAD = Words(r"^(?:又名|别名|原名|译名|港译|台译|英文名)\s*[::]\s*(?=\S)")

KIND_TAG = Words(
    r"(?:电影|电视剧|连续剧|剧集|综艺|动漫|动画片?|番剧|纪录片|短剧|短片|微电影|网络大?电影"
    r"|国产剧?|美剧|英剧|日剧|韩剧|泰剧|港剧|台剧|国漫|日漫|海外剧|华语|欧美|日韩|新片|推荐|独播|首发|vip|"
    r"豆瓣\s*[\d.]+\s*分?|[\d.]+\s*分)",
    re.IGNORECASE,
)
"""Words that a site puts in brackets before a title."""

INDEX_PREFIX = Words(
    r"(?:no\.?\s*\d{1,4}\s*[|.、:]\s*|(?:[\w-]+\.)+(?:com|cc|net|org|cn|tv|vip|top|co|me)\s+)(?=\S)", re.IGNORECASE
)
"""List numbers and site addresses before a title."""

_GENRES = (
    "动作|喜剧|爱情|科幻|悬疑|惊悚|恐怖|剧情|犯罪|奇幻|冒险|战争|动画|纪录|记录|西部|传记|历史|音乐|歌舞|家庭|武侠"
    "|古装|灾难|魔幻|谍战|情色|伦理|运动|短片"
)
SITE_WORDS = Words(
    rf"(?:19|20)\d\d|\d\d(?:最新|新片)|[/、·]|作品|分辨率|最新|新片|大片|高分|获奖|执导|主演|完整版|字幕|影视|(?:{_GENRES})片?$"
    r"|^(?:电影|电视剧|连续剧|综艺|动漫|纪录片|剧集|短剧|韩剧|美剧|日剧)\s*$|^[a-z]\s*[.\-]?\s*$",
    re.IGNORECASE,
)
"""Words before ``《`` that were added by a site. Other words may belong to the name: 走进《红楼梦》."""

FIRM_YEARS: tuple[Words, ...] = (
    suffix(r"(?<![0-9])(?P<y>(?:19|20)\d{2})\s*年?版"),
    suffix(r"(?<![0-9])(?P<y>[0-9]{2})\s*年?版"),
    suffix(r"(?<=[._])(?P<y>(?:19|20)\d{2})"),
)
FIRM_YEAR_ALONE = Words(r"(?P<y>(?:19|20)\d{2})(?:\s*[-–~]\s*(?:(?:19|20)\d{2})?)?\s*年?\s*版?")
FIRM_YEAR_BEFORE = Words(r"(?<![0-9])(?P<y>(?:19|20)\d{2})(?![0-9]|分辨率)")
"""A year before ``《``."""

SOFT_YEAR_PREFIX = Words(rf"^(?P<y>(?:19|20)\d{{2}})[\s._|\-]+(?=[{HAN}])")
