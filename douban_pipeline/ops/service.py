"""The command ``serve``: the HTTP service in the foreground, until a signal stops it."""

from __future__ import annotations

import os
from typing import Any

from douban_pipeline.core.console import console
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.serve.settings import PREFIX, load_settings


def serve(host: str | None, port: int | None, processes: int | None = None) -> None:
    """Run the HTTP service; the arguments override the address and number of processes in the settings.

    Raises:
        ProblemsError: The libraries of the extra are not installed, or the address is not available.
    """
    given: dict[str, Any] = {"host": host, "port": port, "processes": processes}
    settings = load_settings(**{name: value for name, value in given.items() if value is not None})
    try:
        from douban_pipeline.serve.server import listen
        from douban_pipeline.serve.server import serve as run
    except ImportError as error:
        raise ProblemsError([missing_library(error.name, "service")]) from error
    listener = listen(settings)
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    alone = terminal_text("without a login, for this machine alone")
    guarded = terminal_text("with a token") if settings.token.get_secret_value() else alone
    count = settings.processes
    by = terminal_text(" by {count} processes").format(count=count) if count > 1 else ""
    url = f"http://{shown}:{number}/"
    line = terminal_text("serving at {url}{by} {guarded}; Ctrl-C stops").format(url=url, by=by, guarded=guarded)
    console.print(line, highlight=False, soft_wrap=True)
    if os.environ.get("FORWARDED_ALLOW_IPS") and not settings.proxies:
        ignored = terminal_text("FORWARDED_ALLOW_IPS has no effect: name proxies in {prefix}PROXIES").format(
            prefix=PREFIX
        )
        console.print(ignored, highlight=False, soft_wrap=True)
    run(settings, listener)
