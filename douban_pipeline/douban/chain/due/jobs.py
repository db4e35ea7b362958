"""Jobs that keep the state table in step with the CMS. Jobs that take in videos belong here."""

from datetime import UTC, datetime
from typing import Annotated

import dagster as dg
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.launchpad import AtLeast, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.chain.due.cleared_ids import ClearedIdsAnswer, settle
from douban_pipeline.douban.chain.due.intake import Intake, IntakeReport
from douban_pipeline.douban.chain.due.newcomers import Newcomers
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.resources import PERSON_TAGS, tags_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import migrations

INTAKE_TAGS = tags_of("intake")
_SHOWN = 50


_DRY_RUN = page_text("true: only count the videos that would be added or changed; write nothing.")


class InitialiseConfig(LaunchpadConfig):
    """How a library is taken in."""

    dry_run: bool = Field(True, description=_DRY_RUN)
    spread: bool = Field(
        True,
        description=page_text(
            "Spread first visits evenly over each tier's interval, the most recent videos first. "
            "false: every new video is due at once; for small libraries only."
        ),
    )


class TakeInConfig(LaunchpadConfig):
    """Whether what is new is taken in, or only counted."""

    dry_run: bool = Field(True, description=_DRY_RUN)


class SweepConfig(LaunchpadConfig):
    """Which slice of the library is swept."""

    dry_run: bool = Field(True, description=_DRY_RUN)
    part: Annotated[int, AtLeast(0, page_text("The first slice is 0."))] = Field(
        0, description=page_text("Number of the slice, from 0.")
    )
    parts: Annotated[int, AtLeast(1, page_text("Write 1 for no slices."))] = Field(
        1, description=page_text("Number of slices into which the ids are divided; 1: all ids.")
    )


def _too_early(context: dg.OpExecutionContext, services: Services) -> bool:
    """Return whether the library was never taken in, and say what to do."""
    early = not Intake.of(services).has_begun()
    if early:
        context.log.warning("the library is not initialised: launch the job initialise_library with dry_run: false")
    return early


def _metadata(report: IntakeReport) -> dict[str, dg.MetadataValue]:
    tiers = [{"tier": tier, "new videos": count} for tier, count in report.by_tier.items()]
    return {
        "seen": dg.MetadataValue.int(report.seen),
        "new": dg.MetadataValue.int(report.new),
        "changed": dg.MetadataValue.int(report.changed),
        "gone": dg.MetadataValue.int(report.gone),
        "names": dg.MetadataValue.int(report.names),
        "tiers": run_table(tiers),
    }


def initialise(context: dg.OpExecutionContext, config: InitialiseConfig, services: dg.ResourceParam[Services]) -> None:
    """Create or upgrade the tables of the pipeline, then add every video of the CMS."""
    prefix = services.settings.table_prefix
    if config.dry_run:
        before, after = migrations.tree_of(prefix).current(services.engine), migrations.tree_of(prefix).head
    else:
        before, after = migrations.tree_of(prefix).upgrade(services.engine)
    would = "would be" if config.dry_run else "are"
    context.log.info(f"our tables {would} upgraded: version {before or 'none'} → {after}")
    steps = 10_000
    reported = 0

    def progress(seen: int) -> None:
        nonlocal reported
        if seen // steps > reported:
            reported = seen // steps
            context.log.info(f"{seen} videos looked at")

    intake = Intake.of(services, dry_run=config.dry_run, blank=before is None and config.dry_run)
    report = intake.initialise(spread=config.spread, progress=progress)
    context.log.info(f"{report.seen} videos looked at, {report.new} {would} taken in, {report.changed} {would} changed")
    tables = {"tables_before": dg.MetadataValue.text(before or ""), "tables_after": dg.MetadataValue.text(after or "")}
    context.add_output_metadata({**_metadata(report), **tables, "dry_run": dg.MetadataValue.bool(config.dry_run)})


_INITIALISE = page_text(
    """\
Set up the pipeline for a CMS: its own tables, and a state row for every video.

Videos without a Douban id start as NOT_FOUND, shown as unchecked until they are searched for; those with one as
CONFIRMED (of source `cms`: the id is checked against its subject before anything is written). Safe to repeat: known
videos keep their state, and tables of an older release are upgraded.
"""
)

initialise_library = person_job(
    initialise,
    name="initialise_library",
    manual=_INITIALISE,
    writes=page_text(
        "Our tables, and a row per video in `mac_douban_video`; names of people in "
        "`mac_douban_person`. Nothing in the CMS's own tables. A dry run (the default) writes "
        "nothing, and counts exactly that."
    ),
    when=page_text(
        "Once after `setup`, before anything else; again after an upgrade that asks for it, or after a restore."
    ),
    examples={"先看会写多少": {"dry_run": True}, "正式接入": {"dry_run": False, "spread": True}},
    nothing_done=page_text("The library was not taken in"),
    location=LOCATION,
    tags=INTAKE_TAGS,
)


def take_in(context: dg.OpExecutionContext, config: TakeInConfig, services: dg.ResourceParam[Services]) -> None:
    """Process new rows, rows whose `vod_time` changed, and titles that resource sites added or changed."""
    services.ready()
    if _too_early(context, services):
        return
    intake = Intake.of(services, dry_run=config.dry_run)
    report = intake.changes()
    context.log.info(f"{report.new} new, {report.changed} changed")
    newcomers = {} if config.dry_run else _take_newcomers(context, services, intake)
    dry_run = dg.MetadataValue.bool(config.dry_run)
    context.add_output_metadata({**_metadata(report), **newcomers, "dry_run": dry_run})


def _take_newcomers(context: dg.OpExecutionContext, services: Services, intake: Intake) -> dict[str, dg.MetadataValue]:
    """Take the newcomers and return what shows of them; the library's own changes do not depend on the feeds."""
    try:
        report = Newcomers(services).take(intake)
    except (DatabaseError, SQLAlchemyError) as error:
        reason = str(getattr(error, "orig", None) or error)
        context.log.warning(f"the feeds' newcomers could not be read: {reason}")
        return {"newcomers_problem": dg.MetadataValue.text(reason)}
    zone = services.settings.zone
    rows = [
        {
            "title": each.name,
            "at the resource site": "changed" if each.changed else "new",
            "seen": local_time(datetime.fromtimestamp(each.seen_at, UTC), zone),
            "videos": ", ".join(map(str, vod_ids)),
        }
        for each, vod_ids in report.taken[:_SHOWN]
    ]
    shown = {"newcomers": run_table(rows)} if rows else {}
    return {
        "newcomers_taken": dg.MetadataValue.int(len(report.taken)),
        "newcomers_changed_rows": dg.MetadataValue.int(report.intake.new + report.intake.changed),
        "newcomers_searched_again": dg.MetadataValue.int(report.searched_again),
        "newcomers_waiting": dg.MetadataValue.int(report.waiting),
        "newcomers_given_up": dg.MetadataValue.int(report.given_up),
        **shown,
    }


_TAKE_IN = page_text(
    """\
Process what is new or changed in the CMS since the last run. Launched by the sensor `intake_sensor`.

If the feeds system follows resource sites, the videos of titles that they added or changed are processed, too.
"""
)

take_in_changes = person_job(
    take_in,
    name="take_in_changes",
    manual=_TAKE_IN,
    writes=page_text(
        "Rows of `mac_douban_video` that are new or changed, and names of people. A dry run (the "
        "default) only counts them."
    ),
    when=page_text("By itself, as `intake_sensor` finds changes; by hand when the sensor is off."),
    examples={"": {"dry_run": False}},
    nothing_done=page_text("No change was taken in"),
    location=LOCATION,
    tags=INTAKE_TAGS,
)


def sweep(context: dg.OpExecutionContext, config: SweepConfig, services: dg.ResourceParam[Services]) -> None:
    """Check one slice of all ids, whatever their `vod_time`."""
    if config.part >= config.parts:
        last = config.parts - 1
        raise ProblemsError(
            [
                page_text("part: {parts} slices are numbered 0 to {last}, not {part}; write one of these").format(
                    parts=config.parts, last=last, part=config.part
                )
            ]
        )
    services.ready()
    if _too_early(context, services):
        return
    report = Intake.of(services, dry_run=config.dry_run).sweep(config.part, config.parts)
    context.log.info(f"{report.seen} looked at, {report.new} new, {report.changed} changed, {report.gone} gone")
    context.add_output_metadata({**_metadata(report), "dry_run": dg.MetadataValue.bool(config.dry_run)})


sweep_library = person_job(
    sweep,
    name="sweep_library",
    manual=page_text(
        "Find changes that `vod_time` does not show: batch edits, AI annotations, deletions, ids set by hand."
    ),
    writes=page_text(
        "Rows of `mac_douban_video` that are new, changed or gone, and names of people. A dry run "
        "(the default) only counts them."
    ),
    when=page_text("By itself every hour, for one slice of 24; by hand over all ids after a batch edit in the CMS."),
    examples={
        "先看全库有多少变化": {"dry_run": True, "part": 0, "parts": 1},
        "正式清扫全库": {"dry_run": False, "part": 0, "parts": 1},
        "只清扫 24 份中的第一份": {"dry_run": False, "part": 0, "parts": 24},
    },
    nothing_done=page_text("Nothing was swept"),
    location=LOCATION,
    tags=INTAKE_TAGS,
)


class ClearedConfig(LaunchpadConfig):
    """What is said of ids that were cleared in bulk."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded."))
    dry_run: bool = Field(True, description=page_text("true: only count them; false: apply the answer."))
    answer: ClearedIdsAnswer = Field(
        ClearedIdsAnswer.rematch,
        description=page_text("rematch: the ids were cleared by mistake; rule_out: the links were wrong."),
    )


def settle_cleared(context: dg.OpExecutionContext, config: ClearedConfig, services: dg.ResourceParam[Services]) -> None:
    """Answer for ids that were cleared in the CMS in bulk."""
    services.ready()
    count = settle(services, config.answer, config.reviewer.strip()[:64], dry_run=config.dry_run)
    context.log.info(f"{count} videos {'wait for an answer' if config.dry_run else 'are free again'}")
    context.add_output_metadata({"dry_run": config.dry_run, "videos": count, "answer": config.answer.name})


_SETTLE = page_text(
    """\
Answer for ids that were cleared in the CMS in bulk

A batch operation or a restored backup of the CMS may clear many ids. Until it is answered, these videos are neither
matched nor linked nor written. If the CMS gets its ids back, the links are there again without an answer.
"""
)

settle_cleared_ids = person_job(
    settle_cleared,
    name="settle_cleared_ids",
    manual=_SETTLE,
    writes=page_text("The state of these videos in `mac_douban_video`. A dry run only counts them."),
    when=page_text("When the alert says that many ids were cleared in the CMS at once."),
    examples={
        "误操作": {"reviewer": "小王", "dry_run": False, "answer": "rematch"},
        "关联是错的": {"reviewer": "小王", "dry_run": False, "answer": "rule_out"},
    },
    nothing_done=page_text("No answer was given"),
    location=LOCATION,
    tags=PERSON_TAGS,
)

jobs = [initialise_library, take_in_changes, sweep_library, settle_cleared_ids]
