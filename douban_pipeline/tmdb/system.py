"""The TMDB system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="tmdb",
    title="TMDB",
    page="/assets/tmdb_graph",
    settings=SystemPart("douban_pipeline.tmdb.settings:TmdbSettings"),
    operations=SystemPart("douban_pipeline.tmdb.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.tmdb.mounts:mounts"),
    commands=SystemPart("douban_pipeline.tmdb.commands:commands"),
    libraries=("psycopg", "msgspec", "neo4j"),
)
