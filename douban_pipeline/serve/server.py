"""Running the service until it is stopped."""

from __future__ import annotations

import socket

import uvicorn

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.mounts import MOUNTS
from douban_pipeline.serve.settings import PREFIX, ServeSettings

_BACKLOG = 128


def listen(settings: ServeSettings) -> socket.socket:
    """Return a socket at the address of the settings.

    Raises:
        ProblemsError: It cannot be had; the sentence names the settings.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"{PREFIX}HOST = {settings.host!r}, {PREFIX}PORT = {settings.port}"
        remedy = "choose another port, or stop what is on it"
        raise ProblemsError([f"cannot listen ({error.strerror}): {where}; {remedy}"]) from None


def serve(settings: ServeSettings, listener: socket.socket) -> None:
    """Serve all systems on ``listener`` until a signal stops it; what is under way is answered first."""
    app = create_app(settings, [found for mount in MOUNTS if (found := mount()) is not None])
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=10, lifespan="on"
    )
    with listener:
        uvicorn.Server(config).run(sockets=[listener])
