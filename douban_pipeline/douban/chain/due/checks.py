"""Guards on `due_videos`. Add one here when it says what may be in the queue."""

from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.due import guards
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.partitions import BREACHES

checks = [
    guard_checks(
        due_videos,
        (
            Guard(
                "no_excluded_type",
                "No open task belongs to an excluded category or an ignored video.",
                guards.excluded_types,
            ),
            Guard("no_duplicate_open_task", "No video has two open tasks of one type.", guards.duplicate_tasks),
        ),
        shown=BREACHES,
    )
]
