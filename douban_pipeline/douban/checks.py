"""All asset checks of the system, and those that a run of the chain must pass."""

from douban_pipeline.dagster_kit.runs import blocking_checks
from douban_pipeline.douban.chain.deciding import checks as deciding
from douban_pipeline.douban.chain.due import checks as due
from douban_pipeline.douban.chain.linking import checks as linking
from douban_pipeline.douban.chain.syncing import checks as syncing
from douban_pipeline.douban.intros import checks as intros
from douban_pipeline.douban.jobs import CHAIN_ASSETS
from douban_pipeline.douban.reports.health import checks as health
from douban_pipeline.douban.reports.precision import checks as precision
from douban_pipeline.douban.upkeep import checks as upkeep

checks = [
    *deciding.checks,
    *due.checks,
    *linking.checks,
    *syncing.checks,
    *intros.checks,
    *precision.checks,
    *upkeep.checks,
    *health.checks,
]

CHAIN_GUARDS = blocking_checks(checks, [asset.key for asset in CHAIN_ASSETS])
"""The guards that stop a run of the chain."""
