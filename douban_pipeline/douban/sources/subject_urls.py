"""Subject ids from every form of a Douban film or series URL. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

SMALLEST_ID = 10_000
"""The CMS's own form refuses Douban ids below this."""
_LARGEST_ID = 10**10 - 1
_DECODE_ROUNDS = 4

_HOST = r"(?<![\w.-])(?:{hosts})(?::\d{{1,5}})?/"
_SUBJECT = re.compile(
    "(?:"
    + "|".join(
        (
            # Desktop and mobile pages, with a section before (/m/, /tv/) but never after another host's name.
            _HOST.format(hosts=r"(?:www\.|m\.)?movie\.douban\.com") + r"(?:[a-z]{1,8}/)?subject/",
            _HOST.format(hosts=r"m\.douban\.com") + r"(?:movie|tv)/(?:subject/)?",
            # The app's share links and deep links.
            _HOST.format(hosts=r"(?:www\.|m\.)?douban\.com")
            + r"doubanapp/dispatch(?:/|/?\?(?:[^\s#\"'<>]*&)?uri=/?)(?:movie|tv|subject)/",
            r"(?<![\w.-])douban://(?:www\.)?douban\.com/(?:movie|tv)/(?:subject/)?",
            # Interfaces.
            _HOST.format(hosts=r"m\.douban\.com") + r"rexxar/api/v2/(?:movie|tv)/(?:subject/)?",
            _HOST.format(hosts=r"(?:frodo|api)\.douban\.com") + r"(?:api/)?v2/(?:movie|tv)/(?:subject/)?",
        )
    )
    + r")(?P<id>[0-9]{1,20})(?![0-9A-Za-z_])",
    re.IGNORECASE | re.ASCII,
)


def subject_ids(text_or_urls: str | Iterable[str]) -> list[int]:
    """Return the subject ids named by Douban film URLs, in order of appearance, each once.

    Reads one text (a URL, a page, JSON) or several. Percent-encoded URLs inside others (``link2/?url=``, search
    engines' redirects) are read too. Books, music, games and ids below 10000 are left out.
    """
    texts = [text_or_urls] if isinstance(text_or_urls, str) else text_or_urls
    found: dict[int, None] = {}
    for text in texts:
        for match in _SUBJECT.finditer(_decoded(text)):
            number = int(match["id"])
            if SMALLEST_ID <= number <= _LARGEST_ID:
                found.setdefault(number)
    return list(found)


def _decoded(text: str) -> str:
    text = text.replace("\\/", "/").replace("\\u002F", "/").replace("\\u002f", "/")
    for _ in range(_DECODE_ROUNDS):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text
