"""Serves simulated WeRSS and chat completions on loopback; their answers are in `demo.werss` and `demo.completions`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from email.message import Message

from douban_pipeline.demo.answers import HttpAnswer
from douban_pipeline.demo.completions import ModelStandIn
from douban_pipeline.demo.http_server import LoopbackStandIn, authorization
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

    @property
    def model_url(self) -> str:
        """The address of the model."""
        return f"{self.base}{COMPLETIONS}"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer of WeRSS or of the model, one at a time."""
        with self._lock:
            if target.startswith(COMPLETIONS):
                return self.model.answer(body, authorization(headers))
            return self.werss.answer(method, target, body, authorization(headers))
