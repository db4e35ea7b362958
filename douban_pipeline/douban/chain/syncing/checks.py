"""Guards on what was written. Add one here when it compares the CMS with what the log says."""

from sqlalchemy import Connection

from douban_pipeline.dagster_kit.guard_checks import Found, Guard, guard_checks
from douban_pipeline.douban.chain.syncing import guards
from douban_pipeline.douban.chain.syncing.assets import synced_fields
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.douban.services import Services


def _overwritten(services: Services, connection: Connection) -> Found:
    over = guards.overwritten(services, connection)
    return Found(over.found, stops=over.widespread)


checks = [
    guard_checks(
        synced_fields,
        (
            Guard("nothing_blanked", "No automatic write of the last 24 hours emptied a column.", guards.blanked),
            Guard(
                "locked_untouched",
                "No automatic write of the last 24 hours touched a locked id or a locked synopsis.",
                guards.locked_touched,
            ),
            Guard(
                "log_agrees_with_cms",
                "Every automatic id has an applied row in the log, and no change of a dead run is left half done.",
                guards.log_disagrees,
            ),
            Guard(
                "next_sync_in_future", "Every video that was handled has its next visit ahead.", guards.visit_not_ahead
            ),
            Guard(
                "writes_take_hold",
                "What was written in the last 24 hours is still in the CMS. Single differences are edits of others: "
                "they warn, and `cms_drift` shows whose. Many at once stop the run: something rewrites what is "
                "written.",
                _overwritten,
            ),
        ),
        shown=BREACHES,
    )
]
