"""Writes values into maccms 10's text columns, and reads values written by it or by other tools.

Writing is strict: a value of a ``varchar`` is one line without tags, escaped like PHP's
``htmlspecialchars(ENT_QUOTES)`` (themes print values raw, and the collector compares escaped text), and fits the column
*after* escaping. Reading is tolerant: entities escaped twice, JSON escapes, placeholders and four kinds of separators
all occur in live libraries.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#039;"})
_PLAIN = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#039;": "'", "&#39;": "'", "&apos;": "'"}
_PHP_ENTITY = re.compile("|".join(_PLAIN))
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MAX_ESCAPES = 8  # double escapes occur; the bound limits the cost of hostile text

_HIDDEN_START = re.compile(r"<!--|<(?P<name>script|style)\b[^<>]*>", re.IGNORECASE)
_HIDDEN_END = {
    None: re.compile("-->"),
    "script": re.compile(r"</script\s*>", re.IGNORECASE),
    "style": re.compile(r"</style\s*>", re.IGNORECASE),
}
_CUT_ESCAPE = re.compile(r"&[#A-Za-z0-9]*$")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_BREAK = re.compile(r"<(?:br|hr)\s*/?>|</?(?:p|div|li|ul|ol|tr|h[1-6]|blockquote)\b[^<>]*>", re.IGNORECASE)
_MARKED = re.compile(r"[<>&\\\ud800-\udfff]")
"""Present in every text with a tag or an escape."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_INVISIBLE = re.compile(r"[\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_JSON_CHARACTER = re.compile(r"\\u([0-9a-fA-F]{4})")
_JSON_BREAK = re.compile(r"(?:\\r\\n|\\n|\\r)(?![a-z])")
_JSON_PLAIN = re.compile(r"\\([\"'/])")

_SEPARATORS = ",，/／、|｜;；\n\r"
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_NOT_AVAILABLE = re.compile(r"(?<![A-Za-z])n/a(?![A-Za-z])", re.IGNORECASE)
_ROLE_BEFORE = re.compile(r"^.*[:：]")
_ROLE_AFTER = re.compile(
    r"(?<=\S)(?:\s*[(（\[【]\s*(?:饰|扮|声|配音|客串|友情|特别|特邀|voice\b|as\s).*"
    r"|\s*(?:饰演|扮演|配音|客串|友情出演|特别出演)(?!员|导演).*|\s+饰.*|\s*饰[\s:：].*|\s+as\s.*|\s*(?:\.{3}|…)\s*\S.*)$",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"[内內][详詳]|不[详詳]|佚名|其[他它]|[-.*…]+|0|n/?a|null|none|nil|nan|unknown|undefined"
    r"|(?:未知|[无無]|[暂暫][无無])(?:主演|导演|演员|编剧|资料|数据|信息|简介|介绍|剧情|剧情简介)?"
    r"|更多[.…]*|待定|未填写|未录入|[—/]"
)
# A cheap first test: every value is checked, and few begin with these characters.
_NOTHING_BEGINS = frozenset("内內不佚其-.*…0nNuU未无無暂暫更待—/")
# "Unknown" and "None" are films: fewer words are placeholders as a title than as a name.
_NO_TITLE = re.compile(r"[内內][详詳]|不[详詳]|[-.…]+|n/a|null|未知|[无無]|[暂暫][无無](?:资料)?")


def is_placeholder(text: str) -> bool:
    """Return whether a value is a placeholder for "unknown": 内详, 未知, 暂无主演, N/A, ``-`` …"""
    return text[:1] in _NOTHING_BEGINS and _NOTHING.fullmatch(text.casefold()) is not None


def escape(text: str) -> str:
    """Escape like PHP's ``htmlspecialchars(ENT_QUOTES)``: ``& < > " '``, the last as ``&#039;``."""
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Undo :func:`escape`, once. For stored values use :func:`readable`."""
    return _PHP_ENTITY.sub(lambda match: _PLAIN[match[0]], text)


def one_line(text: str) -> str:
    """Return ``text`` without tags, control characters and doubled spaces, as a ``varchar`` may hold it.

    The CMS strips tags before it escapes. Only what looks like a tag is removed: the heart in ``I <3 U`` stays.
    """
    if text.isalnum():
        return text  # letters and digits alone, as most names are: there is nothing to remove
    plain = _TAG.sub("", _shown(text))
    return " ".join(_CONTROL.sub(" ", _INVISIBLE.sub("", plain)).split())


def _shown(text: str) -> str:
    """Remove comments, scripts and styles, in time linear in the text even if they are never closed."""
    kept, at, endless = [], 0, set[str | None]()
    start = _HIDDEN_START.search(text)
    while start:
        name = start["name"] and start["name"].lower()
        end = None if name in endless else _HIDDEN_END[name].search(text, start.end())
        if end is None:
            endless.add(name)
            start = _HIDDEN_START.search(text, start.end())
            continue
        kept.append(text[at : start.start()])
        at = end.end()
        start = _HIDDEN_START.search(text, at)
    return "".join((*kept, text[at:]))


def readable(text: str | None) -> str:
    """Return a stored value as a person reads it: one plain line, every escape undone, ``null`` empty."""
    if text and text.isalnum() and text != "null":
        return text
    line = one_line(_decoded(text))
    return "" if line == "null" else line


def year_shown(text: str | None) -> str:
    """Return the text of a year's column as a person reads it; empty where the CMS stores 0 for none."""
    year = readable(text)
    return "" if year.strip("0") == "" else year


def _decoded(text: str | None) -> str:
    """Undo HTML and JSON escapes, at any depth; line breaks are kept."""
    plain = text or ""
    for _ in range(_MAX_ESCAPES):
        before = plain
        plain = _ENTITY.sub(lambda match: html.unescape(match[0]), plain)
        if "\\" in plain:
            plain = _JSON_PLAIN.sub(r"\1", _JSON_BREAK.sub("\n", _JSON_CHARACTER.sub(_json_character, plain)))
        if plain == before:
            break
    if _SURROGATE.search(plain):  # a pair of \\u escapes is one character, half a pair is invalid
        plain = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return plain


def _json_character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def fit_text(text: str, width: int) -> str:
    """Return ``text`` as one escaped line of at most ``width`` characters.

    maccms truncates after escaping and may split an entity; this function never splits one.
    """
    return _fit(one_line(text), width)


def _fit(line: str, width: int) -> str:
    room = width
    for at, character in enumerate(line):
        room -= len(character.translate(_ESCAPES))
        if room < 0:
            return escape(line[:at].rstrip())
    return escape(line)


def join_list(items: Iterable[str], width: int) -> str:
    """Return ``items`` as the CMS's comma-separated list, escaped, in at most ``width`` characters.

    Items are cleaned as :func:`split_list` would read them: placeholders and duplicates are removed, a separator
    within a name becomes a space. The list is truncated between items: the first item that does not fit and all after
    it are left out, so a single name longer than ``width`` gives ``""``.
    """
    return _join(_kept(_SEPARATOR.sub(" ", _NOT_AVAILABLE.sub("", _without_tags(item))) for item in items), width)


def join_titles(titles: Iterable[str], width: int) -> str:
    """Return other titles as ``vod_sub``: like :func:`join_list`, but titles keep their own ``，`` and ``/``.

    A title that :func:`aliases_of` would read as one is written unchanged (``你好，李焕英``, ``逃犯(港/台)``); in all
    others, separators and brackets become spaces.
    """
    plain = [one_line(_without_tags(title)) for title in titles]
    safe = [
        title
        if len(aliases_of(title)) == 1 and not _BRACKET.search(_BRACKETED.sub("", title))
        else _BRACKET.sub(" ", _SEPARATOR.sub(" ", title))
        for title in plain
    ]
    return _join(_kept(safe, _NO_TITLE), width)


def _join(items: Iterable[str], width: int) -> str:
    joined = ""
    for item in items:
        longer = f"{joined},{escape(item)}" if joined else escape(item)
        if len(longer) > width:
            break
        joined = longer
    return joined


def split_list(text: str | None, *, width: int | None = None) -> tuple[str, ...]:
    """Return the items of a stored list of people, genres or tags, in order, without duplicates and placeholders.

    Separators are ``, / 、 | ;`` in either width, and line ends; spaces and ``·`` within a name are kept. In a list
    of lines ``role：CV`` is read as the CV.

    Args:
        text: The stored value.
        width: The column's width. A value that fills it was truncated, possibly within a name, so its last item
            is left out (unless it is the only one).
    """
    return _split(text, width=width, roles=None)


def people_of(text: str | None, *, width: int | None = None) -> tuple[str, ...]:
    """Return the people of a stored list, as :func:`split_list`, without their roles; see :func:`person_name`."""
    return _split(text, width=width, roles=True)


def person_name(text: str) -> str:
    """Return the name in an entry that may state a role: 周迅 饰演 甲, 周迅（饰 甲）, 甲：周迅, Tom Hanks as Gump."""
    return _ROLE_BEFORE.sub("", _ROLE_AFTER.sub("", text)).strip()


def _split(text: str | None, *, width: int | None, roles: bool | None) -> tuple[str, ...]:
    plain = _NOT_AVAILABLE.sub("", _without_tags(text))
    pieces = _whole(_SEPARATOR.split(plain), text, width)
    if roles is None:
        roles = "\n" in plain.strip()
    return _kept(person_name(piece) if roles else piece for piece in pieces)


def _whole(pieces: list[str], stored: str | None, width: int | None) -> list[str]:
    """Return the pieces without the last one if the value fills its column."""
    return pieces[:-1] if width is not None and len(stored or "") >= width and pieces[1:] else pieces


def _without_tags(text: str | None) -> str:
    """Return a text without escapes and tags, some of which become line ends; no angle bracket remains."""
    plain = text or ""
    if not _MARKED.search(plain):
        return plain
    for _ in range(_MAX_ESCAPES):
        before = plain
        plain = re.sub("[<>]", " ", _TAG.sub("", _BREAK.sub("\n", _shown(_decoded(plain)))))
        if plain == before:  # otherwise removing a tag may have formed an entity: &am<b>p;
            break
    return plain


def _kept(items: Iterable[str], placeholders: re.Pattern[str] = _NOTHING) -> tuple[str, ...]:
    """Return cleaned items without placeholders and duplicates, in order."""
    clean = (one_line(item) for item in items)
    return tuple(dict.fromkeys(item for item in clean if item and not placeholders.fullmatch(item.casefold())))


_PLACE = "(?:中国)?(?:大陆|内地|香港|台湾|[港台澳])(?:译名?)?|新加坡|马来西亚"
_TAIL = re.compile(rf"\s*[(（\[【]\s*(?:\d{{4}}\s*年?|(?:{_PLACE})(?:[\s/、,，]*(?:{_PLACE}))*)\s*[)）\]】]\s*$")
_BRACKETED = re.compile(r"[(（\[【][^()（）\[\]【】\n]*[)）\]】]")
_BRACKET = re.compile(r"[()（）\[\]【】]")
_LATIN = "A-Za-zÀ-ɏ"
_ALIAS_SEPARATOR = re.compile(
    rf"[|｜;；\n\r]|\s[/／]\s|(?<![{_LATIN}0-9])[/／]|[/／](?![{_LATIN}0-9])"
    rf"|(?<![{_LATIN}]),|,(?! ?[{_LATIN}])|,(?! )|(?<=[{_LATIN}])[，、]|[，、](?=[{_LATIN}])"
)
_HIDE = {ord(mark): 0xE000 + at for at, mark in enumerate(_SEPARATORS)}
_SHOW = {private: mark for mark, private in _HIDE.items()}


def aliases_of(text: str | None, *, width: int | None = None) -> tuple[str, ...]:
    """Return the titles in ``vod_sub``, without year (``原名（2018）``) and region tails (``…(港/台)``).

    Separators are ``, / | ;`` and line ends. Titles may contain these themselves, and a fragment read as a title is
    worse than a missed title, so some do not separate: a ``/`` between Latin letters (``Fate/Zero``), a comma with a
    space between them (``Yes, Madam``), and ``，`` or ``、`` between Chinese characters (``你好，李焕英``).

    Args:
        text: The stored value.
        width: The column's width; see :func:`split_list`.
    """
    # separators within brackets do not separate: replace them by a private character
    hidden = _BRACKETED.sub(lambda match: match[0].translate(_HIDE), _without_tags(text))
    pieces = _whole(_ALIAS_SEPARATOR.split(hidden), text, width)
    return _kept((_without_tails(one_line(piece.translate(_SHOW))) for piece in pieces), _NO_TITLE)


def _without_tails(title: str) -> str:
    while (shorter := _TAIL.sub("", title)) != title and shorter:
        title = shorter
    return title


@dataclass(frozen=True, slots=True)
class Storable:
    """The part of a text that a column can hold.

    Attributes:
        text: The text without the characters the column cannot hold.
        dropped: Those characters, each once, in order; empty if nothing was dropped.
    """

    text: str
    dropped: str


def storable(text: str, charset: str) -> Storable:
    """Return a text without the characters that a column of ``charset`` cannot hold.

    A 4-byte character in a ``utf8`` column is an error in strict mode (1366) and a ``?`` in loose mode.

    Args:
        text: Any text.
        charset: The column's character set: ``utf8``, ``utf8mb3`` or ``utf8mb4``.

    Raises:
        ValueError: Another character set, which no release of the CMS uses.
    """
    limits = {"utf8": 0xFFFF, "utf8mb3": 0xFFFF, "utf8mb4": 0x10FFFF}
    if charset not in limits:
        raise ValueError(f"unknown character set {charset!r}: maccms columns are {', '.join(limits)}")
    limit = limits[charset]
    dropped = "".join(dict.fromkeys(c for c in text if ord(c) > limit or "\ud800" <= c <= "\udfff"))
    if not dropped:
        return Storable(text, "")
    # joiners and modifiers of a removed emoji would remain as invisible characters
    gone = {ord(c): None for c in dropped + "\u200d\ufe0f"}
    return Storable(text.translate(gone), dropped)


def content_text(stored: str | None) -> str:
    """Return ``vod_content`` as plain text: one line per paragraph, no tags, indents, escapes or blank lines."""
    decoded = _BREAK.sub("\n", _shown(_decoded(stored)))
    lines = [one_line(line) for line in re.split(r"[\n\r\u2028\u2029]+", decoded)]
    plain = "\n".join(line for line in lines if line)
    return "" if plain == "null" else plain


def content_html(text: str) -> str:
    """Return a plain synopsis as ``vod_content``: escaped, paragraphs joined by ``<br/>``.

    Themes print it raw. Without enclosing tags it reads the same in themes that strip tags.
    """
    return "<br/>".join(escape(line) for line in content_text(text).split("\n"))


def blurb(text: str, width: int = 100, column: int = 255) -> str:
    """Return the ``vod_blurb`` of a synopsis: its first ``width`` characters without tags, escaped.

    Args:
        text: The synopsis, plain or in the form of ``vod_content``.
        width: Visible characters.
        column: Maximum length of the column in characters, after escaping.
    """
    return _fit(one_line(content_text(text))[:width].rstrip(), column)


def is_beginning(stored_blurb: str | None, content: str | None) -> bool:
    """Return whether a ``vod_blurb`` is how a ``vod_content`` begins, whoever cut it; an empty one is.

    The CMS cuts at any character and drops line breaks; themes and people add an ellipsis.
    """
    shown, whole = ("".join(content_text(text).split()) for text in (_CUT_ESCAPE.sub("", stored_blurb or ""), content))
    return whole.startswith(shown.rstrip("….。"))


def picture_address(stored: str, site: str) -> str:
    """Return the address of a picture stored by the CMS or Douban, empty if it is not an address.

    Args:
        stored: The stored value; the CMS writes ``mac:`` for a protocol, and ``#err`` where its download failed.
        site: The site's address, to which paths are relative.
    """
    address = stored.strip().partition("#err")[0]
    address = f"http:{address[4:]}" if address.startswith("mac:") else address
    if address.startswith("//"):
        address = f"https:{address}"
    elif site and address and "://" not in address:
        address = f"{site.rstrip('/')}/{address.lstrip('/')}"
    return address if address.startswith(("http://", "https://")) else ""
