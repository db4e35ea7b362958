"""The page of the review sheet: a template, style and scripts, combined into one answer of the service."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from douban_pipeline.core.ui.templates import render

_PACKAGE = "douban_pipeline.douban.review.worklist"
_SCRIPTS = (
    *("choices", "comparison", "cards", "finding", "window", "bulk"),
    *("renewing", "sharing", "live", "main", "starting"),
)
"""Scripts in the order of their dependencies."""


def sheet_page(sheet: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the page of a sheet, and the content security policy to send with it: it names the script by its hash."""
    own = [f"script-src {_hash(_script())}", f"style-src {_hash(_file('sheet.css'))}"]
    # TMDB's logo is in the sheet's data.
    reach = ["img-src 'self' data:", "connect-src 'self'", "base-uri 'none'", "form-action 'none'"]
    policy = "; ".join(["default-src 'none'", *own, *reach])
    # The sheet's data is in the page as JSON, and the scripts insert outside text as text, never as markup.
    # These are not escaped: the policy contains quotes, and the hashes of style and scripts must match.
    ours = {"policy": policy, "style": _file("sheet.css"), "script": _script()}
    trusted = {name: Markup(text) for name, text in ours.items()}  # noqa: S704 - nothing from outside is in them
    return render(_PACKAGE, "sheet_files/sheet.html", sheet=sheet, **trusted).encode(), policy


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _script() -> str:
    """Return the scripts as one, wrapped in a function so that nothing is global."""
    return f"(() => {{\n{''.join(_file(f'{name}.js') for name in _SCRIPTS)}}})();"


@cache
def _file(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("sheet_files", name).read_text("utf-8")
