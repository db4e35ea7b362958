"""The commands ``backup`` and ``restore``: what they check first and what they print."""

from datetime import UTC, datetime
from pathlib import Path

import typer

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops import backup as backups
from douban_pipeline.ops.console import plain
from douban_pipeline.ops.restore import RestorePlan, plan_restore
from douban_pipeline.ops.restore import restore as restore_from


def save(target: Path, *, keep: int | None) -> None:
    """Save our tables in the file ``target``, or in a new file of the folder ``target``.

    Args:
        target: A file, or a folder.
        keep: In a folder, how many of these backups to keep; ``None`` keeps all.
    """
    services = open_services(load_settings())
    prefix, now = services.settings.table_prefix, SystemClock().now()
    into = target.is_dir()
    if keep is not None and not into:
        raise typer.BadParameter(f"--keep is for a folder, and {target} is none")
    path = backups.file_in(target, prefix, now) if into else target
    header = backups.back_up(services.engine, services.tables, prefix, path, now)
    size = path.stat().st_size / 1e6
    plain(f"{path}: {size:.1f} MB, version {header.version}, newest write {_time(header.newest_write)}")
    for old in backups.drop_old(target, prefix, keep) if keep is not None else []:
        plain(f"removed {old}")
    services.close()


def restore_copy(path: Path, *, dry_run: bool, replace: bool, keep: bool) -> None:
    """Put a backup in the place of our tables, or say what that would change.

    Args:
        path: What `save` wrote.
        dry_run: Print, and change nothing.
        replace: Drop what our tables hold now.
        keep: Save what our tables hold now before it is dropped.

    Raises:
        typer.Exit: A dry run ended: with 1 if the restore would be refused, else with 0.
    """
    services = open_services(load_settings())
    settings, now = services.settings, SystemClock().now()
    given = (services.engine, services.tables, settings.table_prefix, path, now)
    plan = plan_restore(*given, replace=replace)
    kept = settings.home / "backups" / f"replaced-{settings.table_prefix}{now:%Y%m%dT%H%M%SZ}.sql.gz"
    plain(f"backup     {path}, taken {_time(plan.header.taken_at)} by release {plan.header.release}")
    plain(f"into       {settings.shown_library_url}, tables {settings.table_prefix}douban_*")
    plain(f"version    {plan.tables.version or 'none'} → {plan.header.version or 'none'}")
    _print_what_is_lost(plan)
    if dry_run:
        for refusal in plan.refusals:
            plain(f"refused    {refusal}")
        plain("dry run: nothing was changed" + ("" if plan.refusals else "; --no-dry-run does it"))
        services.close()
        raise typer.Exit(1 if plan.refusals else 0)
    restore_from(*given, replace=replace, keep_in=kept if keep else None)
    plain(f"restored. What stood before: {kept if kept.exists() else 'nothing, or not kept'}")
    if plan.header.version != migrations.head(settings.table_prefix):
        plain("Next: `douban-pipeline upgrade`, for these tables are an earlier release's.")
    plain("Next: set DOUBAN_PIPELINE_DRY_RUN=true and DOUBAN_PIPELINE_RESTORE_LOCKED=false, start Dagster, launch the")
    plain("job initialise_library, read cms_drift, and record again what people decided or took back since.")
    services.close()


def _print_what_is_lost(plan: RestorePlan) -> None:
    newest, tables = _time(plan.header.newest_write), plan.tables
    plain(f"log        its newest write is of {newest}; it will not know later ones, which stay in the CMS")
    if tables.lost_changes:
        plain(f"lost       {tables.lost_changes} changes to {tables.lost_videos} videos that the present log knows")


def _time(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else "never"
