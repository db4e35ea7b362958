"""The feeds system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="feeds",
    settings=SystemPart("douban_pipeline.feeds.settings:FeedsSettings"),
    services=SystemPart("douban_pipeline.feeds.services:open_services"),
    build_defs=SystemPart("douban_pipeline.feeds.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.feeds.resources:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.feeds.operations:OPERATIONS"),
    commands=SystemPart("douban_pipeline.feeds.commands:commands"),
    location="douban_pipeline.locations.feeds",
    location_name="feeds",
)
