"""Checks whether an installation can work: one result per check, each with its remedy."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.clock_skew import SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings, load_settings, variable
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.upkeep.expiring import TERM, overdue
from douban_pipeline.ops.console import plain
from douban_pipeline.ops.grants import missing_grants, missing_table_grants
from douban_pipeline.ops.results import CheckResult, State, print_results
from douban_pipeline.ops.source_checks import asked_results, reached_results
from douban_pipeline.ops.systems import registry
from douban_pipeline.ops.systems.registry import System

LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space, in 10⁶ bytes, under which HOME is low, and under which it counts as full."""
_NAMED = 4


def _mend() -> str:
    return said("在环境变量或 .env 中改正", "correct the variable, in the environment or in .env")


def _run_upgrade() -> str:
    return said("运行 `douban-pipeline upgrade`", "run `douban-pipeline upgrade`")


def _keep_clocks() -> str:
    return said("用 NTP 保持各机器时钟一致", "keep the clocks of all machines synchronised with NTP")


def _run_grants(option: str = "") -> str:
    command = f"`douban-pipeline grants{option}`"
    return said(f"由数据库管理员执行 {command} 打印的内容", f"run what {command} prints, as the database's owner")


def check(names: Sequence[str] | None, *, dagster: bool, sources: bool, as_json: bool) -> bool:
    """Check everything the systems need, print the results, and return whether no check failed.

    Nothing is changed, except what every request leaves: a place at the gate, and an archived answer.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        dagster: Also check Dagster's instance.
        sources: Send one request to each source.
        as_json: Print JSON.
    """
    found = list(_results(names, dagster=dagster, sources=sources))
    results, by_system = [result for _, result in found], worst_states(found)
    passed = all(result.state != "fail" for result in results)
    if as_json:
        content = {"ok": passed, "systems": by_system, "findings": [result.to_json() for result in results]}
        plain(json.dumps(content, ensure_ascii=False))
    else:
        print_results(results)
        if len(by_system) > 1:
            plain(", ".join(f"{system}: {state}" for system, state in by_system.items()))
    return passed


def worst_states(found: Iterable[tuple[str, CheckResult]]) -> dict[str, State]:
    """Return the worst state of each system, and of Dagster, by name."""
    states: dict[str, State] = {}
    for system, result in found:
        states[system] = max(states.get(system, "ok"), result.state, key=("ok", "warn", "fail").index)
    return states


def _results(names: Sequence[str] | None, *, dagster: bool, sources: bool) -> Iterator[tuple[str, CheckResult]]:
    """Yield each result with the name of its system; those of Dagster belong to no system."""
    try:
        with_douban, others = registry.chosen(names)
    except SettingsError:  # Douban's, which are explained below
        with_douban, others = True, ()
    if with_douban:
        yield from ((registry.DOUBAN, result) for result in _douban_results(sources=sources))
    for system in others:
        yield from ((system.name, result) for result in system_results(system))
    if dagster:
        # Dagster and our code location take longer to load than everything else, so a monitor may omit them.
        from douban_pipeline.ops.dagster_checks import dagster_results

        found = dagster_results(SystemClock().now(), with_douban=with_douban, others=others)
        yield from (("dagster", result) for result in found)


def _douban_results(*, sources: bool) -> Iterator[CheckResult]:
    opened = open_checked()
    if isinstance(opened, list):
        yield from opened
        return
    dry = said("演练：不写入 CMS", "dry run: nothing is written to the CMS")
    mode = dry if opened.settings.dry_run else said("正式运行", "live")
    yield CheckResult("settings", "ok", mode)
    results = list(database_results(opened))
    yield from results
    ready = all(result.state != "fail" for result in results if result.name in ("database", "tables"))
    yield from asked_results(opened) if sources and ready else reached_results(opened)
    yield from intro_results(opened.settings)
    opened.close()


def intro_results(settings: Settings) -> Iterator[CheckResult]:
    """Say what share of inventions the checks of intros let through, where intros are written."""
    if not settings.ai_intros:
        return
    unseen = second_reading.INVENTIONS
    if not settings.intro_second_reading:
        through = said(
            f"没有复核：{unseen} 篇各含一处编造的简介中，仅靠事实守卫有 {second_reading.THROUGH_GUARD} 篇会写入",
            f"no second reading: of {unseen} intros with one invention each the fact guard alone lets "
            f"{second_reading.THROUGH_GUARD} be written",
        )
        name = variable("intro_second_reading")
        yield CheckResult("intros", "warn", through, said(f"设置 {name}=true", f"set {name}=true"))
        return
    nearest, random = second_reading.THROUGH_READING["nearest"], second_reading.THROUGH_READING["random"]
    through = said(
        f"简介仍可能含有编造：{unseen} 篇各含一处编造的简介中，复核的模型从不说“没有依据”时，"
        f"随意引原文会写入 {random} 篇，引最相近的原文会写入 {nearest} 篇；请抽查写入的简介",
        f"intros may still hold inventions: of {unseen} with one each, {random} are written if the reading model never "
        f"objects and quotes at random, {nearest} if it never objects and quotes what is most alike; look at samples",
    )
    yield CheckResult("intros", "ok", through)


def system_results(system: System) -> Iterator[CheckResult]:
    """Check the settings, the database and other needs of a system other than Douban's; its name precedes each result.

    The first failure of the database skips the remaining checks of it.
    """
    for result in _questions(system):
        yield replace(result, name=f"{system.name}.{result.name}")


def _questions(system: System) -> Iterator[CheckResult]:
    option = f" --system {system.name}"
    try:
        with registry.installed(system) as there:
            yield CheckResult("settings", "ok", said(f"表在 {there.shown_url}", f"tables in {there.shown_url}"))
            engine, tree = there.engine, there.tree
            own = tree.metadata.sorted_tables
            questions: list[tuple[str, Callable[[], CheckResult], str]] = [
                (
                    "tables",
                    lambda: tables_result(engine, tree, option),
                    said("检查地址，以及服务器是否在运行", "check the address and that the server runs"),
                ),
                (
                    "grants",
                    lambda: grants_result(engine, lambda: missing_table_grants(engine, own), option),
                    _run_grants(option),
                ),
                ("clock", lambda: clock_result(engine, SystemClock()), _keep_clocks()),
            ]
            for name, question, advice in questions:
                result = look(name, question, advice)
                yield result
                if result.state == "fail":
                    return
            yield from system.checks(there.settings, engine)
    except SettingsError as error:
        yield from settings_results(error)
    except DatabaseError as error:
        yield CheckResult("database", "fail", error.problem, error.remedy or _mend())


def settings_results(error: SettingsError) -> list[CheckResult]:
    """Return one result for each mistake in the settings."""
    return [CheckResult("settings", "fail", problem, _mend()) for problem in error.problems]


def open_checked() -> Services | list[CheckResult]:
    """Return the services according to the settings, or one result for each mistake in the settings."""
    try:
        return open_services(load_settings())
    except SettingsError as error:
        return settings_results(error)
    except DatabaseError as error:
        return [CheckResult("database", "fail", error.problem, error.remedy or _mend())]


def look(name: str, question: Callable[[], CheckResult], remedy: str) -> CheckResult:
    """Return the result of a check; an exception becomes a result too, so that the other checks still run."""
    try:
        return question()
    except DatabaseError as error:
        return CheckResult(name, "fail", error.problem, error.remedy or remedy)
    except (SQLAlchemyError, SourceError, OSError) as error:
        # SQLAlchemy's own text continues with the statement and a link.
        return CheckResult(name, "fail", str(getattr(error, "orig", None) or error), remedy)


def database_results(services: Services) -> Iterator[CheckResult]:
    """Check the CMS's database and HOME. The first failure of the database skips the remaining checks of it."""
    database = cms_result(services)
    yield database
    questions: list[tuple[str, Callable[[], CheckResult], str]] = [
        ("tables", lambda: _version(services), _run_upgrade()),
        ("profile", lambda: profile_result(services), _run_upgrade()),
        ("grants", lambda: _grants(services), _run_grants()),
        ("clock", lambda: clock_result(services.engine, services.clock), _keep_clocks()),
    ]
    if services.settings.evidence_from_tmdb:
        questions.append(("tmdb_facts", lambda: tmdb_facts_result(services), _run_upgrade()))
    for name, question, remedy in questions if database.state != "fail" else ():
        result = look(name, question, remedy)
        yield result
        if result.state == "fail":
            break
    writable = said("让 DOUBAN_PIPELINE_HOME 可写", "make DOUBAN_PIPELINE_HOME a writable folder")
    yield look("home", lambda: _home(services.settings.home), writable)


def cms_result(services: Services) -> CheckResult:
    """Check that the CMS's database answers and contains the CMS's tables."""
    remedy = said(
        "检查 DOUBAN_PIPELINE_DATABASE_URL，以及服务器是否在运行",
        "check DOUBAN_PIPELINE_DATABASE_URL and that the server runs",
    )
    return look("database", lambda: _cms(services), remedy)


def _cms(services: Services) -> CheckResult:
    cms = services.cms
    url, count = services.settings.shown_library_url, len(services.categories)
    message = said(
        f"{url}：{cms.vod.name} 和 {cms.type.name}，{count} 个分类",
        f"{url}: {cms.vod.name} and {cms.type.name}, {count} categories",
    )
    return CheckResult("database", "ok", message)


def _version(services: Services) -> CheckResult:
    return tables_result(services.engine, migrations.tree_of(services.settings.table_prefix))


def tables_result(engine: Engine, tree: MigrationTree, option: str = "") -> CheckResult:
    """Check that a system's tables exist and are of this release.

    Args:
        engine: Their database.
        tree: Their migrations.
        option: Option that the commands in the remedies need for the system, such as `` --system feeds``.

    Raises:
        DatabaseError: They are of a newer release.
    """
    # Connecting would create the file.
    absent = engine.dialect.name == "sqlite" and not Path(engine.url.database or "").is_file()
    found = None if absent else tree.current(engine)
    if found == tree.head:
        return CheckResult("tables", "ok", said(f"自有的表为版本 {found}", f"our tables are at version {found}"))
    if found is None:
        command = f"`douban-pipeline setup{option}`"
        missing = said("自有的表不存在", "our tables do not exist")
        return CheckResult("tables", "fail", missing, said(f"运行 {command}", f"run {command}"))
    tree.known(found)
    message = said(
        f"自有的表为版本 {found}，本版本需要 {tree.head}",
        f"our tables are at version {found}, this release needs {tree.head}",
    )
    command = f"`douban-pipeline upgrade{option}`"
    remedy = said(f"停止 Dagster，再运行 {command}", f"stop Dagster and run {command}")
    return CheckResult("tables", "fail", message, remedy)


def tmdb_facts_result(services: Services) -> CheckResult:
    """Look for columns with facts of TMDB that are older than its terms allow."""
    with reading(services.engine) as connection:
        found = overdue(services, connection)
    days = TERM.days
    if not found:
        kept = said(f"没有一列 TMDB 资料超过 {days} 天", f"no column of TMDB's is older than {days} days")
        return CheckResult("tmdb_facts", "ok", kept)
    places = said(
        "、".join(f"{each.column} {each.rows} 行" for each in found),
        ", ".join(f"{each.rows} rows of {each.column}" for each in found),
    )
    return CheckResult(
        "tmdb_facts",
        "warn",
        said(
            f"超过 {days} 天，TMDB 的条款不允许：{places}",
            f"older than {days} days, which TMDB's terms do not allow: {places}",
        ),
        said("在 Dagster 里启动作业 prune_history", "launch the job prune_history in Dagster"),
    )


def profile_result(services: Services) -> CheckResult:
    """Report the profile of matching, and whether the first verdicts used another default."""
    name, own = services.settings.match_profile, variable("match_profile")
    if "match_profile" in services.settings.model_fields_set:
        set_by = said(f"按 {own} 使用评分方案 {name}", f"matches are scored by the profile {name}, as {own} says")
        return CheckResult("profile", "ok", set_by)
    message = said(
        f"使用默认的评分方案 {name}：没有设置 {own}",
        f"matches are scored by the profile {name}, the default: {own} is not set",
    )
    verdict = services.tables.verdict
    with reading(services.engine) as connection:
        first = connection.execute(select(verdict.c.profile).order_by(verdict.c.verdict_id).limit(1)).scalar()
    if first in (None, name):
        return CheckResult("profile", "ok", message)
    message += said(
        f"；此片库之前按当时的默认方案 {first} 判定",
        f"; this library was judged by {first} before, which was the default then",
    )
    remedy = said(
        f"设 {own}={first} 沿用以前的，或设 {own}={name} 表示已选定；rescore_library 显示会有哪些变化",
        f"set {own}={first} to go on as before, or {own}={name} to have chosen; rescore_library shows what changes",
    )
    return CheckResult("profile", "warn", message, remedy)


def _grants(services: Services) -> CheckResult:
    return grants_result(
        services.engine, lambda: missing_grants(services.engine, services.settings, services.tables, services.cms)
    )


def grants_result(engine: Engine, missing_rights: Callable[[], list[str]], option: str = "") -> CheckResult:
    """Report the privileges that the account lacks; ``option`` as in `tables_result`."""
    if engine.dialect.name == "sqlite":
        return CheckResult("grants", "ok", said("SQLite 没有账号", "SQLite has no accounts"))
    missing = missing_rights()
    if not missing:
        return CheckResult("grants", "ok", said("此账号的权限足够", "this account has the rights it needs"))
    left = len(missing) - _NAMED
    more = said(f" 等，另有 {left} 项", f" and {left} more") if left > 0 else ""
    named = f"{', '.join(missing[:_NAMED])}{more}"
    return CheckResult(
        "grants", "fail", said(f"此账号缺少 {named}", f"this account lacks {named}"), _run_grants(option)
    )


def clock_result(engine: Engine, clock: Clock) -> CheckResult:
    """Compare the database's clock with this machine's."""
    if engine.dialect.name == "sqlite":
        return CheckResult("clock", "ok", said("SQLite 没有自己的时钟", "SQLite has no clock of its own"))
    skew = clock_skew(engine, clock)
    if abs(skew) >= SLIGHT_SKEW:
        message = said(
            f"本机时钟与数据库相差 {skew.total_seconds():+.1f} 秒", f"this machine's clock is {skew_text(skew)}"
        )
        return CheckResult("clock", "warn", message, _keep_clocks())
    agrees = said("数据库的时钟与本机一致", "the database's clock agrees with this machine's")
    return CheckResult("clock", "ok", agrees)


def _home(home: Path) -> CheckResult:
    folder = home.absolute()
    if not folder.is_dir():
        return CheckResult(
            "home",
            "fail",
            said(f"{folder} 不是文件夹", f"{folder} is not a folder"),
            said(
                "建立它，或把 DOUBAN_PIPELINE_HOME 设为已有的文件夹",
                "create it, or set DOUBAN_PIPELINE_HOME to a folder",
            ),
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return CheckResult(
            "home",
            "fail",
            said(f"{folder} 不可写", f"{folder} is not writable"),
            said("把它交给运行本程序的用户", "make the user that runs the pipeline its owner"),
        )
    free = shutil.disk_usage(folder).free / 1e6
    state: State = "fail" if free < FULL_DISK_MB else "warn" if free < LOW_DISK_MB else "ok"
    room = said("请腾出空间：报告、备份和日志写在这里", "free some space: reports, backups and logs are written there")
    left = f"{free / 1000:,.1f} GB"
    message = said(f"{folder}：剩余 {left}", f"{folder}: {left} free")
    return CheckResult("home", state, message, "" if state == "ok" else room)
