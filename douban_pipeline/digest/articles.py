"""Articles as text: visible text of HTML, detection of missing bodies, and hashes that identify duplicates. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from selectolax.lexbor import LexborHTMLParser

TRUNCATED = "（正文过长已截断，可能缺失关键信息，需核验原文）"
_UNSEEN = "head, style, script, noscript, template, svg, iframe, object, [hidden], [style*='display:none'], " + (
    "[style*='display: none']"
)
_BLOCKS = "p, div, section, br, li, tr, td, h1, h2, h3, h4, h5, h6, blockquote, pre, article, table, ul, ol"
_NOISE = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]")
_NOT_PART = frozenset(
    {"chksm", "scene", "from", "isappinstalled", "sharer_shareinfo", "sharer_sharetime", "pass_ticket"}
)
_NO_PLACE = frozenset({"", "rd", "wechat_redirect"})
"""Fragments that name no place in a page: none, and those that WeChat adds to the addresses of articles."""


_TELLING_TEXT = 200
"""Least number of characters of a text that no other article has by chance."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body as text; if there is none, ``missing`` is the reason, and ``gone`` whether it will never be available."""

    text: str = ""
    missing: str = ""
    gone: bool = False


def body_of(html: str | None) -> Body:
    """Return the body given by WeRSS; its placeholder for a body not yet fetched counts as none."""
    if html is None:
        return Body(missing="正文尚未抓取（null）")
    text = text_of(html)
    if not text:
        return Body(missing="正文为空")
    if text == "DELETED":
        return Body(missing="发布者已删除（DELETED）")
    if text.startswith("转换失败"):
        return Body(missing="正文尚未抓取（转换失败）")
    return Body(text)


def text_of(html: str) -> str:
    """Return the visible text of HTML, one line per block, without styles, scripts and hidden elements."""
    parser = LexborHTMLParser(html)
    root = parser.body
    if root is None:
        return ""
    for node in root.css(_UNSEEN):
        node.decompose()
    for node in root.css(_BLOCKS):
        node.insert_after("\n")
        node.insert_before("\n")
    return clean(root.text(separator=""))


def clean(text: str) -> str:
    """Return text without invisible characters, with runs of blanks and empty lines collapsed."""
    text = _NOISE.sub("", text.replace("\r", "\n").replace("\u00a0", " ").replace("\u3000", " "))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def truncated(text: str, most: int) -> tuple[str, bool]:
    """Return at most ``most`` characters of a text, and whether it was cut."""
    return (text, False) if len(text) <= most else (text[:most], True)


def content_hash(title: str, text: str) -> str:
    """Return a hash that is equal for articles whose texts differ only in white space.

    A short text, such as that of an article of pictures, does not tell articles apart: then their titles must agree,
    too.
    """
    bare = "".join(text.split())
    whole = bare if len(bare) >= _TELLING_TEXT else f"{''.join(title.split())}\x1f{bare}"
    return hashlib.sha256(whole.encode()).hexdigest()


def url_hash(url: str) -> str | None:
    """Return a hash that is equal for all addresses of one article; None without an address."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    if not parts.netloc:
        return None
    query = parse_qsl(parts.query, keep_blank_values=True)  # a query may be a name alone, such as ?thread-1
    kept = [(name, value) for name, value in query if name not in _NOT_PART and not name.startswith("utm_")]
    address = f"{parts.netloc.lower()}{parts.path}?{urlencode(sorted(kept))}"
    if parts.fragment not in _NO_PLACE:
        address += f"#{parts.fragment}"  # posts of a forum's thread differ in nothing else
    return hashlib.sha256(address.encode()).hexdigest()
