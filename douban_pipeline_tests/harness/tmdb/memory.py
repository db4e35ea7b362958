"""How much memory a process takes that stores many films. In a process of its own, whose peak is of that alone."""

from __future__ import annotations

import resource
from multiprocessing import get_context
from multiprocessing.connection import Connection

from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.tmdb.films import answers

_FIRST, _BATCH = 5_000_000, 500


def memory(url: str, titles: int) -> Figure:
    """Return how much more memory a process takes after it has stored so many films than after the first of them."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_store_many, args=(there, url, titles), daemon=True)
    process.start()
    before, after = here.recv()
    process.join(30)
    name = f"memory for {titles:,} films stored, above that for {2 * _BATCH:,}"
    return Figure(name, after - before, "MB", Target(most=100), note=f"{after:.0f} MB at most in all")


def _store_many(pipe: Connection, url: str, titles: int) -> None:
    peaks = []
    with PostgresTmdbStore(url) as store:
        for first in range(_FIRST, _FIRST + titles, _BATCH):
            store.persist_payloads(answers(first, _BATCH))
            if first in (_FIRST + _BATCH, _FIRST + titles - _BATCH):
                peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
    pipe.send((peaks[0], peaks[-1]))
