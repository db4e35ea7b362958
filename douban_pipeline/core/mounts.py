"""What a system hands to the HTTP service: its routes, and what the service must know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter


@dataclass(frozen=True, slots=True)
class Mount:
    """One part of a system in the service, which handles tokens, cookies and headers for all of them.

    Attributes:
        name: The part, as ``/healthz`` names it.
        router: Its routes.
        prefix: Their common prefix; empty for the root.
        public: Prefixes of paths without login, because the system authenticates requests itself.
        origins: Origins of other sites whose pages may call the public paths.
        problem: Returns why it cannot answer, for ``/healthz``, which is 503 then; None or empty for nothing.
        worry: Returns what is amiss while it answers, in words that anybody may read; None or empty for nothing.
        close: Stops its background work when the service stops; None for nothing.
        installed: Whether ``/healthz`` speaks of it: its system is in ``DOUBAN_PIPELINE_SYSTEMS``.
        last: Whether its routes accept names of other parts, so that they are tried after those.
        most_body: Bytes of a request's body at most, where programs send more than the service's limit; 0 for that.
    """

    name: str
    router: APIRouter
    prefix: str = ""
    public: Sequence[str] = ()
    origins: frozenset[str] = frozenset()
    problem: Callable[[], str | None] | None = None
    worry: Callable[[], str | None] | None = None
    close: Callable[[], None] | None = None
    installed: bool = True
    last: bool = False
    most_body: int = 0
