"""The digest system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="digest",
    title="每日摘要",
    page="digest/",
    settings=SystemPart("douban_pipeline.digest.settings:DigestSettings"),
    operations=SystemPart("douban_pipeline.digest.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.digest.mounts:mounts"),
    commands=SystemPart("douban_pipeline.digest.commands:commands"),
)
