"""Invariants of written intros, checked in the database over all shards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from douban_pipeline.cms.values import content_text
from douban_pipeline.douban.chain.sync.guards import WINDOW
from douban_pipeline.douban.intros.author import ledger_of, limits_of
from douban_pipeline.douban.intros.due import INTROS_PER_RUN
from douban_pipeline.douban.intros.factguard import candidates_for_people, inspect, marks
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.ledger import violation_texts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState, IntroState
from douban_pipeline.douban.store.videos import Breach
from douban_pipeline.douban.writes.changes import PIPELINE, decode
from douban_pipeline.douban.writes.intro_changes import INTRO

READ_BACK = timedelta(hours=1)
"""Age up to which intros are read back: longer than a run takes, so that the run that wrote an intro reads it."""

SHARDS_READ_BACK = 20
"""Most intros that are read back, in multiples of a shard's limit: a run covers at most eight shards. Each intro takes
some 10 ms."""


def intros_unfit(services: Services, connection: Connection) -> Iterator[Breach]:
    """Yield intros of the last hour that are in the CMS as written and would not pass the guard again.

    Each is compared with intros written before it: of two similar ones the later is reported. Names that became known
    only afterwards do not count. The newest are read back, and every run reads more than one run writes.
    """
    log, intro = services.tables.log, services.tables.intro
    query = (
        select(
            log.c.vod_id, log.c.change_id, log.c.new_values, intro.c.intro_id, intro.c.fact_sheet, intro.c.created_at
        )
        .join(intro, intro.c.change_id == log.c.change_id)
        .where(*_applied_lately(services, READ_BACK))
        .order_by(log.c.change_id.desc())
        .limit(SHARDS_READ_BACK * INTROS_PER_RUN)
    )
    written = connection.execute(query).mappings().all()
    rows = services.cms.rows(connection, [item["vod_id"] for item in written])
    for item in reversed(written):
        row = rows.get(item["vod_id"])
        if row is not None and row["vod_content"] == decode(item["new_values"])["vod_content"]:
            yield from _unfit(services, item, content_text(row["vod_content"]))


def _unfit(services: Services, item: RowMapping, text: str) -> Iterator[Breach]:
    sheet = FactSheet.from_payload(item["fact_sheet"])
    others = ledger_of(services).texts_near(marks(text, sheet), vod_id=item["vod_id"], before=item["intro_id"])
    known = services.people.known(candidates_for_people(text), at=item["created_at"])
    violations = tuple(inspect(text, sheet, known_people=known, others=others, limits=limits_of(services.settings)))
    if violations:
        yield Breach(item["vod_id"], f"变更 {item['change_id']} 写入的简介未通过核对：{violation_texts(violations)}")


def intros_unlogged(services: Services, connection: Connection) -> Iterator[Breach]:
    """Yield intros of the window that are marked as written without an applied change, and changes without an intro."""
    log, intro = services.tables.log, services.tables.intro
    written = (
        select(intro.c.vod_id, intro.c.intro_id, log.c.state)
        .outerjoin(log, log.c.change_id == intro.c.change_id)
        .where(intro.c.state == IntroState.WRITTEN, intro.c.created_at >= services.clock.now() - WINDOW)
    )
    for vod_id, intro_id, state in connection.execute(written):
        if state != ChangeState.APPLIED:
            yield Breach(vod_id, f"简介 {intro_id} 没有对应的已生效变更")
    unknown = (
        select(log.c.vod_id, log.c.change_id)
        .outerjoin(intro, intro.c.change_id == log.c.change_id)
        .where(*_applied_lately(services), intro.c.intro_id.is_(None))
    )
    for vod_id, change_id in connection.execute(unknown):
        yield Breach(vod_id, f"变更 {change_id} 写入的简介没有生成记录")


def locked_intros_touched(services: Services, connection: Connection) -> Iterator[Breach]:
    """Yield automatic intros of the window on videos whose intro was locked before."""
    log = services.tables.log
    query = select(log.c.vod_id, log.c.change_id, log.c.state_old).where(
        *_applied_lately(services), log.c.operator == PIPELINE
    )
    for vod_id, change_id, state_old in connection.execute(query):
        if state_old.get("intro_locked"):
            yield Breach(vod_id, f"变更 {change_id} 改写了已锁定的简介")


def _applied_lately(services: Services, window: timedelta = WINDOW) -> tuple[ColumnElement[bool], ...]:
    log = services.tables.log
    return (
        log.c.action == INTRO,
        log.c.state == ChangeState.APPLIED,
        log.c.applied_at >= services.clock.now() - window,
    )
