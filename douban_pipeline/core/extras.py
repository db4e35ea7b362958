"""What is missing of the package's extras, in a sentence that says how this very installation gets it.

Never the bare name of the package: what a package index has under it is not ours.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from douban_pipeline import __version__
from douban_pipeline.core.language import terminal_text

_PACKAGE = "douban_pipeline"
_CHECKOUT = Path(__file__).resolve().parents[2]


def missing_library(library: str | None, extra: str) -> str:
    """Return the sentence about a library that is not installed and comes with ``extra``."""
    sentence = terminal_text("{library} is not installed; the extra {extra} brings it: {command}")
    return sentence.format(library=library, extra=extra, command=install_command(extra))


def install_command(extra: str) -> str:
    """Return the command that adds an extra: in the checkout, or from the wheel that was installed."""
    if (_CHECKOUT / "Makefile").is_file():
        return f"make -C {_CHECKOUT} install EXTRAS={extra}"
    return f"pip install '{_wheel()}[{extra}]'"


@cache
def _wheel() -> str:
    """Return the wheel that was installed, by its path or address; by its name where pip noted none."""
    try:
        noted = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    url = json.loads(noted)["url"] if noted else ""
    if url.startswith("file:"):
        return unquote(urlsplit(url).path)
    return url or f"{_PACKAGE}-{__version__}-py3-none-any.whl"
