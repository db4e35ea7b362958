"""Jobs that people launch to revert writes and to see what happened to a video. Every default is safe."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import escaped
from douban_pipeline.core.ui.tmdb_attribution import attribution_of
from douban_pipeline.dagster_kit.launchpad import AtLeast, Filled, LaunchpadConfig, PersonName, person_job
from douban_pipeline.douban import links
from douban_pipeline.douban.chain.sync.cms_edits import CmsEditsAnswer, asked_edits, settle_edits
from douban_pipeline.douban.decisions.withdrawal import revert_and_withdraw
from douban_pipeline.douban.resources import OVERRIDE, PERSON_TAGS, SomeVideoIds, VideoIds
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.undo.history import histories
from douban_pipeline.douban.undo.history_page import history_page
from douban_pipeline.douban.undo.revert_report import change_table, decision_table, steps_table
from douban_pipeline.douban.undo.revert_request import (
    RevertError,
    RevertRequest,
    listed,
    looked_for,
    selection_of,
)
from douban_pipeline.douban.writes.changes import WRONG_LINK
from douban_pipeline.douban.writes.revert import ChangeSelection, RevertedChange, TooManyError

MOST_EVENTS = 300
"""Events of all videos of a launch together that are shown: a page of some hundred kilobytes."""

LEAST_EVENTS = 20
"""Events of each video that are shown in any case."""


class RevertConfig(LaunchpadConfig):
    """Which writes are reverted. Filters left empty do not restrict; those that are set must all hold."""

    reviewer: Annotated[str, Filled(page_text("Write your name to undo in earnest."), if_written=True)] = Field(
        "",
        description=page_text("Your name; it is recorded with every write. Not needed for a dry run."),
    )
    reason: Annotated[str, Filled(page_text("Write the reason to undo in earnest."), if_written=True)] = Field(
        "",
        description=page_text("Reason, in one sentence; shown on the videos. Dry run: optional."),
    )
    dry_run: bool = Field(True, description=page_text("true: only show what would happen; false: revert."))
    change_ids: list[int] = Field(
        default_factory=list, description=page_text("These changes (mac_douban_log.change_id).")
    )
    vod_ids: VideoIds = Field(
        default_factory=list, description=page_text("Revert the latest change of each of these videos.")
    )
    batch_id: str = Field(
        "", description=page_text("A batch of writes (`synced_fields` shows it) or of recorded decisions.")
    )
    run_id: str = Field("", description=page_text("All changes of this Dagster run."))
    decision_ids: list[int] = Field(default_factory=list, description=page_text("All writes of these decisions."))
    written_by: str = Field("", description=page_text("All writes and decisions of this person."))
    rule_version: str = Field(
        "",
        description=page_text("All automatic writes under this rule version; with `written_by`, those of that person."),
    )
    intro_reader: str = Field(
        "", description=page_text("All intros that this reader passed: `reading-4`, or with its model.")
    )
    intro_prompt: str = Field("", description=page_text("All intros written under this version of the prompt."))
    intro_model: str = Field("", description=page_text("All intros written by this model."))
    since: str = Field(
        "",
        description=page_text("Written from this time: 2026-11-20 08:00 in SITE_TIMEZONE, or ISO with offset."),
    )
    until: str = Field("", description=page_text("Written before this time (exclusive); same format."))
    wrong_links: bool = Field(
        False,
        description=page_text("true: the reverted links were wrong; they count in the precision of automatic links."),
    )
    override_cms_lock: bool = Field(False, description=OVERRIDE)
    max_changes: Annotated[int, AtLeast(1, page_text("Write the greatest number of changes to undo."))] = Field(
        10_000, description=page_text("If more changes than this are selected, nothing is reverted.")
    )


def revert_writes(context: dg.OpExecutionContext, config: RevertConfig, services: dg.ResourceParam[Services]) -> None:
    """Revert the selected changes, or show what would happen."""
    services.ready()
    given = config.model_dump()
    own = ("override_cms_lock", "wrong_links")
    request = RevertRequest(**{name: value for name, value in given.items() if name not in own})
    selection = selection_of(services, request)
    sought = looked_for(selection, services.settings.zone)
    context.log.info(f"looking for: {sought}")
    change_log = services.change_log(context.run_id)
    reviewer, reason = request.reviewer.strip(), request.reason.strip()
    reason = f"{WRONG_LINK}{reason}" if config.wrong_links else reason
    try:
        reverted = revert_and_withdraw(
            services,
            change_log,
            selection,
            operator=reviewer,
            reason=reason,
            dry_run=config.dry_run,
            override_cms_lock=config.override_cms_lock,
            most=request.max_changes,
            progress=lambda done, total: context.log.info(f"{done} of {total} changes looked at"),
        )
    except TooManyError as error:
        problem = (
            f"符合条件的变更有 {error.count} 条，超过 max_changes（{error.most}）：{sought}。"
            "请加上条件（如 since/until、vod_ids）分批撤销；确认就是要这么多，则调大 max_changes"
        )
        raise RevertError([problem]) from error
    results, decisions = reverted.changes, reverted.decisions
    with reading(services.engine) as connection:
        steps = steps_table(services, connection, selection.vod_ids, results)
    whole = sum(not item.skipped for item in results)
    context.log.info(f"{whole} of {len(results)} changes {'would be ' if config.dry_run else ''}reverted in full")
    context.add_output_metadata(
        {
            "result": dg.MetadataValue.md(_result_lines(selection, results, len(decisions), sought, config.dry_run)),
            "selected": len(results),
            "in_full": whole,
            "in_part": sum(bool(item.skipped and item.restored) for item in results),
            "skipped": sum(bool(item.skipped and not item.restored) for item in results),
            "videos": len({item.vod_id for item in results}),
            "decisions_withdrawn": len(decisions),
            "dry_run": config.dry_run,
            **({} if config.dry_run else {"batch": change_log.batch_id}),
            **({"steps": dg.MetadataValue.md(steps)} if steps else {}),
            "changes": dg.MetadataValue.md(change_table(services, results)),
            **({"decisions": dg.MetadataValue.md(decision_table(services.settings, decisions))} if decisions else {}),
            "next": dg.MetadataValue.md(_next(given, results, change_log.batch_id, services.location)),
        }
    )


def _result_lines(
    selection: ChangeSelection, results: Sequence[RevertedChange], decisions: int, sought: str, dry_run: bool
) -> str:
    """Return the outcome of the launch in a few lines."""
    whole, will = sum(not item.skipped for item in results), "将" if dry_run else "已"
    lines = [f"{will}完整撤销 {whole} 条变更；另有 {len(results) - whole} 条全部或部分跳过。"]
    if not results:
        lines = ["没有可撤销的变更：符合条件的都已撤销，或当时就没有写入。"]
    still = sorted(set(selection.vod_ids) - {item.vod_id for item in results})
    if still:
        lines.append(f"没有上一步可退的影片：{listed(still)}。")
    left = sorted(set(selection.change_ids) - {item.change_id for item in results})
    if left and results:
        lines.append(f"未选中的变更（已撤销、当时没有写入，或不符合其他条件）：{listed(left)}。")
    if decisions:
        lines.append(f"{will}撤回尚未执行的决定 {decisions} 条。")
    return "\n\n".join([*lines, f"查找条件：{escaped(sought)}"])


def _next(given: Mapping[str, Any], results: Sequence[RevertedChange], batch_id: str, location: str) -> str:
    """Return the next link: to apply what was shown, or to undo what was done."""
    if not results:
        return "—"
    if given["dry_run"]:
        signed = given["reviewer"].strip() and given["reason"].strip()
        text = "确认无误，正式撤销" if signed else "填写 reviewer 和 reason 后正式撤销"
        return launch_link(text, links.revert(**{**given, "dry_run": False}), location) or "—"
    undo = links.revert(reviewer=given["reviewer"], reason="恢复被撤销的内容", batch_id=batch_id)
    return launch_link("撤销这次撤销", undo, location)


_REVERT_CHANGES = page_text(
    """\
Revert writes: by change, video, batch, run, decision, person, rule version, origin of an intro or time.

All filters that are set must match. Values that were changed or locked since are skipped and listed first. A revert
is a batch of its own and can be reverted. With `dry_run: true` (the default) nothing is written.
"""
)

revert_changes = person_job(
    revert_writes,
    name="revert_changes",
    manual=_REVERT_CHANGES,
    writes=page_text(
        "The old values, back into the columns of the CMS that were written, as a new batch in "
        "`mac_douban_log`; it withdraws decisions that wait. A dry run writes nothing."
    ),
    when=page_text(
        "When writes were wrong: a single one, a batch, a run, or everything of a person, a rule version, or a model "
        "that writes or reads intros."
    ),
    examples={"": {"reviewer": "小王", "reason": "该批次年份有误", "dry_run": False, "batch_id": "3f2a9c0d1e5b7a64"}},
    nothing_done="未撤销任何变更",
    tags=PERSON_TAGS,
)


class HistoryConfig(LaunchpadConfig):
    """Whose history is shown."""

    vod_ids: SomeVideoIds = Field(default_factory=list, description=page_text("Videos (mac_vod.vod_id)."))
    most: Annotated[int, AtLeast(1, page_text("Write the greatest number of videos."))] = Field(
        20, description=page_text("Maximum number of videos shown; the more videos, the fewer events of each.")
    )


def show_history(context: dg.OpExecutionContext, config: HistoryConfig, services: dg.ResourceParam[Services]) -> None:
    """Show the history of the videos."""
    services.ready()
    wanted = list(dict.fromkeys(config.vod_ids))
    chosen = wanted[: config.most]
    found = list(histories(services, chosen, most_events=max(LEAST_EVENTS, MOST_EVENTS // len(chosen))))
    unknown = [history.vod_id for history in found if not history.known]
    if unknown:
        context.log.warning(f"nothing is known of {len(unknown)} videos: {listed(unknown)}")
    if len(unknown) == len(chosen):
        raise ProblemsError([f"没有这些影片：{listed(unknown)}"])
    left_out = wanted[config.most :]
    page = history_page(found, services.settings.zone, services.location)
    credit = attribution_of(page)
    context.add_output_metadata(
        {
            "videos": len(chosen) - len(unknown),
            "unknown": "、".join(map(str, unknown)),
            "left_out": f"最多 {config.most} 部，未显示：{listed(left_out)}" if left_out else "",
            "history": dg.MetadataValue.md(page + (f"\n\n{credit}" if credit else "")),
        }
    )


_VIDEO_HISTORY = page_text(
    """\
Show what happened to videos: verdicts, decisions, writes, intros and failures, the newest first.

Read-only. Videos deleted from the CMS still have their history; each change has a link to revert it.
"""
)

video_history = person_job(
    show_history,
    name="video_history",
    manual=_VIDEO_HISTORY,
    writes=page_text("Nothing."),
    when=page_text("When you want to know why a video is as it is, before you decide or revert."),
    examples={"": {"vod_ids": [1024, 2048], "most": 20}},
    nothing_done="没有可展示的历史",
    tags=PERSON_TAGS,
)


class EditsConfig(LaunchpadConfig):
    """What is said of columns that were changed in the CMS."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded."))
    dry_run: bool = Field(True, description=page_text("true: only count them; false: apply the answer."))
    answer: CmsEditsAnswer = Field(
        CmsEditsAnswer.keep,
        description=page_text(
            "keep: the changes were intended and stay; restore: they were not, and what was written before is written "
            "again."
        ),
    )


def answer_edits(context: dg.OpExecutionContext, config: EditsConfig, services: dg.ResourceParam[Services]) -> None:
    """Answer for columns that were changed in the CMS in many videos."""
    services.ready()
    change_log = services.change_log(context.run_id)
    with reading(services.engine) as connection:
        columns, edits = asked_edits(services, connection)
    results = settle_edits(change_log, edits, config.answer, config.reviewer.strip()[:64], dry_run=config.dry_run)
    restored = sum(bool(item.restored) for item in results)
    context.log.info(f"{len(edits)} changes of {', '.join(columns) or 'no column'}, {restored} videos restored")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "answer": config.answer.name,
            "columns": ", ".join(columns),
            "videos": len({edit.vod_id for edit in edits}),
            "restored": restored,
            "skipped": len(results) - restored,
            **({"batch": change_log.batch_id} if restored else {}),
        }
    )


_SETTLE_EDITS = page_text(
    """\
Answer for columns that were changed in the CMS in many videos

A batch edit or another program changed what had been written here. Nothing waits for the answer: it is asked once, and
what was changed counts as the site's own once it is answered.
"""
)

settle_cms_edits = person_job(
    answer_edits,
    name="settle_cms_edits",
    manual=_SETTLE_EDITS,
    writes=page_text(
        "A row of `mac_douban_log` for each video; with restore also the columns of the CMS, as a batch that "
        "`revert_changes` reverts. A dry run only counts them."
    ),
    when=page_text("When the alert asks whether a column was meant to be changed in the CMS."),
    examples={
        "有意的": {"reviewer": "小王", "dry_run": False, "answer": "keep"},
        "不是有意的": {"reviewer": "小王", "dry_run": False, "answer": "restore"},
    },
    nothing_done="未作回答",
    tags=PERSON_TAGS,
)

jobs = [revert_changes, video_history, settle_cms_edits]
