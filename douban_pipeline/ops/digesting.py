"""The commands ``digest run``, ``list``, ``why``, ``rubric`` and ``login``: slots from a terminal."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta

from rich.markup import escape
from rich.table import Table

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.core.interrupts import ends_at_once
from douban_pipeline.core.ui.language import said
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.digest import rubrics, wording
from douban_pipeline.digest.running import EndedSlot, TooEarly, run_slot
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import load_settings
from douban_pipeline.digest.slots import SKEW, SlotKey
from douban_pipeline.digest.store import items, slots
from douban_pipeline.digest.types import AnalysedStatus, BodyState

_MOST_SHOWN = 20


@contextmanager
def _opened() -> Iterator[DigestServices]:
    services = open_services(load_settings())
    try:
        yield services.ready()
    finally:
        services.close()


def run(given: str, *, dry_run: bool) -> bool:
    """Run a slot, by default the last due one, without Dagster; return whether it succeeded.

    Raises:
        ProblemsError: There is no such slot, or it is not due yet.
    """
    with _opened() as services:
        key = _named(services, given) if given else _last_due(services)
        if dry_run:
            with reading(services.engine) as connection:
                row = slots.find(connection, key.run_date, key.slot)
                waiting = items.counts_by_status(connection).get(AnalysedStatus.WAITING, 0)
            state = said("从未运行", "has never run") if row is None else row.status.value
            console.print(
                said(
                    f"{key} {state}；{waiting} 篇文章在等待。没有做任何事。",
                    f"{key} {state}; {waiting} articles wait. Nothing was done.",
                )
            )
            return True
        stopped = said("已停止；下一次运行会接着做", "stopped; the next run continues")
        try:
            with ends_at_once(stopped):
                ended = run_slot(services, key, f"terminal-{uuid.uuid4().hex[:8]}")
        except TooEarly as error:
            raise ProblemsError([str(error)]) from error
    if not isinstance(ended, EndedSlot):
        console.print(f"{key}: {wording.CLAIMS[ended]}")
        return True
    status, findings = ended.status.value, len(ended.findings)
    line = said(
        f"{key} {status}：{findings} 条发现，{ended.messages} 条消息放入发件箱",
        f"{key} {status}: {findings} findings, {ended.messages} messages for the outbox",
    )
    console.print(line, highlight=False)
    for line in filter(None, (ended.error, ended.push_refusal)):
        console.print(escape(line), highlight=False)
    return ended.status.value == "success"


def list_slots(days: int, *, as_json: bool) -> None:
    """Show the slots of the last days."""
    with _opened() as services:
        today = services.now().astimezone(services.settings.zone).date()
        with reading(services.engine) as connection:
            rows = slots.between(connection, today - timedelta(days=days - 1), today)
    names = ("articles_new", "analysed", "failed", "findings", "best_score")
    if as_json:
        shown = [
            {"day": str(row.run_date), "slot": row.slot, "status": row.status.value, "error": row.error}
            | {name: row.counters.get(name) for name in names}
            for row in rows
        ]
        plain(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    heads = ("day", "slot", "status", "new", "analysed", "failed", "findings", "best", "problems")
    chinese = ("日期", "时段", "状态", "新文章", "已分析", "失败", "发现", "最高分", "问题")
    table = Table(*map(said, chinese, heads))
    for row in rows:
        numbers = ["—" if row.counters.get(name) is None else str(row.counters[name]) for name in names]
        status = wording.SLOT_STATUSES[row.status]
        table.add_row(str(row.run_date), row.slot, status, *numbers, escape(row.error[:80]))
    console.print(table)
    console.print(said(f"{days} 天内 {len(rows)} 个时段", f"{len(rows)} slots in {days} days"))


def explain(words: str) -> None:
    """Print the state of the articles whose titles contain ``words``.

    Raises:
        ProblemsError: There are none.
    """
    with _opened() as services:
        zone = services.settings.zone
        with reading(services.engine) as connection:
            rows = items.by_title(connection, words, _MOST_SHOWN)
    if not rows:
        short = repr(words[:60])
        raise ProblemsError([said(f"没有标题含有 {short} 的文章", f"no article's title holds {short}")])
    heads = ("article", "account", "published", "body", "analysis", "score", "title")
    table = Table(*map(said, ("文章", "公众号", "发布", "正文", "分析", "得分", "标题"), heads))
    for row in rows:
        body = wording.BODIES[BodyState(row.body_state)]
        status = wording.ANALYSED[AnalysedStatus(row.analyzed_status)]
        table.add_row(
            str(row.content_item_id),
            escape(row.mp_name),
            local_time(row.published_at, zone),
            f"{body} {row.body_reason}".strip(),
            f"{status} {escape(row.analysis_error)}".strip(),
            "—" if row.score is None else str(row.score),
            escape(row.title[:60]),
        )
    console.print(table)


def write_rubric() -> None:
    """Write the subject and rubric files for the operator to edit, and print the current version."""
    services = open_services(load_settings())
    for path in rubrics.write_defaults(services.rubric_folder):
        console.print(said(f"已写出 {path}", f"wrote {path}"), soft_wrap=True)
    version = f"{services.rubric.hash[:12]} ({services.rubric.origin})"
    console.print(said(f"当前使用：{version}", f"in force: {version}"), soft_wrap=True)
    services.close()


def log_in() -> None:
    """Delete the stored token and refused logins of WeRSS, log in once now, and open its gate."""
    with _opened() as services:
        if not services.settings.werss_url:
            raise ProblemsError(
                [said("没有设置 WeRSS 的地址", f"{services.settings.variable('werss_url')} is not set")]
            )
        try:
            count = services.log_in_to_werss()
        except SourceError as error:
            raise ProblemsError([said(f"没有登录：{error.reason}", f"not logged in: {error.reason}")]) from error
    console.print(said(f"已登录；WeRSS 关注了 {count} 个公众号", f"logged in; WeRSS follows {count} accounts"))


def _named(services: DigestServices, given: str) -> SlotKey:
    try:
        key = SlotKey.parse(given)
    except ValueError as error:
        raise ProblemsError([str(error)]) from error
    if key.slot not in services.settings.schedule_slots:
        known = ", ".join(services.settings.schedule_slots)
        raise ProblemsError(
            [said(f"没有时段 {key.slot}；时段：{known}", f"there is no slot {key.slot}; slots: {known}")]
        )
    return key


def _last_due(services: DigestServices) -> SlotKey:
    now, zone = services.now(), services.settings.zone
    today: date = now.astimezone(zone).date()
    keys = [
        SlotKey(day, slot) for day in (today - timedelta(days=1), today) for slot in services.settings.schedule_slots
    ]
    return max(key for key in keys if key.scheduled_at(zone) - SKEW <= now)
