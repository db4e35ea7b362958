"""The likely reason of a failed run, and what to do about it, in Chinese. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RESUMES = "没做完的任务会自动放回队列，不必重跑"


@dataclass(frozen=True, slots=True)
class LikelyReason:
    """The likely reason of a failed run, judged by its error, and what to do."""

    reason: str
    remedy: str


_KNOWN: tuple[tuple[re.Pattern[str], LikelyReason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), LikelyReason(reason, remedy))
    for pattern, reason, remedy in (
        (
            r"timed? ?out after|max_runtime|maximum runtime|exceeded .{0,20}runtime",
            "运行超过了允许的最长时间，被系统终止",
            f"看最近几次运行哪一步最慢；可调小 DOUBAN_PIPELINE_BATCH_SIZE 或 DOUBAN_PIPELINE_RUN_SECONDS。{_RESUMES}",
        ),
        (
            r"not started within|failed to start|start_timeout|could not be launched|failed to launch",
            "运行排到了却没能启动：主机太忙，或代码服务没有应答",
            "看 dagster-daemon 和代码服务的日志、主机负载；恢复后会自动再排",
        ),
        (
            r"outside (?:of )?the execution context|run worker|process (?:died|exited|terminated)|heartbeat|"
            r"unexpected(?:ly)? (?:exit|terminat)|SIGKILL|exit code",
            "运行的进程中途消失：多半是内存不足被系统杀死，或主机、容器、代码服务当时重启，也可能有人终止了它",
            "看当时的系统日志（journalctl -k、dmesg 里的 oom）和是否正在发布；反复出现则加内存或减少同时的运行。"
            + _RESUMES,
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
            r"Can't connect|Lost connection|gone away|Connection refused|Too many connections|could not connect|"
            r"server closed the connection|cannot be reached|too many retries for DB|OperationalError",
            "数据库连不上或中途断开",
            f"看 MariaDB 和 PostgreSQL 是否在运行、连接数是否用尽；douban-pipeline check 逐项检查。{_RESUMES}",
        ),
        (
            r"Deadlock|Lock wait timeout|database is locked",
            "数据库的锁等待太久：有别的程序长时间占着同样的行",
            f"看当时是否有大批量导入、备份或手工事务。{_RESUMES}",
        ),
        (r"MemoryError|Cannot allocate memory", "内存不足", "加内存，或减少同时的运行（dagster.yaml 的并发上限）"),
        (
            r"SettingsError|Wrong settings|is not allowed|is not set",
            "设置有误或缺少环境变量",
            "运行 douban-pipeline check，按提示改正环境变量后重启各服务",
        ),
    )
)
_UNKNOWN = LikelyReason("程序遇到没有预料到的情况", "打开该运行看完整的错误；再次出现请连同错误原文反馈给开发者")


def likely_reason(error: str) -> LikelyReason:
    """Return the likely reason of a run's error."""
    return next((reason for pattern, reason in _KNOWN if pattern.search(error)), _UNKNOWN)


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
