"""Detects what no introduction may contain: addresses, contacts, markup, emoji, hidden characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from douban_pipeline.douban.intros.factguard.plain_text import folded
from douban_pipeline.matching.text import HAN, narrow

_TLD = (
    "com|cn|net|org|info|tv|cc|top|xyz|vip|me|io|club|site|online|live|app|co|us|hk|tw|jp|kr|uk|ru|fun|shop|pro|ltd"
    "|ink|wang|link|mobi|biz|asia|la|ws|fm|ai|gg|tk|ml|icu|cyou|one|store|space|work|video|movie|film|website|cloud"
)
_ADDRESSES = (
    re.compile(r"[a-z][a-z0-9+.-]{1,15}://[^\s，。、；！？)）]*"),
    re.compile(r"(?<![a-z0-9])www\s?[.。点]\s?[a-z0-9][^\s，。、；！？)）]*"),
    re.compile(
        rf"(?<![a-z0-9])[a-z0-9](?:[a-z0-9-]|[.](?=[a-z0-9])){{0,80}}(?:\s?[.。点]\s?|\s?[(\[][.点][)\]]\s?|\sdot\s)(?:{_TLD})(?![a-z0-9])(?:/[^\s，。、；！？]*)?"
    ),
    # With any ending: names like Mr.Bean of the fact sheet are removed before.
    re.compile(r"(?<![a-z0-9.])[a-z0-9][a-z0-9-]{1,60}\.[a-z]{2,18}(?![a-z0-9.])(?:/[^\s，。、；！？]*)?"),
    re.compile(rf"[a-z0-9{HAN}-]{{1,40}}\.(?:中国|公司|网络|网址|在线|商城|集团)(?![{HAN}])"),
    re.compile(r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)"),
)
_CONTACTS = (
    re.compile(r"[\w.+-]{0,64}\s?@\s?[\w.-]{0,64}"),
    re.compile(r"(?<![\d.])\+?\d(?:[\s()-]?\d){6,}(?!\d)"),
    re.compile(r"(?<![a-z])(?:qq|vx|wx|wechat|whatsapp|telegram)(?![a-z])\s?[:号群]?\s?[\w-]*"),
    re.compile(
        "微信(?:号|群|公众号)?|扣扣|[加进入]群|群号|公众号|二维码|扫一扫|扫码|联系电话|客服|热线|手机号|联系方式"
        "|电报群|企鹅号|小程序|(?<![a-z])v信(?!号)|扣群"
    ),
)
_MARKUP = (
    re.compile(r"</?[a-zA-Z!][^<>]{0,80}>?|[<>＜＞﹤﹥]"),
    re.compile(r"&(?:[a-zA-Z]{2,10}|#\d{1,7}|#x[0-9a-fA-F]{1,6});"),
    re.compile(r"!?\[[^\]]{0,80}\]\([^)]{0,200}\)"),
    re.compile(r"(?m)^\s{0,3}(?:#{1,6}(?=\s)|[-+*•](?=\s)|\d{1,2}[.)、](?=\s?\D)|>|-{3,}|={3,})"),
    re.compile(r"\*+|`+|~~|__|[{}\\|]|#|\[|\]|\\[nrt]"),
)
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u25a0-\u25ff\u20e3\ufe0f\u2190-\u21ff\u3030\u303d\xa9\xae\u2122\u24b6-\u24ff\u3297\u3299]+"
)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def _hits(patterns: Iterable[re.Pattern[str]], text: str) -> list[str]:
    return [match[0].strip() for pattern in patterns for match in pattern.finditer(text) if match[0].strip()]


def addresses(text: str) -> list[str]:
    """Return URLs, domains and IP addresses, also in full width and with 点 or 。 as the dot."""
    return _hits(_ADDRESSES, narrow(text).casefold())


def contacts(text: str) -> list[str]:
    """Return mail addresses, handles, numbers with the length of phone numbers, and words for contacts."""
    return _hits(_CONTACTS, folded(text))


def markup(text: str) -> list[str]:
    """Return HTML tags, entities, and characters of Markdown and JSON syntax."""
    return _hits(_MARKUP, text)


def emoji(text: str) -> list[str]:
    """Return runs of emoji, arrows and dingbats."""
    return _EMOJI.findall(text)


def hidden(text: str) -> list[str]:
    """Return the invisible code points, each once, except line ends."""
    found = (
        char for char in text if char != "\n" and char != "\ufe0f" and unicodedata.category(char) in _HIDDEN_CATEGORIES
    )
    return list(dict.fromkeys(f"U+{ord(char):04X}" for char in (*found, *re.findall("\ufffd", text))))
