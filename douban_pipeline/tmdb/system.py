"""The TMDB system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import Part, System

SYSTEM = System(
    name="tmdb",
    settings=Part("douban_pipeline.tmdb.settings:TmdbSettings"),
    services=Part("douban_pipeline.tmdb.services:open_services"),
    build_defs=Part("douban_pipeline.tmdb.definitions:build_defs"),
    pool_limits=Part("douban_pipeline.tmdb.resources:POOL_LIMITS"),
    operations=Part("douban_pipeline.tmdb.operations:OPERATIONS"),
    mounts=Part("douban_pipeline.tmdb.mounts:mounts"),
    location="douban_pipeline.locations.tmdb",
    location_name="tmdb",
    extra="tmdb",
)
