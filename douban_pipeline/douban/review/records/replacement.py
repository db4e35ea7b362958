"""The changes when a video's id is replaced: the old and the new subject, and the values that would be written.

Only the archive is read: a subject that a person decides about was usually fetched lately; otherwise it is shown as
unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from douban_pipeline.cms.values import readable
from douban_pipeline.core.archive import LONGEST_CACHE
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.sync.fields import plan_fields
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.wording import COLUMNS, word_for
from douban_pipeline.douban.writes.reverted_changes import undone_values

_SHOWN: Mapping[str, Callable[[SubjectRecord], Any]] = {
    "vod_name": lambda record: record.title,
    "vod_sub": lambda record: "、".join(filter(None, (record.original_title, *record.aliases[:4]))),
    "vod_year": lambda record: record.year,
    "vod_area": lambda record: "、".join(record.regions),
    "vod_lang": lambda record: "、".join(record.languages),
    "vod_class": lambda record: "、".join(record.genres),
    "vod_director": lambda record: "、".join(record.directors[:5]),
    "vod_actor": lambda record: "、".join(record.actors[:5]),
    "vod_duration": lambda record: record.duration_minutes,
    "vod_total": lambda record: record.episodes,
    "vod_douban_score": lambda record: record.rating,
    "vod_score_num": lambda record: record.votes,
}
"""Columns in display order, and the subject's value for them; other columns that a sync may write are named only."""

_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """One line of a comparison; ``written`` is the new value of the column, empty if it does not change."""

    name: str
    local: str
    old: str
    new: str
    written: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """A video whose id would be replaced.

    Attributes:
        vod_id: The video.
        title: Its title as people read it.
        old_id: Its current id.
        new_id: Its new id.
        values: Values of both subjects, and those that would be written; empty if the archive has neither subject.
    """

    vod_id: int
    title: str
    old_id: int
    new_id: int
    values: tuple[ReplacedValue, ...]


def replacements(services: Services, decisions: Iterable[Decision], *, most: int = 20) -> list[Replacement]:
    """Return the changes by the first ``most`` decisions that replace a video's id, including refused ones."""
    linking = [each for each in decisions if each.linking and each.douban_id > 0]
    linking = [each for each in linking if each.status is not DecisionStatus.ALREADY]
    targets = {each.vod_id: each.douban_id for each in linking}
    return [found for found in compared(services, targets, most=most) if found.old_id]


def compared(services: Services, targets: Mapping[int, int], *, most: int = 20) -> list[Replacement]:
    """Return the changes for videos that have an id and would get that of ``targets`` instead."""
    found: list[Replacement] = []
    for chunk in chunks(sorted(targets)):
        with reading(services.engine) as connection:
            rows = services.cms.rows(connection, chunk)
            replaced = [
                vod_id
                for vod_id, row in rows.items()
                if row["vod_douban_id"] and row["vod_douban_id"] != targets[vod_id]
            ][: most - len(found)]
            states = state_rows(connection, services.tables, replaced) if replaced else {}
            undone = undone_values(connection, services.tables, replaced) if replaced else {}
        for vod_id in replaced:
            locked = bool(states[vod_id]["intro_locked"]) if vod_id in states else False
            found.append(_replacement(services, rows[vod_id], targets[vod_id], undone.get(vod_id, {}), locked))
        if len(found) >= most:
            break
    return found


def archived(services: Services, douban_id: int) -> SubjectRecord | None:
    """Return a subject from the archive, None if it has none."""
    try:
        answer = services.douban.archived(douban_id, max_age=LONGEST_CACHE)
    except SourceError:
        return None
    return answer.record if answer else None


def _replacement(
    services: Services, row: RowMapping, new_id: int, undone: Mapping[str, Collection[Any]], intro_locked: bool
) -> Replacement:
    old, new = archived(services, row["vod_douban_id"]), archived(services, new_id)
    written = would_write(services, row, new, undone, intro_locked) if new else {}
    values = []
    for column, said in _SHOWN.items():
        local, before, after = (_short(each) for each in (row[column], old and said(old), new and said(new)))
        if before != after or column in written:
            values.append(ReplacedValue(COLUMNS[column], local, before, after, _short(written.get(column))))
    others = [column for column in written if column not in _SHOWN]
    if others:
        values.append(ReplacedValue("其他", "", "", "", "、".join(word_for(COLUMNS, column) for column in others)))
    return Replacement(row["vod_id"], readable(row["vod_name"]), row["vod_douban_id"], new_id, tuple(values))


def would_write(
    services: Services,
    row: RowMapping,
    record: SubjectRecord,
    undone: Mapping[str, Collection[Any]],
    intro_locked: bool,
) -> dict[str, Any]:
    """Return the values that a sync with a subject would write to a video, by column."""
    plan = plan_fields(
        row,
        record,
        cms=services.cms,
        vocabulary=services.vocabulary(row["type_id"]),
        policies=services.settings.policies,
        undone={column: list(held) for column, held in undone.items()},
        intro_locked=intro_locked,
    )
    return plan.new


def _short(value: Any) -> str:
    text = readable(str(value)) if value not in (None, "", 0, "0") else ""
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def replacement_rows(found: Iterable[Replacement]) -> list[dict[str, object]]:
    """Return replacements as table rows: a heading row for each video, followed by its values."""
    rows: list[dict[str, object]] = []
    for each in found:
        rows.append(
            {
                "影片": f"{each.vod_id} {each.title}",
                "项": "豆瓣 ID",
                "影片现值": each.old_id,
                "旧条目": each.old_id,
                "新条目": each.new_id,
                "将写入": each.new_id,
            }
        )
        rows += [
            {
                "影片": "",
                "项": value.name,
                "影片现值": value.local,
                "旧条目": value.old,
                "新条目": value.new,
                "将写入": value.written,
            }
            for value in each.values
        ]
        if not each.values:
            rows.append({"影片": "", "项": "两个条目的资料不在存档中，或没有差别"})
    return rows
