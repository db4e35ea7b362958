"""The script and the style of pages of tables, and the content security policy that allows them."""

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


@cache
def tables_script() -> PageScript:
    """Return the script, wrapped in a scope of its own."""
    wrapped = f"(() => {{\n{_file('tables.js')}}})();"
    digest = base64.b64encode(hashlib.sha256(wrapped.encode()).digest()).decode()
    return PageScript(Markup(wrapped), f"'sha256-{digest}'")  # noqa: S704 - a file of ours


@cache
def table_style() -> Markup:
    """Return the style of the tables and their controls."""
    return Markup(_file("tables.css"))  # noqa: S704 - a file of ours


def _file(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text("utf-8")


def page_policy(*scripts: PageScript, images: str = "") -> str:
    """Return the content security policy of a page: only what is named here may run or be loaded.

    Args:
        scripts: The inline scripts.
        images: Where pictures may be loaded from, as sources of the policy.
    """
    allowed = " ".join(script.hash for script in scripts) or "'none'"
    pictures = f"'self' data: {images}".strip()
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src {pictures}; base-uri 'none'; "
        "form-action 'self'"
    )
