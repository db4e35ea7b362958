"""What the tests in a browser rest on can tell that something is amiss."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from douban_pipeline_tests.browser.dagster_ui import at_work_in, members, until


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc, which is Linux's")
def test_what_a_command_leaves_behind_is_seen():
    child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'])"
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", child], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.wait() == 0
        # A process that has just begun has no command line for a moment.
        until(lambda: ["input()" in each for each in members(process.pid)] == [True], 10, lambda: "it is not seen")
        assert process.stdin is not None
        process.stdin.close()
        until(lambda: not members(process.pid), 10, lambda: "it does not end with its input")


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="processes are found in /proc, which is Linux's")
def test_who_works_in_a_folder_is_seen_whatever_session_it_is_of(tmp_path: Path):
    below = tmp_path / "home"
    below.mkdir()
    assert at_work_in(tmp_path) == []
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=below, start_new_session=True
    ) as process:
        until(lambda: "input()" in "".join(at_work_in(tmp_path)), 60, lambda: "it is not seen")
        assert process.stdin is not None
        process.stdin.close()
        until(lambda: not at_work_in(tmp_path), 60, lambda: "it does not end with its input")


def test_what_does_not_come_true_is_reported():
    with pytest.raises(AssertionError, match="three of five"):
        until(lambda: False, 0, lambda: "three of five")
