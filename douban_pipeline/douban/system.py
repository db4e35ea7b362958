"""The core system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="douban",
    settings=SystemPart("douban_pipeline.douban.settings:Settings"),
    services=SystemPart("douban_pipeline.douban.services:open_services"),
    build_defs=SystemPart("douban_pipeline.douban.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.douban.jobs:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.douban.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.douban.mounts:mounts"),
    commands=SystemPart("douban_pipeline.douban.commands:commands"),
    location="douban_pipeline.definitions",
    location_name="douban_pipeline",
    is_base=True,
)
