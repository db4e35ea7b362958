"""How Chinese names sound, as people type them without Chinese keys: by initials (ttnkh) or whole (taitannikehao).

A table of its own, by name: whoever has the name is found by the index of names, and a name that nobody has any more
finds nothing until it expires.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from psycopg import Connection

LONGEST = 80
"""Characters of a name that is written down; nobody types longer ones by their sounds."""
_HAN = re.compile("[㐀-鿿]")
_KANA = re.compile("[぀-ヿ]")
_APART = re.compile(r"[\s'’·-]+")
_TYPED = re.compile(r"(?=.*[a-z])[a-z0-9]{2,80}")


@lru_cache(maxsize=65536)
def sounds_of(name: str) -> tuple[str, str] | None:
    """Return a name's initials and whole pinyin, lower case and without tones; None for one that is not Chinese.

    Characters of several readings are read as in the words they stand in: 重庆 is chongqing, 长江 changjiang.
    """
    if len(name) > LONGEST or not _HAN.search(name) or _KANA.search(name):
        return None
    from pypinyin import lazy_pinyin  # half a second, which commands that name nothing Chinese do not wait for

    parts = [re.sub("[^a-z0-9]", "", part.lower()) for part in lazy_pinyin(name)]
    initials = "".join(part if part.isdigit() else part[:1] for part in parts)
    return (initials, "".join(parts)) if len(initials) > 1 else None


def record(connection: Connection, names: Mapping[str | None, datetime]) -> None:
    """Write down how names sound, with when TMDB said them last."""
    sounds = {name: found for name in sorted(filter(None, names)) if (found := sounds_of(name))}
    if not sounds:
        return
    initials, whole = zip(*sounds.values(), strict=True)
    connection.execute(
        """
        INSERT INTO tmdb.name_sounds AS kept (name, initials, pinyin, said_at)
        SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[])
        ON CONFLICT (name) DO UPDATE SET said_at = EXCLUDED.said_at WHERE kept.said_at < EXCLUDED.said_at
        """,
        ([*sounds], [*initials], [*whole], [names[name] for name in sounds]),
    )


def sounding(connection: Connection, words: str, most: int) -> Sequence[str]:
    """Return names of which initials or whole pinyin begin with ``words``, the exact ones first; none for other words
    than at least two Latin letters, with digits, blanks, hyphens or apostrophes between them."""
    typed = _APART.sub("", words.lower())
    if not _TYPED.fullmatch(typed):
        return ()
    rows = connection.execute(
        """
        (SELECT name FROM tmdb.name_sounds WHERE initials LIKE %(typed)s ORDER BY initials USING ~<~ LIMIT %(most)s)
        UNION
        (SELECT name FROM tmdb.name_sounds WHERE pinyin LIKE %(typed)s ORDER BY pinyin USING ~<~ LIMIT %(most)s)
        """,
        {"typed": f"{typed}%", "most": most},
    )
    return [name for (name,) in rows]
