"""Where settings come from: the environment, and ``.env`` in the working directory; the environment wins.

Loads none of the libraries that read settings, so that ``--help`` need not wait for them.
"""

from __future__ import annotations

import os

from dotenv import dotenv_values

ENV_FILE = ".env"

BASE_PREFIX = "DOUBAN_PIPELINE_"


def environment() -> dict[str, str]:
    """Return every variable that is set; one of ``.env`` without a value is not."""
    given = dotenv_values(ENV_FILE, encoding="utf-8")
    return {**{name: value for name, value in given.items() if value is not None}, **os.environ}
