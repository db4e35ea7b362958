"""Takes the pictures of the README from what `make demo` left: ``python -m douban_pipeline_tests.harness.screenshots``.

A Chromium that is installed opens the pages that are files, and those that the service has on loopback.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from douban_pipeline.core.mounts import Mount
from douban_pipeline.demo.setup import demo_home
from douban_pipeline.digest.api import digest_router
from douban_pipeline.digest.services import open_services as open_digest
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.douban.api import pages_router
from douban_pipeline.douban.review.served.api import review_router
from douban_pipeline.douban.review.served.batches import Batches
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline.douban.review.served.desk import ReviewDesk
from douban_pipeline.douban.review.served.lookup import Lookup
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.services import open_services as open_library
from douban_pipeline.douban.settings import Settings
from douban_pipeline.feeds.api import pages
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.server import configure
from douban_pipeline.serve.settings import ServeSettings

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 150_000
"""A picture's size at most."""
QUALITY = 78
SIZE = (1100, 720)
OF_TESTS = ("widget",)
"""Pictures of a real CMS's page: of `live_cms/test_widget.py`, where DOUBAN_TEST_PICTURES names a folder."""

REVIEW = "/review/"
DIGEST = "/digest"
SERVED = {"front": "/", "log": "/lists/log", "feeds": "/feeds/?view=all", "review": REVIEW, "digest": f"{DIGEST}/"}
"""Pages of the service."""


@contextmanager
def service(home: Path) -> Iterator[str]:
    """Yield the address of the service over the tables in a HOME, on a free port."""
    feeds = open_services(FeedsSettings(_env_file=None, home=home)).ready()
    url = f"sqlite:///{home / 'library.sqlite'}"
    library = open_library(Settings(_env_file=None, home=home, database_url=url, dry_run=False))
    digest = open_digest(DigestSettings.load(home=home, database_url=f"sqlite:///{home / 'digest.sqlite'}")).ready()
    desk = ReviewDesk(library, Batches(library, DagsterApi("http://127.0.0.1:9")))
    mounts = [
        Mount("feeds", pages.pages_router(feeds), prefix=pages.PREFIX, close=feeds.close),
        Mount("review", review_router(desk, Pictures(library), Lookup(library)), prefix=REVIEW.rstrip("/")),
        Mount("digest", digest_router(digest), prefix=DIGEST, close=digest.close),
        Mount("reports", pages_router(library), close=library.close),
    ]
    server = uvicorn.Server(configure(create_app(ServeSettings(_env_file=None), mounts), log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=server.run, args=([door],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


def take(page: Page, address: str, target: Path) -> None:
    """Take the picture of the page at an address.

    Raises:
        ValueError: It is too large to be fetched with the README.
    """
    page.goto(address)
    if address.endswith(REVIEW):
        # What a reviewer decides is more telling than what stands above it.
        first = page.locator("article.filled").first
        first.evaluate("card => window.scrollTo(0, card.getBoundingClientRect().top + window.scrollY - 60)")
    page.screenshot(path=target, type="jpeg", quality=QUALITY)
    if target.stat().st_size > MOST_BYTES:
        raise ValueError(f"{target} has {target.stat().st_size} bytes, more than {MOST_BYTES}")


def main(arguments: list[str]) -> None:
    """Take all pictures, from the demo's HOME or from the one that is named."""
    chromium = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if chromium is None:
        sys.exit("no Chromium: install the package chromium")
    home = Path(arguments[0]).absolute() if arguments else demo_home()
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0)
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, locale="zh-CN")
        with service(home) as base:
            for name, path in SERVED.items():
                take(page, f"{base}{path}", PICTURES / f"{name}.jpg")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
