"""A connection to the tests' Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from douban_pipeline_tests.conftest import server_url


@pytest.fixture
def redis_client() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(server_url("redis"), decode_responses=True)
    yield client
    client.close()
