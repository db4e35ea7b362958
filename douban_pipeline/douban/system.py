"""The core system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="douban",
    title="豆瓣",
    page="./",
    settings=SystemPart("douban_pipeline.douban.settings:Settings"),
    operations=SystemPart("douban_pipeline.douban.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.douban.mounts:mounts"),
    commands=SystemPart("douban_pipeline.douban.commands:commands"),
)
