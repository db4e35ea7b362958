"""Compares a candidate's poster with the one on the site: resource sites copy Douban's posters.

The result is equal or unknown: different pictures prove nothing, since sites choose other ones. Only hashes are stored,
by owner (a video or a subject), so that a picture of many videos or several subjects is recognised and not used as
evidence. Addresses are untrusted: pictures are fetched through the gate, only from public addresses and the site's own
host.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Engine, func, select

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.addresses import admission
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, run_transaction, upsert
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.gate_base import BaseGate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import AnswerRules
from douban_pipeline.douban.evidence.picture_prints import Print, print_of
from douban_pipeline.douban.store.tables import OwnTables

SOURCE = "posters"
"""The gate's name for all servers of pictures."""

MOST_BYTES = 3_000_000
"""Size limit of a picture's file, in bytes."""

SECONDS = 10.0
"""Time limit for fetching one picture, in seconds of wall-clock time."""

MOST_SHARED = 3
"""Most videos that may share a picture before it counts as a placeholder: versions in other languages and qualities
share one."""

KEPT, KEPT_NOTHING = timedelta(days=90), timedelta(days=7)
"""How long a picture's hashes are kept before it is fetched again, and how long a missing or unreadable picture is."""

_PLACEHOLDERS = ("movie_default", "tv_default", "subject_default", "nopic", "no_pic", "nocover", "loading")
"""Parts of the addresses of placeholder pictures."""

RULES = AnswerRules(wall_statuses=frozenset(), read_statuses=frozenset(range(400, 500)) - {408, 425, 429})
"""A server's refusal does not count against the gate, which all servers of pictures share."""


def open_fetcher(gate: BaseGate, clock: Clock, site: str) -> Fetcher:
    """Return the client of `SOURCE`. It refuses addresses of this machine or a private network, except the site's
    host.
    """
    return Fetcher(
        SOURCE,
        gate,
        None,
        clock,
        timeout=SECONDS,
        deadline=SECONDS,
        attempts=1,
        max_bytes=MOST_BYTES,
        rules=RULES,
        headers={"Accept": "image/*"},
        admit=admission(SOURCE, allow_private=False, trusted=site),
    )


class Posters:
    """Compares posters. Safe to share between threads.

    Args:
        fetcher: The client of `SOURCE`, with the guard against private addresses.
        engine: The database of the hashes.
        tables: Our tables in it.
        clock: Source of the current time, for ages.
        site: The site's address, for posters whose address has no host.
    """

    def __init__(self, fetcher: Fetcher, engine: Engine, tables: OwnTables, clock: Clock, site: str) -> None:
        self._fetcher = fetcher
        self._engine = engine
        self._tables = tables
        self._clock = clock
        self._site = site

    def same(self, vod_id: int, picture: str, candidates: Sequence[tuple[int, str]]) -> tuple[int, ...]:
        """Return the candidate that has the video's poster, as a tuple; empty if there is none or it is unknown.

        A picture that several candidates share does not distinguish them, so it counts for none.

        Args:
            vod_id: The video.
            picture: The address of its poster in the CMS.
            candidates: Ids and posters of subjects.
        """
        own = self._print(f"video:{vod_id}", picture_address(picture, self._site))
        if own is None or self._bearers("video:", own) > MOST_SHARED:
            return ()
        # All pictures are hashed and stored before any is counted.
        prints = [(each, self._print(f"subject:{each}", picture_address(named, ""))) for each, named in candidates]
        alike = [(douban_id, other) for douban_id, other in prints if other is not None and own.is_copy(other)]
        if len(alike) != 1 or self._bearers("subject:", alike[0][1]) > 1:
            return ()
        return (alike[0][0],)

    def _print(self, owner: str, address: str) -> Print | None:
        """Return the hashes of an owner's poster, from the table or the server; None if there are none."""
        if not address or any(word in address for word in _PLACEHOLDERS):
            return None
        poster, now = self._tables.poster, self._clock.now()
        with reading(self._engine) as connection:
            kept = connection.execute(select(poster).where(poster.c.owner == owner)).mappings().first()
        age = KEPT if kept is not None and kept["hashes"] else KEPT_NOTHING
        if kept is None or kept["address"] != address[:500] or now - kept["fetched_at"] > age:
            try:
                found = self._fetch(address)
            except SourceError:
                # The server, the guard or the gate refused: the picture is unknown.
                return None
            text = found.text if found is not None else ""
            row = {
                "owner": owner,
                "address": address[:500],
                "hashes": text,
                "first_hash": found.first_text if found is not None else "",
                "fetched_at": now,
            }
            changes = ("address", "hashes", "first_hash", "fetched_at")
            run_transaction(
                self._engine,
                lambda connection: upsert(connection, poster, [row], keys=("owner",), changes=changes),
            )
            return found
        return Print.of_text(kept["hashes"]) if kept["hashes"] else None

    def _fetch(self, address: str) -> Print | None:
        answer = self._fetcher.get(
            address, {}, Call(key=address[:500], parser_version="", parse=print_of, archived=False)
        )
        return answer.value

    def _bearers(self, kind: str, found: Print) -> int:
        """Return how many videos, or subjects, are known to have a picture."""
        poster = self._tables.poster
        query = select(func.count()).where(poster.c.first_hash == found.first_text, poster.c.owner.startswith(kind))
        with reading(self._engine) as connection:
            return int(connection.execute(query).scalar_one())
