"""The true encoding of a feed: what its bytes are, whatever its declaration and the server's header say.

By charset-normalizer, which tells encodings by how well the text reads; faust-cchardet is faster, but unmaintained, and
takes short GBK for others. Pure.
"""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

_DECLARED = re.compile(rb"""(<\?xml[^>]{0,200}?encoding\s*=\s*["'])([\w.:-]{1,40})(["'])""", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MARKUP = re.compile(rb"<[^<>]*>|[\x00-\x7f]{40,}")
_EAST_ASIAN = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
"""Encodings of several bytes a character, in which text of another one is hardly ever valid."""
_SINGLE = ("cp1251", "cp1252", "koi8_r", "cp1250", "latin_1")
_SAMPLE = 32_000
_FEW_WRONG = 0.02
"""Share of characters beyond ASCII that may be wrong in the encoding of a text: cut off, or of one foreign word."""
_SHORT = 12
"""Bytes beyond ASCII up to which GBK may happen to be valid UTF-8."""


def as_utf8(body: bytes, content_type: str) -> tuple[bytes, str]:
    """Return a feed in UTF-8 with a declaration that is true, and the content type that fits it.

    What is ASCII or begins with a byte order mark is returned as it is.
    """
    if body.isascii() or body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body, content_type
    if b"\x00" in body[:200]:  # UTF-16 or UTF-32 without a mark, which every XML reader knows by its first bytes
        return body, content_type
    encoding = true_encoding(body, content_type)
    text = body.decode(encoding, "replace").encode("utf-8", "replace")
    return _DECLARED.sub(rb"\g<1>utf-8\g<3>", text, count=1), "application/xml; charset=utf-8"


def true_encoding(body: bytes, content_type: str) -> str:
    """Return the name of the encoding in which a body beyond ASCII is written."""
    declared = _declared(body, content_type)
    beyond = sum(byte > 127 for byte in body[:_SAMPLE])
    if _fits(body, "utf-8"):
        short = next((each for each in declared if each in _EAST_ASIAN and _fits(body, each)), "")
        return short if short and beyond <= _SHORT else "utf-8"
    for name in declared:
        if name in _EAST_ASIAN and _fits(body, name, wrong=1):
            return name
    sample = b" ".join(_MARKUP.sub(b" ", body[: 4 * _SAMPLE]).split())[:_SAMPLE]
    best = from_bytes(sample, cp_isolation=[*_EAST_ASIAN, *_SINGLE]).best()
    found = best.encoding if best is not None else ""
    if found in _EAST_ASIAN and _fits(body, found):
        return found
    single = next((each for each in declared if each not in (*_EAST_ASIAN, "utf-8")), "")
    if single and found not in _EAST_ASIAN:
        return single
    # Text too short to recognise its encoding: among Chinese sites it is GBK, if it can be.
    return "gb18030" if not found and _fits(body, "gb18030", wrong=1) else found or "utf-8"


def _declared(body: bytes, content_type: str) -> list[str]:
    """Return the usable encodings that the XML declaration and the header name, the declaration's first."""
    inside, outside = _DECLARED.search(body[:1000]), _CHARSET.search(content_type)
    found = []
    for name in (inside[2].decode("ascii") if inside else "", outside[1] if outside else ""):
        try:
            known = codecs.lookup(name).name
        except LookupError:
            continue
        if known in ("gbk", "gb2312", "hz"):
            known = "gb18030"  # the larger set, which browsers use for all three
        found.append({"shift_jis": "cp932", "euc_kr": "cp949"}.get(known, known))
    return [each for each in found if each not in ("idna", "punycode", "base64", "rot13", "hex", "zlib", "bz2", "uu")]


def _fits(body: bytes, encoding: str, wrong: int = 0) -> bool:
    """Return whether a body is text in an encoding, but for what was cut off at its end, and for `_FEW_WRONG` of its
    characters or so many ``wrong`` ones."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = decoder.decode(body)
    found = text.count("\ufffd")
    return not found or found <= max(_FEW_WRONG * sum(char > "\x7f" for char in text), wrong)
