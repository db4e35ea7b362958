"""Guards on `due_videos`. Add a check here when it says what may be in the queue."""

from douban_pipeline.guard_checks import guard_check
from douban_pipeline.scheduling import guards
from douban_pipeline.scheduling.assets import due_videos

no_excluded_type = guard_check(
    due_videos,
    "no_excluded_type",
    "No open task belongs to an excluded category or an ignored video.",
    guards.excluded_types,
)
no_duplicate_open_task = guard_check(
    due_videos,
    "no_duplicate_open_task",
    "No video has two open tasks of one type.",
    guards.duplicate_tasks,
)
checks = [no_excluded_type, no_duplicate_open_task]
