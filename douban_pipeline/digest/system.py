"""The digest system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="digest",
    settings=Part("douban_pipeline.digest.settings:DigestSettings"),
    services=Part("douban_pipeline.digest.services:open_services"),
    build_defs=Part("douban_pipeline.digest.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.digest.resources:POOL_LIMITS"),
    operations=Part("douban_pipeline.digest.operations:OPERATIONS"),
    mounts=Part("douban_pipeline.digest.mounts:mounts"),
    location="douban_pipeline.locations.digest",
    location_name="digest",
)
