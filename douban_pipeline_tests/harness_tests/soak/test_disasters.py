"""Troubles come true: when, on whom, and what is written down of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from douban_pipeline.demo.stand_ins.faults import Faults
from douban_pipeline_tests.harness.soak import disasters as module
from douban_pipeline_tests.harness.soak.disasters import HUNT_SECONDS, Disasters
from douban_pipeline_tests.harness.soak.troubles import Kind, Trouble


@dataclass
class Server:
    name: str
    said: list[str]
    lock: threading.Lock
    locked: list[bool] = field(default_factory=list)

    def kill(self) -> None:
        self.said.append(f"{self.name} killed")
        self.locked.append(self.lock.locked())

    def start(self) -> None:
        self.said.append(f"{self.name} started")
        self.locked.append(self.lock.locked())


class Worker:
    def __init__(self, gone: bool = False) -> None:
        self.gone, self.killed = gone, False

    def kill(self) -> None:
        if self.gone:
            raise psutil.NoSuchProcess(1)
        self.killed = True


class Scene:
    """Disasters on a clock of their own, with servers that only note what is done to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *troubles: Trouble) -> None:
        self.now = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.wait)
        monkeypatch.setattr(module, "time", clock)
        self.said: list[str] = []
        self.lock = threading.Lock()
        self.workers: dict[str, Any] = {}
        self.database = Server("database", self.said, self.lock)
        self.daemon, self.code = Server("daemon", self.said, self.lock), Server("code", self.said, self.lock)
        self.faults = Faults()
        stack = SimpleNamespace(daemon=self.daemon, code=self.code, run_workers=lambda: dict(self.workers))
        world: Any = SimpleNamespace(
            scale=SimpleNamespace(seed=1),
            stack=stack,
            server=self.database,
            replay=SimpleNamespace(faults=self.faults),
        )
        self.disasters = Disasters(world, troubles, self.lock, lambda _: None)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def go_on(self, seconds: int) -> Iterator[int]:
        for passed in range(seconds):
            self.disasters.step()
            yield passed
            self.wait(1)

    def pass_time(self, seconds: int) -> None:
        for _ in self.go_on(seconds):
            pass


def unhealthy(scene: Scene) -> list[tuple[str, str]]:
    return [(rule["endpoint"], rule["fault"]) for rule in scene.faults.describe()]


def test_sources_fail_for_their_time_each_by_itself(monkeypatch: pytest.MonkeyPatch):
    scene = Scene(
        monkeypatch,
        Trouble(5, Kind.fault, 20, "douban", "captcha"),
        Trouble(10, Kind.fault, 30, "search", "throttled", 15.0),
    )
    seen = {passed: unhealthy(scene) for passed in scene.go_on(50)}
    assert seen[4] == []
    assert seen[5] == [("douban", "captcha")]
    assert seen[12] == [("douban", "captcha"), ("search", "throttled")]
    assert seen[26] == [("search", "throttled")]
    assert seen[41] == []
    assert scene.disasters.done == {Kind.fault: 2}


def test_a_server_is_down_for_a_while_and_outsiders_wait_for_the_database(monkeypatch: pytest.MonkeyPatch):
    scene = Scene(
        monkeypatch,
        Trouble(1, Kind.kill_database, 4.0),
        Trouble(20, Kind.kill_daemon, 2.0),
        Trouble(30, Kind.kill_code, 3.0),
    )
    scene.pass_time(40)
    assert scene.said == [f"{name} {what}" for name in ("database", "daemon", "code") for what in ("killed", "started")]
    assert scene.database.locked == [True, True]
    assert scene.daemon.locked == scene.code.locked == [False, False]
    assert [kill.what for kill in scene.disasters.kills] == ["database", "daemon", "code"]
    assert all(kill.until is not None for kill in scene.disasters.kills)


def test_a_run_is_killed_once_one_is_at_work(monkeypatch: pytest.MonkeyPatch):
    scene = Scene(monkeypatch, Trouble(1, Kind.kill_run))
    scene.pass_time(10)
    scene.workers["abc"] = worker = Worker()
    scene.pass_time(10)
    assert worker.killed
    assert [(kill.what, kill.run_id, kill.until) for kill in scene.disasters.kills] == [("run", "abc", None)]
    scene.workers["def"] = other = Worker()
    scene.pass_time(60)
    assert not other.killed


def test_a_kill_for_which_there_was_no_run_is_reported(monkeypatch: pytest.MonkeyPatch):
    scene = Scene(monkeypatch, Trouble(1, Kind.kill_run))
    scene.pass_time(int(HUNT_SECONDS) + 5)
    assert (scene.disasters.missed, scene.disasters.kills) == (1, [])
