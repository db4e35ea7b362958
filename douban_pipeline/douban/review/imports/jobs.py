"""The job that records the decisions of a CSV file or workbook."""

from dataclasses import replace

import dagster as dg
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.presentation import local_time, table
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.review.imports.csv_files import CsvError, ParsedDecisions, parse_csv
from douban_pipeline.douban.review.imports.inbox import InboxError, read_inbox_file
from douban_pipeline.douban.review.jobs import (
    DRY_RUN,
    NOTHING_RECORDED,
    REVIEWER,
    dry_run_notice,
    log_progress,
    replaced,
    report_recording,
)
from douban_pipeline.douban.review.recording.record import DecisionError, Recording, record
from douban_pipeline.douban.review.written_sheet import rewrite_sheet
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.decisions import DecisionStatus

_SHOWN = 500


class ImportConfig(LaunchpadConfig):
    """Who decided, and where the decisions are: either ``file`` or ``text``."""

    reviewer: str = Field("", description=REVIEWER)
    note: str = Field("", description="原因；用于自己没有备注的行 · Reason; for rows without a note of their own.")
    dry_run: bool = Field(True, description=DRY_RUN)
    file: str = Field(
        "",
        description="收件夹 inbox 里的文件名 · Name of a file in the folder inbox of HOME, without a path.",
    )
    text: str = Field("", description="或 CSV 的内容 · Or: the content of the CSV.")


def read_and_record(context: dg.OpExecutionContext, config: ImportConfig, services: dg.ResourceParam[Services]) -> None:
    """Read the decisions, record the valid ones, and report the other lines."""
    services.ready()
    parsed = _parsed(config, services)
    unread = [f"第 {line} 行：{why}" for line, why in parsed.refused[:_SHOWN]]
    unread += [f"…… 其余 {len(parsed.refused) - _SHOWN} 行"] if len(parsed.refused) > _SHOWN else []
    context.log.info(
        f"{len(parsed.decisions)} decisions, {len(parsed.refused)} lines not readable, "
        f"{parsed.undecided} without decision"
    )
    if not parsed.decisions:
        nothing = unread or [f"没有一行填写了决定（共 {parsed.undecided} 行）"]
        raise ProblemsError([*_unsigned(config), *nothing])
    try:
        recording = record(
            services,
            [replace(decision, imported=True) for decision in parsed.decisions],
            reviewer=config.reviewer,
            note=config.note,
            run_id=context.run_id,
            dry_run=config.dry_run,
            progress=log_progress(context, services, len(parsed.decisions)),
        )
    except DecisionError as error:
        raise ProblemsError([*error.problems, *unread]) from error
    refused = _refused(parsed, recording)
    if not config.dry_run:
        rewrite_sheet(services, context.log)
    report_recording(
        context,
        recording,
        config.dry_run,
        [sentence for _, sentence in refused],
        undecided=parsed.undecided,
        ignored_columns="、".join(parsed.ignored),
        refused_lines=dg.MetadataValue.md(
            table([{"行": line, "原因": sentence} for line, sentence in refused], most=_SHOWN)
        ),
        **replaced(services, recording),
        **dry_run_notice(services.settings),
    )


def _parsed(config: ImportConfig, services: Services) -> ParsedDecisions:
    name, text = config.file.strip(), config.text
    if bool(name) == bool(text.strip()):
        given = "都填写了，请只留其一" if name else "都是空的，请填写其一"
        raise ProblemsError([*_unsigned(config), f"file、text: {given}"])
    try:
        data = read_inbox_file(services.settings, name) if name else text.encode(errors="replace")
        return parse_csv(data)
    except InboxError as error:
        raise _not_there(error, services.settings) from error
    except CsvError as error:
        raise ProblemsError([*_unsigned(config), *error.problems]) from error


def _unsigned(config: ImportConfig) -> list[str]:
    return [] if config.reviewer.strip() else ["reviewer: 请填写审核员的名字"]


def _not_there(error: InboxError, settings: Settings) -> dg.Failure:
    zone = settings.zone
    files = [
        {"文件": letter.name, "字节": letter.size, "修改时间": local_time(letter.changed, zone)}
        for letter in error.files
    ]
    names = "、".join(repr(letter.name) for letter in error.files) or "（空）"
    return dg.Failure(
        f"{NOTHING_RECORDED}：\n- {error}；收件夹里现有：{names}",
        metadata={"files": dg.MetadataValue.md(table(files, most=_SHOWN))},
        allow_retries=False,
    )


def _refused(parsed: ParsedDecisions, recording: Recording) -> list[tuple[int, str]]:
    """Return the refused lines with their reasons, in the order of the file."""
    unread = [(line, f"第 {line} 行：{why}") for line, why in parsed.refused]
    recorded = zip(parsed.lines, recording.items, strict=True)
    return sorted(unread + [(line, item.sentence) for line, item in recorded if item.status is DecisionStatus.REFUSED])


_MANUAL = """\
从电子表格导入审核决定 · Import decisions from a CSV file or a workbook, filled in with Excel or WPS.

{link}：
填写 `reviewer`，看过结果再把 `dry_run` 改为 `false`。

把填好的文件放进 HOME 下的 `inbox`，在 `file` 填写文件名；或把内容粘贴到 `text`。两者填其一。

**列**

- `vod_id`：影片；必须有
- `决定`：如 `确认首选候选` 或 `confirm_top1`，见 `record_decisions`；必须有，空着的行不处理
- `豆瓣ID`：`set_id`、`replace_and_lock`、`choose` 用；数字或条目网址
- `候选序号`：`choose` 用，候选前面的数字
- `天数`：`ignore` 用，空或 0 为永久
- `锁定`、`接受冲突`：是 / 否
- `备注`：原因；空着则用启动页的 `note`
- `verdict_id`：导出时的判定，请保留：此后有了新判定则拒绝

其余的列（片名、候选等）只供阅读，不读回。列名也可以用英文（`action`、`douban_id`、`rank`……），顺序不限。

**格式。** UTF-8、Excel 的“Unicode 文本”（UTF-16）或 GB18030，以逗号、分号或制表符分隔；或 Excel 工作簿
（xlsx，取第一张工作表，放入收件夹）。Excel 写成 1.23E+07 的 ID 已丢失末尾的数字，会被拒绝。

**检查与记录。** 与 `record_decisions` 相同：`dry_run: true`（默认）只检查；有误的行按文件中的行号逐行说明
（`refused_lines`），其余照常记录。只有一行也没能记录时运行才显示为失败。改好之后整个文件再导入一次即可，重复的决定无害。

**示例** · Examples:

{examples}

**字段** · Fields

{fields}
"""
_FILE = {"reviewer": "小王", "note": "本周审核", "dry_run": False, "file": "review.csv", "text": ""}
_TEXT = {
    "reviewer": "小王",
    "note": "",
    "dry_run": True,
    "file": "",
    "text": "vod_id,决定,豆瓣ID,备注\n1024,指定豆瓣 ID,1292052,海报一致\n2048,忽略,,\n",
}

import_decisions = person_job(
    read_and_record,
    name="import_decisions",
    manual=_MANUAL,
    examples={"收件夹里的文件": _FILE, "粘贴的内容": _TEXT},
    nothing_done=NOTHING_RECORDED,
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs = [import_decisions]
