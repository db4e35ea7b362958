"""Jobs that people launch with their decisions as config. The job's text is the manual; every default is safe."""

import dagster as dg
from pydantic import Field

from douban_pipeline.catalog.revert import Selection, revert
from douban_pipeline.catalog.states import DecisionAction
from douban_pipeline.launchpad import PERSON_TAGS, problems_failure, refuse_environment
from douban_pipeline.presentation import subject_link, table
from douban_pipeline.review.decisions import DecisionError, Wish, record
from douban_pipeline.services import Services


class DecisionRow(dg.Config):
    """One decision."""

    vod_id: int = Field(description="The video (mac_vod.vod_id).")
    action: DecisionAction = Field(description="confirm_top1, set_id, clear_id, ignore, lock_id, unlock_id, rematch")
    douban_id: int = Field(0, description="The subject, for set_id; 0 otherwise.")
    lock: bool = Field(False, description="Also lock the id against every automatic change.")


class DecisionsConfig(dg.Config):
    """Who decided what, and why."""

    reviewer: str = Field("", description="Your name; it is noted with every write that follows.")
    note: str = Field("", description="Why, in a sentence.")
    dry_run: bool = Field(True, description="true only checks and shows; set false to record.")
    decisions: list[DecisionRow] = Field(description="One entry a video.")


class RevertConfig(dg.Config):
    """Which writes are taken back. What is left empty does not restrict; at least one must be set."""

    operator: str = Field("", description="Your name.")
    reason: str = Field("", description="Why, in a sentence; it is shown on the videos.")
    dry_run: bool = Field(True, description="true only shows what would happen; set false to take back.")
    change_ids: list[int] = Field(default_factory=list, description="These changes (mac_douban_log.change_id).")
    batch_id: str = Field("", description="All changes of this batch, as `synced_fields` shows it.")
    run_id: str = Field("", description="All changes of this Dagster run.")


@dg.op
def store_decisions(
    context: dg.OpExecutionContext, config: DecisionsConfig, services: dg.ResourceParam[Services]
) -> None:
    """Check all decisions, then record them."""
    refuse_environment(context)
    services.ready()
    wishes = [Wish(row.vod_id, row.action, row.douban_id, row.lock) for row in config.decisions]
    try:
        recorded = record(
            services,
            wishes,
            reviewer=config.reviewer,
            note=config.note,
            run_id=context.run_id,
            dry_run=config.dry_run,
        )
    except DecisionError as error:
        raise problems_failure("未记录任何决定", error.problems) from error
    rows = [
        {
            "影片": item.wish.vod_id,
            "决定": item.wish.action,
            "条目": subject_link(item.douban_id),
            "锁定": "是" if item.wish.lock else "",
            "结果": "已有相同的决定" if item.known else ("仅检查" if config.dry_run else "已记录"),
        }
        for item in recorded
    ]
    new = sum(not item.known for item in recorded)
    context.log.info(f"{new} decisions {'would be ' if config.dry_run else ''}recorded")
    context.add_output_metadata({"decisions": dg.MetadataValue.md(table(rows, most=200)), "dry_run": config.dry_run})


@dg.job(
    config=dg.RunConfig(
        ops={
            "store_decisions": DecisionsConfig(
                reviewer="",
                note="",
                dry_run=True,
                decisions=[DecisionRow(vod_id=0, action=DecisionAction.confirm_top1, douban_id=0, lock=False)],
            )
        }
    ),
    tags=PERSON_TAGS,
)
def record_decisions() -> None:
    """记录审核决定 · Record reviewers' decisions; the next run of each video's shard carries them out.

    | action | 含义 |
    |--|--|
    | `confirm_top1` | 最新判定的首选候选就是它 |
    | `set_id` | 使用 `douban_id` 指定的条目 |
    | `clear_id` | 现有 ID 是错的；清除，并不再自动关联它 |
    | `ignore` | 不再处理这部影片，直到 `rematch` |
    | `lock_id` / `unlock_id` | 锁定 / 解锁豆瓣 ID |
    | `rematch` | 重新匹配；也用于结束忽略 |

    示例 · Example:

    ```yaml
    ops:
      store_decisions:
        config:
          reviewer: 小王
          note: 海报和导演一致
          dry_run: false
          decisions:
            - {vod_id: 1024, action: set_id, douban_id: 1292052, lock: true}
            - {vod_id: 2048, action: confirm_top1, douban_id: 0, lock: false}
    ```

    `dry_run: true`（默认）只检查。任何一条有误则全部不记录，并一次列出所有问题。重复记录同一决定无害。
    """
    store_decisions()


@dg.op
def take_back(context: dg.OpExecutionContext, config: RevertConfig, services: dg.ResourceParam[Services]) -> None:
    """Take back the selected changes, or show what would happen."""
    refuse_environment(context)
    services.ready()
    missing = [name for name in ("operator", "reason") if not getattr(config, name).strip()]
    if missing:
        raise dg.Failure(f"请填写 {', '.join(missing)}：撤销会以此记入日志", allow_retries=False)
    change_log = services.change_log(context.run_id)
    selection = Selection(tuple(config.change_ids), config.batch_id.strip(), config.run_id.strip())
    try:
        results = revert(
            change_log,
            selection,
            operator=config.operator.strip(),
            reason=config.reason.strip(),
            dry_run=config.dry_run,
        )
    except ValueError as error:
        raise dg.Failure("请填写 change_ids、batch_id 或 run_id 之一", allow_retries=False) from error
    rows = [
        {
            "变更": item.change_id,
            "影片": item.vod_id,
            "恢复": ", ".join(item.restored),
            "跳过": ", ".join(item.skipped),
            "原因": item.reason,
        }
        for item in sorted(results, key=lambda item: (not item.skipped, item.change_id))
    ]
    whole = sum(not item.skipped for item in results)
    context.log.info(f"{whole} of {len(results)} changes {'would be ' if config.dry_run else ''}taken back in full")
    context.add_output_metadata(
        {
            "selected": len(results),
            "in_full": whole,
            "in_part": sum(bool(item.skipped and item.restored) for item in results),
            "skipped": sum(bool(item.skipped and not item.restored) for item in results),
            "dry_run": config.dry_run,
            **({} if config.dry_run else {"batch": change_log.batch_id}),
            "changes": dg.MetadataValue.md(table(rows, most=200)),
        }
    )


@dg.job(
    config=dg.RunConfig(
        ops={"take_back": RevertConfig(operator="", reason="", dry_run=True, change_ids=[], batch_id="", run_id="")}
    ),
    tags=PERSON_TAGS,
)
def revert_changes() -> None:
    """撤销写入 · Take back one change, one batch or one run, exactly as it was written.

    只恢复仍与写入时一致的列；之后被改动或锁定的列会跳过并列出。撤销本身也记入日志，可再次撤销。被撤销的值不会再被自动写入，
    被撤销的关联转入待审核。先用 `dry_run: true`（默认）查看。

    ```yaml
    ops:
      take_back:
        config:
          operator: 小王
          reason: 该批次年份有误
          dry_run: false
          change_ids: []
          batch_id: 3f2a9c0d1e5b7a64
          run_id: ""
    ```
    """
    take_back()


jobs = [record_decisions, revert_changes]
