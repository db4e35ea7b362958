"""A database that the tests of commands may give TMDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline_tests.conftest import new_database


@pytest.fixture
def tmdb_database_url() -> Iterator[str]:
    """A new, empty database on PostgreSQL: the system's schema outlives what `postgres_url` clears away."""
    with new_database("postgres") as url:
        yield url
