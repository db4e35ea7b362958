"""WeRSS and chat completions on loopback; what they answer is in `demo.werss` and `demo.completions`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from douban_pipeline.demo.answers import HttpAnswer
from douban_pipeline.demo.completions import ModelStandIn
from douban_pipeline.demo.http_server import LoopbackServer
from douban_pipeline.demo.werss import WeRssStandIn

COMPLETIONS = "/chat/completions"


@dataclass
class DigestServer:
    """Serves both stand-ins at one address.

    Attributes:
        werss: Answers what is asked of WeRSS.
        model: Answers what is asked of the model.
    """

    werss: WeRssStandIn
    model: ModelStandIn = field(default_factory=ModelStandIn)
    _server: LoopbackServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> DigestServer:
        """Begin to serve."""
        self._server = LoopbackServer(("127.0.0.1", 0), self._respond)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop at once, whoever still waits for an answer."""
        assert self._server is not None
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()

    @property
    def base(self) -> str:
        """The address of WeRSS."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def model_url(self) -> str:
        """The address of the model."""
        return f"{self.base}{COMPLETIONS}"

    def _respond(self, method: str, target: str, body: bytes, authorization: str) -> HttpAnswer | None:
        with self._lock:
            if target.startswith(COMPLETIONS):
                return self.model.answer(body, authorization)
            return self.werss.answer(method, target, body, authorization)
