"""The page of the review sheet: a template, style and scripts, combined into one file.

The written file makes no requests. The service adds `live.js`, `sharing.js`, `renewing.js` and the permission to call
the service.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from douban_pipeline.core.ui.templates import render

_PACKAGE = "douban_pipeline.douban.review.worklist"

_NAMES = ("launchpad", "choices", "comparison", "cards", "finding", "window", "bulk", "main", "starting")
_SCRIPTS = tuple(f"{name}.js" for name in _NAMES)
"""Scripts in the order of their dependencies; those of the service are inserted before the last two."""


def sheet_page(sheet: Mapping[str, Any]) -> bytes:
    """Return the page of the result of `sheet_of` as one file: it makes no requests and runs only its own scripts."""
    policy = policy_of(served=False, pictures="")
    return _page(sheet, _SCRIPTS, policy)


def served_page(sheet: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the page of a sheet that the service keeps up to date, and the content security policy to send with it."""
    policy = policy_of(served=True, pictures="'self'")
    return _page(sheet, _served_scripts(), policy), policy


def policy_of(*, served: bool, pictures: str) -> str:
    """Return the content security policy of the page, which names style and scripts by their hashes.

    Args:
        served: Whether the page may call the service that it came from.
        pictures: Allowed sources of posters, in the policy's syntax; empty for none.
    """
    script = _script(_served_scripts() if served else _SCRIPTS)
    asks = ["connect-src 'self'"] if served else []
    # TMDB's logo is in the sheet's data.
    images = f"img-src {pictures} data:" if pictures else "img-src data:"
    own = [f"script-src {_hash(script)}", f"style-src {_hash(_file('sheet.css'))}"]
    return "; ".join(["default-src 'none'", *own, images, *asks, "base-uri 'none'", "form-action 'none'"])


def _served_scripts() -> tuple[str, ...]:
    return (*_SCRIPTS[:-2], "renewing.js", "sharing.js", "live.js", *_SCRIPTS[-2:])


def _page(sheet: Mapping[str, Any], scripts: Sequence[str], policy: str) -> bytes:
    # The sheet's data is in the page as JSON, and the scripts insert outside text as text, never as markup.
    # These are not escaped: the policy contains quotes, and the hashes of style and scripts must match.
    ours = {"policy": policy, "style": _file("sheet.css"), "script": _script(tuple(scripts))}
    trusted = {name: Markup(text) for name, text in ours.items()}  # noqa: S704 - nothing from outside is in them
    return render(_PACKAGE, "sheet_files/sheet.html", sheet=sheet, **trusted).encode()


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _script(names: tuple[str, ...]) -> str:
    """Return the scripts as one, wrapped in a function so that nothing is global."""
    return f"(() => {{\n{''.join(map(_file, names))}}})();"


@cache
def _file(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("sheet_files", name).read_text("utf-8")
