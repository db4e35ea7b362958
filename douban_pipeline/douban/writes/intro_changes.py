"""Intros in the change log: which changes wrote one, and how a change's outcome affects the intro's row.

An intro is written from the facts of one subject. So it belongs to the link under which it was written, and is
reverted with it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, and_, exists, or_, select, true, update

from douban_pipeline.douban.store.states import ChangeState, DecisionAction, IntroState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import decode

INTRO = "intro"
"""Action of a change that wrote an intro."""

_FATE = {
    ChangeState.APPLIED: IntroState.WRITTEN,
    ChangeState.REFUSED: IntroState.REFUSED,
    ChangeState.CONFLICT: IntroState.REFUSED,
    ChangeState.REVERTED: IntroState.WITHDRAWN,
}
"""What becomes of an intro with its change. One whose write did not happen for want of time still may be written."""

_MAY_HAVE_WRITTEN = (ChangeState.PREPARED, ChangeState.APPLIED, ChangeState.REVERTED)


@dataclass(frozen=True, slots=True)
class CurrentIntro:
    """An intro whose change is applied: the change, its video, and the subject it was written from."""

    change_id: int
    vod_id: int
    douban_id: int


def attach(connection: Connection, tables: OwnTables, intro_id: int, change_id: int) -> None:
    """Note which change is about to write an intro; one that wrote it, or may still have, stays noted."""
    intro, log = tables.intro, tables.log
    wrote = exists().where(log.c.change_id == intro.c.change_id, log.c.state.in_(_MAY_HAVE_WRITTEN))
    this = (intro.c.intro_id == intro_id, ~wrote)
    connection.execute(update(intro).where(*this).values(change_id=change_id))


def follow(
    connection: Connection,
    tables: OwnTables,
    change_id: int,
    state: ChangeState,
    reason: str = "",
    *,
    intro_id: int | None = None,
) -> None:
    """Store the outcome of a change with the intro that it wrote, if it wrote one.

    Args:
        connection: A transaction.
        tables: Our tables.
        change_id: The change.
        state: Its outcome.
        reason: Why it was refused.
        intro_id: The intro that it was to write, where that is known: another change of the same text may be noted.
    """
    if state not in _FATE:
        return
    intro = tables.intro
    this = intro.c.change_id == change_id
    if state is ChangeState.APPLIED and intro_id is not None:
        this = intro.c.intro_id == intro_id
    values = {"state": _FATE[state], "reason": reason[:500], "change_id": change_id}
    connection.execute(update(intro).where(this).values(**values))


def current_intros(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> list[CurrentIntro]:
    """Return the intros of ``vod_ids`` whose change was applied and not reverted, the oldest first."""
    log, intro = tables.log, tables.intro
    query = (
        select(log.c.change_id, log.c.vod_id, intro.c.douban_id)
        .join(intro, intro.c.change_id == log.c.change_id)
        .where(log.c.vod_id.in_(vod_ids), log.c.action == INTRO, log.c.state == ChangeState.APPLIED)
        .order_by(log.c.change_id)
    )
    return [CurrentIntro(*row) for row in connection.execute(query)]


def withdrawn_intros(
    connection: Connection, tables: OwnTables, vod_ids: Collection[int]
) -> list[tuple[CurrentIntro, str]]:
    """Return the applied reverts of intros of ``vod_ids``, each as the intro it reverted, with its batch."""
    log, intro = tables.log, tables.intro
    query = (
        select(log.c.change_id, log.c.vod_id, intro.c.douban_id, log.c.batch_id)
        .join(intro, intro.c.change_id == log.c.reverts_change_id)
        .where(log.c.vod_id.in_(vod_ids), log.c.state == ChangeState.APPLIED)
        .order_by(log.c.change_id)
    )
    return [(CurrentIntro(*key), batch_id) for *key, batch_id in connection.execute(query)]


def locked_by_writing(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> set[int]:
    """Return those of ``vod_ids`` whose synopsis is locked by the writing of an intro, and by no person since."""
    log, video = tables.log, tables.video
    query = (
        select(log.c.vod_id, log.c.state_new, video.c.intro_lock_time)
        .join(video, video.c.vod_id == log.c.vod_id)
        .where(
            log.c.vod_id.in_(vod_ids),
            log.c.action == INTRO,
            log.c.state == ChangeState.APPLIED,
            video.c.intro_locked == true(),
        )
    )
    return {
        vod_id
        for vod_id, state, since in connection.execute(query)
        if since is not None and decode(state).get("intro_lock_time") == since
    }


def strayed_intros(connection: Connection, tables: OwnTables, shards: Collection[int]) -> list[CurrentIntro]:
    """Return the current intros of ``shards`` whose video has another subject by now, or none, the oldest first.

    An intro whose link is in review is not included, unless the link was cleared since, nor one whose lock a person
    removed.
    """
    intro, video, log = tables.intro, tables.video, tables.log
    cleared = exists().where(
        log.c.vod_id == video.c.vod_id,
        log.c.action == DecisionAction.clear_id,
        log.c.state == ChangeState.APPLIED,
        log.c.change_id > intro.c.change_id,
    )
    query = (
        select(intro.c.change_id, intro.c.vod_id, intro.c.douban_id)
        .join(video, video.c.vod_id == intro.c.vod_id)
        .where(
            video.c.shard.in_(shards),
            video.c.intro_locked == true(),
            or_(
                video.c.douban_review_status.in_([ReviewStatus.CONFIRMED, ReviewStatus.NOT_FOUND]),
                and_(video.c.douban_review_status == ReviewStatus.REVIEW, video.c.vod_douban_id == 0, cleared),
            ),
            intro.c.state == IntroState.WRITTEN,
            intro.c.douban_id != video.c.vod_douban_id,
        )
        .order_by(intro.c.change_id)
    )
    return [CurrentIntro(*row) for row in connection.execute(query)]
