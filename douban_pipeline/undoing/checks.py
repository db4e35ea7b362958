"""Whether the CMS keeps what was written. It blocks nothing: a person, or restoring, deals with what it finds."""

import dagster as dg

from douban_pipeline.services import Services
from douban_pipeline.undoing.assets import cms_drift
from douban_pipeline.undoing.drift import SERIOUS, Kind, drifts
from douban_pipeline.undoing.drift_report import Tally

_NAMED = 20


@dg.asset_check(
    asset=cms_drift,
    description="Locked values and ids stand, and nothing was put back to what stood before it was written.",
)
def cms_keeps_what_was_written(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Warn of what is serious; ordinary later edits are counted and do not fail it."""
    services.ready()
    tally = Tally()
    for look in drifts(services):
        tally.add(look)
    found = {"differences": dg.MetadataValue.md(tally.findings_table(SERIOUS, services.settings.zone, most=_NAMED))}
    return dg.AssetCheckResult(
        passed=not tally.serious,
        severity=dg.AssetCheckSeverity.WARN,
        description=tally.sentence(),
        metadata={
            "serious": tally.serious,
            **{kind.value: tally.by_kind[kind] for kind in Kind},
            "unsure": tally.unsure,
            **(found if tally.serious else {}),
        },
    )


checks = [cms_keeps_what_was_written]
