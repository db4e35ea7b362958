"""The feeds system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="feeds",
    title="关注的来源",
    page="feeds.html",
    mounts=SystemPart("douban_pipeline.feeds.mounts:mounts"),
    settings=SystemPart("douban_pipeline.feeds.settings:FeedsSettings"),
    operations=SystemPart("douban_pipeline.feeds.operations:OPERATIONS"),
    commands=SystemPart("douban_pipeline.feeds.commands:commands"),
)
