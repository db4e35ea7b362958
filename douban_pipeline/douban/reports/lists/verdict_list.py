"""The list of verdicts: what was judged, why, and in a dry run what would be written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListLink, Row
from douban_pipeline.douban.chain.sync.fields import plan_fields
from douban_pipeline.douban.chain.sync.writer import judged_answer
from douban_pipeline.douban.reports.lists.keyset import Choice
from douban_pipeline.douban.reports.lists.records import history_link, record_columns, record_reader, record_rows
from douban_pipeline.douban.reports.lists.spec import ListSpec
from douban_pipeline.douban.reports.lists.videos import ACTIONS, LABEL, NUMBER, TIME
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.wording import COLUMNS, VERDICTS, word_for

_SHOWN = 60


def verdict_counts(services: Services, run_ids: Collection[str]) -> dict[str, int]:
    """Return the number of videos that these runs judged, by verdict."""
    verdict = services.tables.verdict
    videos = func.count(verdict.c.vod_id.distinct())
    query = select(verdict.c.verdict, videos).where(verdict.c.run_id.in_(run_ids)).group_by(verdict.c.verdict)
    with reading(services.engine) as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def verdicts_list(services: Services) -> ListSpec:
    """Return the list of verdicts."""
    verdict = services.tables.verdict
    columns = (
        *record_columns,
        ListColumn("verdict", "判定", LABEL),
        ListColumn("subject", "条目", width="wide"),
        ListColumn("douban_id", "条目 ID", ColumnKind.SUBJECT),
        ListColumn("score", "得分", NUMBER),
        ListColumn("why", "为什么", width="wide"),
        ListColumn("planned", "会写入", width="wide"),
        ListColumn("at", "时间", TIME),
        ACTIONS,
    )

    def read(connection: Connection, keys: Sequence[int]) -> Mapping[int, Row]:
        judged = connection.execute(select(verdict).where(verdict.c.verdict_id.in_(keys))).mappings().all()
        subjects = _subjects(services, connection, judged)
        planned = _planned(services, connection, judged) if services.settings.dry_run else {}

        def cells(row: RowMapping) -> Row:
            subject = subjects.get(row["verdict_id"])
            compared = ((("compare", row["vod_id"]),)) if row["verdict"] == ReviewStatus.REVIEW else ()
            return {
                "verdict": word_for(VERDICTS, row["verdict"]),
                "subject": f"{subject['title']}（{subject['year'] or '?'}）" if subject else None,
                "douban_id": subject["douban_id"] if subject else 0,
                "score": row["score"],
                "why": row["explanation"] or None,
                "planned": planned.get(row["verdict_id"]),
                "at": row["created_at"],
                "links": (*compared, ("history", row["vod_id"])),
            }

        return record_reader(services, verdict, "verdict_id", cells)(connection, keys)

    return ListSpec(
        "verdicts",
        "每次判定：哪个条目、多少分、为什么。试运行时“会写入”是开启写入后会写进 CMS 的内容，一切都还没有写入。",
        columns,
        record_rows(
            services,
            verdict,
            "verdict_id",
            "created_at",
            ("explanation",),
            {"verdict": VERDICTS},
            {"verdict": Choice(verdict.c.verdict, VERDICTS)},
        ),
        read,
        key="verdict_id",
        links={"history": history_link(services.location), "compare": ListLink("逐项比较", "review/#{0}")},
    )


def _subjects(services: Services, connection: Connection, judged: Sequence[RowMapping]) -> dict[int, RowMapping]:
    """Return the candidate that each verdict is about, else its best one, by verdict."""
    candidate, chosen = services.tables.candidate, {row["verdict_id"]: row["douban_id"] for row in judged}
    query = select(*candidate.c["verdict_id", "douban_id", "title", "year"]).where(candidate.c.verdict_id.in_(chosen))
    found: dict[int, RowMapping] = {}
    for row in connection.execute(query.order_by(candidate.c["rank"])).mappings():
        if row["verdict_id"] not in found or row["douban_id"] == chosen[row["verdict_id"]]:
            found[row["verdict_id"]] = row
    return found


def _planned(services: Services, connection: Connection, judged: Sequence[RowMapping]) -> dict[int, str]:
    """Return what confirmed verdicts would write now, a line a column; nothing where the stored answer is gone."""
    confirmed = [row for row in judged if row["verdict"] == ReviewStatus.CONFIRMED]
    vod_ids, video = [row["vod_id"] for row in confirmed], services.tables.video
    rows = services.cms.rows(connection, vod_ids)
    locked = set(
        connection.execute(select(video.c.vod_id).where(video.c.vod_id.in_(vod_ids), video.c.intro_locked)).scalars()
    )
    found = {}
    for verdict in confirmed:
        row = rows.get(verdict["vod_id"])
        try:
            record, _ = judged_answer(services, verdict)
        except (KeyError, SourceError):
            continue
        if row is not None:
            plan = plan_fields(
                row,
                record,
                cms=services.cms,
                vocabulary=services.vocabulary(row["type_id"]),
                policies=services.settings.policies,
                undone={},
                intro_locked=verdict["vod_id"] in locked,
            )
            changes: dict[str, tuple[Any, Any]] = {"vod_douban_id": (row["vod_douban_id"], record.douban_id)}
            changes |= {column: (plan.old[column], value) for column, value in plan.new.items()}
            lines = (
                f"{word_for(COLUMNS, name)}：{_short(old)} → {_short(new)}" for name, (old, new) in changes.items()
            )
            found[verdict["verdict_id"]] = "\n".join(lines)
    return found


def _short(value: object) -> str:
    text = readable(value) if isinstance(value, str) else "" if value in (0, None) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
