"""What is known of videos when a batch looks at them: read by key, a few hundred at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, RowMapping, Table, func, select

from douban_pipeline.cms.maccms import MATCH_COLUMNS
from douban_pipeline.cms.numbers import moment_of, year_of
from douban_pipeline.cms.values import readable
from douban_pipeline.douban.review.batch.filters import VideoFilter
from douban_pipeline.douban.review.batch.rules import Best, Standing, Video
from douban_pipeline.douban.review.reading.ordering import Lines, doubt_of, value_of
from douban_pipeline.douban.review.recording.pending import read_pending
from douban_pipeline.douban.review.recording.wishes import identity_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import chosen_subjects
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.douban.store.videos import GONE, fingerprint
from douban_pipeline.douban.writes.change_log import undone_values
from douban_pipeline.matching import SENTENCES

_RECYCLED = "影片在 CMS 的回收站里"
_STATE = "vod_id vod_douban_id douban_review_status douban_id_locked intro_locked douban_sync_fail_count"
_VERDICT = "vod_id verdict_id score lead reasons fingerprint"
_CANDIDATE = "vod_id douban_id title year score rejects conflicts fetched"


@dataclass(frozen=True, slots=True)
class Looked:
    """A video that meets a filter.

    Attributes:
        status: Where its link stands.
        score: Of its newest verdict; None without one, or without candidates.
        before: The smaller, the sooner a reviewer looks at it.
        gone: Why nobody sees it on the site, empty if people do.
        video: What it is asked by whether a batch may touch it.
    """

    title: str
    status: str
    score: float | None
    before: tuple[float, ...]
    gone: str
    video: Video


def look(
    services: Services, connection: Connection, asked: VideoFilter, vod_ids: Sequence[int], *, with_best: bool
) -> Iterator[Looked]:
    """Yield those of a few videos that meet ``asked`` in what our state table does not say.

    Args:
        services: Database and settings.
        connection: A connection for reading.
        asked: The filter; statuses, categories and ids are taken to hold.
        vod_ids: As many as one statement may name.
        with_best: Read the best candidates too.
    """
    verdicts = _newest_verdicts(services, connection, vod_ids)
    left = [vod_id for vod_id in vod_ids if asked.score_fits(_score(verdicts.get(vod_id)))]
    best: Mapping[int, Best] = {}
    if with_best or asked.coded:
        best = best_candidates(services, connection, [verdicts[id_]["verdict_id"] for id_ in left if id_ in verdicts])
        left = [vod_id for vod_id in left if asked.codes_fit(_codes(verdicts.get(vod_id), best.get(vod_id)))]
    rows = _cms_rows(services, connection, left)
    left = [vod_id for vod_id in left if asked.year_fits(year_of(rows[vod_id]["vod_year"]) if vod_id in rows else None)]
    video = services.tables.video
    states = {row["vod_id"]: row for row in _read(connection, video, _STATE, video.c.vod_id, left)}
    pending = read_pending(services, connection, left, ()).by_video
    chosen = chosen_subjects(connection, services.tables, left)
    taken_back = undone_values(connection, services.tables, left) if with_best else {}
    for vod_id in left:
        if vod_id in states:
            yield _looked(
                services,
                states[vod_id],
                rows.get(vod_id),
                verdicts.get(vod_id),
                best.get(vod_id),
                [_standing(row) for row in pending.get(vod_id, ())],
                chosen.get(vod_id, 0),
                taken_back.get(vod_id, {}).get("vod_douban_id", ()),
            )


def _looked(
    services: Services,
    state: RowMapping,
    row: RowMapping | None,
    verdict: RowMapping | None,
    best: Best | None,
    pending: Sequence[Standing],
    chosen: int,
    taken_back: Collection[int],
) -> Looked:
    vod_id, status = state["vod_id"], state["douban_review_status"]
    lead = verdict["lead"] if verdict else None
    value = value_of(row["vod_hits"], moment_of(row["vod_time"]), services.clock.now()) if row else 0.0
    doubt = doubt_of(
        _score(verdict),
        lead,
        lines_of(services),
        stands=status == ReviewStatus.REVIEW and state["vod_douban_id"] > 0,
        failing=state["douban_sync_fail_count"] >= FAILURES_FOR_A_PERSON,
    )
    judged = verdict["fingerprint"] if verdict else ""
    return Looked(
        title=readable(row["vod_name"]) if row else "",
        status=status,
        score=_score(verdict),
        # As the review queue has it.
        before=(-value * doubt, -value, vod_id),
        gone=GONE if row is None else _RECYCLED if row.get("vod_recycle_time") else "",
        video=Video(
            vod_id,
            state["vod_douban_id"],
            id_locked=state["douban_id_locked"],
            intro_locked=state["intro_locked"],
            verdict_id=verdict["verdict_id"] if verdict else 0,
            lead=lead,
            stale=bool(row and judged) and judged != fingerprint(row or {}),
            best=best,
            pending=pending,
            chosen=chosen,
            taken_back=taken_back,
        ),
    )


def lines_of(services: Services) -> Lines:
    """Return where verdicts change on this site."""
    return Lines(services.settings.confirm_score, services.settings.lead_score)


def best_candidates(services: Services, connection: Connection, verdict_ids: Collection[int]) -> dict[int, Best]:
    """Return the best candidate of each of these verdicts that has one, by video."""
    table = services.tables.candidate
    query = _columns(table, _CANDIDATE).where(table.c.verdict_id.in_(verdict_ids), table.c.rank == 1)
    rows = connection.execute(query).mappings() if verdict_ids else ()
    return {
        row["vod_id"]: Best(
            row["douban_id"],
            row["title"],
            row["year"],
            row["score"],
            {**{code: SENTENCES.get(code, code) for code in row["rejects"] or ()}, **(row["conflicts"] or {})},
            row["fetched"],
        )
        for row in rows
    }


def _newest_verdicts(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, RowMapping]:
    verdict = services.tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(vod_ids)).group_by(verdict.c.vod_id)
    # In two steps: MariaDB runs a subquery of this form once for each row.
    verdict_ids = list(connection.execute(newest).scalars())
    return {row["vod_id"]: row for row in _read(connection, verdict, _VERDICT, verdict.c.verdict_id, verdict_ids)}


def _cms_rows(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, RowMapping]:
    vod = services.cms.vod
    names = ["vod_id", "vod_hits", "vod_time", *MATCH_COLUMNS]
    names += ["vod_recycle_time"] if services.cms.has_recycle_bin else []
    return {row["vod_id"]: row for row in _read(connection, vod, " ".join(names), vod.c.vod_id, vod_ids)}


def _standing(decision: RowMapping) -> Standing:
    action = DecisionAction(decision["action"])
    return Standing(action, decision["lock"], identity_of(decision), decision["reviewer"])


def _read(
    connection: Connection, table: Table, names: str, key: Column[Any], values: Sequence[int]
) -> Sequence[RowMapping]:
    return connection.execute(_columns(table, names).where(key.in_(values))).mappings().all() if values else ()


def _columns(table: Table, names: str) -> Any:
    return select(*(table.c[name] for name in names.split()))


def _score(verdict: RowMapping | None) -> float | None:
    return verdict["score"] if verdict else None


def _codes(verdict: RowMapping | None, best: Best | None) -> set[str]:
    return {*((verdict["reasons"] or ()) if verdict else ()), *(best.objections if best else ())}
