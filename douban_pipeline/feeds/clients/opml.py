"""Lists of feeds as OPML, the format of feed readers; listparser reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree

import listparser

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import reader_text
from douban_pipeline.feeds.types import Source, SourceKind

LARGEST = 5_000_000


@dataclass(frozen=True, slots=True)
class Outline:
    """One feed of a list: its address, title, and folder."""

    url: str
    title: str
    folder: str = ""


def read_opml(text: str) -> list[Outline]:
    """Return the feeds of an OPML file in order, each address once.

    Outlines around a feed are its folder, ``outer/inner``; without any, its last ``category`` is (OPML 2.0).

    Raises:
        ProblemsError: It is not OPML, or is too large.
    """
    if len(text) > LARGEST:
        raise ProblemsError([reader_text("the OPML file is too large")])
    if text.count("<") > text.count(">"):  # the parser takes time that grows with the square of tags without an end
        raise ProblemsError([reader_text("no readable OPML (broken XML)")])
    try:
        found = listparser.parse(text.encode())  # bytes: a text that begins like an address would be fetched
    except (IndexError, UnicodeError) as error:  # of outlines that end before they begin
        raise ProblemsError([reader_text("no readable OPML (broken XML)")]) from error
    if not found.version.startswith("opml"):
        raise ProblemsError([reader_text("no OPML: the root element is not opml")])
    return [Outline(each.url, each.title[:300], _folder(each.get("categories", []))) for each in found.feeds]


def _folder(categories: list[list[str]]) -> str:
    parts = (part.replace("/", " ").strip() for part in categories[-1]) if categories else ()
    return "/".join(filter(None, parts))[:200]


def write_opml(sources: Iterable[Source], title: str = "douban_pipeline") -> str:
    """Return an OPML file with the sources that a feed reader can follow: those of the kind rss."""
    root = ElementTree.Element("opml", version="2.0")
    ElementTree.SubElement(ElementTree.SubElement(root, "head"), "title").text = title
    body = ElementTree.SubElement(root, "body")
    folders: dict[str, ElementTree.Element] = {"": body}

    def folder(path: str) -> ElementTree.Element:
        if path not in folders:
            outer, _, name = path.rpartition("/")
            folders[path] = ElementTree.SubElement(folder(outer), "outline", text=name, title=name)
        return folders[path]

    for each in sources:
        if each.kind is not SourceKind.RSS:
            continue
        name = each.title or each.url
        ElementTree.SubElement(folder(each.folder), "outline", type="rss", text=name, title=name, xmlUrl=each.url)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
