"""What one system reads of another stands in Dagster's lineage, where a setting says that it is read."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.comments.definitions import build_defs as build_comments
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.digest.definitions import build_defs as build_digest
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.douban.definitions import build_defs as build_douban
from douban_pipeline.feeds.definitions import build_defs as build_feeds
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.tmdb.definitions import build_defs as build_tmdb
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline_tests.harness.fixtures.library import GivenSettings


def read_of_others(definitions: dg.Definitions) -> set[tuple[str, str]]:
    """Return which assets of a location read one that is not the location's, each with that one."""
    graph = definitions.resolve_asset_graph()
    own = {key for asset in definitions.assets or () for key in asset.keys}  # type: ignore[union-attr]
    return {
        (key.to_user_string(), parent.to_user_string())
        for key in own
        for parent in graph.get(key).parent_keys
        if parent not in own
    }


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, set()),
        ({"systems": "douban,feeds"}, {("due_videos", "feed_polls")}),
        ({"systems": "douban,comments"}, {("review_queue", "hot_scores")}),
    ],
)
def test_the_library_reads_what_settings_say(given: dict[str, object], read: set[tuple[str, str]]):
    definitions = build_douban(settings=GivenSettings(**given))
    assert read_of_others(definitions) == read
    # Jobs launch the location's own assets alone.
    chain = definitions.resolve_job_def("douban_chain")
    assert not {"feed_polls", "tmdb_matches"} & {key.to_user_string() for key in chain.asset_layer.selected_asset_keys}


def test_evidence_from_tmdb_shows_where_it_is_used():
    settings = GivenSettings(evidence_from_tmdb=True, tmdb_database_url="postgresql://someone@127.0.0.1/tmdb")
    assert read_of_others(build_douban(settings=settings)) == {("search_candidates", "tmdb_matches")}


@pytest.mark.parametrize(("sources", "read"), [("", set()), ("*", {("slot_articles", "feed_polls")})])
def test_the_digest_reads_followed_sources_where_they_are_named(sources: str, read: set[tuple[str, str]]):
    definitions = build_digest(settings=DigestSettings(_env_file=None, feed_sources=sources))  # type: ignore[call-arg]
    assert read_of_others(definitions) == read


def test_what_is_read_is_an_asset_of_the_other_location():
    feeds = build_feeds(settings=FeedsSettings(_env_file=None)).resolve_asset_graph()  # type: ignore[call-arg]
    tmdb = build_tmdb(settings=TmdbSettings(_env_file=None)).resolve_asset_graph()  # type: ignore[call-arg]
    comments = build_comments(settings=CommentsSettings(_env_file=None)).resolve_asset_graph()  # type: ignore[call-arg]
    library = build_douban(settings=GivenSettings()).resolve_asset_graph()
    assert dg.AssetKey("synced_fields") in library.get_all_asset_keys()
    assert dg.AssetKey("hot_scores") in comments.get_all_asset_keys()
    assert dg.AssetKey("feed_polls") in feeds.get_all_asset_keys()
    assert dg.AssetKey("tmdb_matches") in tmdb.get_all_asset_keys()
