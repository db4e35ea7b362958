"""Reads settings from the environment and from ``.env`` in the working directory; the environment takes precedence.

Imports none of the settings libraries, so that ``--help`` starts fast.
"""

from __future__ import annotations

import os

from dotenv import dotenv_values

ENV_FILE = ".env"
ENV_ENCODING = "utf-8-sig"
"""UTF-8, with the mark at its beginning that editors on Windows write, or without."""

BASE_PREFIX = "DOUBAN_PIPELINE_"
SYSTEMS: tuple[str, ...] = ("douban", "feeds", "digest", "tmdb", "comments")
"""All systems, the base first: each is a package of this name with its `System` in ``system.py``."""


def environment() -> dict[str, str]:
    """Return every variable that is set; one without a value in ``.env`` is left out.

    A ``.env`` that is not UTF-8 is left out here; loading the settings reports it.
    """
    try:
        given = dotenv_values(ENV_FILE, encoding=ENV_ENCODING)
    except UnicodeDecodeError:
        given = {}
    return {**{name: value for name, value in given.items() if value is not None}, **os.environ}
