"""The systems beside Douban's that can live in a soak, by name, in the order in which they are started and told of."""

from __future__ import annotations

from collections.abc import Mapping

from douban_pipeline_tests.harness.soak.systems.comments import CommentsLife
from douban_pipeline_tests.harness.soak.systems.digest import DigestLife
from douban_pipeline_tests.harness.soak.systems.feeds import FeedsLife
from douban_pipeline_tests.harness.soak.systems.life import SystemLife
from douban_pipeline_tests.harness.soak.systems.tmdb import TmdbLife

LIVES: Mapping[str, type[SystemLife]] = {life.name: life for life in (FeedsLife, DigestLife, TmdbLife, CommentsLife)}
