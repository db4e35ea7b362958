"""What people do in Dagster's UI, as they do it: following links, filling in launchpads, launching, reading."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

RUN_SECONDS = 120


def open_asset(page: Page, url: str, asset: str) -> None:
    """Open an asset's page."""
    page.goto(f"{url}/assets/{asset}", wait_until="domcontentloaded")
    expect(page.get_by_text(asset, exact=True).first).to_be_visible()


def materialize(page: Page, url: str, asset: str) -> None:
    """Press *Materialize* on an asset's page, and wait until its run has succeeded."""
    open_asset(page, url, asset)
    page.get_by_role("button", name="Materialize").first.click()
    view, confirm = page.get_by_role("link", name="View", exact=True), page.get_by_role("button", name="Confirm")
    view.or_(confirm).first.wait_for()
    if confirm.is_visible():  # what it reads of another system was never materialized: Dagster asks once
        confirm.click()
    view.click()
    expect_success(page)


def show_markdown(page: Page, key: str) -> Locator:
    """Open the table that an asset's page shows under ``key``."""
    page.get_by_role("row").filter(has=page.get_by_text(key, exact=True)).get_by_text("[Show Markdown]").click()
    shown = page.get_by_role("dialog")
    expect(shown.get_by_role("table").first).to_be_visible()
    return shown


def link_called(within: Locator, name: str) -> Locator:
    """Return the links of a table by their name, whose signs may be joined so that no line ends between them."""
    return within.get_by_role("link", name=re.compile("\u2060?".join(name)))


def expect_valid(page: Page) -> None:
    """See that a launchpad is open, and its config valid."""
    page.wait_for_url(re.compile(r"/playground$"))
    expect(page.get_by_text("No errors")).to_be_visible()


def config_of(page: Page) -> str:
    """Return the text of the launchpad that is open."""
    return str(page.locator(".CodeMirror").first.evaluate("editor => editor.CodeMirror.getValue()"))


def fill_in(page: Page, name: str, value: str) -> None:
    """Put ``value`` between the quotes of the empty text ``name`` of a launchpad, by keyboard."""
    line = page.locator(".CodeMirror-line").filter(has_text=re.compile(rf"^\s*{name}: ''(  # .*)?$"))
    behind = len(str(line.text_content()).partition("''")[2])
    line.click()
    page.keyboard.press("End")
    for _ in range(behind + 1):
        page.keyboard.press("ArrowLeft")
    page.keyboard.insert_text(value)
    page.keyboard.press("Escape")  # suggestions
    expect(page.locator(".CodeMirror-line").filter(has_text=f"{name}: '{value}'")).to_have_count(1)
    expect(page.get_by_text("No errors")).to_be_visible()


def replace_line(page: Page, old: str, new: str) -> None:
    """Type ``new`` in place of a launchpad's line ``old``; its indentation stays."""
    line = page.locator(".CodeMirror-line").filter(has_text=re.compile(rf"^\s*{re.escape(old)}(  # .*)?$"))
    line.click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.insert_text(new)
    page.keyboard.press("Escape")
    expect(page.locator(".CodeMirror-line").filter(has_text=re.compile(rf"^\s*{re.escape(new)}$"))).to_have_count(1)


def launch(page: Page) -> str:
    """Press *Launch Run* in a launchpad, wait until the run has succeeded, and return its id."""
    page.get_by_role("button", name="Launch Run").click()
    return expect_success(page)


def expect_success(page: Page) -> str:
    """Wait until the run whose page is open has succeeded, and return its id."""
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    ended = page.get_by_text(re.compile("^(Success|Failure|Canceled)$")).first
    ended.wait_for(timeout=RUN_SECONDS * 1000)
    expect(ended).to_have_text("Success")
    return page.url.split("/runs/")[1][:36]
