"""Reads settings from the environment and from ``.env`` in the working directory; the environment takes precedence.

Imports none of the settings libraries, so that ``--help`` starts fast.
"""

from __future__ import annotations

import os

from dotenv import dotenv_values

ENV_FILE = ".env"

BASE_PREFIX = "DOUBAN_PIPELINE_"


def environment() -> dict[str, str]:
    """Return every variable that is set; one without a value in ``.env`` is left out."""
    given = dotenv_values(ENV_FILE, encoding="utf-8")
    return {**{name: value for name, value in given.items() if value is not None}, **os.environ}
