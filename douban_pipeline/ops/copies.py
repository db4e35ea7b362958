"""The commands ``backup`` and ``restore``: their checks and their output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, cast

import typer

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.console import plain
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.system import System, system_named
from douban_pipeline.ops.backup import back_up, label_of
from douban_pipeline.ops.backup_file import ENDING, BackupHeader, drop_old, file_in, verify_backup
from douban_pipeline.ops.installed import installed
from douban_pipeline.ops.restore import plan_restore, restore


def save(names: Sequence[str] | None, target: Path, *, keep: int | None) -> None:
    """Back up our tables to the file ``target``, or to a new file per system in the folder ``target``.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        target: A folder, or the file of the first system; the files of other systems add the system's name to it.
        keep: In a folder, number of backups to keep of each system; ``None`` keeps all.
    """
    into = target.is_dir()
    if keep is not None and not into:
        raise typer.BadParameter(terminal_text("--keep is for a folder, and {target} is none").format(target=target))
    now = SystemClock().now()
    for number, system in enumerate(installed(names)):
        with system.opened() as services:
            label = label_of(system, services.tree)
            file = file_in(target, label, now) if into else _beside(target, system.name, number)
            header, rows = back_up(system, services, file, now)
        size = file.stat().st_size / 1e6
        about = terminal_text("version {version}, {rows} rows").format(version=header.version, rows=rows)
        plain(f"{file}: {system.name}, {size:.1f} MB, {about}")
        for old in drop_old(target, label, keep) if keep is not None else []:
            plain(terminal_text("removed {old}").format(old=old))


def _beside(target: Path, name: str, number: int) -> Path:
    """Return a system's file: ``target`` for the first, for others ``target`` with the system's name added."""
    if number == 0:
        return target
    stem = target.name.removesuffix(".gz").removesuffix(".sql").removesuffix(f".{ENDING}")
    return target.with_name(f"{stem}-{name}.{ENDING}.gz")


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
    system = system_named(verify_backup(path).system)
    try:
        _restore(system, path, dry_run=dry_run, replace=replace, keep=keep)
    except KeyboardInterrupt:
        if not dry_run:
            plain(
                terminal_text(
                    "Interrupted. Our tables may be incomplete, and nothing runs on them if they "
                    "are: restore again with --replace."
                )
            )
        raise


def _restore(system: System, path: Path, *, dry_run: bool, replace: bool, keep: bool) -> None:
    now, operations = SystemClock().now(), system.operations()
    with system.opened() as services:
        home = cast(LocatedSettings, services.settings).home
        kept = home / "backups" / f"replaced-{label_of(system, services.tree)}{now:%Y%m%dT%H%M%S%fZ}.{ENDING}.gz"
        plan = plan_restore(system, services, path, replace=replace, keep_in=kept if keep else None)
        _print_backup(path, plan.header)
        plain(
            terminal_text("into       {shown_url}, tables of {system}").format(
                shown_url=services.shown_url, system=system.name
            )
        )
        _print_versions(plan.version, plan.header.version)
        plain(f"{terminal_text('rows now   ')}{sum(plan.rows.values())}")
        for line in plan.losses:
            plain(line)
        if dry_run:
            _end_dry_run(plan.refusals)
        restore(system, services, path, now, replace=replace, keep_in=kept if keep else None)
        _print_restored(kept)
        if plan.header.version != services.tree.head:
            _print_upgrade(system.option)
        for line in operations.after_restore(services):
            plain(line)


def _end_dry_run(refusals: Sequence[str]) -> NoReturn:
    for refusal in refusals:
        plain(f"{terminal_text('refused')}    {refusal}")
    done = terminal_text("dry run: nothing was changed")
    plain(done + ("" if refusals else terminal_text("; add --no-dry-run to do it")))
    raise typer.Exit(1 if refusals else 0)


def _print_backup(path: Path, header: BackupHeader) -> None:
    taken = _time(header.taken_at)
    plain(
        terminal_text("backup     {path}, taken {taken} by release {release}").format(
            path=path, taken=taken, release=header.release
        )
    )


def _print_versions(before: str | None, after: str | None) -> None:
    none = terminal_text("none")
    plain(f"{terminal_text('version    ')}{before or none} → {after or none}")


def _print_restored(kept: Path) -> None:
    before = str(kept) if kept.exists() else terminal_text("nothing, or not kept")
    plain(terminal_text("restored. Earlier contents: {before}").format(before=before))


def _print_upgrade(option: str) -> None:
    command = f"`douban-pipeline upgrade{option}`"
    plain(terminal_text("Next: {command}: these tables are an earlier release's.").format(command=command))


def _time(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else terminal_text("never")
