"""The digest system, as the command line serves it."""

from __future__ import annotations

from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline.ops.systems.registry import System

SYSTEM = System(name="digest", settings=DigestSettings, tree=TREE)
