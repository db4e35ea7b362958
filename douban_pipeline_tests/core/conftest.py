"""Engines for the tests of what `core` does on each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.conftest import CORE_ENGINES


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
