"""Guards on what was written. Add a check here when it compares the CMS with what the log says."""

from douban_pipeline.guard_checks import guard_check
from douban_pipeline.syncing import guards
from douban_pipeline.syncing.assets import synced_fields

checks = [
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
            "Every write has an applied row in the log, and the CMS holds what the log says.",
            guards.log_disagrees,
        ),
        ("next_sync_in_future", "Every video that was handled has its next visit ahead.", guards.visit_not_ahead),
    )
]
