"""Restores our tables from a backup, and reports the loss: the log no longer contains later writes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.schema import DropTable

from douban_pipeline.core.database import LOCK_WAIT_SECONDS, reading
from douban_pipeline.core.owner import is_dead
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.ops.backup import BackupHeader, back_up, newest_write, present_tables, sql_pieces, verify_backup
from douban_pipeline.ops.client_programs import (
    CLIENT,
    OperatingError,
    options_file,
    program,
    require_server,
)

_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class PresentTables:
    """Our tables in the database before a restore.

    Attributes:
        rows: Number of rows of our existing tables, by name.
        version: Version of these tables; ``None`` if none is recorded.
        newest_write: When the newest change in their log was prepared.
        lost_changes: Applied changes in their log that were prepared after the backup's newest one: the restored log
            will not contain them.
        lost_videos: Number of videos with such changes.
        owners: Runs that hold task leases now and may be alive.
    """

    rows: dict[str, int]
    version: str | None
    newest_write: datetime | None
    lost_changes: int
    lost_videos: int
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A restore as it would be performed now; ``refusals`` contains the reasons against it."""

    path: Path
    header: BackupHeader
    tables: PresentTables
    refusals: tuple[str, ...]


def plan_restore(
    engine: Engine, tables: OwnTables, prefix: str, path: Path, now: datetime, *, replace: bool
) -> RestorePlan:
    """Read a backup completely, check the database, and return what a restore would do; nothing is changed.

    Raises:
        OperatingError: The file is not a complete backup of ours.
    """
    require_server(engine.url)
    header = verify_backup(path)
    with reading(engine) as connection:
        present = _look_at_tables(connection, tables, prefix, header, now)
    refusals = []
    if header.prefix != prefix:
        refusals.append(
            said(
                f"备份的表前缀是 {header.prefix!r}，DOUBAN_PIPELINE_TABLE_PREFIX 是 {prefix!r}",
                f"the backup is of tables under {header.prefix!r}, DOUBAN_PIPELINE_TABLE_PREFIX is {prefix!r}",
            )
        )
    if not header.version:
        refusals.append(
            said(
                "备份没有注明表的版本：它是恢复中断后留下的内容",
                "the backup names no version of its tables: it was made after an interrupted restore",
            )
        )
    elif header.version not in migrations.versions(prefix):
        refusals.append(
            said(
                f"备份是版本 {header.version}，此发行版最新只到 {migrations.head(prefix)}："
                f"请安装发行版 {header.release} 或更新的",
                f"the backup is of version {header.version}, the newest of this release is {migrations.head(prefix)}: "
                f"install release {header.release} or a later one",
            )
        )
    if present.owners:
        refusals.append(
            said(
                f"有运行正在进行（{', '.join(present.owners[:3])}）：请停止 Dagster 的守护进程，等它们结束再试",
                f"runs are under way ({', '.join(present.owners[:3])}): stop Dagster's daemon, wait until they have "
                "ended, and try again",
            )
        )
    held = {name: count for name, count in present.rows.items() if count}
    if held and not replace:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(held.items())[:3])
        refusals.append(
            said(
                f"我们的表里有数据（{shown} …）：加 --replace 用备份取代",
                f"our tables hold rows ({shown} …): add --replace to replace them with the backup",
            )
        )
    return RestorePlan(path, header, present, tuple(refusals))


def restore(
    engine: Engine,
    tables: OwnTables,
    prefix: str,
    path: Path,
    now: datetime,
    *,
    replace: bool = False,
    keep_in: Path | None = None,
) -> RestorePlan:
    """Replace our tables by the backup in ``path``.

    The version is restored last: after an interruption there is no version, every command and run refuses to use the
    tables, and the restore can be repeated.

    Args:
        keep_in: File for a backup of our current tables, if they are not empty; ``None`` keeps nothing.

    Raises:
        OperatingError: The restore is refused, or it failed.
    """
    require_server(engine.url)
    with engine.connect() as connection, migrations.alone(connection, prefix):
        connection.commit()  # the lock belongs to the session; an open transaction would block DROP TABLE
        plan = plan_restore(engine, tables, prefix, path, now, replace=replace)
        if plan.refusals:
            raise OperatingError(said("没有恢复：", "not restored: ") + said("；", "; ").join(plan.refusals))
        if keep_in is not None and any(plan.tables.rows.values()):
            _keep(engine, tables, prefix, keep_in, now)
        with options_file(engine.url) as options:
            command = [program(CLIENT), f"--defaults-file={options}", "--batch", str(engine.url.database)]
            _feed(command, _statements(engine, tables, prefix, plan))
        restored = migrations.current(engine, prefix)
        if restored != plan.header.version:
            noted = plan.header.version
            raise OperatingError(
                said(
                    f"恢复后的表注明版本 {restored}，备份注明 {noted}",
                    f"restored tables note version {restored}, the backup {noted}",
                )
            )
    return plan


def _keep(engine: Engine, tables: OwnTables, prefix: str, path: Path, now: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        back_up(engine, tables, prefix, path, now)
    except OperatingError as error:
        raise OperatingError(
            said(
                f"没有恢复：无法保存现有的表（{error}）；加 --no-keep 则不保存",
                f"not restored: the present tables cannot be kept ({error}); --no-keep goes on without",
            )
        ) from error


def _look_at_tables(
    connection: Connection, tables: OwnTables, prefix: str, header: BackupHeader, now: datetime
) -> PresentTables:
    present = present_tables(connection, tables)
    rows = {
        name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
        for name, table in present.items()
    }
    lost_changes = lost_videos = 0
    log, task = tables.log, tables.task
    if log.name in present:
        done = log.c.state.in_([ChangeState.APPLIED, ChangeState.REVERTED, ChangeState.PREPARED])
        query = select(func.count(), func.count(log.c.vod_id.distinct())).where(done)
        if header.newest_write is not None:
            query = query.where(log.c.prepared_at > header.newest_write)
        lost_changes, lost_videos = connection.execute(query).one()
    owners: list[str] = []
    if task.name in present:
        leased = select(task.c.lease_owner.distinct()).where(
            task.c.status == TaskStatus.RUNNING, task.c.lease_owner.is_not(None), task.c.lease_until > now
        )
        owners = [owner for owner in connection.execute(leased).scalars() if not is_dead(owner)]
    return PresentTables(
        rows,
        migrations.current(connection.engine, prefix),
        newest_write(connection, tables),
        lost_changes,
        lost_videos,
        tuple(sorted(owners)),
    )


def _statements(engine: Engine, tables: OwnTables, prefix: str, plan: RestorePlan) -> Iterator[bytes]:
    version = engine.dialect.identifier_preparer.quote(migrations.version_table(prefix))
    yield f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS};\nDROP TABLE IF EXISTS {version};\n".encode()
    for table in tables.metadata.sorted_tables:
        if table.name in plan.tables.rows:
            yield f"{DropTable(table).compile(dialect=engine.dialect)};\n".encode()
    yield from sql_pieces(plan.path)


def _feed(command: list[str], statements: Iterator[bytes]) -> None:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)  # noqa: S603 (no shell)
        assert process.stdin is not None
        try:
            for piece in statements:
                process.stdin.write(piece)
            process.stdin.close()
            status = process.wait()
        except BrokenPipeError:  # the process has ended; its output says why
            status = process.wait() or 1
        finally:
            process.kill()
            process.wait()
        if status:
            output.seek(0)
            message = output.read(_SHOWN).decode(errors="replace").strip()
            raise OperatingError(
                said(
                    f"{Path(command[0]).name} 失败（{status}）：{message}。我们的表现在不完整，不会有任何程序使用它们："
                    "请排除原因，再加 --replace 恢复一次",
                    f"{Path(command[0]).name} failed ({status}): {message}. Our tables are incomplete now, and nothing "
                    "runs on them: fix the cause and restore again with --replace",
                )
            )
