"""The comment system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="comments",
    settings=Part("douban_pipeline.comments.settings:CommentsSettings"),
    services=Part("douban_pipeline.comments.services:open_services"),
    build_defs=Part("douban_pipeline.comments.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.comments.resources:POOL_LIMITS"),
    operations=Part("douban_pipeline.comments.operations:OPERATIONS"),
    mounts=Part("douban_pipeline.comments.mounts:mounts"),
    location="douban_pipeline.locations.comments",
    location_name="comments",
    extra="comments",
)
