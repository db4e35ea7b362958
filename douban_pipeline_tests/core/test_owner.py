"""A lease is taken from its owner only when the owner is certainly gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from douban_pipeline.core.owner import is_dead, owner_name
from douban_pipeline_tests.harness.fixtures.library import DEAD_PID

HERE = socket.gethostname()


def test_a_name_says_which_run_where_and_in_which_process():
    assert owner_name("3f2a") == f"3f2a@{HERE}:{os.getpid()}"


def test_a_process_is_alive_until_it_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = f"run@{HERE}:{process.pid}"
        assert not is_dead(name)
        process.kill()
        if Path("/proc").is_dir():
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            assert is_dead(name), "ended, but its parent has not looked yet"
        process.wait(timeout=30)
        assert is_dead(name)


@pytest.mark.parametrize(
    ("owner", "dead"),
    [
        (f"run@{HERE}:{DEAD_PID}", True),
        (f"odd@run:name@{HERE}:{DEAD_PID}", True),
        pytest.param(f"run@{HERE}:{os.getpid()}", False, id="this process"),
        (f"run@{HERE}:1", False),
        (f"run@elsewhere:{DEAD_PID}", False),
        (f"run@{HERE}:", False),
        (f"run@{HERE}:-1", False),
        (f"run@{HERE}:²", False),
        (f"run@{HERE}:{10**30}", False),
        ("run", False),
        ("", False),
    ],
)
def test_who_cannot_be_known_to_be_gone_counts_as_alive(owner, dead):
    assert is_dead(owner) is dead
