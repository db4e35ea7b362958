"""Guards on what was written. Add one here when it compares the CMS with what the log says."""

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.sync import guards
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.partitions import BREACHES

checks = [
    guard_checks(
        synced_fields,
        (
            Guard(
                "nothing_blanked",
                page_text("No automatic write of the last 24 hours emptied a column."),
                guards.blanked,
            ),
            Guard(
                "locked_untouched",
                page_text("No automatic write of the last 24 hours changed a locked id or a locked synopsis."),
                guards.locked_touched,
            ),
            Guard(
                "log_agrees_with_cms",
                page_text("Every automatic id has an applied row in the log."),
                guards.log_disagrees,
            ),
            Guard(
                "no_change_interrupted",
                page_text("No interrupted run left a change that is not settled; the next run that writes settles it."),
                guards.interrupted,
                warns=True,
            ),
            Guard(
                "next_sync_in_future",
                page_text("Every processed video has its next visit scheduled; one that has not gets it."),
                guards.visit_not_ahead,
                mend=guards.put_visits_ahead,
            ),
            Guard(
                "writes_take_hold",
                page_text(
                    "Values written in the last 24 hours are still in the CMS. Differences are edits by others: they "
                    "warn, and `cms_drift` shows by whom. Many at once are a question (`settle_cms_edits`)."
                ),
                guards.overwritten,
                warns=True,
            ),
        ),
        shown=BREACHES,
    )
]
