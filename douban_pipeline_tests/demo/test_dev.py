"""`dev` refuses taken ports at once, names its address when everything answers, and leaves no process behind."""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
import pytest
import typer
import typer.main
import yaml
from rich.console import Console
from typer.testing import CliRunner

from douban_pipeline.__main__ import app
from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.demo import dev
from douban_pipeline.demo.children import Children
from douban_pipeline.demo.commands import open_all, refuse_taken_port
from douban_pipeline.demo.comments import film
from douban_pipeline.ops.workspace import project_folder
from douban_pipeline_tests.browser.dagster_ui import LOCATIONS, run_dev

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
            open_all("", *ports, Console(file=io.StringIO()))
    assert not list(tmp_path.iterdir())
    refuse_taken_port(port, which)


def test_the_command_says_so_and_makes_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    port = own_port()
    with socket.create_server(("127.0.0.1", port)):
        done = CliRunner().invoke(app, ["dev", "--port", str(port)])
    assert done.exit_code == 2, done.output
    assert f"port {port} of 127.0.0.1" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_everything_answers_at_one_address_and_nothing_is_left_after_ctrl_c(tmp_path: Path) -> None:
    """The whole of `make dev` as a person has it; that nothing is left behind is asserted by `run_dev`."""
    with run_dev(tmp_path) as ui, httpx.Client(base_url=ui.service, trust_env=False, timeout=60) as service:
        printed = ui.log.read_text(encoding="utf-8", errors="replace")
        announced = [line for line in printed.splitlines() if "Everything answers: " in line]
        assert announced == [f"Everything answers: {ui.url} (Ctrl-C stops everything)"], printed
        entries = ui.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
        states = {each["name"]: each["loadStatus"] for each in entries}
        assert states == dict.fromkeys(("douban_pipeline", "feeds", "digest", "tmdb", "comments"), "LOADED")
        for path in ("/", "/healthz", "/review/", "/feeds/", "/tmdb/", f"/demo?type=1&id={film()}"):
            assert service.get(path, follow_redirects=True).status_code == 200, path
        section = f"/comments/v1/sections/1/{film()}"
        assert service.post(f"{section}/comments", json={"content": "甲乙丙丁", "name": "看客"}).status_code == 202
        # Only the comment worker puts it there.
        wait_for(lambda: "甲乙丙丁" in service.get(f"{section}/page", params={"sort": "new"}).text)


def test_no_command_takes_a_port_that_cannot_be() -> None:
    def ports(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
        for name, each in getattr(command, "commands", {}).items():
            yield from ports(each, *words, name)
        for option in command.params:
            if "port" in (option.name or "").split("_"):
                yield (*words, option.opts[0])

    found = list(ports(typer.main.get_command(app)))
    assert ("dev", "--port") in found
    for words in found:
        refused = CliRunner().invoke(app, [*words, "99999"])
        assert (refused.exit_code, "65535" in refused.output) == (2, True), words


def test_an_unknown_system_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(typer.BadParameter, match="there is no system 'doubn'; systems: douban, feeds, digest, tmdb"):
        open_all("feeds,doubn", own_port(), own_port(), Console(file=io.StringIO()))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("systems", "locations"),
    [
        (["douban"], ["douban_pipeline"]),
        (["feeds", "comments"], ["feeds", "comments"]),
        ([*SYSTEMS], ["douban_pipeline", "feeds", "digest", "tmdb", "comments"]),
    ],
)
def test_chosen_systems_have_their_code_locations_and_no_others(systems, locations, tmp_path: Path) -> None:
    project = project_folder()
    workspace = yaml.safe_load(dev.write_workspace(project, tmp_path, systems).read_text(encoding="utf-8"))
    modules = [each["python_module"] for each in workspace["load_from"]]
    assert [module["location_name"] for module in modules] == locations
    assert {module["working_directory"] for module in modules} == {str(project)}


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
