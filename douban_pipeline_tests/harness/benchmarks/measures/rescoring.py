"""How long the whole library takes to be judged again from the archive."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rapidfuzz import fuzz, process

from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.quality.library_replay import Replay, replay_all
from douban_pipeline.douban.quality.stored_verdicts import LostVerdict, RescoreSelection, StoredVerdict, StoredVerdicts
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.matching import Subject, Video
from douban_pipeline_tests.harness.benchmarks.measuring import (
    SMALL,
    Figure,
    Measure,
    Stopwatch,
    Target,
    World,
    stopwatch,
)
from douban_pipeline_tests.harness.benchmarks.planting import planted_verdicts
from douban_pipeline_tests.harness.benchmarks.stack import pipeline_environment

COMPARED = 20_000
"""Videos whose titles rapidfuzz alone compares."""


def rescoring(world: World) -> list[Figure]:
    """Judge the whole library again.

    A share of it would not tell: how often an answer is at hand depends on how far apart the videos are that name it.
    """
    with planted_verdicts(world, range(1, world.size + 1)) as planted:
        world.say("judging again")
        # As a run does, in a process of its own: planting leaves hundreds of megabytes and full caches in this one.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            environment = pipeline_environment(world.services.settings, world.scratch / "home")
            ours, found = fresh.submit(_judge_again, environment).result()
        assert found.replayed == planted.videos, f"{found.replayed} of {planted.videos} verdicts were judged again"
        # A few come out otherwise: other videos carry their subject, which is not looked at when they are planted.
        assert found.changed <= planted.videos / 50, f"{found.changed} verdicts came out otherwise by the same rules"
        world.say("scoring the same titles by rapidfuzz alone")
        compared = min(COMPARED, planted.videos)
        pairs, bare = _bare_scoring(StoredVerdicts(world.services, RescoreSelection(most=compared)).batches())
    times = planted.videos / compared
    subjects = planted.candidates / planted.videos
    return [
        Figure(
            "the whole library",
            ours.wall,
            "s",
            Target(most=60),
            bare * times,
            "rapidfuzz cdist over the titles of the same pairs",
            f"{planted.candidates:,} candidates, {subjects:.1f} a video, {planted.fetched / planted.videos:.1f} of "
            f"them fetched, {planted.answers:,} answers; {pairs:,} pairs of titles compared for {compared:,} videos",
        ),
        Figure(
            "CPU of all its processes",
            ours.cpu,
            "s",
            note=f"reading {found.seconds_reading:.0f} s, judging {found.seconds_judging:.0f} s by the clock; the "
            "database takes its own",
        ),
        Figure("videos", planted.videos / ours.wall, "/s", None, compared / bare, "rapidfuzz cdist"),
    ]


def _judge_again(environment: dict[str, str]) -> tuple[Stopwatch, Replay]:
    """Judge all stored verdicts again under the settings that ``environment`` says."""
    os.environ.update(environment)
    services = open_services(load_settings())
    try:
        began = _cpu()
        with stopwatch() as watch:
            found = replay_all(services, RescoreSelection(), profile_of(services.settings), chosen={}, examples=5)
        watch.cpu = _cpu() - began
    finally:
        services.close()
    return watch, found


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _bare_scoring(batches: Iterator[Sequence[StoredVerdict | LostVerdict]]) -> tuple[int, float]:
    """Compare the titles of videos and their candidates, a call a video; return how many pairs, and the seconds."""
    pairs, seconds = 0, 0.0
    for batch in batches:
        titles = [
            (_titles(each.case.video), [title for subject in each.case.subjects for title in _titles(subject)])
            for each in batch
            if isinstance(each, StoredVerdict)
        ]
        began = time.perf_counter()
        for mine, theirs in titles:
            process.cdist(mine, theirs, scorer=fuzz.ratio)
        seconds += time.perf_counter() - began
        pairs += sum(len(mine) * len(theirs) for mine, theirs in titles)
    return pairs, seconds


def _titles(work: Video | Subject) -> list[str]:
    original = work.original_title if isinstance(work, Subject) else ""
    return [title for title in dict.fromkeys((work.title, original, *work.aliases)) if title]


MEASURES: tuple[Measure, ...] = (
    Measure("rescoring", "the library judged again from archived answers", rescoring, (SMALL,)),
)
