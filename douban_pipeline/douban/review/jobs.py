"""Jobs that people launch with their decisions as config. The job's text is the manual; every default is safe."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.ui.launchpad_links import row
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, problems_failure, refuse_environment
from douban_pipeline.douban.review.manual import example, filled
from douban_pipeline.douban.review.outcome import conclude, teller, waits
from douban_pipeline.douban.review.recording.decisions import DecisionError, Wish, record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction


class DecisionRow(dg.Config):
    """One decision. Fields that its action does not use keep their defaults."""

    vod_id: int = Field(description="The video (mac_vod.vod_id).")
    action: DecisionAction = Field(description=f"One of: {', '.join(DecisionAction)}.")
    douban_id: int = Field(0, description="The subject, for set_id, replace_and_lock, and choose without rank.")
    rank: int = Field(0, description="Place of the candidate, from 1, for choose.")
    days: int = Field(0, description="Days that it is ignored, for ignore; 0 for ever.")
    lock: bool = Field(False, description="Also lock the id against every automatic change.")
    accept_conflicts: bool = Field(False, description="Mean it although something speaks against the subject.")
    verdict_id: int = Field(0, description="The verdict you looked at, as review sheets fill it in; 0 asks nothing.")


class DecisionsConfig(dg.Config):
    """Who decided what, and why."""

    reviewer: str = Field("", description="Your name; it is noted with every write that follows.")
    note: str = Field("", description="Why, in a sentence; it is noted with every write that follows.")
    dry_run: bool = Field(True, description="true only checks and shows; set false to record.")
    decisions: list[DecisionRow] = Field(description="A line for each decision; a video may have several.")


@dg.op
def store_decisions(
    context: dg.OpExecutionContext, config: DecisionsConfig, services: dg.ResourceParam[Services]
) -> None:
    """Check all decisions, record the good ones, and tell of the others."""
    refuse_environment(context)
    services.ready()
    wishes = [Wish(**each.model_dump()) for each in config.decisions]
    try:
        recording = record(
            services,
            wishes,
            reviewer=config.reviewer,
            note=config.note,
            run_id=context.run_id,
            dry_run=config.dry_run,
            progress=teller(context, services, len(wishes)),
        )
    except DecisionError as error:
        raise problems_failure("未记录任何决定", error.problems) from error
    conclude(context, recording, config.dry_run, **waits(services))


_EXAMPLE = {
    "reviewer": "小王",
    "note": "海报和导演一致",
    "dry_run": False,
    "decisions": [
        row(vod_id=1024, action="confirm_top1", lock=True),
        row(vod_id=2048, action="choose", rank=2),
        row(vod_id=3072, action="set_id", douban_id=1292052),
        row(vod_id=3072, action="lock_intro"),
        row(vod_id=4096, action="replace_and_lock", douban_id=1291546, accept_conflicts=True),
        row(vod_id=5120, action="ignore", days=180),
    ],
}
_MANUAL = f"""\
记录审核决定 · Record reviewers' decisions; the next run of each video's shard carries them out.

{filled("打开填好的启动页", "record_decisions", "store_decisions", _EXAMPLE)}：
换成真实的影片，填写 `reviewer`，看过结果再把 `dry_run` 改为 `false`。

**决定**（`action`：含义；用到的字段）

- `confirm_top1`：最新判定的首选候选就是它；`lock`
- `choose`：是最新判定的另一个候选；`rank` 或 `douban_id`，`lock`
- `set_id`：是 `douban_id` 这个条目，不论谁找到的；`douban_id`，`lock`
- `replace_and_lock`：同上，并锁定；现有 ID 已锁定时也替换；`douban_id`
- `clear_id`：现有 ID 是错的：清除，不再自动关联它；`lock`（锁定为空）
- `ignore`：不再处理这部影片；`days`（0 为永久），`lock`
- `rematch`：重新匹配；也用于结束忽略
- `lock_id` / `unlock_id`：锁定 / 解锁豆瓣 ID
- `lock_intro` / `unlock_intro`：锁定 / 解锁简介
- `sync_now`：立即向豆瓣查询并更新字段，需要已确认的 ID；`lock`
- `redo_intro`：重写简介并锁定，需要已确认的 ID，且已开启 AI 简介

**字段**

- `reviewer`：你的名字，记入此后的每次写入；必填
- `note`：原因，一句话
- `dry_run`：`true`（默认）只检查并显示，`false` 才记录
- `vod_id`、`action`：影片和决定；必填
- `douban_id`、`rank`、`days`：见上；不用时为 0
- `lock`：同时锁定豆瓣 ID，自动运行不再改动它
- `accept_conflicts`：明知有冲突（片名、年份、类型、地区、导演对不上，或条目已属于另一部影片）仍要如此
- `verdict_id`：你看到的判定，由审核单填写；此后有了新判定则拒绝。0 为不检查

**示例** · Example:

{example("store_decisions", _EXAMPLE)}

**检查。** `set_id` 和 `replace_and_lock` 的条目先向豆瓣查询，与影片对比；有冲突则拒绝，除非写明
`accept_conflicts: true`。豆瓣此刻无法查询，或本次核对时间已用完，则先记录，执行时再核对。

**记录。** 有误的行逐条拒绝并说明原因，其余照常记录。只要有一行被拒绝，运行就显示为失败，而“已记录”的都已记录。
同一部影片可以有几条不矛盾的决定；相互矛盾的行都拒绝；新的决定取代尚未执行的、与之矛盾的旧决定。
重复记录同一决定无害，运行中断后再次启动即可。

**之后。** 影片立即到期，所在分片的下一次运行先执行人工决定，再做别的。这里不写 CMS。
记录之后影片资料若有改变，关联类的决定不执行，并说明原因。

**撤销。** 结果中的 `undo` 打开填好批次（`batch`）的 `revert_changes`，撤销由此产生的全部写入。
还没执行的决定，记录一条相反的新决定即可取代。
"""


@dg.job(
    config=dg.RunConfig(
        ops={
            "store_decisions": DecisionsConfig(
                reviewer="",
                note="",
                dry_run=True,
                decisions=[
                    DecisionRow(
                        vod_id=0,
                        action=DecisionAction.confirm_top1,
                        douban_id=0,
                        rank=0,
                        days=0,
                        lock=False,
                        accept_conflicts=False,
                        verdict_id=0,
                    )
                ],
            )
        }
    ),
    description=_MANUAL,
    tags=PERSON_TAGS,
)
def record_decisions() -> None:
    """Record reviewers' decisions."""
    store_decisions()


jobs = [record_decisions]
