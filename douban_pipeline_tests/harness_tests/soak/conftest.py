"""A soak that went well, for all who look at what one leaves behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline_tests.harness_tests.soak.left_behind import LeftBehind, leave_behind


@pytest.fixture(scope="session")
def well(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeftBehind]:
    """Let a small soak take place, once."""
    left = leave_behind(tmp_path_factory.mktemp("soak") / "well")
    yield left
    left.close()
