"""Ids that were cleared in the CMS itself, where a site's owner sees a wrong link first.

An id that was cleared alone is a person's word: the subject is ruled out for the video. Where every column that we
wrote is back at its old value as well, somebody saved a form that was opened before: that says nothing of the link.
Many at once are no person's words but a batch operation or a restored backup: one question to the operator.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from douban_pipeline.cms.maccms import Cms, in_recycle_bin, live_condition
from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import held_in_bulk_condition
from douban_pipeline.douban.store.states import BY_PEOPLE, ChangeState, DecisionAction, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK, CLEARED_IN_CMS, CLEARED_WITH_ALL, Breach
from douban_pipeline.douban.writes.changes import BY_CMS, SEEN_IN_CMS, decode, encode

MANY = 50
"""From how many ids on, cleared within `TOGETHER`, a program is assumed to have cleared them."""
TOGETHER = timedelta(days=1)


class ClearedIdsAnswer(enum.Enum):
    """What an operator says of ids that were cleared in bulk. Members are named as they are typed."""

    rematch = "rematch"
    """Nothing about the links: the videos are matched again, to the same subjects where these are still found."""

    rule_out = "rule_out"
    """The links were wrong: the subjects are ruled out, and the videos are matched without them."""


def cleared_states(
    connection: Connection,
    tables: OwnTables,
    cms: Cms,
    rows: Mapping[int, RowMapping],
    states: Mapping[int, RowMapping],
    chosen: Collection[int],
    now: datetime,
) -> dict[int, dict[str, Any]]:
    """Return the state of videos whose id was cleared in the CMS and was not a person's; log a person's word.

    Args:
        connection: A transaction.
        tables: Our tables.
        cms: The CMS's tables.
        rows: Rows of the CMS, by id.
        states: Our state rows of the same videos.
        chosen: Videos whose subject a person chose: they go to review in any case.
        now: The current time.
    """
    gone = {
        vod_id: row
        for vod_id, row in rows.items()
        if not row["vod_douban_id"]
        and states[vod_id]["vod_douban_id"]
        and _of_automation(states[vod_id])
        and vod_id not in chosen
        and not in_recycle_bin(row)
        and states[vod_id]["douban_review_reason"] != CLEARED_IN_BULK
    }
    if not gone:
        return {}
    stale = stale_forms(connection, tables, gone, states)
    alone = [states[vod_id] for vod_id in gone if vod_id not in stale]
    bulk = bool(alone) and many(connection, tables, cms, stale, now)
    if not bulk:
        rule_out(connection, tables, alone, now)
    return {vod_id: after_clearing(states[vod_id], stale=vod_id in stale, bulk=bulk, now=now) for vod_id in gone}


def _of_automation(state: RowMapping) -> bool:
    """Return whether an id is not a person's in our books, and may be taken away."""
    free = not state["douban_id_locked"] and state["douban_review_status"] != ReviewStatus.IGNORED
    return free and state["douban_id_source"] not in BY_PEOPLE


def stale_forms(
    connection: Connection, tables: OwnTables, rows: Mapping[int, RowMapping], states: Mapping[int, RowMapping]
) -> set[int]:
    """Return the videos, of which all ids were cleared, where all that was written is back at its old value.

    Args:
        connection: A transaction.
        tables: Our tables.
        rows: Their rows of the CMS, by id.
        states: Our state rows, with the subjects they were linked to.
    """
    log = tables.log
    found = set()
    for vod_ids in chunks([*rows]):
        query = (
            select(log.c.vod_id, log.c.old_values, log.c.new_values)
            .where(log.c.vod_id.in_(vod_ids), log.c.state == ChangeState.APPLIED)
            .order_by(log.c.change_id)
        )
        before: dict[int, dict[str, Any]] = {}
        for vod_id, old, new in connection.execute(query):
            if decode(new).get("vod_douban_id") == states[vod_id]["vod_douban_id"]:
                before[vod_id] = {}  # what was written before this link was made belongs to another
            if vod_id in before:
                for column, value in decode(old).items():
                    before[vod_id].setdefault(column, value)
        for vod_id, values in before.items():
            written = {column: value for column, value in values.items() if column != "vod_douban_id"}
            if written and all(rows[vod_id][column] == value for column, value in written.items()):
                found.add(vod_id)
    return found


def many(connection: Connection, tables: OwnTables, cms: Cms, stale: Collection[int], now: datetime) -> bool:
    """Return whether so many ids were cleared lately that a program must have done it; ``stale`` are not counted.

    Those that nobody has noticed yet count as well: the sweep sees the library in slices, and the first of them is to
    be held back like the last.
    """
    log, video = tables.log, tables.video
    lately = select(func.count()).where(
        log.c.applied_at >= now - TOGETHER, log.c.operator == BY_CMS, log.c.action == DecisionAction.clear_id
    )
    said = connection.execute(lately).scalar_one()
    empty = (
        select(video.c.vod_id)
        .join(cms.vod, cms.vod.c.vod_id == video.c.vod_id)
        .where(
            video.c.vod_douban_id > 0,
            cms.vod.c.vod_douban_id == 0,
            live_condition(cms),
            video.c.douban_id_locked.is_(False),
            video.c.douban_id_source.not_in(BY_PEOPLE),
            video.c.douban_review_status != ReviewStatus.IGNORED,
        )
        .limit(MANY + len(stale))
    )
    return said + len(set(connection.execute(empty).scalars()) - set(stale)) >= MANY


def after_clearing(state: RowMapping, *, stale: bool, bulk: bool, now: datetime) -> dict[str, Any]:
    """Return the state of a video whose id was cleared in the CMS."""
    if bulk and not stale:
        # Its subject stays known, so that the link is there again if the CMS gets its ids back.
        kept = ("vod_douban_id", "douban_id_source", "douban_id_confidence")
        return {name: state[name] for name in kept} | {
            "douban_review_status": ReviewStatus.REVIEW,
            "douban_review_reason": CLEARED_IN_BULK,
            "douban_next_sync_at": None,
        }
    reason = f"豆瓣 ID {state['vod_douban_id']} 在 CMS 后台被清空：不再自动关联它，请另选条目，或确认没有条目"
    return {
        "vod_douban_id": 0,
        "douban_id_source": "",
        "douban_id_confidence": None,
        "douban_review_status": ReviewStatus.NOT_FOUND if stale else ReviewStatus.REVIEW,
        "douban_review_reason": CLEARED_WITH_ALL if stale else reason,
        "douban_next_sync_at": now,
    }


def rule_out(
    connection: Connection,
    tables: OwnTables,
    states: Sequence[RowMapping],
    now: datetime,
    operator: str = BY_CMS,
) -> None:
    """Log that these videos' ids were cleared, so that automation never links them to the same subjects again."""
    rows = [
        {
            "vod_id": state["vod_id"],
            "shard": shard_of(state["vod_id"]),
            "action": DecisionAction.clear_id,
            "old_values": encode({"vod_douban_id": state["vod_douban_id"]}),
            "new_values": encode({"vod_douban_id": 0}),
            "state_old": {},
            "state_new": {},
            "reason": CLEARED_IN_CMS,
            "operator": operator,
            "batch_id": SEEN_IN_CMS,
            "run_id": "",
            "state": ChangeState.APPLIED,
            "prepared_at": now,
            "applied_at": now,
        }
        for state in states
    ]
    if rows:
        connection.execute(insert(tables.log), rows)


def held_in_bulk(services: Services, connection: Connection) -> Iterator[Breach]:
    """Yield the videos whose ids were cleared in bulk, and of which nothing is known until somebody answers."""
    query = select(services.tables.video.c.vod_id).where(held_in_bulk_condition(services.tables.video))
    found = connection.execute(query.order_by(services.tables.video.c.vod_id)).scalars().all()
    for vod_id in found:
        text = (
            f"共 {len(found)} 部影片的豆瓣 ID 在 CMS 中一并被清空，暂不关联；请启动 settle_cleared_ids 回答是否为误操作"
        )
        yield Breach(vod_id, text)


def settle(services: Services, answer: ClearedIdsAnswer, reviewer: str, *, dry_run: bool) -> int:
    """Answer for all ids that were cleared in bulk; return how many there are."""
    video, now = services.tables.video, services.clock.now()
    with reading(services.engine) as connection:
        held = connection.execute(select(video.c.vod_id, video.c.vod_douban_id).where(held_in_bulk_condition(video)))
        states = held.mappings().all()
    if dry_run:
        return len(states)

    def apply(connection: Connection) -> None:
        for some in chunks(states):
            if answer is ClearedIdsAnswer.rule_out:
                rule_out(connection, services.tables, some, now, reviewer)
            free = {
                "vod_douban_id": 0,
                "douban_id_source": "",
                "douban_id_confidence": None,
                "douban_review_status": ReviewStatus.NOT_FOUND,
                "douban_review_reason": CLEARED_IN_CMS,
                "douban_next_sync_at": now,
            }
            these = (video.c.vod_id.in_([state["vod_id"] for state in some]), held_in_bulk_condition(video))
            connection.execute(update(video).where(*these).values(free))

    run_transaction(services.engine, apply)
    return len(states)
