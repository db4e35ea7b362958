"""Takes the pictures of the README from what `make demo` left: ``python -m douban_pipeline_tests.harness.screenshots``.

The pages are files; a Chromium that is installed opens them, and nothing else is asked.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from douban_pipeline.demo.setup import demo_home

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 150_000
"""A picture's size at most."""
QUALITY = 78
SIZE = (1100, 720)
PAGES = {
    "front": "index.html",
    "review": "review_queue.html",
    "log": "list_log.html",
    "feeds": "feeds.html",
    "digest": "digest/daily/*.html",
}
OF_TESTS = ("widget",)
"""Pictures of a real CMS's page: of `live_cms/test_widget.py`, where DOUBAN_TEST_PICTURES names a folder."""


def page_of(reports: Path, pattern: str) -> Path:
    """Return the newest page that ``pattern`` names.

    Raises:
        FileNotFoundError: There is none: the demo has not run.
    """
    found = sorted(reports.glob(pattern))
    if not found:
        raise FileNotFoundError(f"no {pattern} in {reports}: run `make demo` first, or name another HOME")
    return found[-1]


def take(page: Page, source: Path, target: Path) -> None:
    """Take the picture of one page.

    Raises:
        ValueError: It is too large to be fetched with the README.
    """
    page.goto(source.as_uri())
    first = page.query_selector("article, .card")
    if first is not None and source.name == PAGES["review"]:
        # What a reviewer decides is more telling than what stands above it.
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
    reports = (Path(arguments[0]).absolute() if arguments else demo_home()) / "reports"
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0)
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, locale="zh-CN")
        for name, pattern in PAGES.items():
            take(page, page_of(reports, pattern), PICTURES / f"{name}.jpg")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
