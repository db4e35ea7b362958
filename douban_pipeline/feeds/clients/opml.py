"""Lists of feeds as OPML, the format of feed readers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.feeds.types import Source, SourceKind

LARGEST = 5_000_000
_ENTITY = re.compile(r"<!ENTITY|<!DOCTYPE[^>]*\[", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outline:
    """One feed of a list: its address and title."""

    url: str
    title: str


def read_opml(text: str) -> list[Outline]:
    """Return the feeds of an OPML filein order, each address once.

    Raises:
        ProblemsError: It is not OPML, is too large or declares entities.
    """
    if len(text) > LARGEST or _ENTITY.search(text):
        raise ProblemsError(["OPML 文件过大，或声明了实体（DOCTYPE / ENTITY）"])
    try:
        root = ElementTree.fromstring(text.strip().encode())  # noqa: S314 (no entities: refused above)
    except (ElementTree.ParseError, ValueError) as error:
        raise ProblemsError([f"不是可读的 OPML（XML 有误：{error}）"]) from error
    if root.tag.lower() != "opml":
        raise ProblemsError(["不是 OPML：根元素不是 opml"])
    found: dict[str, Outline] = {}
    for outline in root.iter("outline"):
        named = {name.lower(): value for name, value in outline.attrib.items()}
        url = named.get("xmlurl", "").strip()
        if url:
            found.setdefault(url, Outline(url, (named.get("title") or named.get("text") or "").strip()[:300]))
    return list(found.values())


def write_opml(sources: Iterable[Source], title: str = "douban_pipeline") -> str:
    """Return an OPML file with the sources that a feed reader can follow: those of the kind rss."""
    root = ElementTree.Element("opml", version="2.0")
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = title
    body = ElementTree.SubElement(root, "body")
    for each in _readable(sources):
        name = each.title or each.url
        ElementTree.SubElement(body, "outline", type="rss", text=name, title=name, xmlUrl=each.url)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _readable(sources: Iterable[Source]) -> Iterator[Source]:
    return (each for each in sources if each.kind is SourceKind.RSS)
