"""Who looks at which waiting video: a claim holds for a short time, and nobody else is shown the video until then.

A claim protects reviewers from doing work twice and nothing else: two decisions about a video are settled where they
are recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import Connection, delete, select, update

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, insert_missing, reading, run_statement, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tables import OwnTables

LEASE = timedelta(seconds=90)
"""How long a page that says nothing keeps its videos; browsers wake hidden pages once a minute."""


class Claims:
    """Claims of pages on videos.

    Args:
        services: Database, tables and time.
    """

    def __init__(self, services: Services) -> None:
        self._engine = services.engine
        self._tables: OwnTables = services.tables
        self._clock: Clock = services.clock

    def take(self, holder: str, reviewer: str, wanted: Sequence[int], most: int) -> list[int]:
        """Claim the first ``most`` of ``wanted`` that nobody else holds; return those that are now held, in order."""
        claim = self._tables.claim

        def work(connection: Connection) -> list[int]:
            now = self._clock.now()
            connection.execute(delete(claim).where(claim.c.until < now))
            taken = {row.vod_id: row.holder for row in connection.execute(select(claim.c.vod_id, claim.c.holder))}
            free = [vod_id for vod_id in dict.fromkeys(wanted) if taken.get(vod_id, holder) == holder][:most]
            new = [vod_id for vod_id in free if vod_id not in taken]
            rows = [{"vod_id": vod_id, "holder": holder, "reviewer": reviewer, "until": now + LEASE} for vod_id in new]
            if rows:
                # Of two that claim at once one comes first: whoever finds the row there does not hold it.
                insert_missing(connection, claim, rows, key="vod_id")
            held = self._held(connection, holder, free)
            return [vod_id for vod_id in free if vod_id in held]

        return run_transaction(self._engine, work)

    def renew(self, holder: str, reviewer: str, vod_ids: Collection[int]) -> None:
        """Hold ``vod_ids`` for longer, but for those that somebody else holds.

        Claims of ``holder`` that are not named run out by themselves: their cards may be on their way to it.
        """
        claim = self._tables.claim

        def work(connection: Connection) -> None:
            until = self._clock.now() + LEASE
            wanted = sorted(vod_ids)
            for chunk in chunks(wanted):
                named = (claim.c.holder == holder, claim.c.vod_id.in_(chunk))
                connection.execute(update(claim).where(*named).values(until=until))
            # One that ran out and that nobody took is still the page's.
            gone = set(wanted) - self._held(connection, holder, wanted)
            rows = [
                {"vod_id": vod_id, "holder": holder, "reviewer": reviewer, "until": until} for vod_id in sorted(gone)
            ]
            if rows:
                insert_missing(connection, claim, rows, key="vod_id")

        run_transaction(self._engine, work)

    def hand_over(self, former: str, holder: str) -> None:
        """Give ``holder`` all that ``former`` claimed: a page that is loaded again goes on with its cards."""
        claim = self._tables.claim
        run_statement(self._engine, update(claim).where(claim.c.holder == former).values(holder=holder))

    def release(self, holder: str, vod_ids: Collection[int]) -> None:
        """Give up ``vod_ids``, as far as ``holder`` claimed them."""
        claim = self._tables.claim
        for chunk in chunks(sorted(vod_ids)):
            run_statement(self._engine, delete(claim).where(claim.c.holder == holder, claim.c.vod_id.in_(chunk)))

    def of_others(self, holder: str) -> dict[int, str]:
        """Return which videos others look at, and who that is."""
        claim = self._tables.claim
        query = select(claim.c.vod_id, claim.c.reviewer)
        query = query.where(claim.c.holder != holder, claim.c.until >= self._clock.now())
        with reading(self._engine) as connection:
            return {row.vod_id: row.reviewer for row in connection.execute(query)}

    def _held(self, connection: Connection, holder: str, vod_ids: Sequence[int]) -> set[int]:
        claim = self._tables.claim
        held: set[int] = set()
        for chunk in chunks(vod_ids):
            query = select(claim.c.vod_id).where(claim.c.holder == holder, claim.c.vod_id.in_(chunk))
            held.update(connection.execute(query).scalars())
        return held
