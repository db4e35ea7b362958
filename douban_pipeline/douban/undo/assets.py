"""The unpartitioned report on values that others wrote over ours; it restores locked values if the settings say so."""

from zoneinfo import ZoneInfo

import dagster as dg

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban import links
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.undo.drift import SERIOUS, DriftKind, drifts, restore
from douban_pipeline.douban.undo.drift_report import DriftTally
from douban_pipeline.douban.wording import DRIFT_KINDS

_LOG_EVERY = 20
_NAMED = 20


KEEPS = "cms_keeps_what_was_written"


@dg.asset(
    deps=[synced_fields],
    group_name="reports",
    kinds={"mysql", "python"},
    # Its own check, not one beside it: the look goes over a month of writes, and once a night is enough.
    check_specs=[
        dg.AssetCheckSpec(
            KEEPS,
            asset="cms_drift",
            description=page_text(
                "Locked values and ids are unchanged, and nothing was reset to its value before our "
                "write. It warns and blocks nothing; ordinary later edits do not fail it."
            ),
        )
    ],
)
@page_docstring
def cms_drift(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Where the CMS no longer holds what was written: stale admin forms, collectors, other programs.

    Locked ids and synopses are compared with what was locked, whenever that was; what was written into other columns
    is followed for 30 days. What was reset to its value before our write is lost work, an ordinary later edit is
    not. With `DOUBAN_PIPELINE_RESTORE_LOCKED=true` (and not in a dry run) locked values are restored through the
    change log, once a run, as a batch that `revert_changes` reverts; rows that the site locked, videos that are
    ignored and those with a decision that waits are left alone.
    """
    services.ready()
    settings, location = services.settings, services.location
    restoring = settings.restore_locked and not settings.dry_run
    change_log = services.change_log(context.run.run_id)
    # What a killed run left half way would count as unsure.
    change_log.reconcile()
    tally = DriftTally()
    for number, look in enumerate(drifts(services), start=1):
        tally.add(look, restore(change_log, look.found) if restoring else None)
        if number % _LOG_EVERY == 0:
            context.log.info(f"{tally.videos} videos looked at, {tally.serious} serious differences so far")
    context.log.info(f"{tally.videos} videos looked at: {dict(tally.by_kind)}, {tally.restored} restored")
    counts = [{page_text("stratum"): DRIFT_KINDS[kind], page_text("places"): tally.by_kind[kind]} for kind in DriftKind]
    counts.append(
        {
            page_text("stratum"): page_text("undecided (a write is in progress, or was interrupted and changed since)"),
            page_text("places"): tally.unsure,
        }
    )
    return dg.MaterializeResult(
        check_results=[_keeps(tally, settings.zone, location)],
        metadata={
            "videos": tally.videos,
            "serious": tally.serious,
            **{kind.value: tally.by_kind[kind] for kind in DriftKind},
            "unsure": tally.unsure,
            "restored": tally.restored,
            "not_restored": tally.not_restored,
            **({"batch": change_log.batch_id} if tally.restored else {}),
            "restoring": dg.MetadataValue.md(_restoring(services, tally, change_log.batch_id)),
            "counts": shown_table(counts),
            "by_whom": dg.MetadataValue.md(tally.looks_table()),
            "differences": dg.MetadataValue.md(tally.findings_table(SERIOUS, settings.zone, location)),
            "later_edits": dg.MetadataValue.md(
                tally.findings_table([DriftKind.APART, DriftKind.EDITED], settings.zone, location, most=30)
            ),
        },
    )


def _keeps(tally: DriftTally, zone: ZoneInfo, location: str) -> dg.AssetCheckResult:
    left = tally.left
    serious = sum(left[kind] for kind in SERIOUS)
    found = {"differences": dg.MetadataValue.md(tally.findings_table(SERIOUS, zone, location, most=_NAMED))}
    return dg.AssetCheckResult(
        check_name=KEEPS,
        passed=not serious,
        severity=dg.AssetCheckSeverity.WARN,
        description=tally.sentence(),
        metadata={
            "serious": serious,
            **{kind.value: left[kind] for kind in DriftKind},
            "unsure": tally.unsure,
            **(found if serious else {}),
        },
    )


def _restoring(services: Services, tally: DriftTally, batch_id: str) -> str:
    """Return what is done about locked values, and how to change that."""
    settings, on = services.settings, variable("restore_locked")
    if settings.dry_run:
        return page_text("Dry run ({setting}=true): reports only, restores nothing.").format(
            setting=variable("dry_run")
        )
    if not settings.restore_locked:
        return page_text(
            "Changed locked values are only reported. To restore them at each check, set {setting}=true and restart."
        ).format(setting=on)
    link = launch_link(
        page_text("Undo this batch of restored values"), links.revert(batch_id=batch_id), services.location
    )
    undo = f" {link}" if tally.restored else ""
    return (
        page_text("Restoring is on ({setting}): {restored} places restored, {left} could not be. {undo}")
        .format(setting=on, restored=tally.restored, left=tally.not_restored, undo=undo)
        .rstrip()
    )


assets = [cms_drift]
