"""All asset checks of the system, and those that a run of the chain must pass."""

from douban_pipeline.dagster_kit.runs import blocking_checks
from douban_pipeline.douban.chain import definitions as chain
from douban_pipeline.douban.intros.checks import checks as intros_checks
from douban_pipeline.douban.jobs import CHAIN_ASSETS
from douban_pipeline.douban.quality.assets import checks as quality_checks
from douban_pipeline.douban.reports import definitions as reports
from douban_pipeline.douban.upkeep.checks import checks as upkeep_checks

checks = [*chain.checks, *intros_checks, *quality_checks, *reports.checks, *upkeep_checks]

CHAIN_GUARDS = blocking_checks(checks, [asset.key for asset in CHAIN_ASSETS])
"""The guards that stop a run of the chain."""
