"""The dictionary of people: every name of an actor, director or writer in our library or in Douban's answers.

It is used to detect texts that name a person who has nothing to do with the video.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import Connection, Engine, Table, select

from douban_pipeline.cms.values import is_placeholder, people_of
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, insert_missing, reading, run_transaction

PEOPLE_COLUMNS = ("vod_actor", "vod_director", "vod_writer")
"""The CMS's columns that contain people."""

LONGEST_NAME = 40
"""Maximum length of a name in characters; longer values are sentences or lists that could not be split."""

_HAN = r"\u3400-\u9fff\U00020000-\U0003ffff"
_DOT = re.compile(r"\s*[·・•‧∙⋅･]\s*")
_SPACED_HAN = re.compile(rf"(?<=[{_HAN}]) (?=[{_HAN}])")
_REMARK = re.compile(r"\s*[(\[【{].*$|\s+饰(?:\s.*)?$|等$")
_TWO_SCRIPTS = re.compile(rf"(?P<han>[{_HAN}][{_HAN}·]+) (?P<latin>[a-z\u00c0-\u024f][^{_HAN}]+)")
_NO_NAME = re.compile(r"[。!?…:;<>@#=《》\"“”]|https?|www\.")
_LETTER = re.compile(r"[^\W\d_]")

_REMEMBERED = 200_000  # names cached per process: about 20 MB


@lru_cache(maxsize=65536)
def name_key(name: str) -> str:
    """Return the normalised form in which a name is stored and looked up: width, case, dots and spaces are folded.

    Traditional characters are kept: callers that read a list of names pass both forms.
    """
    text = _DOT.sub("·", " ".join(unicodedata.normalize("NFKC", name).casefold().split()))
    return _SPACED_HAN.sub("", text)


def name_keys(name: str) -> tuple[str, ...]:
    """Return the keys of one entry of a list of people: two for 白井悠介 Yusuke Shirai, none for 内详."""
    key = name_key(_REMARK.sub("", unicodedata.normalize("NFKC", name).strip()))
    both = _TWO_SCRIPTS.fullmatch(key)
    return tuple(filter(_is_name, (both["han"], both["latin"]) if both else (key,)))


def _is_name(key: str) -> bool:
    return (
        2 <= len(key) <= LONGEST_NAME
        and _LETTER.search(key) is not None
        and not _NO_NAME.search(key)
        and not is_placeholder(key)
    )


def names_of_row(row: Mapping[Any, Any], widths: Mapping[str, int]) -> Iterator[str]:
    """Yield the people of a CMS row.

    Args:
        row: A row with `PEOPLE_COLUMNS`.
        widths: The columns' widths: a list that fills its column was truncated, possibly within a name.
    """
    for column in PEOPLE_COLUMNS:
        if row[column]:
            yield from people_of(row[column], width=widths.get(column))


class People:
    """The table of names. Adding names that this process already added needs no query."""

    def __init__(self, engine: Engine, person: Table, clock: Clock) -> None:
        self.engine = engine
        self.person = person
        self.clock = clock
        self._remembered: set[str] = set()
        self._counted: set[str] = set()

    def remember(self, names: Iterable[str]) -> int:
        """Add names; values that cannot be names (内详, a sentence, a single character) are skipped.

        Returns:
            Number of names that were new to the table.
        """
        keys = {key for name in names for key in name_keys(name)} - self._remembered
        if not keys:
            return 0
        missing = sorted(keys - self._stored(keys))
        now = self.clock.now()

        def insert(connection: Connection, names: Sequence[str]) -> None:
            rows = [{"name": name, "seen_at": now} for name in names]
            insert_missing(connection, self.person, rows, key="name")

        for chunk in chunks(missing):
            run_transaction(self.engine, partial(insert, names=chunk))
        if len(self._remembered) + len(keys) > _REMEMBERED:
            self._remembered.clear()
        self._remembered |= keys
        return len(missing)

    def count_new(self, names: Iterable[str], *, blank: bool = False) -> int:
        """Return how many names `remember` would add, and count each once in the lifetime of this object.

        Args:
            names: As for `remember`.
            blank: Whether the table does not exist yet.
        """
        keys = {key for name in names for key in name_keys(name)} - self._counted
        missing = keys if blank else keys - self._stored(keys)
        self._counted |= missing
        return len(missing)

    def known(self, candidates: Collection[str], *, at: datetime | None = None) -> set[str]:
        """Return the keys of the candidates that are names of people, or already were at the time ``at``."""
        return self._stored({name_key(candidate) for candidate in candidates}, at)

    def _stored(self, keys: Collection[str], at: datetime | None = None) -> set[str]:
        found: set[str] = set()
        name = self.person.c.name
        then = () if at is None else (self.person.c.seen_at <= at,)
        with reading(self.engine) as connection:
            for chunk in chunks(sorted(keys)):
                found.update(connection.execute(select(name).where(name.in_(chunk), *then)).scalars())
        return found
