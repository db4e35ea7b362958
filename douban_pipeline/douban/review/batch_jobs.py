"""A job that decides about many videos at once, by what they have in common. The job's text is the manual."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.ui.presentation import Markdown, subject_link, table
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, problems_failure, refuse_environment
from douban_pipeline.douban.review.manual import example, filled
from douban_pipeline.douban.review.outcome import conclude, waits
from douban_pipeline.douban.review.recording.decisions import DecisionError, record
from douban_pipeline.douban.review.selecting.bulk import UNLOCKING, Bulk, target_of
from douban_pipeline.douban.review.selecting.filters import MOST_ROWS, VideoFilter
from douban_pipeline.douban.review.selecting.selection import (
    Picked,
    SelectionError,
    select_videos,
    wishes_of,
)
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import WORDS
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus

_SHOWN = 500
_EVERY = 100
_NO_SUBJECT = Markdown("")


class BatchConfig(dg.Config):
    """What is decided, and about which videos. A filter that is empty does not restrict; one at least must be set."""

    reviewer: str = Field("", description="Your name; it is noted with every write that follows.")
    note: str = Field("", description="Why, in a sentence; it is noted with every write that follows.")
    dry_run: bool = Field(True, description="true only shows what would be decided; set false to record.")
    action: DecisionAction = Field(description=f"One of: {', '.join(DecisionAction)}.")
    douban_id: int = Field(0, description="The subject, for set_id, replace_and_lock and choose; the same for all.")
    rank: int = Field(0, description="For choose: 1, the best candidate; no other is chosen in bulk.")
    days: int = Field(0, description="Days that they are ignored, for ignore; 0 for ever.")
    lock: bool = Field(False, description="Also lock the ids against every automatic change.")
    accept_conflicts: bool = Field(False, description="Mean it although something speaks against the subject.")
    i_am_sure: bool = Field(False, description="Needed to unlock, and to replace locked ids.")
    max_rows: int = Field(100, description=f"At most so many videos, 1 to {MOST_ROWS}; the most pressing.")
    statuses: list[ReviewStatus] = Field(default_factory=list, description=f"Any of: {', '.join(ReviewStatus)}.")
    min_score: float = Field(0.0, description="Least score of the newest verdict; 0 for any.")
    max_score: float = Field(0.0, description="Largest score of the newest verdict; 0 for any.")
    with_codes: list[str] = Field(default_factory=list, description="All of these reasons or conflicts.")
    without_codes: list[str] = Field(default_factory=list, description="None of these reasons or conflicts.")
    type_ids: list[int] = Field(default_factory=list, description="Categories (their children are not implied).")
    min_year: int = Field(0, description="First year, as the CMS has it; 0 for any.")
    max_year: int = Field(0, description="Last year, as the CMS has it; 0 for any.")
    duplicates_of: int = Field(0, description="A subject: the videos that carry its id; 0 for any.")
    vod_ids: list[int] = Field(default_factory=list, description="These videos alone (mac_vod.vod_id).")
    except_vod_ids: list[int] = Field(default_factory=list, description="These videos not.")


@dg.op
def select_and_record(
    context: dg.OpExecutionContext, config: BatchConfig, services: dg.ResourceParam[Services]
) -> None:
    """Select the videos, show them, and record the decision about each."""
    refuse_environment(context)
    services.ready()
    bulk = _bulk(config)
    try:
        picked = select_videos(services, _filter(config), bulk, progress=_looking(context))
    except SelectionError as error:
        unsigned = [] if config.reviewer.strip() else ["reviewer: 请填写审核员的名字"]
        raise problems_failure("未记录任何决定", [*unsigned, *error.problems]) from error
    context.log.info(
        f"{picked.matched_in_all} videos match: {len(picked.videos)} selected, {picked.left_out_in_all} left out, "
        f"{picked.beyond} beyond max_rows"
    )
    shown = _shown(picked, bulk)
    unsure = _unsure(picked, bulk)
    if unsure and not config.dry_run:
        raise dg.Failure(f"未记录任何决定：{unsure}", metadata=shown, allow_retries=False)
    if not picked.videos:
        context.add_output_metadata({"dry_run": config.dry_run, **shown})
        return
    try:
        recording = record(
            services,
            wishes_of(picked, bulk),
            reviewer=config.reviewer,
            note=config.note,
            run_id=context.run_id,
            dry_run=config.dry_run,
            progress=_recording(context, len(picked.videos)),
        )
    except DecisionError as error:
        raise problems_failure("未记录任何决定", error.problems) from error
    told = {"unlocking": unsure} if unsure else {}
    conclude(context, recording, config.dry_run, **shown, **told, **waits(services))


def _bulk(config: BatchConfig) -> Bulk:
    return Bulk(
        config.action,
        config.douban_id,
        config.rank,
        config.days,
        config.lock,
        config.accept_conflicts,
        config.i_am_sure,
    )


def _filter(config: BatchConfig) -> VideoFilter:
    return VideoFilter(
        statuses=tuple(config.statuses),
        min_score=config.min_score,
        max_score=config.max_score,
        with_codes=tuple(config.with_codes),
        without_codes=tuple(config.without_codes),
        type_ids=tuple(config.type_ids),
        min_year=config.min_year,
        max_year=config.max_year,
        duplicates_of=config.duplicates_of,
        vod_ids=tuple(config.vod_ids),
        except_vod_ids=tuple(config.except_vod_ids),
        max_rows=config.max_rows,
    )


def _unsure(picked: Picked, bulk: Bulk) -> str:
    """Return what somebody who unlocks in bulk has to say yes to; empty for nothing."""
    if not bulk.unlocks or bulk.i_am_sure or not picked.videos:
        return ""
    what = f"{len(picked.videos)} 部影片的{UNLOCKING[bulk.action]}"
    return f"将解锁 {what}，此后自动运行可以改动它们；确认请设 i_am_sure: true"


def _looking(context: dg.OpExecutionContext) -> Callable[[int, int], None]:
    return lambda looked_at, of: context.log.info(f"{looked_at} of {of} videos looked at")


def _recording(context: dg.OpExecutionContext, total: int) -> Callable[[int], None]:
    told = {0}

    def tell(done: int) -> None:
        if done not in told and (done % _EVERY == 0 or done == total):
            told.add(done)
            context.log.info(f"{done} of {total} decisions settled")

    return tell


def _shown(picked: Picked, bulk: Bulk) -> dict[str, Any]:
    videos = [
        {
            "影片": pick.vod_id,
            "片名": pick.title,
            "状态": pick.status,
            "现有 ID": subject_link(pick.douban_id),
            "得分": pick.score,
            "首选": subject_link(pick.best.douban_id) if pick.best else _NO_SUBJECT,
            "首选片名": f"{pick.best.title}（{pick.best.year or '?'}）" if pick.best else "",
            "决定": f"{bulk.action} {WORDS[bulk.action]}",
            "条目": subject_link(target_of(bulk, pick.best)),
        }
        for pick in picked.videos
    ]
    left_out = [{"影片": entry.vod_id, "片名": entry.title, "原因": entry.why} for entry in picked.left_out]
    return {
        "videos": dg.MetadataValue.md(table(videos, most=_SHOWN)),
        "videos_left_out": dg.MetadataValue.md(table(left_out, most=_SHOWN)),
        "matched": picked.matched_in_all,
        "selected": len(picked.videos),
        "beyond_max_rows": picked.beyond,
        "left_out": picked.left_out_in_all,
    }


_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "确认待审核中的高分影片": {
        "reviewer": "小王",
        "note": "高分无冲突",
        "dry_run": False,
        "action": "confirm_top1",
        "statuses": ["REVIEW"],
        "min_score": 90,
    },
    "一个类别里没有找到的影片，半年内不再处理": {
        "reviewer": "小王",
        "note": "这类短剧不收录",
        "dry_run": False,
        "action": "ignore",
        "days": 180,
        "type_ids": [36],
        "statuses": ["NOT_FOUND"],
    },
    "一组重复影片只留一部，其余清除 ID": {
        "reviewer": "小王",
        "note": "只有 1024 是它",
        "dry_run": False,
        "action": "clear_id",
        "duplicates_of": 1292052,
        "except_vod_ids": [1024],
    },
    "解锁几部影片的简介": {
        "reviewer": "小王",
        "note": "允许自动改写",
        "dry_run": False,
        "action": "unlock_intro",
        "vod_ids": [1024, 2048],
        "i_am_sure": True,
    },
}
_LINKS = "\n".join(
    f"- {filled(what, 'record_batch_decisions', 'select_and_record', config)}" for what, config in _EXAMPLES.items()
)
_BLOCKS = "\n\n".join(f"{what}：\n\n{example('select_and_record', config)}" for what, config in _EXAMPLES.items())
_MANUAL = f"""\
批量记录审核决定 · Record one decision about many videos, chosen by what they have in common.

打开填好的启动页，只显示、不记录：

{_LINKS}

`action` 及 `douban_id`、`days`、`lock`、`accept_conflicts` 与 `record_decisions` 相同，对选中的每部影片各记录一条。

**筛选**（填写的都要满足；留空或 0 为不限；至少填写一项）

- `statuses`：状态：`REVIEW` 待审核，`NOT_FOUND` 未找到，`CONFIRMED` 已确认，`IGNORED` 已忽略；不写则不含已忽略的
- `min_score`、`max_score`：最新判定的得分范围
- `with_codes`、`without_codes`：最新判定的原因和首选候选的冲突，如 `YEAR_OFF`：须都有；须都没有
- `type_ids`：类别（不含子类）
- `min_year`、`max_year`：CMS 中的年份
- `duplicates_of`：一个豆瓣 ID：现在带有它的影片
- `vod_ids`：只在这些影片中选
- `except_vod_ids`：除去这些影片
- `max_rows`：最多选多少部（1 至 5000），按审核队列的顺序取前面的

**先看。** `dry_run: true`（默认）列出会选中哪些影片（`videos`）、各记录什么、能否记录（`decisions`），
哪些不选和原因（`videos_left_out`），以及超出 `max_rows` 的有多少。确认之后改为 `false` 再启动一次。

**批量确认更严。** `confirm_top1` 和 `choose` 只取首选候选，而且得分和领先都达到自动确认线、没有任何冲突、取过详情；
其余的不选，请在审核单里逐部决定。已锁定为别的 ID 的影片、已有别的决定在等待执行的影片也不选。

**要写明的。** 批量解锁（`unlock_id`、`unlock_intro`），以及用 `replace_and_lock` 替换已锁定的 ID，
须写 `i_am_sure: true`。

**记录。** 有误的逐部拒绝并说明原因，其余照常记录；每 100 部在日志中报一次进度。
结果中的 `undo` 打开填好批次（`batch`）的 `revert_changes`，一次撤销由此产生的全部写入。

**示例** · Examples（没有写出的字段保持默认）:

{_BLOCKS}
"""


@dg.job(
    config=dg.RunConfig(
        ops={
            "select_and_record": BatchConfig(
                reviewer="",
                note="",
                dry_run=True,
                action=DecisionAction.confirm_top1,
                douban_id=0,
                rank=0,
                days=0,
                lock=False,
                accept_conflicts=False,
                i_am_sure=False,
                max_rows=100,
                statuses=[],
                min_score=0.0,
                max_score=0.0,
                with_codes=[],
                without_codes=[],
                type_ids=[],
                min_year=0,
                max_year=0,
                duplicates_of=0,
                vod_ids=[],
                except_vod_ids=[],
            )
        }
    ),
    description=_MANUAL,
    tags=PERSON_TAGS,
)
def record_batch_decisions() -> None:
    """Record one decision about many videos."""
    select_and_record()


jobs = [record_batch_decisions]
