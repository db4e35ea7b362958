"""The TMDB system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="tmdb",
    settings=SystemPart("douban_pipeline.tmdb.settings:TmdbSettings"),
    services=SystemPart("douban_pipeline.tmdb.services:open_services"),
    build_defs=SystemPart("douban_pipeline.tmdb.definitions:build_defs"),
    pool_limits=SystemPart("douban_pipeline.tmdb.resources:POOL_LIMITS"),
    operations=SystemPart("douban_pipeline.tmdb.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.tmdb.mounts:mounts"),
    commands=SystemPart("douban_pipeline.tmdb.commands:commands"),
    location="douban_pipeline.locations.tmdb",
    location_name="tmdb",
    libraries=("psycopg", "psycopg_pool", "neo4j"),
)
