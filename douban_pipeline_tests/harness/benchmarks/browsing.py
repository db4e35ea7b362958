"""How long a person waits for a page: a real Chromium, which reaches nothing but this machine."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VARIABLE = "DOUBAN_TEST_CHROMIUM"
"""Names another Chromium than the first of `NAMES` that is installed; that of the tests."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_MS = 90_000


def chromium() -> str | None:
    """Return the path of a Chromium that Playwright can drive, None if either is not there."""
    try:
        import playwright  # noqa: F401 (a part of the developers' tools)
    except ImportError:
        return None
    given = os.environ.get(VARIABLE)
    return next((path for name in ((given,) if given else NAMES) if (path := shutil.which(name))), None)


@contextmanager
def browser(path: str) -> Iterator[Browser]:
    """Start the Chromium at ``path``."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path,
            chromium_sandbox=os.geteuid() != 0,  # Chromium refuses to start as root with it
            args=["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"],
        )
        try:
            yield started
        finally:
            started.close()


def seconds_to_show(started: Browser, url: str, *, warm: bool) -> float:
    """Return the seconds from opening an asset's page until its button *Materialize* is to be seen."""
    context = started.new_context(viewport={"width": 1440, "height": 900}, service_workers="block")
    try:
        context.set_default_timeout(_PATIENCE_MS)
        page = context.new_page()
        taken = 0.0
        for _ in range(1 + warm):
            page.goto("about:blank")
            began = time.perf_counter()
            page.goto(url, wait_until="commit")
            page.get_by_role("button", name="Materialize").first.wait_for()
            taken = time.perf_counter() - began
        return taken
    finally:
        context.close()
