"""A loud visitor at the comments: guesses, a forged address, a huge body and connections that say nothing."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

import httpx

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.evidence import Finding

ADDRESS = "127.0.0.66"
"""Where it comes from: another address of loopback than the people's."""
GUESSES = 60
MOST_TRIED = 20
"""Guesses that may be tried before the service stops trying."""
_BODY_BYTES = 30_000_000
_SILENT = 20
_PATIENCE = 20.0


@dataclass(slots=True)
class Noise:
    """What the service answered to one visit.

    Attributes:
        guesses: Answers to wrong tokens, each with an address of its own forged, by status.
        body: Status of the answer to a huge body; 0 for a connection that was closed.
        others: Status of an ordinary page that was asked for meanwhile.
    """

    guesses: Counter[int] = field(default_factory=Counter)
    body: int = 0
    others: int = 0


def make_noise(base: str, rng: Random) -> Noise:
    """Visit the service at ``base`` once; raises what `httpx` raises where it is down."""
    noise = Noise()
    with ExitStack() as closing:
        transport = httpx.HTTPTransport(local_address=ADDRESS)
        client = closing.enter_context(httpx.Client(transport=transport, timeout=_PATIENCE, trust_env=False))
        closing.callback(_close, _silent_connections(base))
        asked = {"ids": ["1"], "status": 1, "reason": "", "dry_run": True}
        for number in range(GUESSES):
            headers = {
                "Authorization": f"Bearer a-guess-{rng.randrange(10**12)}",
                "X-Forwarded-For": f"203.0.113.{number}",
            }
            answer = client.post(f"{base}/comments/v1/admin/moderate", json=asked, headers=headers)
            noise.guesses[answer.status_code] += 1
        noise.body = _send_much(client, base)
        with httpx.Client(timeout=_PATIENCE, trust_env=False) as quiet:
            noise.others = quiet.get(f"{base}/comments/v1/sections/1/1/page").status_code
    return noise


def _silent_connections(base: str) -> list[socket.socket]:
    """Open connections that send the beginning of a request and no more."""
    parts = urlsplit(base)
    opened = []
    for _ in range(_SILENT):
        connection = socket.create_connection((parts.hostname or "", parts.port or 80), _PATIENCE, (ADDRESS, 0))
        connection.sendall(b"POST /comments/v1/sections/1/1/comments HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        opened.append(connection)
    return opened


def _close(connections: Sequence[socket.socket]) -> None:
    for connection in connections:
        connection.close()


def _send_much(client: httpx.Client, base: str) -> int:
    def body() -> Iterator[bytes]:
        for _ in range(_BODY_BYTES // 100_000):
            yield b"x" * 100_000

    try:
        answer = client.post(f"{base}/comments/v1/sections/1/1/comments", content=body())
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        return 0  # closed before all was sent
    return answer.status_code


def noise_was_borne(visits: Sequence[Noise]) -> Finding:
    """Return whether the limits held: few guesses were tried, the body was not read whole, others were answered."""
    case = Case("a loud visitor is refused: guesses are limited, huge bodies are not read, others are answered")
    for noise in visits:
        case.checked += GUESSES + 2
        tried = noise.guesses[401] + noise.guesses[403]
        if tried > MOST_TRIED or noise.guesses[200]:
            case.breaks(f"of {GUESSES} guesses with forged addresses {tried} were tried: {dict(noise.guesses)}")
        if noise.body not in (0, 413):
            case.breaks(f"a body of {_BODY_BYTES:,} bytes was answered with {noise.body}")
        if noise.others != 200:
            case.breaks(f"a page of another visitor was answered with {noise.others}")
    return case.finding()
