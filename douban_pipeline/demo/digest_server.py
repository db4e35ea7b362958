"""Simulated WeRSS and chat completions on loopback; their answers are in `demo.werss` and `demo.completions`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from douban_pipeline.demo.answers import HttpAnswer
from douban_pipeline.demo.completions import ModelStandIn
from douban_pipeline.demo.http_server import LoopbackServer, LoopbackStandIn
from douban_pipeline.demo.werss import WeRssStandIn

COMPLETIONS = "/chat/completions"


@dataclass
class DigestServer(LoopbackStandIn):
    """Serves both simulations at one address.

    Attributes:
        werss: Answers requests to WeRSS.
        model: Answers requests to the model.
    """

    werss: WeRssStandIn
    model: ModelStandIn = field(default_factory=ModelStandIn)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _bind(self) -> LoopbackServer:
        return LoopbackServer(("127.0.0.1", 0), self._respond)

    @property
    def model_url(self) -> str:
        """The address of the model."""
        return f"{self.base}{COMPLETIONS}"

    def _respond(self, method: str, target: str, body: bytes, authorization: str) -> HttpAnswer | None:
        with self._lock:
            if target.startswith(COMPLETIONS):
                return self.model.answer(body, authorization)
            return self.werss.answer(method, target, body, authorization)
