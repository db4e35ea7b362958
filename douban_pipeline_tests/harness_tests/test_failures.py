"""A run of the tests names a failure when it comes, not at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import douban_pipeline_tests

FAILING = """
import os, signal
import pytest

@pytest.fixture
def unready():
    raise OSError("no such part")

def test_sum():
    assert 1 + 1 == 3, "sums\\nare wrong"

def test_part(unready):
    pass
"""
BREAKS_OFF = """
def test_that_breaks_off():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a module of tests in a pytest of its own; its output goes to a pipe, as in CI."""

    def run_module(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_module.py").write_text(text)
        plugins = ("no:cacheprovider", "douban_pipeline_tests.harness.fixtures.failures")
        named = [part for plugin in plugins for part in ("-p", plugin)]
        # Each start of pytest closes the usual folder to other accounts, such as a running PostgreSQL's.
        named += ["--basetemp", str(tmp_path / "inner")]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *named, *options, "test_module.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(douban_pipeline_tests.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_module


def test_a_run_that_is_killed_has_named_its_failures(run):
    output = run(FAILING + BREAKS_OFF).stdout

    assert "failed: test_module.py::test_sum: " in output
    assert "AssertionError: sums are wrong" in output
    assert "failed: test_module.py::test_part (setup): " in output


def test_failures_of_several_processes_and_one_that_dies_are_told_before_the_end(run):
    output = run(FAILING + BREAKS_OFF, "-n1").stdout

    assert "failed: test_module.py::test_sum: " in output.partition("= ERRORS =")[0]
    assert "failed: test_module.py::test_that_breaks_off" in output.partition("= FAILURES =")[0]
    assert "crashed while running" in output
