"""What a failed run is said to be: the reason by its words, and what becomes of the work by who launches it again."""

from __future__ import annotations

import itertools

import pytest

from douban_pipeline.core.run_failures import LaunchedBy, likely_reason, work_in_words

KILLED = (
    "[DagsterApiServer] Run execution process for fac30856-48d4-4aed-8fc3-32cdf900b4d0 was terminated by signal 9 "
    "(SIGKILL). This usually indicates that the process was killed by the operating system due to running out of "
    "memory."
)
PROCESS = "[DagsterApiServer] Run execution process for fac30856-48d4-4aed-8fc3-32cdf900b4d0"
LOST = "This run has been marked as failed from outside the execution context."
DEQUEUED = (
    "Caught an unrecoverable error while dequeuing the run. Marking the run as failed and dropping it from the queue"
)
"""Dagster's own words, as `deploy/test_lost_runs.py` provokes them."""

REASONS = [
    ("Run timed out due to taking longer than 120 seconds to start.", "没能在限定的时间内启动", "主机负载"),
    ("Exceeded maximum runtime of 1800 seconds.", "超过了允许的最长时间", "RUN_SECONDS"),
    ("This job is being forcibly marked as failed. The computational resources …", "早已不在", "是否在发布"),
    (f"{KILLED} · {LOST}", "SIGKILL", "oom"),
    (f"{PROCESS} was terminated by signal 15 (SIGTERM). · {LOST}", "被叫停", "重启"),
    (f"{PROCESS} unexpectedly exited with code 1. · {LOST}", "中途消失", "日志"),
    (f"{DEQUEUED}: …DagsterCodeLocationLoadError: Failure loading held · {LOST}", "代码服务", "code"),
    (f"{DEQUEUED}: …DagsterUserCodeUnreachableError: Could not reach user code server. · {LOST}", "代码服务", "code"),
    (f"{DEQUEUED}: …DagsterLaunchFailedError: Tried to start a run on a server after …", "代码服务", ""),
    (
        f"…exc.OperationalError: (psycopg2.OperationalError) server closed the connection unexpectedly · {LOST}",
        "PostgreSQL",
        "douban-pipeline check",
    ),
    ("dagster_postgres.utils.DagsterPostgresException: too many retries for DB connection", "PostgreSQL", "check"),
    ("dagster._core.errors.DagsterExecutionInterruptedError", "被叫停", "重启"),
    (f"Detected run worker status FAILED: 'no sign of life from its worker for 95 s' · {LOST}", "中途消失", "日志"),
    (LOST, "中途消失，或没能启动", "日志"),
    ("(2006, 'MySQL server has gone away')", "数据库连不上或中途断开", "douban-pipeline check"),
    ("OSError: [Errno 28] No space left on device", "磁盘已满", "腾出"),
    ('(1142, "UPDATE command denied to user")', "权限不足", "douban-pipeline grants"),
    ("(1054, \"Unknown column 'x' in 'field list'\")", "与本版本不符", "douban-pipeline upgrade"),
    ("(1213, 'Deadlock found when trying to get lock')", "锁等待太久", "手工事务"),
    ("MemoryError", "内存不足", "加内存"),
    ("KeyError: 'vod_name'", "没有预料到", "反馈给开发者"),
]


@pytest.mark.parametrize(("error", "reason", "remedy"), REASONS)
def test_an_error_says_what_it_likely_means(error: str, reason: str, remedy: str):
    likely = likely_reason(error)
    assert reason in likely.reason
    assert remedy in likely.remedy


def test_only_a_killed_process_is_said_to_be_short_of_memory():
    """A launch that the database or a busy host lost has nothing to do with memory."""
    named = {error for error, _, _ in REASONS if "内存不足被系统杀死" in likely_reason(error).reason}
    assert named == {f"{KILLED} · {LOST}"}


@pytest.mark.parametrize(
    ("launched_by", "begun", "words"),
    [
        (LaunchedBy.PERSON, False, "没有执行，请重新启动"),
        (LaunchedBy.PERSON, True, "没有做完（已经记录和写入的保留），请重新启动"),
        (LaunchedBy.QUEUE, False, "没有执行；任务仍在排队，会自动再启动，不必重跑"),
        (LaunchedBy.QUEUE, True, "没做完的任务会自动放回队列，不必重跑"),
        (LaunchedBy.TIMER, False, "没有执行，到时会自动再启动"),
        (LaunchedBy.TIMER, True, "没有做完，到时会自动再启动"),
    ],
)
def test_what_becomes_of_the_work_is_by_who_launches_it_again(launched_by: LaunchedBy, begun: bool, words: str):
    assert work_in_words(launched_by, begun=begun) == words


def test_nobody_is_advised_against_launching_what_nobody_else_launches():
    for error, begun in itertools.product((error for error, _, _ in REASONS), (False, True)):
        likely = likely_reason(error)
        said = f"{likely.reason}{likely.remedy}{work_in_words(LaunchedBy.PERSON, begun=begun)}"
        assert "请重新启动" in said
        assert "不必" not in said
        assert "自动" not in said.replace("自动关联", "")


def test_what_a_run_recorded_is_said():
    words = work_in_words(LaunchedBy.PERSON, begun=True, recorded="已记录 3 条决定")
    assert words == "没有做完（已记录 3 条决定），请重新启动"
