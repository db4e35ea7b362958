"""The command ``serve``: the HTTP service in the foreground, until a signal stops it."""

from __future__ import annotations

from typing import Any

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.ops.console import console
from douban_pipeline.serve.settings import load_settings


def serve(host: str | None, port: int | None, processes: int | None = None) -> None:
    """Serve at the address of the settings, or at that given, by as many processes.

    Raises:
        ProblemsError: The libraries of the extra are not installed, or the address cannot be had.
    """
    given: dict[str, Any] = {"host": host, "port": port, "processes": processes}
    settings = load_settings(**{name: value for name, value in given.items() if value is not None})
    try:
        from douban_pipeline.serve.server import listen
        from douban_pipeline.serve.server import serve as run
    except ImportError as error:
        raise ProblemsError([f"{error.name} is not installed: pip install 'douban_pipeline[service]'"]) from error
    listener = listen(settings)
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    guarded = "with a token" if settings.token.get_secret_value() else "without a login, for this machine alone"
    by = f" by {settings.processes} processes" if settings.processes > 1 else ""
    console.print(f"serving at http://{shown}:{number}/{by} {guarded}; Ctrl-C stops", highlight=False, soft_wrap=True)
    run(settings, listener)
