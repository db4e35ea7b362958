"""All measures, in the order in which they are done."""

from __future__ import annotations

from types import ModuleType

from douban_pipeline_tests.harness.benchmarks.measures import (
    archive_size,
    budget,
    duplicates,
    instance,
    pages,
    queueing,
    ratios,
    rescoring,
    reverting,
    sensor_look,
    shard_run,
    taking_in,
    workers,
)
from douban_pipeline_tests.harness.benchmarks.measuring import LARGE, SMALL, Measure
from douban_pipeline_tests.harness.comments import __main__ as comments
from douban_pipeline_tests.harness.digest import speed as digest_speed
from douban_pipeline_tests.harness.feeds import __main__ as feeds_delays
from douban_pipeline_tests.harness.feeds import speed as feeds_speed
from douban_pipeline_tests.harness.reviewing import __main__ as reviewing
from douban_pipeline_tests.harness.tmdb import __main__ as tmdb

MODULES: tuple[ModuleType, ...] = (
    taking_in,  # first: what it takes in is what the others work on
    sensor_look,
    queueing,
    shard_run,
    budget,
    duplicates,
    rescoring,
    reverting,
    archive_size,
    instance,
    pages,
    workers,
    feeds_speed,
    feeds_delays,
    digest_speed,
    tmdb,
    comments,
    reviewing,
    ratios,
)
MEASURES: tuple[Measure, ...] = tuple(measure for module in MODULES for measure in module.MEASURES)


def module_of(measure: Measure) -> str:
    """Return the name of the module that holds ``measure``; its process needs to import no other."""
    return next(module.__name__ for module in MODULES if measure in module.MEASURES)


def sizes_for(measure: Measure, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of ``sizes`` on which ``measure`` is done: (0,) for one that needs no library.

    A size of somebody's own, for a quick try, suits every measure.
    """
    if not measure.sizes:
        return (0,)
    return tuple(size for size in sizes if size in measure.sizes or size not in (SMALL, LARGE))
