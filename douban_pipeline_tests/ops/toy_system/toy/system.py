"""The toy, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="toy",
    settings=SystemPart("douban_pipeline.toy.services:ToySettings"),
    services=SystemPart("douban_pipeline.toy.services:open_services"),
    build_defs=SystemPart("douban_pipeline.toy.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.toy.definitions:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.toy.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.toy.mounts:mounts"),
    location="douban_pipeline.toy.location",
    location_name="toy",
)
