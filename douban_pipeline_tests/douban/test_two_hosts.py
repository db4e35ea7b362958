"""Two hosts on one library while its sources fall ill: one limit, one breaker, nothing doubled.

Each host is a process with a name, a HOME and connections of its own, and both run the chain over the same shards at
once. HTTP and database are real, time is virtual and shared. What is counted is what the upstream saw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.douban.other_host import OtherHost
from douban_pipeline_tests.harness.fixtures.clocks import ClockManager
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, processes
from douban_pipeline_tests.harness.fixtures.scenario import row_of, subject
from douban_pipeline_tests.stand_ins.replay import ReplayServer

A_MINUTE, AT_ONCE = 120, 3
USED = range(2)
"""Shards that hold videos."""
NAMES = "甲乙丙丁戊己庚辛壬癸子丑寅卯"
GROUPS = {
    "well": "城夜行船记",
    "server_error": "山晨牧羊图",
    "empty": "岛潮汐灯塔书",
    "empty_body": "谷风铃旧邮局",
    "captcha": "桥雨巷钟表匠",
    "wrong_page": "湖雪橇远行人",
}
FILMS = {
    group: [subject(90_010_000 + 100 * at + n, name + tail, 1990 + n) for n, name in enumerate(NAMES)]
    for at, (group, tail) in enumerate(GROUPS.items())
}
MOST_UNTIL_SILENCE = 15


@dataclass
class World:
    """A library, its sources, and two hosts."""

    library: Library
    upstream: ReplayServer
    hosts: Sequence[OtherHost]

    def add(self, group: str) -> list[int]:
        """Let the site get the videos of a group of films; return their ids."""
        first = 1 + 100 * SHARDS * list(GROUPS).index(group)
        ids = [first * SHARDS + USED[n % len(USED)] + SHARDS * n for n in range(len(NAMES))]
        self.library.add(*(row_of(film, vod_id) for film, vod_id in zip(FILMS[group], ids, strict=True)))
        self.library.intake.initialise(spread=False)
        return ids

    def run(self, *hosts: OtherHost) -> None:
        """Have hosts run at once, to the end of their runs."""
        for host in hosts:
            host.go()
        for host in hosts:
            assert host.wait() == (True, set()), host.name

    def linked(self, ids: Sequence[int], group: str) -> bool:
        """Return whether all videos of a group carry their subject."""
        found = {vod_id: self.library.row(vod_id)["vod_douban_id"] for vod_id in ids}
        return found == {vod_id: film["id"] for vod_id, film in zip(ids, FILMS[group], strict=True)}

    def until_linked(self, ids: Sequence[int], group: str) -> None:
        """Let the hosts go on, now well, until the videos of a group carry their subjects."""
        for _ in range(8):
            if self.linked(ids, group):
                return
            self.library.clock.advance(minutes=20)  # type: ignore[attr-defined]
            self.run(*self.hosts)
        raise AssertionError(
            f"{group}: {self.library.query('select * from mac_douban_task where open_key is not null')}"
        )


@pytest.fixture
def world(mariadb_url: str, tmp_path: Path) -> Iterator[World]:
    with ClockManager(ctx=processes()) as manager, build_library(mariadb_url, []) as library:
        library.clock = manager.FakeClock()  # type: ignore[attr-defined]
        options: dict[str, Any] = {
            "douban_requests_per_minute": A_MINUTE,
            "search_requests_per_minute": A_MINUTE,
            "douban_concurrency": AT_ONCE,
            "search_concurrency": AT_ONCE,
        }
        films = [film for group in FILMS.values() for film in group]
        with ReplayServer(films, now=lambda: library.clock.now().timestamp()) as upstream:
            options |= {"douban_url": upstream.douban_url, "search_url": upstream.search_url}
            hosts = [
                OtherHost.start(name, mariadb_url, library.clock, tmp_path / name, options, USED)
                for name in ("first", "second")
            ]
            assert [host.wait() for host in hosts] == ["ready", "ready"]
            yield World(library, upstream, hosts)
            for host in hosts:
                host.end()


@pytest.mark.mariadb
def test_two_hosts_hold_one_limit_open_one_breaker_and_double_nothing(world: World) -> None:
    first, second = world.hosts
    ids = {"well": world.add("well")}
    world.run(first, second)
    world.until_linked(ids["well"], "well")
    # Each fault, and who runs into it.
    faults = (
        ("douban", "server_error", (first,)),
        ("search", "empty", (second,)),
        ("douban", "empty_body", (first, second)),
        ("douban", "captcha", (first, second)),
        ("search", "wrong_page", (first, second)),
    )
    for endpoint, fault, hosts in faults:
        before = world.upstream.requests.count(endpoint)
        world.upstream.faults.add(endpoint, fault)
        ids[fault] = world.add(fault)
        world.run(*hosts)
        asked = world.upstream.requests.count(endpoint) - before
        assert 1 <= asked <= MOST_UNTIL_SILENCE, (fault, asked)
        source = "douban" if endpoint == "douban" else "searxng"
        [state] = [gate.state for gate in world.library.services.gate.status() if gate.source == source]
        assert state is GateState.OPEN, fault
        world.run(first)
        world.run(second)
        assert world.upstream.requests.count(endpoint) - before == asked, f"{fault}: silent for both"
        world.upstream.faults.clear()
        world.library.clock.advance(hours=2)  # type: ignore[attr-defined]
        world.run(first, second)
        world.until_linked(ids[fault], fault)

    every = [vod_id for some in ids.values() for vod_id in some]
    links = Counter(row["vod_id"] for row in world.library.log() if "vod_douban_id" in row["new_values"])
    assert links == dict.fromkeys(every, 1), "each linked once"
    confirmed = world.library.query("select vod_id, verdict from mac_douban_verdict")
    assert Counter(row["vod_id"] for row in confirmed) == dict.fromkeys(every, 1)
    assert {row["verdict"] for row in confirmed} == {"CONFIRMED"}, "an ill source gave no verdict"
    states = world.library.states().values()
    assert {row["douban_sync_fail_count"] for row in states} == {0}, "nor was it a video's fault"
    owners = {row["run_id"] for row in world.library.log()}
    assert len(owners) >= len(GROUPS)
    for endpoint in ("douban", "search"):
        times = sorted(world.upstream.requests.describe()[endpoint]["times"])
        # What was let through in one minute may arrive in the next one: no more than are under way at once.
        apart = zip(times, times[A_MINUTE + AT_ONCE :], strict=False)
        assert all(later - earlier >= 60 for earlier, later in apart), endpoint
