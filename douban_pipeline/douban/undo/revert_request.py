"""What a person wants reverted, as typed: read, checked against the log, and described in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Column, Connection, select

from douban_pipeline.core.clock import moment_in
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.decisions.withdrawal import waiting_decisions
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline.douban.writes.revert_selection import ChangeSelection, count, intro_origin

MOST_NAME = 64
"""Characters that the log keeps of a person's name."""

_CHUNK = 500
_NAMED = 20


class RevertError(ProblemsError):
    """The launch is wrong; nothing was reverted."""


@dataclass(frozen=True, slots=True)
class RevertRequest:
    """A launch as typed; see `ChangeSelection` for the filters, whose times are text here."""

    reviewer: str
    reason: str
    change_ids: Sequence[int] = ()
    vod_ids: Sequence[int] = ()
    batch_id: str = ""
    run_id: str = ""
    decision_ids: Sequence[int] = ()
    written_by: str = ""
    rule_version: str = ""
    intro_reader: str = ""
    intro_prompt: str = ""
    intro_model: str = ""
    since: str = ""
    until: str = ""
    max_changes: int = 10_000
    dry_run: bool = False


def selection_of(services: Services, request: RevertRequest) -> ChangeSelection:
    """Return what ``request`` selects.

    Raises:
        RevertError: Something is missing, malformed or unknown; all of it is reported at once.
    """
    zone = services.settings.zone
    problems = list(_plain_problems(request))
    moments: dict[str, datetime | None] = {}
    for name in ("since", "until"):
        try:
            moments[name] = moment_in(getattr(request, name), zone)
        except ValueError as error:
            problems.append(f"{name}：{error}")
    since, until = moments.get("since"), moments.get("until")
    if since is not None and until is not None and since >= until:
        problems.append(f"since（{request.since.strip()}）必须早于 until（{request.until.strip()}，不含）")
    selection = ChangeSelection(
        change_ids=tuple(request.change_ids),
        batch_id=request.batch_id.strip(),
        run_id=request.run_id.strip(),
        vod_ids=tuple(request.vod_ids),
        decision_ids=tuple(request.decision_ids),
        reviewer=request.written_by.strip(),
        rule_version=request.rule_version.strip(),
        intro_reader=request.intro_reader.strip(),
        intro_prompt=request.intro_prompt.strip(),
        intro_model=request.intro_model.strip(),
        since=since,
        until=until,
    )
    if selection.is_empty and len(moments) == 2:
        problems.append(
            "请至少填写一项：change_ids、vod_ids、batch_id 或 run_id、decision_ids、written_by、rule_version、"
            "intro_reader、intro_prompt、intro_model、since/until"
        )
    with reading(services.engine) as connection:
        problems += _unknown(connection, services.tables, selection)
        empty = not problems and not count(connection, services.tables, selection, applied_only=False)
        if empty and not waiting_decisions(services.tables, connection, selection):
            problems.append(f"没有同时符合以下全部条件的变更：{looked_for(selection, zone)}")
    if problems:
        raise RevertError(problems)
    return selection


def looked_for(selection: ChangeSelection, zone: ZoneInfo) -> str:
    """Return the filters of ``selection`` in words."""
    parts = []
    for words, values in (
        ("变更", selection.change_ids),
        ("每部影片的上一步，影片", selection.vod_ids),
        ("决定", selection.decision_ids),
    ):
        if values:
            parts.append(f"{words} {listed(values)}")
    for words, value in (
        ("批次", selection.batch_id),
        ("运行", selection.run_id),
        ("审核员", selection.reviewer),
        (_of_rules(selection), selection.rule_version),
        ("简介的复核者", selection.intro_reader),
        ("简介的提示词版本", selection.intro_prompt),
        ("简介的模型", selection.intro_model),
    ):
        if value:
            parts.append(f"{words} {value}")
    if selection.since is not None:
        parts.append(f"自 {_to_the_second(selection.since, zone)}")
    if selection.until is not None:
        parts.append(f"{_to_the_second(selection.until, zone)} 之前")
    return "；".join(parts)


def _of_rules(selection: ChangeSelection) -> str:
    return "自动写入，规则版本" if selection.automatic else "规则版本"


def _plain_problems(request: RevertRequest) -> Iterator[str]:
    for name in ("reviewer", "reason"):
        # Who only looks signs nothing.
        if not request.dry_run and not getattr(request, name).strip():
            yield f"请填写 {name}：撤销会以此记入日志"
    if request.reviewer.strip().casefold() == PIPELINE:
        yield f"reviewer 不能是 {PIPELINE}：撤销是人的决定，请填写您的名字"
    if len(request.reviewer.strip()) > MOST_NAME:
        yield f"reviewer 最多 {MOST_NAME} 个字符"
    for name in ("change_ids", "vod_ids", "decision_ids"):
        wrong = [value for value in getattr(request, name) if value < 1]
        if wrong:
            yield f"{name} 中有不可能的编号：{listed(wrong)}"
    if request.max_changes < 1:
        yield "max_changes 至少为 1"


def _unknown(connection: Connection, tables: OwnTables, selection: ChangeSelection) -> Iterator[str]:
    """Yield what ``selection`` names but does not exist."""
    log, decision, video = tables.log, tables.decision, tables.video
    lists: tuple[tuple[str, Collection[int], tuple[Column[int], ...]], ...] = (
        ("change_ids 中没有这些变更", selection.change_ids, (log.c.change_id,)),
        ("decision_ids 中没有这些决定", selection.decision_ids, (decision.c.decision_id,)),
        ("vod_ids 中没有这些影片", selection.vod_ids, (video.c.vod_id, log.c.vod_id)),
    )
    for words, values, columns in lists:
        missing = {value for value in values if value > 0}
        for column in columns:
            missing -= _present(connection, column, sorted(missing))
        if missing:
            yield f"{words}：{listed(sorted(missing))}"
    for name, value, found_in in (
        ("批次", selection.batch_id, (log.c.batch_id, decision.c.batch_id)),
        ("运行", selection.run_id, (log.c.run_id,)),
        ("审核员", selection.reviewer, (log.c.operator, decision.c.reviewer)),
        ("规则版本", selection.rule_version, (log.c.rule_version,)),
    ):
        if value and not any(
            connection.execute(select(column).where(column == value).limit(1)).first() for column in found_in
        ):
            yield f"没有找到{name} {value} 的任何变更"
    for name in ("intro_reader", "intro_prompt", "intro_model"):
        value = getattr(selection, name)
        origin = intro_origin(tables, ChangeSelection(**{name: value}))
        if value and connection.execute(select(tables.intro.c.intro_id).where(*origin).limit(1)).first() is None:
            yield f"{name}：没有任何简介出自 {value}"


def _present(connection: Connection, column: Column[int], values: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(values), _CHUNK):
        query = select(column).where(column.in_(values[start : start + _CHUNK])).distinct()
        found.update(connection.execute(query).scalars())
    return found


def listed(values: Sequence[int]) -> str:
    """Return numbers as a sentence names them: the first ones, and how many there are."""
    named = "、".join(str(value) for value in values[:_NAMED])
    return named if len(values) <= _NAMED else f"{named} 等 {len(values)} 个"


def _to_the_second(moment: datetime, zone: ZoneInfo) -> str:
    return f"{local_time(moment, zone)}:{moment.astimezone(zone):%S}"
