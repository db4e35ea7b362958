"""The page of the review sheet: a template, style and scripts, put together as one file.

As a file it asks no server. The service adds `live.js`, `renewing.js` and what it may ask for.
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

SHEET_NAME = "review_queue.html"
_PACKAGE = "douban_pipeline.douban.review.reading"

_NAMES = ("launchpad", "choices", "comparison", "cards", "finding", "window", "bulk", "main", "starting")
_SCRIPTS = tuple(f"{name}.js" for name in _NAMES)
"""In the order in which they use each other; those of the service stand before the last two."""


def sheet_page(sheet: Mapping[str, Any]) -> bytes:
    """Return the page of what `sheet_of` returned, as one file: it asks no server and runs no script but its own.

    Posters are loaded from elsewhere only where the sheet says so.
    """
    policy = policy_of(served=False, pictures="https: http:" if sheet.get("pictures") == "direct" else "")
    return _page(sheet, _SCRIPTS, policy)


def served_page(sheet: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the page of a sheet that the service keeps up to date, and the policy that it has to be sent with."""
    policy = policy_of(served=True, pictures="'self' https: http:" if sheet.get("pictures") == "direct" else "'self'")
    return _page(sheet, _served_scripts(), policy), policy


def policy_of(*, served: bool, pictures: str) -> str:
    """Return the content policy of the page, which names style and scripts by their hashes.

    Args:
        served: Whether the page may ask the service that it came from.
        pictures: Where posters may come from, as the policy says it; empty for nowhere.
    """
    script = _script(_served_scripts() if served else _SCRIPTS)
    asks = ["connect-src 'self'"] if served else []
    images = [f"img-src {pictures}"] if pictures else []
    own = [f"script-src {_hash(script)}", f"style-src {_hash(_file('sheet.css'))}"]
    return "; ".join(["default-src 'none'", *own, *images, *asks, "base-uri 'none'", "form-action 'none'"])


def _served_scripts() -> tuple[str, ...]:
    return (*_SCRIPTS[:-2], "renewing.js", "live.js", *_SCRIPTS[-2:])


def _page(sheet: Mapping[str, Any], scripts: Sequence[str], policy: str) -> bytes:
    # What the sheet holds is in the page as JSON, and its scripts set outside text as text, never as markup.
    # Ours as they are: the policy's quotes, and style and scripts whose hashes it names.
    ours = {"policy": policy, "style": _file("sheet.css"), "script": _script(tuple(scripts))}
    trusted = {name: Markup(text) for name, text in ours.items()}  # noqa: S704 - nothing from outside is in them
    return render(_PACKAGE, "sheet_files/sheet.html", sheet=sheet, **trusted).encode()


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _script(names: tuple[str, ...]) -> str:
    """Return the scripts as one, of which nothing can be reached from elsewhere."""
    return f"(() => {{\n{''.join(map(_file, names))}}})();"


@cache
def _file(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("sheet_files", name).read_text("utf-8")
