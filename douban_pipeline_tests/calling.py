"""The command line in this process: as a person uses it, without the seconds that a process takes to start."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import pytest

from douban_pipeline.douban.settings import PREFIX
from douban_pipeline.ops.cli import main


@dataclass(frozen=True, slots=True)
class Called:
    """What a command said, and its exit status."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls commands with just the settings of a test."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, **variables: str) -> Called:
        """Run ``douban-pipeline`` with ``arguments`` in an environment of ``variables``."""
        with self.monkeypatch.context() as patch:
            for name in list(os.environ):
                if name.startswith((PREFIX, "DAGSTER")):
                    patch.delenv(name)
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["douban-pipeline", *arguments])
            self.capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
            said = self.capsys.readouterr()
        return Called(int(ended.value.code or 0), said.out + said.err)


@pytest.fixture(name="call")
def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    """The command line."""
    return Caller(monkeypatch, capsys)
