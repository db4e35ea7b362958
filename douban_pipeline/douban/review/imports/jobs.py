"""The job that records the decisions of a CSV file or workbook."""

from dataclasses import replace

import dagster as dg
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, PersonName, person_job
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.review.imports.files import parse_decisions, read_inbox_file
from douban_pipeline.douban.review.jobs import (
    DRY_RUN,
    NOTHING_RECORDED,
    REVIEWER,
    dry_run_notice,
    log_progress,
    replaced,
    report_recording,
)
from douban_pipeline.douban.review.records.record import DecisionError, record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import DecisionStatus

_SHOWN = 500


class ImportConfig(LaunchpadConfig):
    """Who decided, and where the decisions are: either ``file`` or ``text``."""

    reviewer: PersonName = Field("", description=REVIEWER)
    note: str = Field("", description=page_text("Reason; for rows without a note of their own."))
    dry_run: bool = Field(True, description=DRY_RUN)
    file: str = Field(
        "",
        description=page_text("Name of a file in the folder inbox of HOME, without a path."),
    )
    text: str = Field("", description=page_text("Or: the content of the CSV."))


def read_and_record(context: dg.OpExecutionContext, config: ImportConfig, services: dg.ResourceParam[Services]) -> None:
    """Read the decisions, record the valid ones, and report the other rows."""
    services.ready()
    name, text = config.file.strip(), config.text
    if bool(name) == bool(text.strip()):
        given = "都填写了，请只留其一" if name else "都是空的，请填写其一"
        raise ProblemsError([f"file、text: {given}"])
    data = read_inbox_file(services.settings, name) if name else text.encode(errors="replace")
    parsed = parse_decisions(data, name)
    unread = {row: f"{name} 第 {row} 行：{why}".strip() for row, why in parsed.refused.items()}
    context.log.info(
        f"{len(parsed.decisions)} decisions, {len(unread)} lines not readable, {parsed.undecided} without decision"
    )
    listed = [*unread.values()][:_SHOWN]
    listed += [f"…… 其余 {len(unread) - _SHOWN} 行"] if len(unread) > _SHOWN else []
    if not parsed.decisions:
        raise ProblemsError(listed or [f"没有一行填写了决定（共 {parsed.undecided} 行）"])
    try:
        recording = record(
            services,
            [replace(decision, imported=True) for decision in parsed.decisions.values()],
            reviewer=config.reviewer,
            note=config.note,
            run_id=context.run_id,
            dry_run=config.dry_run,
            progress=log_progress(context, services, len(parsed.decisions)),
        )
    except DecisionError as error:
        raise ProblemsError([*error.problems, *listed]) from error
    recorded = zip(parsed.decisions, recording.items, strict=True)
    refused = unread | {row: item.sentence for row, item in recorded if item.status is DecisionStatus.REFUSED}
    report_recording(
        context,
        recording,
        config.dry_run,
        [sentence for _, sentence in sorted(refused.items())],
        undecided=parsed.undecided,
        ignored_columns="、".join(parsed.ignored),
        **replaced(services, recording),
        **dry_run_notice(services.settings),
    )


_MANUAL = page_text(
    """\
Import decisions from a CSV file or a workbook, filled in with Excel or WPS.

{link}

Examples:

{examples}

Fields

{fields}
"""
)
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
    writes=page_text("Rows in `mac_douban_decision`, one per line with a decision. A dry run only checks the lines."),
    when=page_text("When reviewers worked in a spreadsheet, such as the CSV of the review queue."),
    examples={"收件夹里的文件": _FILE, "粘贴的内容": _TEXT},
    nothing_done=NOTHING_RECORDED,
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs = [import_decisions]
