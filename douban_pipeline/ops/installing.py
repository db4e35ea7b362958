"""Sets up an installation: our tables, the account's grants, Dagster's pools; shows the current settings.

Every command handles the named systems, by default those in ``DOUBAN_PIPELINE_SYSTEMS``.
"""

import re
from collections.abc import Sequence

import typer
from pydantic import SecretStr
from rich.table import Column, Table
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline.ops.checking import cms_result, open_checked, profile_result, settings_results
from douban_pipeline.ops.console import console, plain
from douban_pipeline.ops.grants import grant_statements
from douban_pipeline.ops.results import CheckResult, print_results
from douban_pipeline.ops.systems import operating, registry
from douban_pipeline.serve.settings import load_settings as load_service

_SECRETS = re.compile(
    r"(?<=://)[^/\s,@]*(?=@)|(?<=[?&])[^=&\s,]*(?:key|token|secret|password|sign)[^=&\s,]*=[^&\s,]*", re.IGNORECASE
)
"""What may be secret in an address: user and password, and values of its query with such names."""


def set_up(names: Sequence[str] | None) -> None:
    """Check settings and databases, create or upgrade our tables, set Dagster's pool limits.

    Raises:
        typer.Exit: Status 2 if there are problems, which were printed, one per line.
    """
    try:
        with_douban, others = registry.chosen(names)
    except SettingsError as error:
        _stop_at(settings_results(error))
        raise
    if with_douban:
        _set_up_douban()
    for system in others:
        operating.set_up(system)


def _set_up_douban() -> None:
    # Imported here: Dagster is slow to load, and no other command of this module needs it.
    from dagster import DagsterInstance

    from douban_pipeline.dagster_kit.runs import set_pool_limits
    from douban_pipeline.douban.jobs import POOL_LIMITS
    from douban_pipeline.ops.dagster_checks import home_results, retries_unlogged, unopened

    opened = open_checked()
    found = opened if isinstance(opened, list) else [cms_result(opened)]
    _stop_at([*found, *home_results()])
    assert not isinstance(opened, list)
    services = opened
    try:
        with retries_unlogged():
            instance = DagsterInstance.get()
    except Exception as error:
        _stop_at([unopened(error)])
        raise
    with instance:
        cms = services.cms
        place, categories = services.settings.shown_library_url, len(services.categories)
        console.print(f"CMS        {place}{said(f'，{categories} 个分类', f', {categories} categories')}")
        with_bin = said("回收站：有", "recycle bin: yes")
        without = said("回收站：无（2026 年以前的版本）", "recycle bin: no (release before 2026)")
        console.print(f"           {with_bin if cms.has_recycle_bin else without}")
        before, after = migrations.upgrade(services.engine, services.settings.table_prefix)
        console.print(_tables_line(before, after))
        set_pool_limits(instance, POOL_LIMITS)
        console.print(
            f"{said('并发池', 'pools')}      {', '.join(f'{pool} {limit}' for pool, limit in POOL_LIMITS.items())}"
        )
    practice = said("演练：不写入 CMS", "dry run: nothing is written to the CMS")
    mode = f"[yellow]{practice}[/yellow]" if services.settings.dry_run else said("正式", "live")
    console.print(f"{said('模式', 'mode')}       {mode}")
    print_results([profile_result(services)])
    console.print(
        said(
            "下一步：启动作业 initialise_library，再启动 Dagster（见 docs/operate.zh-CN.md 的小步开始）。",
            "Next: launch the job initialise_library, then start Dagster (docs/operate.md, “Start small”).",
        )
    )
    services.close()


def _tables_line(before: str | None, after: str) -> str:
    return said(f"自有的表   版本 {before or '无'} → {after}", f"our tables version {before or 'none'} → {after}")


def _stop_at(results: list[CheckResult]) -> None:
    """Print failed checks, if any, and exit with status 2."""
    failed = [result for result in results if result.state == "fail"]
    if failed:
        print_results(failed)
        raise typer.Exit(2)


def upgrade(names: Sequence[str] | None, *, dry_run: bool) -> None:
    """Upgrade our tables to this release, or print the SQL."""
    with_douban, others = registry.chosen(names)
    if with_douban:
        _upgrade_douban(dry_run=dry_run)
    for system in others:
        operating.upgrade(system, dry_run=dry_run)


def _upgrade_douban(*, dry_run: bool) -> None:
    services = open_services(load_settings())
    prefix = services.settings.table_prefix
    if dry_run:
        plan = migrations.plan(services.engine, prefix)
        place = services.settings.shown_library_url
        plain(f"-- {place}: {_tables_line(plan.before, plan.after)}")
        plain(plan.sql or said("-- 没有要做的", "-- nothing to do"))
    else:
        before, after = migrations.upgrade(services.engine, prefix)
        console.print(_tables_line(before, after))
        print_results([profile_result(services)])
    services.close()


def print_grants(names: Sequence[str] | None, user: str, host: str) -> None:
    """Print the least privileges that an account needs, as SQL for the database's administrator."""
    with_douban, others = registry.chosen(names)
    if with_douban:
        settings = load_settings()
        if not settings.database_url.get_secret_value():
            raise typer.BadParameter(
                said(
                    "没有设置 DOUBAN_PIPELINE_DATABASE_URL：无法确定为哪个数据库授权",
                    "DOUBAN_PIPELINE_DATABASE_URL is not set: it names the database to grant rights in",
                )
            )
        database = make_url(settings.library_url).database or ""
        tables = own_tables(settings.table_prefix)
        for statement in grant_statements(settings, tables, database=database, user=user, host=host):
            plain(statement)
    for system in others:
        for line in operating.grants(system, user, host):
            plain(line)


def show_settings(names: Sequence[str] | None) -> None:
    """Show every setting: its variable, its value (never a secret) and what it means.

    In a terminal the output is a table; otherwise one line per setting, with tabs between its three parts.
    """
    with_douban, others = registry.chosen(names)
    # A truncated variable cannot be copied.
    table = Table(
        Column(said("变量", "variable"), no_wrap=True),
        Column(said("当前值", "value"), overflow="fold"),
        Column(said("含义", "meaning"), overflow="fold"),
    )
    shown: set[str] = set()
    for settings in (
        *([load_settings()] if with_douban else []),
        *(system.settings.load() for system in others),
        load_service(),
    ):
        for name, definition in type(settings).model_fields.items():
            given = settings.variable(name)
            if given not in shown:  # some are shared
                row = (given, _shown(getattr(settings, name)), definition.description or "")
                table.add_row(*row) if console.is_terminal else typer.echo("\t".join(row))  # rich has no tabs
            shown.add(given)
    if console.is_terminal:
        console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return _shown_secret(value.get_secret_value())
    if isinstance(value, frozenset):
        value = tuple(sorted(value))
    if isinstance(value, dict):
        value = tuple(f"{name}={policy}" for name, policy in value.items())
    shown = (", ".join(map(str, value)) or "—") if isinstance(value, tuple) else str(value)
    return _SECRETS.sub("***", shown)


def _shown_secret(secret: str) -> str:
    """Return a database's address without its password; for any other secret only whether it is set."""
    try:
        url = make_url(secret) if secret else None
    except ArgumentError:
        return "set"
    if url is None:
        return "—"
    known = url.get_backend_name() in ("mysql", "mariadb", "postgresql", "sqlite")
    return url.render_as_string(hide_password=True) if known else "set"
