"""Recomputes the counters of a section from its rows; any difference is a fault."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Select, and_, case, func, select

from douban_pipeline.comments.store.tables import comment, report, section, vote
from douban_pipeline.comments.types import MORE_VOTES, CommentStatus

_NORMAL = CommentStatus.NORMAL
_root = comment.alias("root")


def count_differences(connection: Connection, section_id: int) -> Iterator[str]:
    """Yield a sentence for each counter of a section or its comments that differs from its rows."""
    kept = connection.execute(select(section).where(section.c.section_id == section_id)).mappings().one()
    shown = and_(comment.c.status == _NORMAL, (comment.c.root_id == 0) | (_root.c.status == _NORMAL))
    query = (
        select(
            func.count().label("total_count"),
            func.sum(case((and_(comment.c.root_id == 0, comment.c.status == _NORMAL), 1), else_=0)).label("root_count"),
            func.sum(case((shown, 1), else_=0)).label("visible_count"),
            func.count(comment.c.floor.distinct()).label("floors"),
            func.max(comment.c.floor).label("highest"),
        )
        .select_from(comment.outerjoin(_root, _root.c.comment_id == comment.c.root_id))
        .where(comment.c.section_id == section_id)
    )
    found = connection.execute(query).mappings().one()
    wanted = {name: int(found[name] or 0) for name in ("total_count", "root_count", "visible_count")}
    wanted |= {
        "hidden_count": wanted["total_count"] - wanted["visible_count"],
        "floor_seq": int(found["highest"] or 0),
    }
    for name, number in wanted.items():
        if kept[name] != number:
            yield f"section {section_id}: {name} is {kept[name]}, its rows say {number}"
    if not found["floors"] == wanted["total_count"] == wanted["floor_seq"]:
        yield f"section {section_id}: {found['floors']} floors up to {wanted['floor_seq']}"
    for name, counted in _counted(section_id).items():
        rows = counted.subquery()
        differing = (
            select(
                comment.c.comment_id, comment.c[name], func.coalesce(rows.c.number, 0).label("number"), comment.c.meta
            )
            .outerjoin(rows, rows.c.comment_id == comment.c.comment_id)
            .where(comment.c.section_id == section_id, comment.c[name] != func.coalesce(rows.c.number, 0))
        )
        if name.startswith("child"):
            differing = differing.where(comment.c.root_id == 0)
        for row in connection.execute(differing):
            if row[1] == row.number + row.meta.get(MORE_VOTES, {}).get(name, 0):
                continue
            yield f"comment {row.comment_id}: {name} is {row[1]}, its rows say {row.number}"


def _counted(section_id: int) -> dict[str, Select[tuple[int, int]]]:
    def of(rows: Select[tuple[int, int]]) -> Select[tuple[int, int]]:
        return rows.join(comment, comment.c.comment_id == rows.selected_columns.comment_id).where(
            comment.c.section_id == section_id
        )

    replies = (
        select(comment.c.root_id.label("comment_id"), func.count().label("number"))
        .where(comment.c.section_id == section_id, comment.c.root_id != 0)
        .group_by(comment.c.root_id)
    )
    votes = select(vote.c.comment_id.label("comment_id"), func.count().label("number")).group_by(vote.c.comment_id)
    reports = select(report.c.comment_id.label("comment_id"), func.count().label("number")).group_by(
        report.c.comment_id
    )
    return {
        "child_total": replies,
        "child_visible": replies.where(comment.c.status == _NORMAL),
        "like_count": of(votes).where(vote.c.value == 1),
        "dislike_count": of(votes).where(vote.c.value == -1),
        "report_count": of(reports).where(~report.c.withdrawn),
    }
