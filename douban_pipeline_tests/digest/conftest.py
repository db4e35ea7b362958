"""A digest with stand-ins of all that it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from douban_pipeline_tests.digest.stage import Stage, stage


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Stage]:
    """The digest in the morning, before its first slot."""
    with stage(tmp_path) as opened:
        yield opened
