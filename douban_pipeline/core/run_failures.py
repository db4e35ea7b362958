"""What became of a failed run, why, and what to do about it, in Chinese. Pure functions.

Three things decide what people are told: the words of the error (`likely_reason`), who launches such work again
(`LaunchedBy`), and whether any of it had begun (`work_in_words`). No sentence says "nothing to do" of work that only a
person launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class LaunchedBy(Enum):
    """Who launches the work of a failed run again."""

    QUEUE = "queue"
    """Its work are rows that wait in our tables: a sensor launches a run for them, whoever launched this one."""
    TIMER = "timer"
    """A sensor or a schedule launched it, and launches the job again."""
    PERSON = "person"
    """A person launched it, and nobody else will."""


@dataclass(frozen=True, slots=True)
class LikelyReason:
    """The likely reason of a failed run, judged by its error, and what to do about the reason."""

    reason: str
    remedy: str


_LOGS = "看 dagster-daemon 和代码服务的日志"
_KNOWN: tuple[tuple[re.Pattern[str], LikelyReason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), LikelyReason(reason, remedy))
    for pattern, reason, remedy in (
        # Dagster's own messages, each provoked with Dagster 1.13. The order matters: some contain words of another.
        (
            r"longer than \d+ seconds to start|not started within|start_timeout",
            "运行排到了，却没能在限定的时间内启动：主机太忙，或代码服务没有应答",
            f"{_LOGS}、主机负载",
        ),
        (
            r"forcibly marked as failed",
            "运行的进程早已不在，过了允许的最长时间才被发现：主机、容器或代码服务中途停止过",
            f"{_LOGS}、系统日志（journalctl -k、dmesg 里的 oom），以及当时是否在发布",
        ),
        (
            r"maximum runtime|max_runtime|timed? ?out after",
            "运行超过了允许的最长时间，被系统终止",
            "看最近几次运行哪一步最慢；可调小 DOUBAN_PIPELINE_BATCH_SIZE 或 DOUBAN_PIPELINE_RUN_SECONDS",
        ),
        (
            r"user code server|code location|CodeLocationLoadError|telling it to shut down|DagsterLaunchFailedError|"
            r"failed to start|could not be launched|failed to launch",
            "代码服务没有应答：正在重启或发布，或已停止",
            "看代码服务（douban-pipeline-code 等）是否在运行及其日志",
        ),
        (
            r"signal 9\b|SIGKILL",
            "运行的进程被强行终止（SIGKILL）：多半是内存不足被系统杀死，也可能有人终止了它，或服务停止时来不及结束",
            "看当时的系统日志（journalctl -k、dmesg 里的 oom）和是否正在发布；反复出现则加内存或减少同时的运行",
        ),
        (
            r"signal \d+|SIGTERM|SIGINT|terminated by interrupt|ExecutionInterrupted|KeyboardInterrupt",
            "运行的进程被叫停：服务或主机当时在停止、重启或发布，或有人终止了它",
            "看当时是否正在发布或重启",
        ),
        (
            r"No space left|disk (?:is )?full|Errno 28|table .{0,80} is full",
            "磁盘已满",
            "腾出数据库、HOME 和 DAGSTER_HOME 所在磁盘的空间",
        ),
        (
            r"Access denied|command denied|permission denied|insufficient privilege",
            "数据库账号或文件权限不足",
            "运行 douban-pipeline check；按 douban-pipeline grants 打印的 SQL 补授权",
        ),
        (
            r"Unknown column|no such (?:table|column)|doesn't exist|do not exist|douban-pipeline (?:upgrade|setup)",
            "数据库里的表与本版本不符",
            "停止 Dagster，运行 douban-pipeline upgrade，再启动",
        ),
        (
            r"psycopg2|too many retries for DB|server closed the connection|terminating connection",
            "Dagster 自己的数据库（PostgreSQL）连不上或中途断开：多半是它刚重启过",
            "看 PostgreSQL 是否在运行、连接数是否用尽；douban-pipeline check 逐项检查",
        ),
        (
            r"Can't connect|Lost connection|gone away|Connection refused|Too many connections|could not connect|"
            r"cannot be reached|OperationalError",
            "数据库连不上或中途断开",
            "看 MariaDB 和 PostgreSQL 是否在运行、连接数是否用尽；douban-pipeline check 逐项检查",
        ),
        (
            r"Deadlock|Lock wait timeout|database is locked",
            "数据库的锁等待太久：有别的程序长时间占着同样的行",
            "看当时是否有大批量导入、备份或手工事务",
        ),
        (r"MemoryError|Cannot allocate memory", "内存不足", "加内存，或减少同时的运行（dagster.yaml 的并发上限）"),
        (
            r"SettingsError|Wrong settings|is not allowed|is not set",
            "设置有误或缺少环境变量",
            "运行 douban-pipeline check，按提示改正环境变量后重启各服务",
        ),
        # What Dagster says where it does not know more.
        (
            r"no sign of life|run worker|process (?:died|exited|terminated)|heartbeat|"
            r"unexpected(?:ly)? (?:exit|terminat)|exit code|exited with code|outside (?:of )?the execution context",
            "运行的进程中途消失，或没能启动：主机、容器或代码服务当时可能重启，也可能内存不足",
            f"{_LOGS}、系统日志（journalctl -k、dmesg 里的 oom），以及是否正在发布",
        ),
    )
)
_UNKNOWN = LikelyReason("程序遇到没有预料到的情况", "打开该运行看完整的错误；再次出现请连同错误原文反馈给开发者")


def likely_reason(error: str) -> LikelyReason:
    """Return the likely reason of a run's error."""
    return next((reason for pattern, reason in _KNOWN if pattern.search(error)), _UNKNOWN)


def work_in_words(launched_by: LaunchedBy, *, begun: bool, recorded: str = "") -> str:
    """Return what becomes of the work of a failed run, as a clause without a full stop.

    Args:
        launched_by: Who launches it again.
        begun: Whether a step of the run began; otherwise nothing was done at all.
        recorded: What a run that a person launched left behind, as a clause; empty if that is not known.
    """
    if launched_by is LaunchedBy.PERSON:
        if not begun:
            return "没有执行，请重新启动"
        return f"没有做完（{recorded or '已经记录和写入的保留'}），请重新启动"
    if launched_by is LaunchedBy.QUEUE:
        return "没做完的任务会自动放回队列，不必重跑" if begun else "没有执行；任务仍在排队，会自动再启动，不必重跑"
    return "没有做完，到时会自动再启动" if begun else "没有执行，到时会自动再启动"


def job_in_words(job: str, assets: tuple[str, ...]) -> str:
    """Return the name of a job for people: Dagster's own job for single assets is named by these assets."""
    if not job.startswith("__"):
        return job
    return f"资产 {'、'.join(assets[:5])}{' 等' if len(assets) > 5 else ''}（手动物化或回填）" if assets else "资产物化"


def shards_in_words(shards: tuple[str, ...]) -> str:
    """Return the shards of a run, which are consecutive, as text."""
    if not shards:
        return ""
    return f"分片 {shards[0]}" if len(shards) == 1 else f"分片 {shards[0]}–{shards[-1]}"
