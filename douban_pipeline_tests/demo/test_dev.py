"""`dev` refuses taken ports at once, names its address when everything answers, and leaves no process behind."""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import typer
from rich.console import Console

from douban_pipeline.demo import dev
from douban_pipeline.demo.children import Children
from douban_pipeline.demo.commands import open_all, refuse_taken_port

LIMIT = 600.0
"""Seconds after which something that should happen will not; machines that run tests may be very busy."""


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("which", ["--port", "--service-port"])
def test_a_taken_port_is_refused_before_anything_is_made(which: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    port = own_port()
    with socket.create_server(("127.0.0.1", port)):
        free = own_port(port)
        ports = (port, free) if which == "--port" else (free, port)
        with pytest.raises(
            typer.BadParameter, match=rf"port {port} of 127\.0\.0\.1 cannot be had .*{which} \(make dev"
        ):
            open_all(*ports, Console(file=io.StringIO()))
    assert not list(tmp_path.iterdir())
    refuse_taken_port(port, which)


def entry(name: str, status: str = "LOADED", message: str | None = None) -> dict[str, Any]:
    return {"name": name, "loadStatus": status, "locationOrLoadError": {"message": message} if message else {}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], "no code location yet"),
        ([entry("feeds"), entry("tmdb", "LOADING")], "loading tmdb"),
        ([entry("feeds"), entry("tmdb")], ""),
    ],
)
def test_dagster_answers_when_every_location_is_loaded(entries, expected, monkeypatch) -> None:
    answer_with(entries, monkeypatch)
    assert dev.unready_dagster("http://dagster") == expected


def test_a_location_that_cannot_be_loaded_is_named(monkeypatch) -> None:
    answer_with([entry("feeds", message="no module\n")], monkeypatch)
    with pytest.raises(ChildProcessError, match=r"the code location feeds cannot be loaded: no module$"):
        dev.unready_dagster("http://dagster")


def answer_with(entries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"data": {"workspaceOrError": {"locationEntries": entries}}}
    answer = httpx.Response(200, json=content, request=httpx.Request("POST", "http://dagster/graphql"))
    monkeypatch.setattr(dev.httpx, "post", lambda *_, **__: answer)


def test_it_is_ready_when_nobody_says_why_not() -> None:
    def not_yet() -> str:
        raise httpx.ConnectError("refused")

    calls: list[str] = []
    answers = {"one": iter([not_yet, lambda: "loading", lambda: ""]), "two": iter([lambda: ""])}

    def ask(name: str) -> str:
        calls.append(name)
        return str(next(answers[name])())

    dev.wait_until_ready([lambda: ask("one"), lambda: ask("two")], lambda: "", threading.Event(), pause=0)
    assert calls == ["one", "one", "one", "two"]


def test_a_process_that_ends_or_time_that_is_over_ends_the_wait() -> None:
    with pytest.raises(ChildProcessError, match="the service ended with the status 2"):
        dev.wait_until_ready(
            [lambda: "loading"], lambda: "the service ended with the status 2", threading.Event(), pause=0
        )
    with pytest.raises(ChildProcessError, match="not everything answers after 0 s: loading tmdb"):
        dev.wait_until_ready([lambda: "loading tmdb"], lambda: "", threading.Event(), pause=0, seconds=0)
    end = threading.Event()
    end.set()
    with pytest.raises(KeyboardInterrupt):
        dev.wait_until_ready([lambda: "loading"], lambda: "", end)
    with Children(Path()) as children, pytest.raises(KeyboardInterrupt):
        children.wait(end)


STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
path = sys.argv[1]
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, "-c", open(path + ".py").read(), path, "grandchild"])
open(f"{path}.{os.getpid()}", "w").close()
time.sleep(3600)
"""


def test_what_a_child_started_ends_with_it_even_if_it_takes_no_hints(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    Path(f"{path}.py").write_text(STUBBORN)
    with Children(tmp_path) as children:
        children.start("stubborn", [sys.executable, "-c", STUBBORN, str(path)])
        wait_for(lambda: len(marks := list(tmp_path.glob("mark.[0-9]*"))) == 2 and marks)
        numbers = [int(each.suffix[1:]) for each in tmp_path.glob("mark.[0-9]*")]
        assert not children.ended()
        children.stop(grace=0.2)
    assert len(numbers) == 2
    wait_for(lambda: not any(alive(number) for number in numbers))


def alive(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def own_port(taken: int = 0) -> int:
    """Return a port that nobody has, below those from which the system takes ports for callers."""
    for port in range(20_000 + os.getpid() % 9_000, 32_000):
        if port != taken:
            with socket.socket() as found:
                if found.connect_ex(("127.0.0.1", port)):
                    return port
    raise AssertionError("no port is free")
