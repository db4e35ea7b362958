"""The digest system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="digest",
    settings=SystemPart("douban_pipeline.digest.settings:DigestSettings"),
    services=SystemPart("douban_pipeline.digest.services:open_services"),
    build_defs=SystemPart("douban_pipeline.digest.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.digest.resources:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.digest.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.digest.mounts:mounts"),
    commands=SystemPart("douban_pipeline.digest.commands:commands"),
    location="douban_pipeline.locations.digest",
    location_name="digest",
)
