"""The feeds system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="feeds",
    settings=Part("douban_pipeline.feeds.settings:FeedsSettings"),
    services=Part("douban_pipeline.feeds.services:open_services"),
    build_defs=Part("douban_pipeline.feeds.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.feeds.resources:POOL_LIMITS"),
    operations=Part("douban_pipeline.feeds.operations:OPERATIONS"),
    location="douban_pipeline.locations.feeds",
    location_name="feeds",
)
