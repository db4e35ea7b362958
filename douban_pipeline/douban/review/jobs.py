"""The job in which people record decisions, and the report that all such jobs share. Every default is safe."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import escaped, subject_link, table
from douban_pipeline.dagster_kit.launchpad import AtLeast, Filled, LaunchpadConfig, PersonName, location_of, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban import links
from douban_pipeline.douban.chain.decision_lane.checks import refused_at_recording
from douban_pipeline.douban.resources import OVERRIDE, PERSON_TAGS, VideoId
from douban_pipeline.douban.review.records.record import Recording, record
from douban_pipeline.douban.review.records.replacement import replacement_rows, replacements
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS

NOTHING_RECORDED = "未记录任何决定"
REVIEWER = page_text("Your name; it is recorded with every resulting write.")
DRY_RUN = page_text("true: only check and preview; false: record.")
"""Descriptions of the fields that all these jobs share."""

_SHOWN = 500
_IN_MESSAGE = 30
_EVERY = timedelta(seconds=10)
_RESULTS = {
    DecisionStatus.REFUSED: "拒绝",
    DecisionStatus.RECORDED: "已记录",
    DecisionStatus.CHECKED: "仅检查，可以记录",
    DecisionStatus.ALREADY: "无需记录",
    DecisionStatus.KNOWN: "无需记录",
}
"""Outcomes of a row, in the order of the table."""

_ORDER = tuple(_RESULTS)


class DecisionRow(LaunchpadConfig):
    """One decision. Fields that its action does not use keep their defaults."""

    vod_id: VideoId = Field(description=page_text("The video (mac_vod.vod_id)."))
    action: DecisionAction = Field(
        description=page_text("One of: {decision_action}.").format(decision_action=", ".join(DecisionAction))
    )
    douban_id: Annotated[int, AtLeast(0, page_text("Write 0 in decisions that do not use it."))] = Field(
        0, description=page_text("The subject, for set_id, replace_and_lock, and choose without rank.")
    )
    rank: Annotated[int, AtLeast(0, page_text("Candidates are numbered from 1; write 0 where it is not used."))] = (
        Field(0, description=page_text("Rank of the candidate, from 1, for choose."))
    )
    days: Annotated[int, AtLeast(0, page_text("Write 0 to ignore for good."))] = Field(
        0, description=page_text("Days for which the video is ignored, for ignore; 0: forever.")
    )
    lock: bool = Field(
        False,
        description=page_text("Also lock the id against automatic changes."),
    )
    accept_conflicts: bool = Field(
        False,
        description=page_text("Accept the subject despite conflicts with the video."),
    )
    override_cms_lock: bool = Field(False, description=OVERRIDE)
    verdict_id: int = Field(
        0,
        description=page_text("The verdict that you saw; review sheets fill it in; 0: no check."),
    )


class DecisionsConfig(LaunchpadConfig):
    """Who decided what, and why."""

    reviewer: PersonName = Field("", description=REVIEWER)
    note: str = Field("", description=page_text("Reason, in one sentence; it is recorded with every resulting write."))
    dry_run: bool = Field(True, description=DRY_RUN)
    decisions: Annotated[list[DecisionRow], Filled(page_text("Write at least one decision."))] = Field(
        description=page_text("One row per decision; a video may have several.")
    )


def store_decisions(
    context: dg.OpExecutionContext, config: DecisionsConfig, services: dg.ResourceParam[Services]
) -> None:
    """Check all decisions, record the valid ones, and report the others."""
    services.ready()
    decisions = [Decision(**each.model_dump()) for each in config.decisions]
    recording = record(
        services,
        decisions,
        reviewer=config.reviewer,
        note=config.note,
        run_id=context.run_id,
        dry_run=config.dry_run,
        progress=log_progress(context, services, len(decisions)),
    )
    report_recording(
        context, recording, config.dry_run, **replaced(services, recording), **dry_run_notice(services.settings)
    )


def recorded_table(recording: Recording) -> str:
    """Return the outcome of each row as a Markdown table, refused rows first."""
    items = sorted(recording.items, key=lambda item: (_ORDER.index(item.status), not item.unchecked))
    return table([_shown(item) for item in items], most=_SHOWN)


def _shown(item: Decision) -> dict[str, object]:
    return {
        "行": item.where,
        "影片": item.vod_id,
        "片名": item.title,
        "决定": f"{item.action} {ACTIONS[item.action]}",
        "条目": subject_link(item.douban_id),
        "锁定": "是" if item.lock else "",
        "结果": _RESULTS[item.status],
        "说明": item.reason,
    }


def log_progress(context: dg.OpExecutionContext, services: Services, total: int) -> Callable[[int], None]:
    """Return a function that logs every `_EVERY` how many of ``total`` decisions are settled."""
    last = services.clock.now()

    def log(done: int) -> None:
        nonlocal last
        now = services.clock.now()
        if now - last >= _EVERY:
            last = now
            context.log.info(f"{done} of {total} decisions settled")

    return log


def replaced(services: Services, recording: Recording) -> dict[str, Any]:
    """Return metadata that shows the old and the new subject of the videos whose id would change."""
    found = replacements(services, recording.items)
    return {"replaced_ids": run_table(replacement_rows(found), most=_SHOWN)} if found else {}


def dry_run_notice(settings: Settings) -> dict[str, str]:
    """Return metadata that says that decisions wait, if ``DOUBAN_PIPELINE_DRY_RUN`` is set; empty otherwise."""
    if not settings.dry_run:
        return {}
    return {"waits": "DOUBAN_PIPELINE_DRY_RUN=true：决定先记录，关闭演练模式之后才执行"}


def _undo(recording: Recording, location: str) -> dg.MetadataValue:
    """Return a link to the job that reverts a batch: a dry run first, with the name of the person who recorded it."""
    launch = links.revert(reviewer=recording.reviewer, reason=links.UNDONE, batch_id=recording.batch_id)
    return dg.MetadataValue.md(launch_link("撤销这一批", launch, location))


def report_recording(
    context: dg.OpExecutionContext, recording: Recording, dry_run: bool, refusals: Sequence[str] = (), **more: Any
) -> None:
    """Add the outcome of a launch to the run's metadata.

    Args:
        context: The run.
        recording: The outcomes of the rows.
        dry_run: Whether the launch only checked.
        refusals: A sentence for each refusal, if the job has others than the recording's.
        more: Further metadata of the job.

    Raises:
        Failure: Rows were refused, and none could be recorded. If only some were refused, the run succeeds, warns in
            its log and by the check `decisions_accepted`, and shows the refusals before anything else.
    """
    refused = list(refusals) or [item.sentence for item in recording.of(DecisionStatus.REFUSED)]
    good = recording.of(DecisionStatus.CHECKED if dry_run else DecisionStatus.RECORDED)
    known, unchecked = (
        len(recording.of(DecisionStatus.KNOWN, DecisionStatus.ALREADY)),
        sum(item.unchecked for item in recording.items),
    )
    written = bool(good) and not dry_run
    location = location_of(context.run) or links.LOCATION
    counts = {"refused": len(refused), "known": known, "unchecked": unchecked, **more}
    # A run's page shows only the first lines: tables and links come first, and counts of 0 are left out.
    metadata: dict[str, Any] = {
        "decisions": dg.MetadataValue.md(recorded_table(recording)),
        **({"undo": _undo(recording, location), "batch": recording.batch_id} if written else {}),
        "recorded": len(good) if written else 0,
        **{name: value for name, value in counts.items() if value not in (0, "")},
        "dry_run": dry_run,
    }
    context.log.info(
        f"{len(good)} decisions {'could be recorded' if dry_run else 'recorded'}, {len(refused)} refused, "
        f"{known} known, {unchecked} unchecked"
    )
    if not refused:
        context.add_output_metadata(metadata)
        return
    said = f"仅检查：{len(good)} 条可以记录" if dry_run else f"已记录 {len(good)} 条"
    lines = [f"- {sentence}" for sentence in refused[:_IN_MESSAGE]]
    if len(refused) > len(lines):
        lines.append(f"- …… 其余 {len(refused) - len(lines)} 条见表 decisions")
    description = "\n".join([f"{said}，拒绝 {len(refused)} 条", *lines])
    if not good and not known:
        raise dg.Failure(description, metadata=metadata, allow_retries=False)
    context.log.warning(description)
    if written:
        # Dagster accepts check results here, although its annotation does not.
        context.log_event(refused_at_recording(refused, len(good)))  # type: ignore[arg-type]
    shown = "\n".join([f"{said}，拒绝 {len(refused)} 条", "", *(f"- {escaped(line[2:])}" for line in lines)])
    context.add_output_metadata({"refusals": dg.MetadataValue.md(shown), **metadata})


_MANUAL = page_text(
    """\
Record reviewers' decisions; `apply_decisions` applies them within a minute.

{link}

Fields

{fields}

Example:

{examples}
"""
)

record_decisions = person_job(
    store_decisions,
    name="record_decisions",
    manual=_MANUAL,
    writes=page_text(
        "Rows in `mac_douban_decision`; the CMS is written by `apply_decisions`, through the change "
        "log. A dry run writes nothing and fetches the named subjects."
    ),
    when=page_text(
        "When you have decided some videos on the review sheet, or know a video's subject; it takes hundreds of rows."
    ),
    examples={
        "": {
            "reviewer": "小王",
            "note": "海报和导演一致",
            "dry_run": False,
            "decisions": [
                {"vod_id": 1024, "action": DecisionAction.confirm_top1, "lock": True},
                {"vod_id": 2048, "action": DecisionAction.choose, "rank": 2},
                {"vod_id": 3072, "action": DecisionAction.set_id, "douban_id": 1292052},
                {"vod_id": 3072, "action": DecisionAction.lock_intro},
                {
                    "vod_id": 4096,
                    "action": DecisionAction.replace_and_lock,
                    "douban_id": 1291546,
                    "accept_conflicts": True,
                },
                {"vod_id": 5120, "action": DecisionAction.ignore, "days": 180},
            ],
        }
    },
    nothing_done=NOTHING_RECORDED,
    location=links.LOCATION,
    # No video has id 0: a launch without changes reports what to fill in.
    opening={"decisions": [{"vod_id": 0, "action": DecisionAction.confirm_top1}]},
    tags=PERSON_TAGS,
)

jobs = [record_decisions]
