"""Genres in Douban's words, read once."""

from __future__ import annotations

from functools import lru_cache

from douban_pipeline.cms.vocabulary import genres_of


@lru_cache(maxsize=16384)
def read(words: tuple[str, ...]) -> frozenset[str]:
    """Return the genres among the words; a category's name is none."""
    return genres_of(words)
