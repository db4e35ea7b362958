"""The commands ``backup`` and ``restore``: their checks and their output."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import typer

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops import backup as backups
from douban_pipeline.ops.console import plain
from douban_pipeline.ops.restore import RestorePlan, plan_restore
from douban_pipeline.ops.restore import restore as restore_from
from douban_pipeline.ops.systems import registry
from douban_pipeline.ops.systems.copies import ENDING, plan_system_restore, restore_system, save_system
from douban_pipeline.ops.systems.registry import System


def save(names: Sequence[str] | None, target: Path, *, keep: int | None) -> None:
    """Back up our tables to the file ``target``, or to a new file per system in the folder ``target``.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        target: A folder, or the file of the first system; the files of other systems add the system's name to it.
        keep: In a folder, number of backups to keep of each system; ``None`` keeps all.
    """
    with_douban, others = registry.chosen(names)
    into = target.is_dir()
    if keep is not None and not into:
        raise typer.BadParameter(
            said(f"--keep 用于文件夹，而 {target} 不是", f"--keep is for a folder, and {target} is none")
        )
    now = SystemClock().now()
    if with_douban:
        _save_douban(target, now, keep=keep)
    for number, system in enumerate(others, start=int(with_douban)):
        file = backups.file_in(target, f"{system.name}-", now, ENDING) if into else _beside(target, system.name, number)
        with registry.installed(system) as there:
            header, rows = save_system(there, file, now)
        size = file.stat().st_size / 1e6
        about = said(f"版本 {header.version}，{rows} 行", f"version {header.version}, {rows} rows")
        plain(f"{file}: {system.name}, {size:.1f} MB, {about}")
        for old in backups.drop_old(target, f"{system.name}-", keep, ENDING) if keep is not None else []:
            plain(said(f"已删除 {old}", f"removed {old}"))


def _beside(target: Path, name: str, number: int) -> Path:
    """Return a system's file: ``target`` for the first, for others ``target`` with the system's name added."""
    if number == 0:
        return target
    stem = target.name.removesuffix(".gz").removesuffix(".sql")
    return target.with_name(f"{stem}-{name}.{ENDING}.gz")


def _save_douban(target: Path, now: datetime, *, keep: int | None) -> None:
    services = open_services(load_settings())
    prefix = services.settings.table_prefix
    path = backups.file_in(target, prefix, now) if target.is_dir() else target
    header = backups.back_up(services.engine, services.tables, prefix, path, now)
    size = path.stat().st_size / 1e6
    newest = _time(header.newest_write)
    about = said(f"版本 {header.version}，最新的写入 {newest}", f"version {header.version}, newest write {newest}")
    plain(f"{path}: {size:.1f} MB, {about}")
    for old in backups.drop_old(target, prefix, keep) if keep is not None else []:
        plain(said(f"已删除 {old}", f"removed {old}"))
    services.close()


def restore_copy(path: Path, *, dry_run: bool, replace: bool, keep: bool) -> None:
    """Replace the tables by a backup of them, or print what that would change.

    Args:
        path: A file written by `save`; it states its system.
        dry_run: Only print; change nothing.
        replace: Delete the current contents of the tables.
        keep: Back up the current contents before they are deleted.

    Raises:
        OperatingError: The file is not a complete backup of ours, or the restore is refused.
        typer.Exit: After a dry run: status 1 if the restore would be refused, else 0.
    """
    header = backups.verify_backup(path)
    try:
        if header.system == backups.DOUBAN:
            _restore_douban(path, dry_run=dry_run, replace=replace, keep=keep)
        else:
            _restore_system(registry.system_named(header.system), path, dry_run=dry_run, replace=replace, keep=keep)
    except KeyboardInterrupt:
        if not dry_run:
            plain(
                said(
                    "已中断。我们的表可能不完整；若不完整，不会有任何程序使用它们：请加 --replace 再恢复一次。",
                    "Interrupted. Our tables may be incomplete, and nothing runs on them if they are: restore again "
                    "with --replace.",
                )
            )
        raise


def _restore_system(system: System, path: Path, *, dry_run: bool, replace: bool, keep: bool) -> None:
    now = SystemClock().now()
    with registry.installed(system) as there:
        plan = plan_system_restore(there, path, replace=replace)
        home: Path = getattr(there.settings, "home", Path())
        kept = home / "backups" / f"replaced-{system.name}-{now:%Y%m%dT%H%M%S%fZ}.{ENDING}.gz"
        _print_backup(path, plan.header)
        plain(
            said(
                f"恢复到     {there.shown_url}，{system.name} 的表",
                f"into       {there.shown_url}, tables of {system.name}",
            )
        )
        _print_versions(plan.version, plan.header.version)
        plain(f"{said('现有行数   ', 'rows now   ')}{sum(plan.rows.values())}")
        if dry_run:
            _end_dry_run(plan.refusals)
        restore_system(there, path, now, replace=replace, keep_in=kept if keep else None)
        _print_restored(kept)
        if plan.header.version != there.tree.head:
            _print_upgrade(f" --system {system.name}")


def _end_dry_run(refusals: Sequence[str]) -> NoReturn:
    for refusal in refusals:
        plain(f"{said('拒绝', 'refused')}    {refusal}")
    done = said("演练：没有改动", "dry run: nothing was changed")
    plain(done + ("" if refusals else said("；加 --no-dry-run 执行", "; add --no-dry-run to do it")))
    raise typer.Exit(1 if refusals else 0)


def _restore_douban(path: Path, *, dry_run: bool, replace: bool, keep: bool) -> None:
    services = open_services(load_settings())
    settings, now = services.settings, SystemClock().now()
    given = (services.engine, services.tables, settings.table_prefix, path, now)
    plan = plan_restore(*given, replace=replace)
    kept = settings.home / "backups" / f"replaced-{settings.table_prefix}{now:%Y%m%dT%H%M%SZ}.sql.gz"
    _print_backup(path, plan.header)
    url, own = settings.shown_library_url, f"{settings.table_prefix}douban_*"
    plain(said(f"恢复到     {url}，表 {own}", f"into       {url}, tables {own}"))
    _print_versions(plan.tables.version, plan.header.version)
    _print_what_is_lost(plan)
    if dry_run:
        services.close()
        _end_dry_run(plan.refusals)
    restore_from(*given, replace=replace, keep_in=kept if keep else None)
    _print_restored(kept)
    if plan.header.version != migrations.head(settings.table_prefix):
        _print_upgrade("")
    plain(
        said(
            "接下来：设 DOUBAN_PIPELINE_DRY_RUN=true 和 DOUBAN_PIPELINE_RESTORE_LOCKED=false，启动 Dagster，运行作业 "
            "initialise_library，查看 cms_drift，再重新记录此后人工的决定和撤销。",
            "Next: set DOUBAN_PIPELINE_DRY_RUN=true and DOUBAN_PIPELINE_RESTORE_LOCKED=false, start Dagster, launch "
            "the\njob initialise_library, read cms_drift, and record again what people decided or reverted since.",
        )
    )
    services.close()


def _print_backup(path: Path, header: backups.BackupHeader) -> None:
    taken = _time(header.taken_at)
    plain(
        said(
            f"备份       {path}，由版本 {header.release} 于 {taken} 建立",
            f"backup     {path}, taken {taken} by release {header.release}",
        )
    )


def _print_versions(before: str | None, after: str | None) -> None:
    none = said("无", "none")
    plain(f"{said('表的版本   ', 'version    ')}{before or none} → {after or none}")


def _print_restored(kept: Path) -> None:
    before = str(kept) if kept.exists() else said("没有，或未保存", "nothing, or not kept")
    plain(said(f"已恢复。之前的内容：{before}", f"restored. Earlier contents: {before}"))


def _print_upgrade(option: str) -> None:
    command = f"`douban-pipeline upgrade{option}`"
    plain(
        said(f"接下来：{command}，这些表属于较早的版本。", f"Next: {command}: these tables are an earlier release's.")
    )


def _print_what_is_lost(plan: RestorePlan) -> None:
    newest, tables = _time(plan.header.newest_write), plan.tables
    plain(
        said(
            f"日志       最新的写入为 {newest}；此后的写入不在其中，但仍在 CMS 里",
            f"log        its newest write is of {newest}; later ones stay in the CMS and are not in it",
        )
    )
    if tables.lost_changes:
        changes, videos = tables.lost_changes, tables.lost_videos
        plain(
            said(
                f"将丢失     现有日志记着的 {videos} 部影片的 {changes} 次改动",
                f"lost       {changes} changes to {videos} videos that are in the present log",
            )
        )


def _time(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else said("从未", "never")
