"""What the operators' commands ask of the core system: the CMS, rights in it, sources, intros, restores."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, inspect, select

from douban_pipeline.core.check_results import CheckResult, State
from douban_pipeline.core.database import reading
from douban_pipeline.core.operations import Operations
from douban_pipeline.core.owner import is_dead
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.grants import cms_grants, missing_cms_grants
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline.douban.source_checks import asked_results, reached_results
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.upkeep.expiring import TERM, overdue

LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space, in 10⁶ bytes, under which HOME is low, and under which it counts as full."""


class DoubanOperations(Operations):
    """The core system in the operators' commands."""

    def mode(self, services: Services) -> str:
        """Return whether the CMS is written to."""
        dry = said("演练：不写入 CMS", "dry run: nothing is written to the CMS")
        return dry if services.settings.dry_run else said("正式运行", "live")

    def place(self, services: Services) -> CheckResult:
        """Check that the database contains the CMS's tables."""
        cms, count = services.cms, len(services.categories)
        message = said(
            f"{services.shown_url}：{cms.vod.name} 和 {cms.type.name}，{count} 个分类",
            f"{services.shown_url}: {cms.vod.name} and {cms.type.name}, {count} categories",
        )
        return CheckResult("database", "ok", message)

    def checks(self, services: Services) -> Iterator[CheckResult]:
        """Check the profile of matching and the age of TMDB's facts."""
        yield profile_result(services)
        if services.settings.evidence_from_tmdb:
            yield tmdb_facts_result(services)

    def outside_checks(self, services: Services, *, ask: bool, usable: bool) -> Iterator[CheckResult]:
        """Check the folder of files, the sources, and what is known of intros."""
        yield home_result(services.settings.home)
        yield from asked_results(services) if ask and usable else reached_results(services)
        yield from intro_results(services.settings)

    def missing_rights(self, services: Services) -> list[str]:
        """Return the columns of the CMS's that may not be written."""
        return missing_cms_grants(services.engine, services.settings, services.cms)

    def grants(self, services: Services, user: str, host: str) -> Iterator[str]:
        """Yield the privileges on the CMS's tables."""
        yield from cms_grants(services.settings, services.engine.url, user=user, host=host)

    def introduction(self, services: Services) -> Iterator[str]:
        """Yield what was found of the CMS, and the next step."""
        cms, count = services.cms, len(services.categories)
        yield f"CMS        {services.shown_url}{said(f'，{count} 个分类', f', {count} categories')}"
        with_bin = said("回收站：有", "recycle bin: yes")
        without = said("回收站：无（2026 年以前的版本）", "recycle bin: no (release before 2026)")
        yield f"           {with_bin if cms.has_recycle_bin else without}"
        practice = said("演练：不写入 CMS", "dry run: nothing is written to the CMS")
        yield f"{said('模式', 'mode')}       {practice if services.settings.dry_run else said('正式', 'live')}"
        yield said(
            "下一步：启动作业 initialise_library，再启动 Dagster（见 docs/operate.zh-CN.md 的小步开始）。",
            "Next: launch the job initialise_library, then start Dagster (docs/operate.md, “Start small”).",
        )

    def after_upgrade(self, services: Services) -> Iterator[CheckResult]:
        """Report the profile of matching."""
        yield profile_result(services)

    def leased_by(self, connection: Connection, services: Services) -> list[str]:
        """Return the runs that hold leases of tasks and may be alive."""
        task = services.tables.task
        held = (task.c.status == TaskStatus.RUNNING, task.c.lease_until > services.clock.now())
        query = select(task.c.lease_owner.distinct()).where(task.c.lease_owner.is_not(None), *held)
        return sorted(owner for owner in connection.execute(query).scalars() if not is_dead(owner))

    def newest_write(self, connection: Connection, services: Services) -> datetime | None:
        """Return when the newest change in the log was prepared."""
        log = services.tables.log
        if not inspect(connection).has_table(log.name):
            return None
        return connection.execute(select(func.max(log.c.prepared_at))).scalar()

    def losses(self, connection: Connection, services: Services, since: datetime | None) -> Iterator[str]:
        """Yield how many changes in the log a restored log does not contain."""
        newest = f"{since:%Y-%m-%d %H:%M:%S} UTC" if since else said("从未", "never")
        yield said(
            f"日志       最新的写入为 {newest}；此后的写入不在其中，但仍在 CMS 里",
            f"log        its newest write is of {newest}; later ones stay in the CMS and are not in it",
        )
        log = services.tables.log
        if not inspect(connection).has_table(log.name):
            return
        done = log.c.state.in_([ChangeState.APPLIED, ChangeState.REVERTED, ChangeState.PREPARED])
        query = select(func.count(), func.count(log.c.vod_id.distinct())).where(done)
        changes, videos = connection.execute(query if since is None else query.where(log.c.prepared_at > since)).one()
        if changes:
            yield said(
                f"将丢失     现有日志记着的 {videos} 部影片的 {changes} 次改动",
                f"lost       {changes} changes to {videos} videos that are in the present log",
            )

    def after_restore(self, _services: Services) -> Iterator[str]:
        """Yield how to find out what the CMS holds beyond the restored log."""
        yield said(
            "接下来：设 DOUBAN_PIPELINE_DRY_RUN=true 和 DOUBAN_PIPELINE_RESTORE_LOCKED=false，启动 Dagster，运行作业 "
            "initialise_library，查看 cms_drift，再重新记录此后人工的决定和撤销。",
            "Next: set DOUBAN_PIPELINE_DRY_RUN=true and DOUBAN_PIPELINE_RESTORE_LOCKED=false, start Dagster, launch "
            "the\njob initialise_library, read cms_drift, and record again what people decided or reverted since.",
        )


OPERATIONS = DoubanOperations()
"""The core system's."""


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


def intro_results(settings: Settings) -> Iterator[CheckResult]:
    """Say what share of inventions the checks of intros let through, where intros are written."""
    if not settings.ai_intros:
        return
    unseen = second_reading.INVENTIONS
    nearest, random = second_reading.THROUGH_READING["nearest"], second_reading.THROUGH_READING["random"]
    through = said(
        f"简介仍可能含有编造：{unseen} 篇各含一处编造的简介中，复核的模型从不说“没有依据”时，"
        f"随意引原文会写入 {random} 篇，引最相近的原文会写入 {nearest} 篇；请抽查写入的简介",
        f"intros may still hold inventions: of {unseen} with one each, {random} are written if the reading model never "
        f"objects and quotes at random, {nearest} if it never objects and quotes what is most alike; look at samples",
    )
    yield CheckResult("intros", "ok", through)


def home_result(home: Path) -> CheckResult:
    """Check that the folder of local files can be written, and that there is room."""
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
