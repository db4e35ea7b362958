"""What became of a failed run, why, and what to do about it, in the language of who reads. Pure functions.

Three things decide what people are told: the words of the error (`likely_reason`), who launches such work again
(`LaunchedBy`), and whether any of it had begun (`work_in_words`). No sentence says "nothing to do" of work that only a
person launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from douban_pipeline.core.language import reader_text, translatable


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
    """The likely reason of a failed run, judged by its error, and what to do about the reason.

    ``shared`` means that it is the host's or a server's: whatever fails of it meanwhile is one trouble.
    """

    reason: str
    remedy: str
    shared: bool = False


_KNOWN: tuple[tuple[re.Pattern[str], LikelyReason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), LikelyReason(reason, remedy))
    for pattern, reason, remedy in (
        # Dagster's own messages, each provoked with Dagster 1.13. The order matters: some contain words of another.
        (
            r"longer than \d+ seconds to start|not started within|start_timeout",
            translatable(
                "The run's turn came, but it did not start in time: the host is too busy, or the code server "
                "does not answer"
            ),
            translatable("Read the logs of dagster-daemon and the code server, and look at the host's load"),
        ),
        (
            r"forcibly marked as failed",
            translatable(
                "The run's process was gone long before that was noticed: the host, the container or the code "
                "server had stopped"
            ),
            translatable(
                "Read the logs of dagster-daemon and the code server, the system's log (oom in journalctl -k or "
                "dmesg), and see whether a release was under way"
            ),
        ),
        (
            r"maximum runtime|max_runtime|timed? ?out after",
            translatable("The run took longer than it may, and was ended"),
            translatable(
                "See which step of the last runs is the slowest; lower DOUBAN_PIPELINE_BATCH_SIZE or "
                "DOUBAN_PIPELINE_RUN_SECONDS"
            ),
        ),
        (
            r"user code server|code location|CodeLocationLoadError|telling it to shut down|DagsterLaunchFailedError|"
            r"failed to start|could not be launched|failed to launch",
            translatable("The code server does not answer: it is being restarted or released, or has stopped"),
            translatable("See whether the code servers (douban-pipeline-code and so on) run, and read their logs"),
        ),
        (
            r"signal 9\b|SIGKILL",
            translatable(
                "The run's process was killed (SIGKILL): most likely the memory ran out; or somebody ended it, "
                "or a service that stopped did not wait"
            ),
            translatable(
                "Read the system's log of that time (oom in journalctl -k or dmesg), and see whether a release "
                "was under way; if it comes again, add memory or allow fewer runs at once"
            ),
        ),
        (
            r"signal \d+|SIGTERM|SIGINT|terminated by interrupt|ExecutionInterrupted|KeyboardInterrupt",
            translatable(
                "The run's process was told to stop: the service or the host was being stopped, restarted or "
                "released, or somebody ended it"
            ),
            translatable("See whether a release or a restart was under way"),
        ),
        (
            r"No space left|disk (?:is )?full|Errno 28|table .{0,80} is full",
            translatable("The disk is full"),
            translatable("Free some space on the disks of the database, HOME and DAGSTER_HOME"),
        ),
        (
            r"Access denied|command denied|permission denied|insufficient privilege",
            translatable("The database account or the user of the files lacks a right"),
            translatable("Run douban-pipeline check; grant what the SQL of douban-pipeline grants says"),
        ),
        (
            r"Unknown column|no such (?:table|column)|doesn't exist|do not exist|douban-pipeline (?:upgrade|setup)",
            translatable("The tables in the database are not of this release"),
            translatable("Stop Dagster, run douban-pipeline upgrade, start it again"),
        ),
        (
            r"psycopg2|too many retries for DB|server closed the connection|terminating connection",
            translatable(
                "Dagster's own database (PostgreSQL) cannot be reached or was cut off: most likely it has just "
                "been restarted"
            ),
            translatable(
                "See whether PostgreSQL runs and has connections left; douban-pipeline check goes through everything"
            ),
        ),
        (
            r"Can't connect|Lost connection|gone away|Connection refused|Too many connections|could not connect|"
            r"cannot be reached|OperationalError",
            translatable("The database cannot be reached or was cut off"),
            translatable(
                "See whether MariaDB and PostgreSQL run and have connections left; douban-pipeline check goes "
                "through everything"
            ),
        ),
        (
            r"Deadlock|Lock wait timeout|database is locked",
            translatable("A lock in the database was waited for too long: another program holds the same rows"),
            translatable("See whether a large import, a backup or a transaction by hand was under way"),
        ),
        (
            r"MemoryError|Cannot allocate memory",
            translatable("The memory ran out"),
            translatable("Add memory, or allow fewer runs at once (the limits in dagster.yaml)"),
        ),
        (
            r"SettingsError|Wrong settings|is not allowed|is not set",
            translatable("A setting is wrong, or a variable is missing"),
            translatable("Run douban-pipeline check, correct the variables as it says, and restart the services"),
        ),
        # What Dagster says where it does not know more.
        (
            r"no sign of life|run worker|process (?:died|exited|terminated)|heartbeat|"
            r"unexpected(?:ly)? (?:exit|terminat)|exit code|exited with code|outside (?:of )?the execution context",
            translatable(
                "The run's process vanished or could not start: the host, the container or the code server may "
                "have been restarted, or the memory ran out"
            ),
            translatable(
                "Read the logs of dagster-daemon and the code server, and the system's log (oom in journalctl -k "
                "or dmesg); see whether a release is under way"
            ),
        ),
    )
)
_SHARED = frozenset(
    {
        "The disk is full",
        "The database cannot be reached or was cut off",
        "Dagster's own database (PostgreSQL) cannot be reached or was cut off: most likely it has just been restarted",
    }
)
_UNKNOWN = LikelyReason(
    translatable("The program met something that it does not expect"),
    translatable(
        "Open the run and read the whole error; if it comes again, report it to the developers with its words"
    ),
)


def known_reasons() -> list[LikelyReason]:
    """Return every reason that is told, as the code has it, in English."""
    return [*(reason for _, reason in _KNOWN), _UNKNOWN]


def likely_reason(error: str) -> LikelyReason:
    """Return the likely reason of a run's error."""
    found = next((reason for pattern, reason in _KNOWN if pattern.search(error)), _UNKNOWN)
    return LikelyReason(reader_text(found.reason), reader_text(found.remedy), found.reason in _SHARED)


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
    """Return shards, which are numbers in order, as text: those that follow each other as one range."""
    ranges: list[list[str]] = []
    for shard in shards:
        if ranges and int(ranges[-1][-1]) + 1 == int(shard):
            ranges[-1].append(shard)
        else:
            ranges.append([shard])
    named = (each[0] if len(each) == 1 else f"{each[0]}–{each[-1]}" for each in ranges)
    return f"分片 {'、'.join(named)}" if ranges else ""
