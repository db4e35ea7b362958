"""Processes of the service on loopback, as its command starts them, over one database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

TOKEN = "a-token-of-this-service-0123456789"


@contextmanager
def process(home: Path, **settings: str) -> Iterator[str]:
    """Yield the address of a process of the service; settings are named without the common prefix."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOUBAN_PIPELINE_")},
        "DOUBAN_PIPELINE_HOME": str(home),
        "DOUBAN_PIPELINE_SERVE_TOKEN": TOKEN,
        "PYTHONUNBUFFERED": "1",
        **{f"DOUBAN_PIPELINE_{name}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "douban_pipeline", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        base = running.stdout.readline().split()[2].rstrip("/")
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=20)) as client:
                client.get(f"{base}/healthz", timeout=60)
            yield base
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(30)


@contextmanager
def processes(home: Path, number: int, **settings: str) -> Iterator[list[str]]:
    """Yield the addresses of several processes of the service."""
    with ExitStack() as stack:
        yield [stack.enter_context(process(home, **settings)) for _ in range(number)]


@contextmanager
def visitor(base: str, address: str = "127.0.0.1", **headers: str) -> Iterator[httpx.Client]:
    """Yield a client that comes from an address of this machine."""
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=base, transport=transport, headers=headers, timeout=30) as client:
        yield client
