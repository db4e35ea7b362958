"""Jobs of upkeep: a source's breaker by hand, the archive of answers, and history past its days.

Every default is safe.
"""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.language import described
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.dagster_kit.pruning import RetentionConfig, prune_opening, prune_runs, report_pruned
from douban_pipeline.douban.chain.linking.revisiting import revisit
from douban_pipeline.douban.resources import PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.upkeep.expiring import expire
from douban_pipeline.douban.upkeep.gates import GateAction, gate_row, revisit_window, set_by_hand
from douban_pipeline.douban.upkeep.housekeeping import ArchiveShare, archive_figures, delete_closed
from douban_pipeline.douban.upkeep.reparsing import PARSERS, Reparsed, reparse

HEALTH_TAGS = tags_of("health")
HEALTH_DAYS = 2
"""Days that runs are kept which only look at the pipeline's health: one comes every few minutes, and their figures are
kept elsewhere."""


class GateConfig(LaunchpadConfig):
    """Which source's breaker is changed, how, by whom and why."""

    reviewer: str = Field("", description="你的名字 · Your name; it is shown with the breaker.")
    note: str = Field(
        "", description="原因，一句话 · Reason, in one sentence; for open, it is shown while calls are stopped."
    )
    dry_run: bool = Field(True, description="true 只检查 · true: only check; false: change the breaker.")
    source: str = Field("", description="来源的名字 · Name of the source, as `source_gates` shows it.")
    action: GateAction = Field(
        GateAction.close, description="断开或闭合 · open: stop all calls for `minutes`; close: allow calls."
    )
    minutes: int = Field(60, description="断开多少分钟 · For open: minutes after which one call tests the source.")


def change_gate(context: dg.OpExecutionContext, config: GateConfig, services: dg.ResourceParam[Services]) -> None:
    """Change the breaker, or show what would happen."""
    services.ready()
    change = set_by_hand(
        services,
        config.source,
        config.action,
        minutes=config.minutes,
        reviewer=config.reviewer,
        note=config.note,
        dry_run=config.dry_run,
    )
    source, zone = change.before.source, services.settings.zone
    what = f"opened until {local_time(change.until, zone)}" if change.until else "closed"
    context.log.info(f"the breaker of {source} {'would be ' if config.dry_run else 'was '}{what}")
    now = services.clock.now()
    shown = [gate_row(status, now, zone) for status in services.gate.status() if status.source == source]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "source": source,
            "action": config.action.value,
            "until": local_time(change.until, zone),
            "before": run_table([gate_row(change.before, now, zone)]),
            "now": run_table(shown),
        }
    )


_SET_GATE = """\
暂停或恢复一个来源 · Open or close a source's breaker by hand.

| action | 含义 |
|--|--|
| `open` | 断开：`minutes` 分钟（1 到 10080）内不再请求该来源，到期后先放行一次试探；可以延长，也可以缩短 |
| `close` | 闭合：立即恢复请求，此前的失败不再计入 |

来源的名字和现状见资产 `source_gates`。断路器自动断开时（验证码、登录页、连续失败、空结果存疑、请求过快、余额不足），
先排除原因（换出口地址、充值、等对方恢复），再 `close`；也可以不管它，到期会自动试探。

示例 · Example:

{examples}

**字段** · Fields

{fields}

`dry_run: true`（默认）只检查。任何一项有误则不改动，并一次列出所有问题。`close` 不用 `minutes`。每日配额不受影响：
配额用完的来源次日零点（网站时区）恢复。已推迟的任务仍在原定时间继续。
"""

set_gate = person_job(
    change_gate,
    name="set_gate",
    manual=_SET_GATE,
    examples={
        "": {
            "reviewer": "小王",
            "note": "豆瓣出现验证码，今晚先停两小时",
            "dry_run": False,
            "source": "douban",
            "action": GateAction.open,
            "minutes": 120,
        }
    },
    nothing_done="未改动任何来源",
    tags=PERSON_TAGS,
)


class RevisitConfig(LaunchpadConfig):
    """Whose empty answers are not believed, and of when."""

    reviewer: str = Field("", description="你的名字 · Your name.")
    note: str = Field("", description="原因，一句话 · Reason, in one sentence.")
    dry_run: bool = Field(True, description="true 只列出 · true: only list the videos; false: search for them again.")
    source: str = Field(
        "searxng", description="哪个搜索来源的空结果不可信 · Search source with unreliable empty answers."
    )
    since: str = Field(
        "", description="从何时起，如 2026-11-20 08:00（站点时区） · Start, in SITE_TIMEZONE, such as 2026-11-20 08:00."
    )
    until: str = Field("", description="到何时为止，同上 · End, in the same format.")


def queue_revisits(context: dg.OpExecutionContext, config: RevisitConfig, services: dg.ResourceParam[Services]) -> None:
    """Visit again what was not found in a window, or list it."""
    services.ready()
    window = revisit_window(services, config.source.strip(), config.since, config.until, config.reviewer, config.note)
    source = config.source.strip()
    if not config.dry_run:
        # What the archive holds of then is not to be taken for an answer either.
        services.gate.distrust(source, window)
    missed = revisit(services, window, sources={source}, dry_run=config.dry_run)
    zone = services.settings.zone
    context.log.info(f"{len(missed)} videos {'would be' if config.dry_run else 'are'} visited again")
    rows = [
        {"vod_id": item.vod_id, "判定于": local_time(item.judged_at, zone), "再次访问": local_time(item.visit_at, zone)}
        for item in missed
    ]
    context.add_output_metadata({"dry_run": config.dry_run, "videos": len(missed), "listed": run_table(rows)})


_REVISIT = """\
重新搜索未找到的影片 · Search again for videos that were not found while a search source wrongly returned no results.

搜索来源有时会对任何问题都回答“没有结果”。流水线自己发现时（连续 10 次没有结果，或
比例骤升，并且搜不到已知影片），会暂停判定，并在一天内自动重访此前的“未找到”。本作业用于任意时间段：列出该来源在 `since`
到 `until` 之间的空结果所支持、至今仍是“未找到”的影片，`dry_run: false` 时在一天内（最多 12 小时）重新搜索它们，
该时段存档的空结果也不再采用。

示例 · Example:

{examples}

**字段** · Fields

{fields}

`dry_run: true`（默认）只列出。任何一项有误则不改动，并一次列出所有问题。人工的决定、锁定和忽略不受影响。
"""

revisit_not_found = person_job(
    queue_revisits,
    name="revisit_not_found",
    manual=_REVISIT,
    examples={
        "": {
            "reviewer": "小王",
            "note": "上午 SearXNG 的引擎全部失效，返回空列表",
            "dry_run": False,
            "source": "searxng",
            "since": "2026-11-20 08:00",
            "until": "2026-11-20 11:30",
        }
    },
    nothing_done="未重访任何影片",
    tags=PERSON_TAGS,
)


_MEGABYTE = 1_000_000


class PruneConfig(LaunchpadConfig):
    """Whether anything is deleted."""

    dry_run: bool = Field(
        True,
        description="true 只统计 · true: only count what would be deleted; false: delete.",
    )


def delete_answers(context: dg.OpExecutionContext, config: PruneConfig, services: dg.ResourceParam[Services]) -> None:
    """Delete old answers that nothing refers to, or count them."""
    # It needs numpy, which takes a tenth of a second to load and no other run has to wait for.
    from douban_pipeline.douban.upkeep.retention import prune

    services.ready()
    pruned = prune(services, dry_run=config.dry_run, progress=context.log.info)
    with reading(services.engine) as connection:
        stock = archive_figures(connection, services.tables)
    done = "would be deleted" if config.dry_run else "deleted"
    size = pruned.dropped_bytes / _MEGABYTE
    context.log.info(f"{pruned.dropped} of {pruned.looked_at} old answers {done}, {size:.1f} MB; {pruned.kept} kept")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "before": local_time(pruned.before, services.settings.zone),
            "looked_at": pruned.looked_at,
            "kept": pruned.kept,
            "deleted": pruned.dropped,
            "bytes_freed": pruned.dropped_bytes,
            "seen_again": pruned.seen_again,
            "kept_because": run_table([{"原因": what, "应答": count} for what, count in pruned.reasons.items()]),
            "archive": run_table(_stock_rows(stock, services.settings)),
        }
    )


_PRUNE_ARCHIVE = """\
清理存档 · Delete archived answers older than `DOUBAN_PIPELINE_ARCHIVE_DAYS` to which nothing refers.

最后一次收到的时间早于 `DOUBAN_PIPELINE_ARCHIVE_DAYS`（再加一天）、且没有任何记录引用的应答会被删除。被判定、
候选条目、变更记录、简介或未完成的任务引用的应答一律保留，`rescore_library` 因此始终可以重新判定。
每周自动运行；手动启动时 `dry_run: true`（默认）只统计，不删除。可以随时中止，下次接着做。

结果里 `kept_because` 是保留的原因（一份应答可能有几个原因），`bytes_freed` 是删除的（压缩后）字节数，
`seen_again` 是期间又收到、因而保留的应答，`archive` 是存档现状。数据库文件不会因此变小，空出的位置会再次使用。

{examples}

**字段** · Fields

{fields}
"""

prune_archive = person_job(
    delete_answers,
    name="prune_archive",
    manual=_PRUNE_ARCHIVE,
    examples={"": {"dry_run": False}},
    nothing_done="未清理存档",
    tags=tags_of("housekeeping"),
)


class ReparseConfig(LaunchpadConfig):
    """Which answers are read again."""

    source: str = Field("douban", description=f"来源 · Source of the answers: {', '.join(PARSERS)}.")
    only_older_versions: bool = Field(
        True,
        description="只看尚未注明能由现版本读懂的应答 · "
        "Only answers that are not marked as parsed by the current version of the parser.",
    )
    limit: int = Field(
        0,
        description="最多看多少份，从最早的开始；0 为全部 · Maximum number of answers, oldest first; 0: all.",
    )
    dry_run: bool = Field(
        True,
        description="true 只统计；false 时把读懂的应答注明为现版本，剩下的就是读不懂的 · "
        "true: only count; false: mark the answers that were parsed.",
    )


def reparse_answers(
    context: dg.OpExecutionContext, config: ReparseConfig, services: dg.ResourceParam[Services]
) -> None:
    """Read the archived answers of a source with the present parser, and report how many it refuses."""
    services.ready()
    problems = []
    if config.source not in PARSERS:
        problems.append(f"source: 只能是 {'、'.join(PARSERS)}，现为 {config.source!r}")
    if config.limit < 0:
        problems.append(f"limit: 不得小于 0，现为 {config.limit}")
    if problems:
        raise ProblemsError(problems)
    found = reparse(
        services,
        config.source,
        only_older_versions=config.only_older_versions,
        limit=config.limit,
        dry_run=config.dry_run,
        progress=lambda done: context.log.info(f"{done} answers read"),
    )
    context.log.info(f"{found.good} of {found.looked_at} answers read by {found.version}, {found.noted} noted")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "parser_version": found.version,
            "looked_at": found.looked_at,
            "read": found.good,
            "noted": found.noted,
            "outcomes": run_table(_outcome_rows(found)),
            "examples": run_table(_example_rows(found)),
        }
    )


_REPARSE_ARCHIVE = """\
重新解析存档 · Parse archived answers with the parsers of this release, and report which ones cannot be parsed.

解析器更新之后，看现在的解析器能否读懂存下的全部应答。不发任何请求；除解析器版本号外不改动任何数据。从存档取应答时
（缓存、判定、`rescore_library`）本来就总是用现在的解析器重读，因此这里不会改变任何结果。

结果里 `outcomes` 是各旧版本的应答现在读得如何：「读出」和「条目不存在」是读懂了，`HTTP 403` 之类的应答
从不解析内容，其余是出错的种类；`examples` 是读不懂的例子。想知道新的读法会改变哪些判定，启动 `rescore_library`。

{examples}

**字段** · Fields

{fields}
"""

reparse_archive = person_job(
    reparse_answers,
    name="reparse_archive",
    manual=_REPARSE_ARCHIVE,
    examples={"": {"source": "douban", "only_older_versions": True, "limit": 0, "dry_run": False}},
    nothing_done="未重新解析",
    tags=PERSON_TAGS,
)


def _stock_rows(stock: list[ArchiveShare], settings: Settings) -> list[dict[str, object]]:
    zone = settings.zone
    return [
        {
            "来源": item.source,
            "状态": f"{item.status_class}xx",
            "应答": item.answers,
            "压缩后 MB": item.bytes / _MEGABYTE,
            "最早": local_time(item.oldest, zone),
            "最近": local_time(item.newest, zone),
        }
        for item in stock
    ]


def _outcome_rows(found: Reparsed) -> list[dict[str, object]]:
    return [
        {"原版本": version, "结果": outcome, "应答": count}
        for (version, outcome), count in sorted(found.outcomes.items())
    ]


def _example_rows(found: Reparsed) -> list[dict[str, object]]:
    return [
        {"结果": outcome, "应答编号": refused.snapshot_id, "问的是": refused.request_key, "原因": refused.why}
        for outcome, examples in sorted(found.refused.items())
        for refused in examples
    ]


@dg.op(description=described("删除过期的已结束运行、已结束任务、已结束告警和 TMDB 的资料"))
def prune(context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[Services]) -> None:
    """Delete finished runs, closed tasks, ended alerts and TMDB's facts after their retention periods."""
    services.ready()
    now = services.clock.now()
    before = now - timedelta(days=services.settings.history_days)
    sooner = {now - timedelta(days=HEALTH_DAYS): HEALTH_TAGS}
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run, sooner=sooner)
    deleted = delete_closed(services.engine, services.tables, before, dry_run=config.dry_run)
    facts = expire(services, dry_run=config.dry_run)
    counts = {"runs": runs, "tasks": deleted.tasks, "alerts": deleted.alerts, "tmdb_facts": facts}
    report_pruned(context, counts, dry_run=config.dry_run)


@dg.job(
    config=prune_opening("prune"),
    owners=owners(),
    tags=tags_of("housekeeping"),
    description=described(
        "清理 Dagster 的运行记录、已结束的任务和告警，保留 `DOUBAN_PIPELINE_HISTORY_DAYS` 天。健康检"
        "查的运行每几分钟一次，只留两天。随判定保存的 TMDB 资料在其条款允许的六个月之前清空，编号和判定的结论保留。"
    ),
)
def prune_history() -> None:
    """Delete Dagster runs with their events, closed tasks and ended alerts older than `DOUBAN_PIPELINE_HISTORY_DAYS`.

    Dagster itself never deletes its event log (more than 100 KB per run of the chain). Runs of `watch_health`, which
    starts every few minutes, are deleted after two days. The latest run of each asset, or of each shard of one, is
    kept. Runs of other code locations are not deleted; each location prunes its own. The change log, verdicts and
    archived answers are kept: they explain the values in the CMS. Only what TMDB said is taken out of them before six
    months are over, as its terms ask; which of its titles was used, and for which kinds of facts, stays.
    """
    prune()


jobs = [set_gate, revisit_not_found, prune_archive, reparse_archive, prune_history]
