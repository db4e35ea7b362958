"""Dagster's code locations: one module a system, named by its `System`; the core's is `douban_pipeline.definitions`.

A system gets a location of its own, so that it is loaded, reloaded and restarted apart from the others, and its runs
are counted, limited and pruned apart from theirs. Asset keys are unique in the whole instance; pools and groups of
assets begin with the system's name. Every job has the tags of `dagster_kit.runs.run_tags`, whose ``system`` says whose
its runs are: each location may have five runs under way, without a limit of its own in ``dagster.yaml``. Where more
than five locations are installed, ``max_concurrent_runs`` grows by ten a location, so that none can starve another.
"""

from __future__ import annotations

from typing import Any

from douban_pipeline.core.files import keep_private
from douban_pipeline.core.garbage_collection import without_garbage_collection
from douban_pipeline.core.system import every_system


def location_of(module: str) -> Any:
    """Return the Dagster definitions of the system whose code location is ``module``; empty without its libraries."""
    keep_private()
    [system] = (system for system in every_system() if system.location == module)
    if library := system.absent_library:
        from douban_pipeline.dagster_kit.left_out import empty_location

        return empty_location(system, library)
    with without_garbage_collection():  # a fifth of the time
        return system.build_defs()()
