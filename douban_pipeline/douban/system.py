"""The core system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="douban",
    settings=Part("douban_pipeline.douban.settings:Settings"),
    services=Part("douban_pipeline.douban.services:open_services"),
    build_defs=Part("douban_pipeline.douban.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.douban.jobs:POOL_LIMITS"),
    operations=Part("douban_pipeline.douban.operations:OPERATIONS"),
    mounts=Part("douban_pipeline.douban.mounts:mounts"),
    location="douban_pipeline.definitions",
    location_name="douban_pipeline",
    is_base=True,
)
