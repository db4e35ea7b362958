"""Applies brakes to strata whose measured precision is too low, and lifts them on a person's order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, String, func, or_, select, type_coerce, update

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labels import LinkLabel, acts_of_people, settled_by_people
from douban_pipeline.douban.quality.rates import OPENING_ERROR, Opening, openings, shortfalls
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.matching import Code
from douban_pipeline.matching.strata import OPENINGS, STRATA, opening_of, stratum_name

LEAST_LABELS = 30
"""Number of people's decisions in a stratum from which its precision is evaluated: fewer prove nothing."""

PRECISION_TARGET = 0.95
"""Precision that the automatic links of every stratum demonstrably have to reach; below, people decide."""


class LiftError(ProblemsError):
    """The requested brakes cannot be lifted; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """The brakes that were or would be lifted, and the number of videos that waited for it."""

    brakes: tuple[Brake, ...]
    waiting: int


def lifted_since(newest: Mapping[str, Brake]) -> dict[str, datetime]:
    """Return when a person last lifted each stratum's brake: only later labels count."""
    return {name: brake.lifted_at for name, brake in newest.items() if brake.lifted_at is not None}


def pull_where_short(services: Services, labels: Collection[LinkLabel], newest: Mapping[str, Brake]) -> list[Brake]:
    """Apply a brake to every stratum whose precision is too low; return the brakes that were off before."""
    now = services.clock.now()
    target, least = PRECISION_TARGET, LEAST_LABELS
    held = [name for name, brake in newest.items() if brake.on]
    short = [
        Brake(name, _reason(rate, target), rate.interval.low, target, rate.total, now)
        for name, rate in shortfalls(labels, lifted_since(newest), held, target=target, least=least).items()
    ]
    return run_transaction(
        services.engine,
        lambda connection: [brake for brake in short if brakes.pull(connection, services.tables, brake)],
    )


def _reason(rate: Rate, target: float) -> str:
    low, high = rate.interval
    return (
        f"人工核对 {rate.total} 条，{rate.misses} 条有误；"
        f"正确率 {rate.share:.1%}（{low:.1%}–{high:.1%}），目标 {target:.1%}"
    )


def lift(services: Services, strata: Sequence[str], *, reviewer: str, note: str, dry_run: bool) -> Lifted:
    """Lift the brakes of ``strata``, and make the videos that they held back due at once.

    Of `matching.strata.OPENINGS`, closed without a brake, those are opened that people's decisions prove safe.

    Raises:
        LiftError: The request has problems; all are reported at once, and nothing is lifted.
    """
    wanted = list(dict.fromkeys(name.strip() for name in strata))
    with reading(services.engine) as connection:
        newest = brakes.newest(connection, services.tables)
        waiting = _waiting(connection, services.tables, wanted)
        proven = _openings(connection, services.tables) if OPENINGS.keys() & wanted else {}
    on = {name: brake for name, brake in newest.items() if brake.on}
    closed = {
        name: _closed(each, services.clock.now())
        for name, each in proven.items()
        if name in wanted and name not in newest and each.safe
    }
    problems = [] if reviewer.strip() else ["reviewer: 请填写你的名字"]
    problems += [] if note.strip() else ["note: 请写明为什么可以恢复"]
    problems += [] if wanted else ["strata: 至少填写一个类别"]
    shown = "、".join(f"{name}（{stratum_name(name)}）" for name in on) or "无"
    problems += [
        f"strata: {name} 没有处于暂停状态；目前暂停的有：{shown}"
        if name in STRATA or name in newest
        else f"strata: {name} 还不能开放；automatic_precision 的 would_be_safe_to_open 说明缺什么"
        if name in OPENINGS
        else f"strata: 没有 {name or '空白'} 这个类别；目前暂停的有：{shown}"
        for name in wanted
        if name not in on and name not in closed
    ]
    if problems:
        raise LiftError(problems)
    lifted = Lifted(tuple({**on, **closed}[name] for name in wanted), len(waiting))
    if dry_run:
        return lifted
    now, video = services.clock.now(), services.tables.video

    def release(connection: Connection) -> None:
        for brake in closed.values():
            brakes.pull(connection, services.tables, brake)
        brakes.lift(connection, services.tables, wanted, reviewer=reviewer.strip(), note=note.strip(), at=now)
        for chunk in chunks(waiting):
            connection.execute(update(video).where(video.c.vod_id.in_(chunk)).values(douban_next_sync_at=now))

    run_transaction(services.engine, release)
    return lifted


def close_again(services: Services, strata: Sequence[str], *, reviewer: str, note: str, dry_run: bool) -> list[Brake]:
    """Pull the brakes of strata that a person opened; return them. Links that were made stay, and are judged again.

    Raises:
        LiftError: The request has problems; all are reported at once, and nothing is closed.
    """
    wanted = list(dict.fromkeys(name.strip() for name in strata))
    with reading(services.engine) as connection:
        opened = brakes.opened(connection, services.tables)
        newest = brakes.newest(connection, services.tables)
    problems = [] if reviewer.strip() else ["reviewer: 请填写你的名字"]
    problems += [f"strata: {name or '空白'} 没有开放" for name in wanted if name not in opened]
    if problems:
        raise LiftError(problems)
    now, why = services.clock.now(), f"由 {reviewer.strip()} 关闭：{note.strip()}"
    found = [
        replace(newest[name], reason=why, pulled_at=now, lifted_at=None, lifted_by="", lift_note="") for name in wanted
    ]
    if not dry_run:
        run_transaction(
            services.engine, lambda connection: [brakes.pull(connection, services.tables, each) for each in found]
        )
    return found


def _openings(connection: Connection, tables: OwnTables) -> dict[str, Opening]:
    return openings(settled_by_people(connection, tables, acts_of_people(connection, tables)))


def _closed(proof: Opening, now: datetime) -> Brake:
    """Return the brake that stands for a stratum which was closed by itself, with the proof that it is safe to open."""
    reason = (
        f"审核员 {proof.people} 人逐条核对 {proof.agreed} 条，全部同意首选；错误率至多 {proof.error:.1%}（95% 置信）"
    )
    return Brake(proof.stratum, reason, 1 - proof.error, 1 - OPENING_ERROR, proof.agreed, now)


def _waiting(connection: Connection, tables: OwnTables, strata: Collection[str]) -> list[int]:
    """Return the videos whose newest verdict ``strata`` held back, and that still wait for a person."""
    codes = {OPENINGS[name] for name in strata if name in OPENINGS}
    reasons = type_coerce(verdict_reasons := tables.verdict.c.reasons, String)
    verdict, video, newer = tables.verdict, tables.video, tables.verdict.alias()
    newest = select(func.max(newer.c.verdict_id)).where(newer.c.vod_id == video.c.vod_id).scalar_subquery()
    query = (
        select(video.c.vod_id, verdict.c.strata, verdict_reasons)
        .join(verdict, verdict.c.vod_id == video.c.vod_id)
        .where(
            video.c.douban_review_status == ReviewStatus.REVIEW,
            video.c.douban_next_sync_at.is_not(None),
            verdict.c.verdict == ReviewStatus.REVIEW,
            or_(*(reasons.contains(f'"{code}"') for code in (Code.STRATUM_BRAKED, *codes))),
            verdict.c.verdict_id == newest,
        )
        .order_by(video.c.vod_id)
    )

    def held(row: Row[Any]) -> bool:
        if Code.STRATUM_BRAKED in (row.reasons or ()):
            return not set(row.strata or ()).isdisjoint(strata)
        return opening_of(row.reasons or ()) in strata

    return [row.vod_id for row in connection.execute(query) if held(row)]
