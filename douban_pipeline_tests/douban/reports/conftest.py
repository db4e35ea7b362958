"""What tests of lists and pages share: a library whose reports are files of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline_tests.harness.fixtures.library import Library


@pytest.fixture
def library(shared_library: Library, tmp_path: Path) -> Library:
    """An empty library on each engine in turn, whose reports are files of the test."""
    return shared_library.renewed(home=tmp_path / "home")
