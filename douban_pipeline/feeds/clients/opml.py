"""Lists of feeds as OPML, the format of feed readers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import reader_text
from douban_pipeline.feeds.types import Source, SourceKind

LARGEST = 5_000_000
_ENTITY = re.compile(r"<!ENTITY|<!DOCTYPE[^>]*\[", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outline:
    """One feed of a list: its address (empty: the line has none), title, and folder."""

    url: str
    title: str
    folder: str = ""


def read_opml(text: str) -> list[Outline]:
    """Return the feeds of an OPML file in order, each address once, and lines that should be feeds but have no address.

    Outlines around a feed are its folder, ``outer/inner``; without any, its first ``category`` is (OPML 2.0).

    Raises:
        ProblemsError: It is not OPML, is too large or declares entities.
    """
    if len(text) > LARGEST or _ENTITY.search(text):
        raise ProblemsError([reader_text("the OPML file is too large, or declares entities (DOCTYPE, ENTITY)")])
    try:
        root = ElementTree.fromstring(text.strip().encode())  # noqa: S314 (no entities: refused above)
    except (ElementTree.ParseError, ValueError) as error:
        raise ProblemsError([reader_text("no readable OPML (broken XML: {error})").format(error=error)]) from error
    if root.tag.lower() != "opml":
        raise ProblemsError([reader_text("no OPML: the root element is not opml")])
    found: dict[str, Outline] = {}
    # Not by recursion: a list may be nested as deep as its author likes.
    pending = [(each, "") for body in root.iter("body") for each in body][::-1]
    while pending:
        outline, folder = pending.pop()
        named = {name.lower(): value for name, value in outline.attrib.items()}
        url, title = named.get("xmlurl", "").strip(), (named.get("title") or named.get("text") or "").strip()[:300]
        inner = folder
        if url or (named.get("type", "").lower() in ("rss", "atom") and not len(outline)):
            category = named.get("category", "").split(",")[0].strip("/")
            found.setdefault(url or f"\x00{title}", Outline(url, title, folder or category))
        else:
            inner = "/".join(filter(None, (folder, title.replace("/", " ").strip())))[:200]
        pending += [(each, inner) for each in outline][::-1]
    return list(found.values())


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

    for each in _readable(sources):
        name = each.title or each.url
        ElementTree.SubElement(folder(each.folder), "outline", type="rss", text=name, title=name, xmlUrl=each.url)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _readable(sources: Iterable[Source]) -> Iterator[Source]:
    return (each for each in sources if each.kind is SourceKind.RSS)
