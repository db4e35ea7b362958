"""The machine's clock against the database's, on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.clock_skew import SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database import open_engine


class Ahead(SystemClock):
    """A clock that is so far ahead of the machine's."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.mark.parametrize("seconds", [0, 90, -90])
def test_the_difference_is_that_of_the_clocks(any_database_url: str, seconds: int) -> None:
    engine = open_engine(any_database_url)
    found = clock_skew(engine, Ahead(timedelta(seconds=seconds)))
    expected = timedelta() if engine.dialect.name == "sqlite" else timedelta(seconds=seconds)
    assert abs(found - expected) < SLIGHT_SKEW
    engine.dispose()


def test_it_is_said_in_words() -> None:
    assert skew_text(timedelta(seconds=2)) == "2.0 s ahead of the database's"
    assert skew_text(timedelta(seconds=-30)) == "30.0 s behind the database's"
