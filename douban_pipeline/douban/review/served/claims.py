"""Claims on waiting videos: a claim holds for a short time, during which the video is not shown to other reviewers.

A claim only prevents duplicate work: two decisions about one video are resolved where they are recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, insert_missing, reading, run_statement, run_transaction
from douban_pipeline.core.leases import Leases
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tables import OwnTables

LEASE = timedelta(seconds=30)
"""How long a page in sight keeps its claims without renewing them, which it does every few seconds."""

HIDDEN_LEASE = timedelta(seconds=90)
"""The same for a page that is hidden: browsers wake those once a minute."""


class Claims:
    """Claims of pages on videos.

    Args:
        services: Database, tables and time.
    """

    def __init__(self, services: Services) -> None:
        self._engine = services.engine
        self._tables: OwnTables = services.tables
        self._clock: Clock = services.clock
        claim = self._tables.claim
        self._leases = Leases(claim.c.vod_id, claim.c.holder, claim.c.until)

    def take(self, holder: str, reviewer: str, wanted: Sequence[int], most: int) -> list[int]:
        """Claim the first ``most`` of ``wanted`` that nobody else holds; return those that are now held, in order."""
        claim = self._tables.claim

        def work(connection: Connection) -> list[int]:
            now = self._clock.now()
            connection.execute(delete(claim).where(claim.c.until <= now))
            taken = {row.vod_id: row.holder for row in connection.execute(select(claim.c.vod_id, claim.c.holder))}
            free = [vod_id for vod_id in dict.fromkeys(wanted) if taken.get(vod_id, holder) == holder][:most]
            return self._lease(connection, holder, reviewer, free, now)

        return run_transaction(self._engine, work)

    def renew(self, holder: str, reviewer: str, vod_ids: Collection[int], *, hidden: bool = False) -> None:
        """Renew the claims on ``vod_ids``, or restore those that expired, except those that somebody else holds.

        Other claims of ``holder`` are left to expire: their cards may be on the way to the page.
        """
        lease = HIDDEN_LEASE if hidden else LEASE
        run_transaction(
            self._engine,
            lambda connection: self._lease(connection, holder, reviewer, [*vod_ids], self._clock.now(), lease),
        )

    def _lease(
        self,
        connection: Connection,
        holder: str,
        reviewer: str,
        vod_ids: Sequence[int],
        now: datetime,
        lease: timedelta = LEASE,
    ) -> list[int]:
        """Lease the free ones of ``vod_ids``, of which most have no row yet; return them."""
        new = [{"vod_id": vod_id, "holder": "", "until": now} for vod_id in sorted(vod_ids)]
        insert_missing(connection, self._tables.claim, new, key="vod_id")
        given = {"reviewer": reviewer}
        rows = self._leases.take(connection, holder, vod_ids, now=now, until=now + lease, values=given)
        return [row.vod_id for row in rows]

    def hand_over(self, former: str, holder: str) -> None:
        """Transfer all claims of ``former`` to ``holder``: a reloaded page keeps its cards."""
        claim = self._tables.claim
        run_statement(self._engine, update(claim).where(claim.c.holder == former).values(holder=holder))

    def ask(self, holder: str, reviewer: str) -> int:
        """Ask all other pages to hand over what their reviewers have not come to; return how many claims they hold."""
        claim = self._tables.claim
        held = (claim.c.holder != holder, claim.c.until > self._clock.now())
        return run_statement(self._engine, update(claim).where(*held).values(asked_by=reviewer))

    def asked_by(self, holder: str) -> str:
        """Return the reviewer who has asked ``holder`` to hand over since this was last called, empty if nobody has."""
        claim = self._tables.claim
        asked = (claim.c.holder == holder, claim.c.asked_by != "")
        with reading(self._engine) as connection:
            name: str | None = connection.execute(select(claim.c.asked_by).where(*asked).limit(1)).scalar()
        if name:
            run_statement(self._engine, update(claim).where(*asked).values(asked_by=""))
        return name or ""

    def release(self, holder: str, vod_ids: Collection[int]) -> None:
        """Release the claims of ``holder`` on ``vod_ids``."""
        claim = self._tables.claim
        for chunk in chunks(sorted(vod_ids)):
            run_statement(self._engine, delete(claim).where(claim.c.holder == holder, claim.c.vod_id.in_(chunk)))

    def of_others(self, holder: str) -> dict[int, str]:
        """Return the videos that others have claimed, with the reviewer of each."""
        claim = self._tables.claim
        query = select(claim.c.vod_id, claim.c.reviewer)
        query = query.where(claim.c.holder != holder, claim.c.until > self._clock.now())
        with reading(self._engine) as connection:
            return {row.vod_id: row.reviewer for row in connection.execute(query)}
