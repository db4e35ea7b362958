"""What the sensors ask of the database in one tick: they look every 30 and 60 seconds, for years."""

from __future__ import annotations

from collections.abc import Callable

from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.services import Services
from douban_pipeline_tests.harness.benchmarks.measuring import (
    Figure,
    Measure,
    Samples,
    Target,
    World,
    bare_cursor,
    when_due,
)

SHARES = {"1 % due": 0.01, "10 % due": 0.1, "all due": 1.0}
"""How much of the library is due: on a common day, with a backlog, and after the pipeline stood still for months."""

_LOOKS, _WARM = 100, 3
_VIDEOS_A_LOOK = 50
"""In a library that is so small that it is only tried, fewer looks do."""


def sensor_look(world: World) -> list[Figure]:
    """Look as the due sensor and the intake sensor do, again and again."""
    figures: list[Figure] = []
    for name, share in SHARES.items():
        services = when_due(world, share)
        world.say(f"the due sensor's look, {name}")
        ours = _looks(world, lambda at=services: _due_look(at))  # type: ignore[misc]
        bare = _looks(world, lambda at=services: _bare_due_look(at))  # type: ignore[misc]
        figures += _figures(f"due sensor, {name}", ours, bare, "bare GROUP BY shard")
    world.say("the intake sensor's look")
    ours, bare = (
        _looks(world, lambda: _intake_look(world.services)),
        _looks(world, lambda: _bare_intake_look(world.services)),
    )
    return [*figures, *_figures("intake sensor", ours, bare, "bare MAX of each key and time")]


def _figures(name: str, ours: Samples, bare: Samples, against: str) -> list[Figure]:
    return [
        Figure(f"{name}, p50", ours.p50, "ms", None, bare.p50, against),
        Figure(f"{name}, p95", ours.p95, "ms", Target(most=50, growth=2), bare.p95, against),
    ]


def _looks(world: World, look: Callable[[], object]) -> Samples:
    samples = Samples()
    for _ in range(_WARM):
        look()
    for _ in range(min(_LOOKS, max(1, world.size // _VIDEOS_A_LOOK))):
        with samples.one():
            look()
    return samples


def _due_look(services: Services) -> None:
    services.ready()
    services.gate.status()
    ShardWork(services.engine, services.tables, services.settings, services.clock).overview()


def _intake_look(services: Services) -> None:
    services.ready()
    intake = Intake(services.engine, services.tables, services.cms, services.clock)
    assert intake.has_begun(), "the library was not taken in"
    intake.waiting()


def _bare_due_look(services: Services) -> None:
    query = (
        f"SELECT shard, COUNT(*), MIN(douban_next_sync_at) FROM {services.tables.video.name} "
        "WHERE douban_next_sync_at <= %s GROUP BY shard"
    )
    with bare_cursor(services.engine) as cursor:
        cursor.execute(query, (services.clock.now().replace(tzinfo=None),))
        cursor.fetchall()


def _bare_intake_look(services: Services) -> None:
    with bare_cursor(services.engine) as cursor:
        for table in (services.cms.vod.name, services.tables.video.name):
            for column in ("vod_id", "vod_time"):
                cursor.execute(f"SELECT MAX({column}) FROM {table}")
                cursor.fetchall()


MEASURES = (Measure("sensor-look", "what the sensors ask of the database in one tick", sensor_look),)
