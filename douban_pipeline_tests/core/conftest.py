"""Engines for the tests of what `core` does on each of them, and a house for those of the language model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.llm import SOURCE
from douban_pipeline_tests.conftest import CORE_ENGINES
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.scripted_source import House, build_house


@pytest.fixture(params=CORE_ENGINES)
def core_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine that `core` speaks, in turn."""
    if request.param == "sqlite":
        url = request.getfixturevalue("sqlite_url")
    else:
        url = request.getfixturevalue("house_database")(request.param)
    engine = open_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def ground_floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One ground floor for the many cases that need nothing of it but a well source."""
    yield from build_house(f"sqlite:///{tmp_path_factory.mktemp('llm') / 'house.db'}", FakeClock())


@pytest.fixture
def model_house(ground_floor: House) -> House:
    """The ground floor as if nothing had been asked of it today."""
    ground_floor.clock.advance(days=1)
    ground_floor.gate.close(SOURCE)
    return ground_floor
