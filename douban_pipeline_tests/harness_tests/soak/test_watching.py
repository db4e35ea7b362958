"""What is watched: which life of a service is judged, what breakers did, and which processes count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.harness.soak.watching import (
    Breakers,
    Held,
    Sample,
    held_by,
    longest_life,
)

PARENT = """
import subprocess, sys
ours = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
worker = "from multiprocessing" + ".spawn import spawn_main; import sys; sys.stdin.read()"
run = subprocess.Popen([sys.executable, "-c", worker], stdin=subprocess.PIPE)
print("ready", flush=True)
ours.wait()
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Process]:
    command = [sys.executable, "-c", PARENT]
    process = Process("service", command, log=tmp_path / "log", environment={}, directory=tmp_path)
    with process:
        process.wait_until(lambda: "ready" in process.log.read_text(), seconds=20)
        yield process


def test_processes_that_execute_runs_are_left_out(service: Process):
    held = held_by(service)
    family = wait_for(lambda: service.family() if len(service.family()) == 3 else None, seconds=10)
    assert family is not None
    assert held is not None
    assert held.pid == service.pid
    assert 0 < held.memory_mb < service.usage().memory_mb
    assert 0 < held.descriptors < service.usage().descriptors


def test_the_longest_life_of_a_service_is_judged():
    lives = [(0.0, 1), (5.0, 1), (10.0, 2), (15.0, 2), (20.0, 2), (25.0, 2), (30.0, 3)]
    samples = [Sample(at, {"daemon": Held(pid, 100.0 * pid, pid)}) for at, pid in lives]
    memory, descriptors = longest_life(samples, "daemon")
    assert memory == [(10.0, 200.0), (15.0, 200.0), (20.0, 200.0), (25.0, 200.0)]
    assert {value for _, value in descriptors} == {2.0}
    assert longest_life(samples, "webserver") == ([], [])


def test_breakers_are_counted_by_who_closed_them():
    breakers = Breakers()
    for state, by in (
        ("closed", ""),
        ("open", ""),
        ("open", ""),
        ("half_open", ""),
        ("closed", ""),
        ("open", ""),
        ("closed", "小赵"),
    ):
        breakers.see("douban", state, by)
    assert breakers.opened == {"douban": 2}
    assert breakers.closed_alone == {"douban": 1}
    assert breakers.closed_by_hand == {"douban": 1}
