"""What the tests of this folder share: libraries, the replay upstream, and the room between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from douban_pipeline_tests.douban.intros.room import BARE, TOLD, UNTOLD, Room, room_of
from douban_pipeline_tests.harness.fixtures.library import Library, build_library
from douban_pipeline_tests.harness.fixtures.scenario import FILMS
from douban_pipeline_tests.stand_ins.replay import ReplayServer


@pytest.fixture(scope="module")
def upstream() -> Iterator[ReplayServer]:
    with ReplayServer([*FILMS, BARE, TOLD, UNTOLD]) as server:
        yield server


@pytest.fixture(scope="module")
def small_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with build_library(f"sqlite:///{tmp_path_factory.mktemp('room') / 'library.sqlite'}") as library:
        yield library


@pytest.fixture
def room(small_library: Library, upstream: ReplayServer) -> Callable[..., Room]:
    """Set a room on SQLite: ``room(*videos, **settings)``."""
    return lambda *videos, **settings: room_of(small_library, upstream, videos, **settings)


@pytest.fixture
def room_everywhere(shared_library: Library, upstream: ReplayServer) -> Callable[..., Room]:
    """Set a room on each engine in turn, for what rests on the database."""
    return lambda *videos, **settings: room_of(shared_library, upstream, videos, **settings)
