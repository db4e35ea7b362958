"""The toy, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="toy",
    settings=Part("douban_pipeline.toy.services:ToySettings"),
    services=Part("douban_pipeline.toy.services:open_services"),
    build_defs=Part("douban_pipeline.toy.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.toy.definitions:POOL_LIMITS"),
    operations=Part("douban_pipeline.toy.operations:OPERATIONS"),
    mounts=Part("douban_pipeline.toy.mounts:mounts"),
    location="douban_pipeline.toy.location",
    location_name="toy",
)
