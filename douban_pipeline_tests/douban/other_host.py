"""A host of its own for runs of the chain: a process with another host name and HOME, on a library that hosts share."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from douban_pipeline.core.clock import Clock
from douban_pipeline_tests.harness.fixtures.library import Library, processes
from douban_pipeline_tests.harness.fixtures.runs import STEPS, play


def serve(
    name: str, url: str, clock: Clock, options: Mapping[str, Any], shards: Sequence[int], pipe: Connection
) -> None:
    """Run the chain over ``shards`` each time the pipe says so, and answer with what came of it."""
    socket.gethostname = lambda: name  # type: ignore[assignment]
    library = Library(url, clock=clock, options=options)
    pipe.send("ready")
    while pipe.recv():
        try:
            played = play(library.services, shards, STEPS)
            pipe.send((played.success, played.failed_guards))
        except BaseException as error:  # noqa: BLE001 (the test shows it)
            pipe.send((False, {repr(error)}))


@dataclass(frozen=True)
class OtherHost:
    """A host that runs when it is told to."""

    name: str
    process: BaseProcess
    pipe: Connection

    @classmethod
    def start(
        cls, name: str, url: str, clock: Clock, home: Path, options: Mapping[str, Any], shards: Sequence[int]
    ) -> OtherHost:
        """Start the process; see `wait`."""
        home.mkdir()
        ours, its = processes().Pipe()
        given = {**options, "home": home}
        process = processes().Process(target=serve, args=(name, url, clock, given, shards, its), daemon=True)
        process.start()
        its.close()
        return cls(name, process, ours)

    def wait(self) -> Any:
        """Return what the host says next."""
        assert self.pipe.poll(240), f"{self.name} is stuck"
        return self.pipe.recv()

    def go(self) -> None:
        """Let it begin a run."""
        self.pipe.send(True)

    def end(self) -> None:
        """Let it end."""
        self.pipe.send(False)
        self.process.join(60)
        self.process.close()
