"""Jobs over the archive of answers: dropping what nothing rests on, and reading it with a changed parser."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.presentation import local_time, table
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, problems_failure, refuse_environment
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.upkeep.reparsing import PARSERS, Reparsed, reparse
from douban_pipeline.douban.upkeep.stock import Stock, archive_figures

_MEGABYTE = 1_000_000


class PruneConfig(dg.Config):
    """Whether anything is deleted."""

    dry_run: bool = Field(True, description="true only counts what would be deleted; set false to delete.")


@dg.op
def drop_answers(context: dg.OpExecutionContext, config: PruneConfig, services: dg.ResourceParam[Services]) -> None:
    """Delete old answers that nothing rests on, or count them."""
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
            "kept_because": dg.MetadataValue.md(
                table([{"原因": what, "应答": count} for what, count in pruned.reasons.items()])
            ),
            "archive": dg.MetadataValue.md(table(_stock_rows(stock, services))),
        }
    )


@dg.job(config=dg.RunConfig(ops={"drop_answers": PruneConfig(dry_run=True)}), tags={"pipeline": "housekeeping"})
def prune_archive() -> None:
    """清理存档 · Delete archived answers older than `DOUBAN_PIPELINE_ARCHIVE_DAYS` on which nothing rests.

    最后一次收到的时间早于 `DOUBAN_PIPELINE_ARCHIVE_DAYS`（再加一天）、且没有任何记录引用的应答会被删除。被判定、
    候选条目、变更记录、简介或未完成的任务引用的应答一律保留，`rescore_library` 因此始终可以重新判定。
    每周自动运行；手动启动时 `dry_run: true`（默认）只统计，不删除。可以随时中止，下次接着做。

    结果里 `kept_because` 是保留的原因（一份应答可能有几个原因），`bytes_freed` 是删除的（压缩后）字节数，
    `seen_again` 是期间又收到、因而保留的应答，`archive` 是存档现状。数据库文件不会因此变小，空出的位置会再次使用。

    ```yaml
    ops:
      drop_answers:
        config:
          dry_run: false
    ```
    """
    drop_answers()


class ReparseConfig(dg.Config):
    """Which answers are read again."""

    source: str = Field("douban", description=f"Whose answers: {', '.join(PARSERS)}.")
    only_older_versions: bool = Field(
        True, description="Only answers that the present version of the parser is not noted to read."
    )
    limit: int = Field(0, description="At most so many answers, the oldest; 0 for all.")
    dry_run: bool = Field(True, description="true only counts; set false to note which answers are read.")


@dg.op
def read_again(context: dg.OpExecutionContext, config: ReparseConfig, services: dg.ResourceParam[Services]) -> None:
    """Read the archived answers of a source with the present parser, and tell how many it refuses."""
    refuse_environment(context)
    services.ready()
    problems = []
    if config.source not in PARSERS:
        problems.append(f"source: 只能是 {'、'.join(PARSERS)}，现为 {config.source!r}")
    if config.limit < 0:
        problems.append(f"limit: 不得小于 0，现为 {config.limit}")
    if problems:
        raise problems_failure("未重新解析", problems)
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
            "outcomes": dg.MetadataValue.md(table(_outcome_rows(found))),
            "examples": dg.MetadataValue.md(table(_example_rows(found))),
        }
    )


@dg.job(
    config=dg.RunConfig(
        ops={"read_again": ReparseConfig(source="douban", only_older_versions=True, limit=0, dry_run=True)}
    ),
    tags=PERSON_TAGS,
)
def reparse_archive() -> None:
    """重新解析存档 · Read archived answers with the parsers of this release, and tell which of them are refused.

    解析器更新之后，看现在的解析器能否读懂存下的全部应答。不发任何请求；除解析器版本号外不改动任何数据。从存档取应答时
    （缓存、判定、`rescore_library`）本来就总是用现在的解析器重读，因此这里不会改变任何结果。

    | 字段 | 含义 |
    |--|--|
    | `source` | 来源：`douban`、`searxng`、`douban_suggest`、`bocha` |
    | `only_older_versions` | 只看尚未注明能由现版本读懂的应答 |
    | `limit` | 最多看多少份，从最早的开始；0 为全部 |
    | `dry_run` | `true`（默认）只统计；`false` 时，把读懂的应答注明为现版本，剩下的就是读不懂的 |

    结果里 `outcomes` 是各旧版本的应答现在读得如何：「读出」和「条目不存在」是读懂了，`HTTP 403` 之类的应答
    从不解析内容，其余是出错的种类；`examples` 是读不懂的例子。想知道新的读法会改变哪些判定，启动 `rescore_library`。

    ```yaml
    ops:
      read_again:
        config:
          source: douban
          only_older_versions: true
          limit: 0
          dry_run: false
    ```
    """
    read_again()


def _stock_rows(stock: list[Stock], services: Services) -> list[dict[str, object]]:
    zone = services.settings.zone
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


jobs = [prune_archive, reparse_archive]
