"""Guards on what was written. Add a check here when it compares the CMS with what the log says."""

import dagster as dg

from douban_pipeline.catalog.database import reading
from douban_pipeline.guard_checks import check_result, guard_check
from douban_pipeline.services import Services
from douban_pipeline.syncing import guards
from douban_pipeline.syncing.assets import synced_fields


@dg.asset_check(
    asset=synced_fields,
    blocking=True,
    description="What was written in the last 24 hours stands in the CMS. Single differences are edits of others: they "
    "warn, and `cms_drift` tells whose. Many at once stop the run: something rewrites what is written.",
)
def writes_take_hold(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Warn of single columns that somebody changed; fail where a fifth of all videos written does not hold."""
    services.ready()
    with reading(services.engine) as connection:
        over = guards.overwritten(services, connection)
    severity = dg.AssetCheckSeverity.ERROR if over.widespread else dg.AssetCheckSeverity.WARN
    return check_result(over.found, severity)


checks = [
    *(
        guard_check(synced_fields, name, description, find)
        for name, description, find in (
            ("nothing_blanked", "No automatic write of the last 24 hours emptied a column.", guards.blanked),
            (
                "locked_untouched",
                "No automatic write of the last 24 hours touched a locked id or a locked synopsis.",
                guards.locked_touched,
            ),
            (
                "log_agrees_with_cms",
                "Every automatic id has an applied row in the log, and no change of a dead run is left half done.",
                guards.log_disagrees,
            ),
            ("next_sync_in_future", "Every video that was handled has its next visit ahead.", guards.visit_not_ahead),
        )
    ),
    writes_take_hold,
]
