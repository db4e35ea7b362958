"""Applies brakes to strata whose measured precision is too low, and lifts them on a person's order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, String, func, select, type_coerce, update

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labels import LinkLabel
from douban_pipeline.douban.quality.rates import shortfalls
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.matching import Code
from douban_pipeline.matching.strata import STRATA

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


def name_of(stratum: str) -> str:
    """Return a stratum's name for people."""
    return STRATA.get(stratum, stratum)


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

    Raises:
        LiftError: The request has problems; all are reported at once, and nothing is lifted.
    """
    wanted = list(dict.fromkeys(name.strip() for name in strata))
    with reading(services.engine) as connection:
        newest = brakes.newest(connection, services.tables)
        waiting = _waiting(connection, services.tables, wanted)
    on = {name: brake for name, brake in newest.items() if brake.on}
    problems = [] if reviewer.strip() else ["reviewer: 请填写你的名字"]
    problems += [] if note.strip() else ["note: 请写明为什么可以恢复"]
    problems += [] if wanted else ["strata: 至少填写一个类别"]
    shown = "、".join(f"{name}（{name_of(name)}）" for name in on) or "无"
    problems += [
        f"strata: {name} 没有处于暂停状态；目前暂停的有：{shown}"
        if name in STRATA
        else f"strata: 没有 {name or '空白'} 这个类别；目前暂停的有：{shown}"
        for name in wanted
        if name not in on
    ]
    if problems:
        raise LiftError(problems)
    lifted = Lifted(tuple(on[name] for name in wanted), len(waiting))
    if dry_run:
        return lifted
    now, video = services.clock.now(), services.tables.video

    def release(connection: Connection) -> None:
        brakes.lift(connection, services.tables, wanted, reviewer=reviewer.strip(), note=note.strip(), at=now)
        for chunk in chunks(waiting):
            connection.execute(update(video).where(video.c.vod_id.in_(chunk)).values(douban_next_sync_at=now))

    run_transaction(services.engine, release)
    return lifted


def _waiting(connection: Connection, tables: OwnTables, strata: Collection[str]) -> list[int]:
    """Return the videos whose newest verdict a brake of ``strata`` held back, and that still wait for a person."""
    verdict, video, newer = tables.verdict, tables.video, tables.verdict.alias()
    newest = select(func.max(newer.c.verdict_id)).where(newer.c.vod_id == video.c.vod_id).scalar_subquery()
    query = (
        select(video.c.vod_id, verdict.c.strata)
        .join(verdict, verdict.c.vod_id == video.c.vod_id)
        .where(
            video.c.douban_review_status == ReviewStatus.REVIEW,
            video.c.douban_next_sync_at.is_not(None),
            verdict.c.verdict == ReviewStatus.REVIEW,
            type_coerce(verdict.c.reasons, String).contains(f'"{Code.STRATUM_BRAKED}"'),
            verdict.c.verdict_id == newest,
        )
        .order_by(video.c.vod_id)
    )
    return [row.vod_id for row in connection.execute(query) if not set(row.strata or ()).isdisjoint(strata)]
