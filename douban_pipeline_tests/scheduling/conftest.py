"""What the tests of this folder share: one database a module and engine."""

from douban_pipeline_tests.library import shared_library

__all__ = ["shared_library"]
