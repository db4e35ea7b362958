"""Measurements as tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.ui.presentation import local_time, share_text
from douban_pipeline.douban.reports.health.alerts import Alert
from douban_pipeline.douban.reports.health.metrics import Health
from douban_pipeline.douban.wording import ALERT_KINDS, TASK_STATUSES, TASK_TYPES, VERDICTS, word_for


def duration(seconds: float) -> str:
    """Return a duration as text, in a unit that makes it readable."""
    size, unit = time_unit(seconds)
    return f"{_number(seconds / size)} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration is readable: its length in seconds, and its name."""
    for limit, size, unit in ((90, 1.0, "秒"), (5400, 60.0, "分"), (172_800, 3600.0, "小时")):
        if seconds < limit:
            return size, unit
    return 86_400.0, "天"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{round(value, 1 if value >= 10 else 2):g}"


def queue_rows(health: Health, zone: ZoneInfo) -> list[dict[str, object]]:
    """Return the rows of open tasks, by type and status."""
    return [
        {
            "任务": word_for(TASK_TYPES, item.task_type),
            "状态": word_for(TASK_STATUSES, item.status),
            "数量": item.count,
            "其中未到时间": item.later,
            "最早可处理": local_time(item.oldest, zone),
            "最早入队": local_time(item.created, zone),
        }
        for item in health.open_tasks
    ]


def closed_rows(health: Health) -> list[dict[str, object]]:
    """Return the rows of tasks closed in the last 24 hours, by type and status."""
    return [
        {
            "任务": word_for(TASK_TYPES, item.task_type),
            "结果": word_for(TASK_STATUSES, item.status),
            "数量": item.count,
            "平均耗时": "" if item.mean_seconds is None else duration(item.mean_seconds),
            "95% 不超过": "" if item.p95_seconds is None else duration(item.p95_seconds),
        }
        for item in health.closed_tasks
    ]


def outcome_rows(health: Health) -> list[dict[str, object]]:
    """Return the rows of task outcomes, by type; tasks requeued after a failure count as failed."""
    return [
        {
            "任务": word_for(TASK_TYPES, task_type),
            "时段": period,
            "成功": found.succeeded,
            "失败（含退回重试）": found.failed,
            "跳过": found.skipped,
            "失败率": share_text(found.failure_share),
        }
        for period, outcomes in (("最近 1 小时", health.last_hour), ("最近 24 小时", health.last_day))
        for task_type, found in outcomes.items()
    ]


def granted_last_hour(gate: GateStatus) -> int:
    """Return how many calls a source received in the last 60 minutes."""
    return sum(minute.granted for minute in gate.minutes)


def verdict_rows(health: Health) -> list[dict[str, object]]:
    """Return the rows of each day's verdicts, the newest first."""
    return [
        {
            "日期": f"{day.day:%Y-%m-%d}",
            **{name: day.counts.get(status, 0) for status, name in VERDICTS.items()},
            "待审核占比": share_text(day.review_share),
        }
        for day in reversed(health.verdict_days)
        if day.counts
    ]


def alert_rows(alerts: Iterable[Alert], zone: ZoneInfo) -> list[dict[str, object]]:
    """Return the rows of open alerts, the newest first."""

    def sending(sent_at: datetime | None, error: str) -> str:
        return local_time(sent_at, zone) if sent_at else f"未发送{f'：{error}' if error else ''}"

    return [
        {
            "类别": word_for(ALERT_KINDS, alert.kind),
            "内容": alert.title,
            "说明": alert.detail,
            "次数": alert.times,
            "首次": local_time(alert.first_at, zone),
            "最近": local_time(alert.last_at, zone),
            "发送": sending(alert.sent_at, alert.send_error),
        }
        for alert in sorted(alerts, key=lambda alert: alert.alert_id, reverse=True)
    ]
