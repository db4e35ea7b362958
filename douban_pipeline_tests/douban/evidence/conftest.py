"""The TMDB system's store, as its own tests have it: what it writes is what is read here."""

from douban_pipeline_tests.tmdb.conftest import _migrated, store, store_url

__all__ = ["_migrated", "store", "store_url"]
