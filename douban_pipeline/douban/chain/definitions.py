"""What the chain hands over to the code location: its assets, their checks, and the jobs of its rooms."""

from typing import Any

from douban_pipeline.douban.chain.decision_lane.assets import applied_decisions
from douban_pipeline.douban.chain.decision_lane.checks import checks as deciding_checks
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.due.checks import checks as due_checks
from douban_pipeline.douban.chain.due.jobs import jobs as due_jobs
from douban_pipeline.douban.chain.match.assets import due_rechecks, scored_matches, search_candidates
from douban_pipeline.douban.chain.match.checks import checks as linking_checks
from douban_pipeline.douban.chain.match.jobs import jobs as linking_jobs
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.chain.sync.checks import checks as syncing_checks

assets = [applied_decisions, due_videos, search_candidates, scored_matches, due_rechecks, synced_fields]
checks = [*deciding_checks, *due_checks, *linking_checks, *syncing_checks]
jobs: list[Any] = [*due_jobs, *linking_jobs]
