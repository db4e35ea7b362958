"""The toy, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="toy",
    settings=SystemPart("douban_pipeline.toy.services:ToySettings"),
    operations=SystemPart("douban_pipeline.toy.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.toy.mounts:mounts"),
    commands=SystemPart("douban_pipeline.toy.commands:commands"),
)
