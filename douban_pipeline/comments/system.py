"""The comment system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="comments",
    settings=SystemPart("douban_pipeline.comments.settings:CommentsSettings"),
    services=SystemPart("douban_pipeline.comments.services:open_services"),
    build_defs=SystemPart("douban_pipeline.comments.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.comments.resources:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.comments.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.comments.mounts:mounts"),
    commands=SystemPart("douban_pipeline.comments.commands:commands"),
    location="douban_pipeline.locations.comments",
    location_name="comments",
    libraries=("ahocorasick", "redis", "rule_engine"),
)
