"""Sortable and filterable tables of a page: one script, its style, and the content security policy that allows it.

The rows are in the page, in tables of the class ``entries``; a non-empty cell holds its content in a ``div``. Columns
with headings of the class ``number`` are sorted as numbers, those of ``act`` and ``plot`` are not sorted.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from markupsafe import Markup

_PACKAGE = "douban_pipeline.core.ui"


@dataclass(frozen=True, slots=True)
class PageScript:
    """An inline script, and its hash for the content security policy."""

    text: Markup
    hash: str


def page_script(source: str) -> PageScript:
    """Return one of our scripts wrapped in a scope of its own."""
    wrapped = f"(() => {{\n{source}}})();"
    digest = base64.b64encode(hashlib.sha256(wrapped.encode()).digest()).decode()
    return PageScript(Markup(wrapped), f"'sha256-{digest}'")  # noqa: S704 - a file of ours


@cache
def tables_script() -> PageScript:
    """Return the script of the tables."""
    return page_script(ui_file("tables.js"))


@cache
def controls_style() -> Markup:
    """Return the style of the filter and sort controls."""
    return Markup(ui_file("controls.css"))  # noqa: S704 - a file of ours


def ui_file(name: str) -> str:
    """Return a file of this folder as text."""
    return resources.files(_PACKAGE).joinpath(name).read_text("utf-8")


def page_policy(*scripts: PageScript, images: str = "", own_files: bool = False) -> str:
    """Return the content security policy of a page: only what is named here may run or be loaded.

    Args:
        scripts: The inline scripts.
        images: Where pictures may be loaded from, as sources of the policy.
        own_files: Whether the page loads scripts from its own folder.
    """
    allowed = " ".join([*(["'self'"] if own_files else []), *(script.hash for script in scripts)]) or "'none'"
    pictures = f"'self' data: {images}".strip()
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src {pictures}; base-uri 'none'; "
        "form-action 'none'"
    )
