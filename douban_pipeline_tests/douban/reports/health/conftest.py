"""What the tests of this folder share: a chat's robot to be told of things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline_tests.harness.fixtures.robot import Robot


@pytest.fixture
def robot() -> Iterator[Robot]:
    """A robot that listens."""
    with Robot() as robot:
        yield robot
