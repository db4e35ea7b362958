"""What makes the tables of a page sortable and filterable: one script and its style, and the policy that lets it run.

The rows are in the page, in tables of the class ``entries``; a cell that holds something holds it in a ``div``. Heads
of the class ``number`` are sorted as numbers, those of ``act`` and ``plot`` are left alone.
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
    """A script that stands in a page, and its hash as a policy names it."""

    text: Markup
    hash: str


def page_script(source: str) -> PageScript:
    """Return a script of ours wrapped so that its names are its own."""
    wrapped = f"(() => {{\n{source}}})();"
    digest = base64.b64encode(hashlib.sha256(wrapped.encode()).digest()).decode()
    return PageScript(Markup(wrapped), f"'sha256-{digest}'")  # noqa: S704 - a file of ours


@cache
def tables_script() -> PageScript:
    """Return the script of tables."""
    return page_script(ui_file("tables.js"))


@cache
def controls_style() -> Markup:
    """Return the style of what filters and sorts."""
    return Markup(ui_file("controls.css"))  # noqa: S704 - a file of ours


def ui_file(name: str) -> str:
    """Return a file of this folder as text."""
    return resources.files(_PACKAGE).joinpath(name).read_text("utf-8")


def page_policy(*scripts: PageScript, images: str = "", own_files: bool = False) -> str:
    """Return the policy of a page: nothing runs and nothing is loaded but what is named here.

    Args:
        scripts: Those that stand in the page.
        images: Where pictures may come from, as sources of a policy.
        own_files: Whether the page loads scripts that lie beside it.
    """
    allowed = " ".join([*(["'self'"] if own_files else []), *(script.hash for script in scripts)]) or "'none'"
    pictures = f"'self' data: {images}".strip()
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src {pictures}; base-uri 'none'; "
        "form-action 'none'"
    )
