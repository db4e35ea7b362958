"""Causes of alerts. Each has a name that stays the same for as long as it is the same cause."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.cms.values import one_line, readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.run_failures import (
    LaunchedBy,
    job_in_words,
    likely_reason,
    shards_in_words,
    work_in_words,
)
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.chain.due.cleared_ids import held_in_bulk
from douban_pipeline.douban.chain.sync.cms_edits import QUESTION as CMS_EDITS
from douban_pipeline.douban.chain.sync.cms_edits import asked_edits
from douban_pipeline.douban.reports.health.metrics import DAY, Health
from douban_pipeline.douban.reports.health.samples import HealthSample
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import ChangeState, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON, INTERNAL_ERROR, OPEN
from douban_pipeline.douban.wording import COLUMNS, SOURCE_NAMES, word_for

BREAKER, FAILING, BUDGET, GUARD, RUN = "breaker", "failing", "budget", "guard", "run"
QUESTION = "question"
"""Something was done in the CMS, and a person is to say whether it was intended. The cause names the job that takes the
answer."""
SHARED = "*"
"""In the place of a job in the name of a cause that many jobs share, such as a full disk."""
MEASURED = frozenset({BREAKER, FAILING, BUDGET, QUESTION})
"""Kinds of causes whose beginning and end a measurement finds."""
SHORT_PAUSE = timedelta(minutes=2)
"""A breaker that closes again within this time raises no alert: a source that answers 429 without a duration is not
called for a minute, which is normal pacing."""
_WRITES = frozenset({"synced_fields", "ai_intros"})
"""Assets that write into the CMS."""
_MOST_NAMED = 10
_MOST_FAILING = 1000
_LONGEST_NAME = 190
_VARIABLE = re.compile(
    r"""《[^》]*》|(?<!\w)'[^']*'|"[^"]*"|“[^”]*”|https?://\S+"""
    r"|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"
    # An HTTP status identifies the cause, so it is kept.
    r"|(?<!HTTP )(?<!\d)\d+(?:[.,:]\d+)*",
    re.IGNORECASE,
)


_LAUNCH = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|backfill-\w+")


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of an alert.

    Attributes:
        name: The same for the same cause; at most 190 characters.
        kind: One of `ALERT_KINDS`.
    """

    name: str
    kind: str
    title: str
    detail: str


def current_causes(services: Services, health: Health, before: HealthSample | None) -> list[Cause]:
    """Return the causes of the kinds `MEASURED` that are present now.

    Args:
        services: Where failed tasks are looked up.
        health: The current measurement.
        before: The measurement before this one, if it is recent.
    """
    return [
        *_breakers(services, health, before),
        *_failing(services, health),
        *_budget(services.settings, health),
        *_questions(services),
    ]


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that failed, as an alert names it.

    Attributes:
        shards: The shards that it covers, or that its whole backfill lost so far, in order; none if it has none.
        assets: The assets it was to materialize, for a run of Dagster's own job.
        link: Address of its page.
        launched_by: Who launches its work again.
        begun: Whether a step of it began.
        recorded: What it left behind, as a clause, if a person launched it.
        dry_run: Whether it was to check alone; None if its job does not know that.
        launch: Its id, or its backfill's, if a person launched it, which is a cause of its own each time; else empty.
        relaunch: Address of the launchpad with its config; empty if there is none.
    """

    job: str
    shards: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    link: str = ""
    launched_by: LaunchedBy = LaunchedBy.TIMER
    begun: bool = True
    recorded: str = ""
    dry_run: bool | None = None
    launch: str = ""
    relaunch: str = ""


def run_cause(run: FailedRun, step: str, error: str) -> Cause:
    """Return the cause of a run that failed.

    What a person launched is a cause of its own each time: whoever launched the next one must know of it too.

    Args:
        run: The run.
        step: The step that failed; empty if none did.
        error: Its error; the first line, without what differs from run to run, identifies the cause.
    """
    line = first_line(error)
    job = job_in_words(run.job, run.assets)
    where = "，".join(filter(None, (f"{job} / {step}" if step else job, shards_in_words(run.shards))))
    likely = likely_reason(f"{line}\n{error}")
    left = "这次只是检查，没有写入" if run.dry_run else run.recorded
    work = work_in_words(run.launched_by, begun=run.begun, recorded=left)
    reasons = [f"可能的原因：{likely.reason}", f"怎么办：{likely.remedy}", f"错误原文：{line or '没有说明'}"]
    link = [f"运行：{run.link}"] if run.link else []
    if run.launched_by is LaunchedBy.PERSON:
        work += f"：{run.relaunch}" if run.relaunch else "：打开该运行，选 Re-execute" if run.link else ""
    if run.launch:
        look = ["重新启动前可先改为 dry_run: true，看看还差什么"] if run.begun and run.dry_run is False else []
        name = cause_name(RUN, run.job, run.launch, step, normalised(line))
        title = f"{'没有做完' if run.begun else '没有执行'}，请重新启动：{where}"
        return Cause(name, RUN, title, "\n".join([work, *look, *reasons, *link]))
    if likely.shared:
        said = [f"这次的工作：{work}", *reasons[1:], *link, "因此失败的运行只提醒这一次；一小时没有再出现，就算过去了"]
        return Cause(
            cause_name(RUN, SHARED, "", likely.reason), RUN, f"运行失败（{likely.reason}）：{where}", "\n".join(said)
        )
    lasting = "同一原因只提醒一次；作业恢复正常后若再次失败，会重新提醒"
    detail = [f"这次的工作：{work}", *reasons, *link, lasting]
    return Cause(cause_name(RUN, run.job, step, normalised(line)), RUN, f"运行失败：{where}", "\n".join(detail))


def recorded_by_run(services: Services, run_id: str) -> str:
    """Return what a run recorded and wrote; that it is unknown where the database does not answer."""
    decision, log = services.tables.decision, services.tables.log
    try:
        with reading(services.engine) as connection:
            decided = connection.scalar(select(func.count()).where(decision.c.run_id == run_id)) or 0
            states = select(log.c.state, func.count()).where(log.c.run_id == run_id).group_by(log.c.state)
            written = dict(connection.execute(states).tuples().all())
    except (SQLAlchemyError, DatabaseError):
        return "数据库此刻无法查询，不知道已记录多少"
    applied, open_ones = written.get(ChangeState.APPLIED, 0), written.get(ChangeState.PREPARED, 0)
    parts = [
        f"已记录 {decided} 条决定" if decided else "",
        f"已写入 CMS {applied} 处" if applied else "",
        f"另有 {open_ones} 处写入由下次运行核对" if open_ones else "",
    ]
    return "，".join(filter(None, parts)) or "没有记录决定，也没有写入 CMS"


def job_of(name: str) -> str:
    """Return the job of a failed run's cause, or the one that takes an answer, by the cause's name."""
    return name.split(":", 2)[1]


def launch_in(name: str) -> str:
    """Return the run or backfill that a person launched, by the name of its cause; empty for a cause of other runs."""
    found = name.split(":", 3)[2]
    return found if _LAUNCH.fullmatch(found) else ""


def guard_cause(asset: str, check: str, said: str, shards: str) -> Cause:
    """Return the cause of a blocking guard that failed.

    Args:
        asset: The asset that it guards.
        check: Its name.
        said: Its result.
        shards: The shards it names; may be empty.
    """
    where = f"，分片 {shards}" if shards else ""
    # Guards after the writing find what was written.
    wrote = "本次已写入的内容仍在（可用 revert_changes 按运行撤销）" if asset in _WRITES else "这次运行没有写入"
    return Cause(
        cause_name(GUARD, asset, check),
        GUARD,
        f"守卫未通过：{asset} / {check}",
        f"{one_line(said) or '没有说明'}{where}\n后续步骤已停止，{wrote}；在 Dagster 中打开该检查查看所列影片",
    )


def guard_of(name: str) -> tuple[str, str]:
    """Return the asset and the check of a guard's cause, by the cause's name."""
    _, asset, check = name.split(":", 2)
    return asset, check


def cause_name(*parts: str) -> str:
    """Return the name of a cause; a long one is cut and ends with a hash of the whole name."""
    name = ":".join(parts).strip()
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 17]}:{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def normalised(text: str) -> str:
    """Return ``text`` without its variable parts: numbers, ids, addresses, titles and quoted names."""
    return " ".join(_VARIABLE.sub("#", one_line(text)).split())


def first_line(text: str) -> str:
    """Return the first line of ``text`` that is not empty, as plain text of at most 300 characters."""
    lines = (one_line(line) for line in text.splitlines())
    return next(filter(None, lines), "")[:300]


def _breakers(services: Services, health: Health, before: HealthSample | None) -> Iterable[Cause]:
    zone = services.settings.zone
    # A source that is no longer in use keeps its last row.
    for gate in health.gates:
        if gate.source not in services.sources_in_use or not _is_news(gate, health, before):
            continue
        name = word_for(SOURCE_NAMES, gate.source)
        until = f"，到 {local_time(gate.open_until, zone)} 再试探" if gate.open_until else ""
        why = one_line(failure_text(gate.doubt or gate.reason)) or "没有说明"
        title = f"搜索来源的空结果不可信：{name}" if gate.doubt else f"数据源已熔断：{name}"
        yield Cause(
            cause_name(BREAKER, gate.source),
            BREAKER,
            title,
            f"{why}{until}\n期间任务自动延后，不丢失、不误判；恢复后自动继续，也可用作业 set_gate 手动关闭熔断",
        )


def _is_news(gate: GateStatus, health: Health, before: HealthSample | None) -> bool:
    """Return whether a gate refuses calls by its own rules, and for longer than `SHORT_PAUSE`."""
    if gate.state is GateState.CLOSED or gate.changed_by:
        return False
    if gate.doubt:
        return True  # known titles were missed: recent empty results are in doubt too
    lasting = gate.open_until is not None and gate.open_until > health.at + SHORT_PAUSE
    return lasting or (before is not None and before.gates.get(gate.source, GateState.CLOSED) != GateState.CLOSED)


@dataclass(frozen=True, slots=True)
class _Failing:
    """A video whose work failed repeatedly, and the reason of the last failure."""

    vod_id: int
    intro: bool
    failures: int
    reason: str


def _failing(services: Services, health: Health) -> Iterable[Cause]:
    groups: dict[str, list[_Failing]] = {}
    for item in _failing_videos(services, health):
        what = "intro" if item.intro else "sync"
        groups.setdefault(cause_name(FAILING, what, normalised(item.reason)), []).append(item)
    if not groups:
        return
    named = {item.vod_id for items in groups.values() for item in items[:_MOST_NAMED]}
    with reading(services.engine) as connection:
        rows = services.cms.rows(connection, sorted(named))
    titles = {vod_id: readable(row["vod_name"]) for vod_id, row in rows.items()}
    for name, items in groups.items():
        first = items[0]
        listed = "、".join(f"{item.vod_id}《{titles.get(item.vod_id, '')}》" for item in items[:_MOST_NAMED])
        more = f" 等 {len(items)} 部" if len(items) > _MOST_NAMED else ""
        what = "的 AI 简介" if first.intro else ""
        ours = first.reason.startswith(INTERNAL_ERROR)
        advice = (
            "这是程序的错误，与影片资料无关：请把日志里的 Traceback 报告给开发者"
            if ours
            else "查看审核队列 review_queue，或修正影片资料"
        )
        yield Cause(
            name,
            FAILING,
            f"{len(items)} 部影片{what}连续失败 {FAILURES_FOR_A_PERSON} 次以上",
            f"最近一次：{one_line(failure_text(first.reason, SOURCE_NAMES)) or '没有说明'}\n影片：{listed}{more}\n"
            f"每 24 小时仍会再试一次；{advice}",
        )


def _failing_videos(services: Services, health: Health) -> Sequence[_Failing]:
    """Return the videos that failed too often in a row and have a failed task, open or closed within 24 hours."""
    task, video = services.tables.task, services.tables.video
    intro = task.c.task_type == TaskType.AI_INTRO

    def of(intro_column: ColumnElement[object], sync_column: ColumnElement[object]) -> ColumnElement[object]:
        return case((intro, intro_column), else_=sync_column)

    failures = of(video.c.intro_ai_fail_count, video.c.douban_sync_fail_count)
    reason = of(video.c.intro_ai_last_fail_reason, video.c.douban_last_fail_reason)
    query = select(task.c.vod_id, intro, failures, reason).join(video, video.c.vod_id == task.c.vod_id)
    # Two queries, each with an index of its own.
    tried_again = (task.c.status.in_(OPEN), task.c.attempts > 0)
    given_up = (task.c.finished_at >= health.at - DAY, task.c.status == TaskStatus.FAIL)
    found: dict[tuple[int, bool], _Failing] = {}
    with reading(services.engine) as connection:
        for conditions in (tried_again, given_up):
            rows = connection.execute(
                query.where(*conditions, failures >= FAILURES_FOR_A_PERSON).order_by(task.c.vod_id).limit(_MOST_FAILING)
            )
            for vod_id, is_intro, count, why in rows:
                found[vod_id, bool(is_intro)] = _Failing(vod_id, bool(is_intro), count, why)
    return list(found.values())


def _budget(settings: Settings, health: Health) -> Iterable[Cause]:
    spending = health.spending
    if settings.ai_intros and 0 < spending.budget_usd <= spending.usd:
        yield Cause(
            BUDGET,
            BUDGET,
            "AI 简介今日预算已用完",
            f"已花 {spending.usd:.4f} 美元，预算 {spending.budget_usd:g} 美元，写成 {spending.written} 篇\n"
            "明天自动继续，或调高 DOUBAN_PIPELINE_LLM_BUDGET_USD_PER_DAY",
        )


def _questions(services: Services) -> Iterable[Cause]:
    with reading(services.engine) as connection:
        held = sum(1 for _ in held_in_bulk(services, connection))
        columns, edits = asked_edits(services, connection)
    if held:
        yield Cause(
            cause_name(QUESTION, "settle_cleared_ids"),
            QUESTION,
            f"{held:,} 部影片的豆瓣 ID 在 CMS 中一并被清空（不是本程序），是有意的吗？",
            "回答之前不匹配、不关联、不写入这些影片，其余照常\n"
            "用作业 settle_cleared_ids 回答：误操作选 rematch，关联是错的选 rule_out；ID 恢复后自动恢复关联",
        )
    if columns:
        named = "、".join(word_for(COLUMNS, column) for column in columns)
        yield Cause(
            cause_name(CMS_EDITS + ",".join(columns)),
            QUESTION,
            f"{len({edit.vod_id for edit in edits}):,} 部影片的 {named} 在 CMS 中被改（不是本程序），是有意的吗？",
            "一切照常运行，只问这一次\n"
            "用作业 settle_cms_edits 回答：有意的选 keep，不是有意的选 restore（写回改动之前的值）",
        )
