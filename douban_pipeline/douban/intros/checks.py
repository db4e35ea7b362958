"""Guards on intros. Add one here when it reads back texts of a language model."""

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.intros import guards
from douban_pipeline.douban.intros.assets import ai_intros
from douban_pipeline.douban.partitions import BREACHES

checks = [
    guard_checks(
        ai_intros,
        (
            Guard(
                "intros_pass_guard",
                page_text(
                    "Every intro of the last hour passes the fact guard again when it is read back from the CMS."
                ),
                guards.intros_unfit,
            ),
            Guard(
                "intros_logged",
                page_text(
                    "Every intro of the last 24 hours has an applied row in the log, and every such row has its intro."
                ),
                guards.intros_unlogged,
            ),
            Guard(
                "locked_intros_untouched",
                page_text("No automatic intro of the last 24 hours was written over a locked one."),
                guards.locked_intros_touched,
            ),
        ),
        shown=BREACHES,
    )
]
