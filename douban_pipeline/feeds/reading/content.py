"""Articles of sources as HTML that is safe to show on our pages and in readers. Pure.

The sanitiser is nh3, which parses as browsers do (html5ever), keeps what a list allows instead of dropping what one
forbids, and is maintained with the library under it, ammonia; bleach, which was Python's own, has ended.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Literal

import nh3

_TAGS = {
    *("a", "abbr", "b", "bdi", "bdo", "blockquote", "br", "cite", "code", "dd", "del", "dfn", "div", "dl", "dt", "em"),
    *("figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol"),
    *(
        "p",
        "pre",
        "q",
        "rp",
        "rt",
        "ruby",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
        "td",
    ),
    *("tfoot", "th", "thead", "time", "tr", "u", "ul", "var", "wbr"),
}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
_DROPPED_WHOLE = {
    *("applet", "audio", "button", "canvas", "embed", "form", "frameset", "head", "iframe", "math", "noembed"),
    *("noframes", "noscript", "object", "script", "select", "style", "svg", "template", "textarea", "title", "video"),
}
_ADDED = {
    "a": {"target": "_blank"},
    # Without a referrer a page learns less of who reads, and hosts that refuse foreign pages show their pictures.
    "img": {"loading": "lazy", "decoding": "async", "referrerpolicy": "no-referrer"},
}
_SCHEMES = {"http", "https", "mailto"}
_LATER_PICTURE = re.compile(r"(<img\b[^<>]{0,500}?\s)data-(?:original|src)=", re.IGNORECASE)
"""A picture's address as pages have it whose scripts load pictures, such as those of public accounts."""
_SIZE = re.compile(r"\d{1,4}%?")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)(?:[^<>]*>)?")
_SHALLOW = {
    *("area", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option", "p", "source"),
    *("tbody", "td", "th", "thead", "tr", "track", "wbr"),
}
"""Tags that hold nothing, or that the next of their kind closes."""
_DEEPEST = 1000
"""Most elements within each other: the sanitiser's time grows with the square of that (66,000 took a minute)."""


def safe_html(content: str | None, summary: str, link: str) -> str:
    """Return an article as HTML without scripts, styles, forms, frames and addresses other than of the web.

    One of elements deeper within each other than any page is shown as text.

    Args:
        content: The article as its source wrote it; None or empty shows the summary.
        summary: The summary, as plain text.
        link: The article's page, to which its addresses are relative; without one, relative addresses are dropped.
    """
    if not content:
        return f"<p>{html.escape(summary, quote=False)}</p>" if summary else ""
    if _is_deep(content):
        return f"<p>{html.escape(' '.join(_TAG.sub(' ', content).split()), quote=False)}</p>"
    found = _LATER_PICTURE.sub(r"\1src=", content) if "data-" in content else content
    try:
        return _cleaned(found, ("rewrite_with_base", link) if link else "deny")
    except ValueError:  # a link that is no address: http://a:99999999/
        return _cleaned(found, "deny")


def _cleaned(content: str, relative: Literal["deny"] | tuple[Literal["rewrite_with_base"], str]) -> str:
    return nh3.clean(
        content,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_kept,
        clean_content_tags=_DROPPED_WHOLE,
        url_schemes=_SCHEMES,
        url_relative=relative,
        set_tag_attribute_values=_ADDED,
        link_rel="noopener noreferrer",
    )


def _is_deep(content: str) -> bool:
    opened: Counter[str] = Counter()
    depth = 0
    for match in _TAG.finditer(content):
        closes, name = match[1], match[2].lower()
        if name in _SHALLOW or (closes and not opened[name]):
            continue  # what closes nothing makes nothing less deep
        opened[name] += -1 if closes else 1
        depth += -1 if closes else 1
        if depth > _DEEPEST:
            return True
    return False


def _kept(tag: str, name: str, value: str) -> str | None:
    """Return the value that an attribute keeps; None drops it: sizes that are none, and those of counting pictures."""
    if tag == "img" and name in ("width", "height"):
        return value if _SIZE.fullmatch(value) else None
    return value
