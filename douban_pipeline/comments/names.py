"""Names that guests give themselves: cleaned, and refused where they look like the site's staff. Pure."""

from __future__ import annotations

import re
import unicodedata

from douban_pipeline.matching.text import simplify

LONGEST = 60
_RESERVED_HAN = ("管理", "站长", "官方", "版主", "客服", "系统消息", "小编", "工作人员", "审核员", "站务")
_RESERVED_LATIN = ("admin", "administrator", "moderator", "official", "staff", "webmaster", "system", "root", "support")
_LOOK_ALIKES = str.maketrans("0134578аеіорсухмтвнκοαρνιтⅼ|!@$", "oieastbaeiopcyxmtbhkoapvitliias")
"""Digits, signs and letters of other scripts, and the Latin letters that they look like."""
_APART = re.compile(r"[\W_]+")


def cleaned(name: str) -> str:
    """Return a name without control characters, marks of direction and invisible ones, and with single blanks."""
    plain = unicodedata.normalize("NFKC", name)
    seen = "".join(sign if not unicodedata.category(sign).startswith("C") else " " * sign.isspace() for sign in plain)
    return " ".join(seen.split())[:LONGEST].strip()


def is_reserved(name: str) -> bool:
    """Return whether a name is one that only the site's staff may have, or looks like one."""
    folded = simplify(unicodedata.normalize("NFKC", name).casefold())
    if any(word in _APART.sub("", folded) for word in _RESERVED_HAN):
        return True
    letters = unicodedata.normalize("NFD", folded.translate(_LOOK_ALIKES))
    latin = "".join(letter for letter in letters if letter.isascii() and letter.isalpha())
    return latin in _RESERVED_LATIN or latin.startswith("admin") or latin.endswith("admin")
