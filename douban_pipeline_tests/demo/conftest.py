"""The replay upstream with the subjects of its tests, and who asks it."""

from __future__ import annotations

import httpx
import pytest

from douban_pipeline_tests.demo.replayed import SUBJECTS
from douban_pipeline_tests.stand_ins.replay import ReplayServer


@pytest.fixture(scope="module")
def running():
    with ReplayServer(SUBJECTS) as server:
        yield server


@pytest.fixture
def server(running):
    """The replay upstream, without faults and requests of other tests."""
    running.faults.clear()
    running.requests.clear()
    return running


@pytest.fixture
def client():
    """A client of this machine alone."""
    with httpx.Client(timeout=10, trust_env=False) as client:
        yield client
