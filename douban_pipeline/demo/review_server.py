"""The served review sheet beside the demo's UI, on this machine alone, where the extra ``service`` is installed."""

from __future__ import annotations

import socket
import threading
from importlib.util import find_spec


def listen() -> socket.socket | None:
    """Return a socket for the sheet, on a port that is free; None where the extra ``service`` is not installed."""
    return socket.create_server(("127.0.0.1", 0)) if find_spec("fastapi") and find_spec("uvicorn") else None


def address_of(listener: socket.socket | None) -> str:
    """Return where the sheet is, empty where it is not."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}/review/" if listener is not None else ""


def start(listener: socket.socket) -> None:
    """Offer the sheet of the settings in force, until the process ends."""
    import uvicorn

    from douban_pipeline.serve.app import create_app
    from douban_pipeline.serve.mounts import review_mount
    from douban_pipeline.serve.settings import ServeSettings

    app = create_app(ServeSettings(), [review_mount()])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    threading.Thread(target=server.run, args=([listener],), daemon=True, name="review").start()
