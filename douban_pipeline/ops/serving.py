"""The command ``serve``: the HTTP service in the foreground, until a signal stops it."""

from __future__ import annotations

import os
from typing import Any

from douban_pipeline.core.console import console
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.language import said
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
        missing = said(f"没有安装 {error.name}", f"{error.name} is not installed")
        raise ProblemsError([f"{missing}: pip install 'douban_pipeline[service]'"]) from error
    listener = listen(settings)
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    alone = said("不需登录，仅限本机", "without a login, for this machine alone")
    guarded = said("须用令牌", "with a token") if settings.token.get_secret_value() else alone
    count = settings.processes
    by = said(f"，{count} 个进程", f" by {count} processes") if count > 1 else ""
    url = f"http://{shown}:{number}/"
    line = said(f"服务于 {url} {by}，{guarded}；Ctrl-C 停止", f"serving at {url}{by} {guarded}; Ctrl-C stops")
    console.print(line, highlight=False, soft_wrap=True)
    if os.environ.get("FORWARDED_ALLOW_IPS") and not settings.proxies:
        ignored = said(
            f"FORWARDED_ALLOW_IPS 不起作用：代理的地址请写在 {PREFIX}PROXIES",
            f"FORWARDED_ALLOW_IPS has no effect: name proxies in {PREFIX}PROXIES",
        )
        console.print(ignored, highlight=False, soft_wrap=True)
    run(settings, listener)
