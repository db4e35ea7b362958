"""The store and the graph of TMDB, as its own tests have them."""

from __future__ import annotations

from douban_pipeline_tests.tmdb.conftest import _arcadedb, _migrated, graph_address, store, store_url, target

__all__ = ["_arcadedb", "_migrated", "graph_address", "store", "store_url", "target"]
