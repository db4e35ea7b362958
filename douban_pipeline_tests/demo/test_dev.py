"""`dev` says at once that its port is taken, and names its address when that answers."""

from __future__ import annotations

import http.server
import io
import socket
import threading

import pytest
import typer
from rich.console import Console

from douban_pipeline.demo.commands import announce, open_ui, refuse_taken_port


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers the second question, as a server that was still starting."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(200 if self.asked > 1 and self.path == "/server_info" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_taken_port_is_refused_before_anything_is_made(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(typer.BadParameter, match=rf"port {port} of 127\.0\.0\.1 cannot be had .*--port"):
            open_ui(port, Console(file=io.StringIO()))
    assert not list(tmp_path.iterdir())
    refuse_taken_port(port)


def test_the_address_is_printed_when_it_answers() -> None:
    shown = io.StringIO()
    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        announce(address, Console(file=shown), pause=0.01)
        server.shutdown()
    assert shown.getvalue() == f"Dagster's UI: {address} (Ctrl-C stops everything)\n"
    assert Answering.asked == 2
