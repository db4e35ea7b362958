"""What must hold after a run has written, checked in the database over all shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, String, and_, bindparam, func, or_, select, true, type_coerce, update

from douban_pipeline.core.database import chunks, reading, run_statement
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.chain.sync.cms_edits import WINDOW, cms_edits
from douban_pipeline.douban.chain.sync.fields import is_empty
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import BY_MATCH, ChangeState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import Breach
from douban_pipeline.douban.writes.changes import PIPELINE, RESTORE, decode
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_MAY_HAVE_WRITTEN = (ChangeState.APPLIED, ChangeState.PREPARED)


def blanked(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find automatic writes of the window that emptied a column."""
    for row in _writes(services, connection):
        old, new = decode(row["old_values"]), decode(row["new_values"])
        for column, value in new.items():
            if is_empty(column, value) and not is_empty(column, old[column]):
                yield Breach(row["vod_id"], f"变更 {row['change_id']} 把 {column} 清空")


def locked_touched(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find automatic writes of the window to an id or a synopsis that was locked at the time.

    Restoring a locked value does not count.
    """
    video, log = services.tables.video, services.tables.log
    of_change = (log.c.change_id, log.c.vod_id, log.c.new_values, log.c.state_old, log.c.state_new, log.c.applied_at)
    query = (
        select(*of_change, video)
        .join(video, video.c.vod_id == log.c.vod_id)
        .where(
            log.c.state == ChangeState.APPLIED,
            log.c.operator == PIPELINE,
            log.c.action != RESTORE,
            log.c.applied_at >= services.clock.now() - WINDOW,
            or_(video.c.douban_id_locked == true(), video.c.intro_locked == true()),
        )
    )
    for row in connection.execute(query).mappings():
        if "vod_douban_id" in row["new_values"] and _was_locked(row, "douban_id_locked", row["douban_id_lock_time"]):
            yield Breach(row["vod_id"], f"变更 {row['change_id']} 改写了已锁定的豆瓣 ID")
        synopsis = SYNOPSIS_COLUMNS & set(row["new_values"])
        if synopsis and _was_locked(row, "intro_locked", row["intro_lock_time"]):
            yield Breach(row["vod_id"], f"变更 {row['change_id']} 改写了已锁定的简介")


def interrupted(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find changes that are still `prepared` although their run is gone: the next run that writes settles them."""
    log = services.tables.log
    prepared = select(log.c.change_id, log.c.vod_id, log.c.owner).where(log.c.state == ChangeState.PREPARED)
    for row in connection.execute(prepared):
        if is_dead(row.owner):
            yield Breach(row.vod_id, f"变更 {row.change_id} 停在 prepared，而其运行已结束；下一次写入会核对它")


def log_disagrees(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find automatic ids without an applied change that wrote them.

    One of which a change waits to be settled is not among them: see `interrupted`.
    """
    log, video = services.tables.log, services.tables.video
    since = services.clock.now() - WINDOW
    wrote_id = type_coerce(log.c.new_values, String).contains('"vod_douban_id":')
    unlogged = (
        select(video.c.vod_id, video.c.vod_douban_id)
        .outerjoin(log, and_(log.c.vod_id == video.c.vod_id, log.c.state.in_(_MAY_HAVE_WRITTEN), wrote_id))
        .where(video.c.douban_last_sync_at >= since, video.c.douban_id_source.in_(BY_MATCH), log.c.change_id.is_(None))
    )
    for row in connection.execute(unlogged):
        yield Breach(row.vod_id, f"豆瓣 ID {row.vod_douban_id} 没有对应的变更记录")


def overwritten(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find written columns that others changed since: see `cms_edits`."""
    for edit in cms_edits(services, connection).found:
        yield Breach(edit.vod_id, f"{edit.column} 与变更 {edit.change_id} 写入的值不一致")


def visit_not_ahead(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find videos handled in the window whose next visit does not lie after it."""
    video = services.tables.video
    query = select(video.c.vod_id).where(
        video.c.douban_last_sync_at >= services.clock.now() - WINDOW,
        video.c.douban_next_sync_at <= video.c.douban_last_sync_at,
        video.c.douban_review_status != ReviewStatus.IGNORED,
    )
    for vod_id in connection.execute(query).scalars():
        yield Breach(vod_id, "下次同步时间不在未来")


def put_visits_ahead(services: Services, breaches: Sequence[Breach]) -> None:
    """Mend what `visit_not_ahead` finds: such a video is due, and was due after its last visit, not before it."""
    video = services.tables.video
    columns = (video.c.vod_id, video.c.douban_last_sync_at)
    for vod_ids in chunks([breach.vod_id for breach in breaches]):
        with reading(services.engine) as connection:
            rows = connection.execute(select(*columns).where(video.c.vod_id.in_(vod_ids))).tuples().all()
        after = [{"key": vod_id, "visit": last + timedelta(seconds=1)} for vod_id, last in rows if last is not None]
        behind = and_(video.c.vod_id == bindparam("key"), video.c.douban_next_sync_at <= video.c.douban_last_sync_at)
        if after:
            ahead = update(video).where(behind).values(douban_next_sync_at=bindparam("visit"))
            run_statement(services.engine, ahead, after)


def changes_of_run(tables: OwnTables, connection: Connection, run_id: str) -> dict[str, int]:
    """Return how many changes a run logged, by state."""
    log = tables.log
    query = select(log.c.state, func.count()).where(log.c.run_id == run_id).group_by(log.c.state)
    return {row[0]: row[1] for row in connection.execute(query)}


def _writes(services: Services, connection: Connection) -> Iterator[Any]:
    """Yield the automatic changes of the window that are applied, the oldest first.

    Restoring what a lock protects is none: a lock may protect an empty column.
    """
    log = services.tables.log
    # A day holds tens of thousands: only what is needed is read.
    read = (log.c.change_id, log.c.vod_id, log.c.old_values, log.c.new_values)
    query = select(*read).where(
        log.c.state == ChangeState.APPLIED,
        log.c.applied_at >= services.clock.now() - WINDOW,
        log.c.operator == PIPELINE,
        log.c.action != RESTORE,
    )
    yield from connection.execute(query.order_by(log.c.change_id)).mappings()


def _was_locked(change: Mapping[Any, Any], lock: str, lock_time: datetime | None) -> bool:
    """Return whether ``lock`` was set before a change was written; a lock without a time always did.

    A change that sets the lock itself says in its old state whether there was one.
    """
    if lock in change["state_new"]:
        return bool(change["state_old"].get(lock))
    return bool(change[lock]) and (lock_time is None or lock_time < change["applied_at"])
