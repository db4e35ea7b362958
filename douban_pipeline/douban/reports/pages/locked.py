"""Locked Douban ids: the source of each, who locked it and why, and whether the CMS still has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, RowMapping, select, true

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.reports.pages.lookup import VideoNames, names_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import locks_id
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState

MOST = 500
_DONE = (DecisionState.APPLIED, DecisionState.QUEUED)


@dataclass(frozen=True, slots=True)
class LockOrigin:
    """Who locked something, and why."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class LockedId:
    """A locked id.

    Attributes:
        name: Name of the video in tables.
        douban_id: The locked id; 0 may be locked too: the video must not be linked.
        source: Source of the id.
        since: When it was locked (UTC).
        in_cms: The id that the CMS has; None for a deleted video.
        status: The video's status.
        act: Who locked it and why, if known.
    """

    vod_id: int
    name: str
    douban_id: int
    source: str
    since: datetime | None
    in_cms: int | None
    status: str
    act: LockOrigin | None

    @property
    def differs(self) -> bool:
        """Whether the CMS has another id."""
        return self.in_cms is not None and self.in_cms != self.douban_id


@dataclass(frozen=True, slots=True)
class LockedIds:
    """Counts by source, how many differ in the CMS or are deleted there, and the first: differing ones, then newest."""

    by_source: dict[str, int]
    differing: int
    gone: int
    first: tuple[LockedId, ...]

    @property
    def count(self) -> int:
        """Number of locked ids."""
        return sum(self.by_source.values())


def locked_ids(services: Services, *, most: int = MOST) -> LockedIds:
    """Return the locked ids, the first ``most`` in full."""
    video = services.tables.video
    query = select(
        video.c.vod_id,
        video.c.vod_douban_id,
        video.c.douban_id_source,
        video.c.douban_id_lock_time,
        video.c.douban_review_status,
    ).where(video.c.douban_id_locked == true())
    with reading(services.engine) as connection:
        rows = connection.execute(query).all()
        in_cms = _ids_in_cms(services, connection, [row.vod_id for row in rows])
        differing = {row.vod_id for row in rows if in_cms.get(row.vod_id, row.vod_douban_id) != row.vod_douban_id}
        first = sorted(rows, key=lambda row: (row.vod_id not in differing, *_newest_first(row)))[:most]
        shown = [row.vod_id for row in first]
        acts = lock_origins(services, connection, shown)
        names = names_of(services, connection, shown)
    return LockedIds(
        dict(Counter(row.douban_id_source for row in rows)),
        len(differing),
        len(rows) - len(in_cms),
        tuple(_locked(row, names, in_cms, acts) for row in first),
    )


def _newest_first(row: Row) -> tuple[float, int]:
    since = row.douban_id_lock_time
    return (-since.timestamp() if since else 0.0, row.vod_id)


def _locked(row: Row, names: VideoNames, in_cms: dict[int, int], acts: dict[int, LockOrigin]) -> LockedId:
    return LockedId(
        row.vod_id,
        names[row.vod_id],
        row.vod_douban_id,
        row.douban_id_source,
        row.douban_id_lock_time,
        in_cms.get(row.vod_id),
        row.douban_review_status,
        acts.get(row.vod_id),
    )


def _ids_in_cms(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, int]:
    """Return the CMS's ids by video; deleted videos are left out."""
    vod = services.cms.vod
    found: dict[int, int] = {}
    for chunk in chunks(vod_ids):
        rows = connection.execute(select(vod.c.vod_id, vod.c.vod_douban_id).where(vod.c.vod_id.in_(chunk)))
        found.update((vod_id, douban_id) for vod_id, douban_id in rows)
    return found


def lock_origins(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, LockOrigin]:
    """Return who locked each id, by video: from the newest applied or queued decision, else from the newest change."""
    acts: dict[int, LockOrigin] = {}
    for chunk in chunks(vod_ids):
        acts.update(_decided(services, connection, chunk))
        acts.update(_logged(services, connection, [vod_id for vod_id in chunk if vod_id not in acts]))
    return acts


def _decided(services: Services, connection: Connection, vod_ids: Collection[int]) -> Iterator[tuple[int, LockOrigin]]:
    decision = services.tables.decision
    query = (
        select(decision)
        .where(decision.c.vod_id.in_(vod_ids), decision.c.state.in_(_DONE))
        .order_by(decision.c.decision_id)
    )
    for row in connection.execute(query).mappings():
        if locks_id(DecisionAction(row["action"]), row["lock"]):
            yield row["vod_id"], LockOrigin(row["reviewer"], row["note"])


def _logged(services: Services, connection: Connection, vod_ids: Collection[int]) -> Iterator[tuple[int, LockOrigin]]:
    log = services.tables.log
    wanted = (log.c.vod_id, log.c.state_new, log.c.operator, log.c.reason)
    query = (
        select(*wanted).where(log.c.vod_id.in_(vod_ids), log.c.state == ChangeState.APPLIED).order_by(log.c.change_id)
    )
    for row in connection.execute(query).mappings():
        if _locks(row):
            yield row["vod_id"], LockOrigin(row["operator"], row["reason"])


def _locks(change: RowMapping) -> bool:
    return bool(change["state_new"].get("douban_id_locked"))
