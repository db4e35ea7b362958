"""The review sheet as one HTML file: it asks no server for anything and runs no script but its own.

Its parts are files of this package (`sheet_files`), put in whole; the policy in its head names style and scripts by
their hashes. What it shows stands in it as JSON, and its scripts set outside text as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

NAME = "review_queue.html"

_SCRIPTS = ("launchpad.js", "choices.js", "cards.js", "main.js")


def sheet_page(sheet: Mapping[str, Any]) -> bytes:
    """Return the page of what `sheet.sheet_of` returned."""
    script, style = _script(), _file("sheet.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    text = (
        '<!DOCTYPE html>\n<html lang="zh-Hans"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>豆瓣匹配审核</title><style>{style}</style></head><body>\n{_file('sheet.html')}"
        f'<script type="application/json" id="sheet">{_json(sheet)}</script>\n<script>{script}</script></body></html>\n'
    )
    return text.encode()


def _json(value: Mapping[str, Any]) -> str:
    """Return JSON that no tag can end: neither ``</script>`` nor ``<!--`` stands in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _script() -> str:
    """Return the scripts as one, of which nothing can be reached from elsewhere."""
    return f"(() => {{\n{''.join(map(_file, _SCRIPTS))}}})();"


@cache
def _file(name: str) -> str:
    return resources.files("douban_pipeline.douban.review.reading").joinpath("sheet_files", name).read_text("utf-8")
