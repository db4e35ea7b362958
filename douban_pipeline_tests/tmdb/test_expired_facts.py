"""TMDB's terms allow six months: what is older leaves every column and the graph; ids and our own links stay."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import drain
from douban_pipeline.tmdb.operations import age_result
from douban_pipeline.tmdb.refresh import expiry
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import expired_facts, links
from douban_pipeline.tmdb.store.due import REFRESH_DAYS
from douban_pipeline.tmdb.store.expired_facts import RAW_DAYS
from douban_pipeline.tmdb.store.exports import store_export
from douban_pipeline.tmdb.store.links import Match
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import metadata
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.tmdb.given import NOW, actor, answer, cast, movie, show, title
from douban_pipeline_tests.tmdb.stored import put, queued, rows
from douban_pipeline_tests.tmdb.test_graph_sync import assert_same_when_built_anew
from douban_pipeline_tests.tmdb.test_store import ASKED

pytestmark = pytest.mark.postgres
DAY = timedelta(days=1)
OURS = {
    *("tmdb_id", "raw_language", "data_state", "first_seen_at", "last_seen_at", "fetched_at", "gone_at", "changed_at"),
    *("id", "request_id", "user_id", "session_id", "conversation_id", "user_message_id", "query_text", "created_at"),
    *("tmdb_endpoint", "role_hint", "extracted_entities", "selected_media_type", "selected_tmdb_id", "selected_score"),
    *("tmdb_language", "duration_ms"),
    *("vod_id", "title", "state", "reason", "candidates", "looked_at", "decided_by"),
}
"""Columns that are not TMDB's: its ids, our times, scores and links, and what people wrote. ``title`` of `vod_match` is
the site's; its ``candidates`` keep ids and scores."""
AGED = (
    "fetched_at",
    "first_seen_at",
    "last_seen_at",
    "listed_at",
    "candidates_at",
    "looked_at",
    "created_at",
    "seen_at",
    "said_at",
)


def grow_old(store: PostgresTmdbStore, by: timedelta) -> None:
    """Set every time of the schema back."""
    with store.transaction() as connection:
        for table in metadata.sorted_tables:
            if aged := [column.name for column in table.columns if column.name in AGED]:
                moved = ", ".join(f"{name} = {name} - %(by)s" for name in aged)
                connection.execute(f"UPDATE {table.fullname} SET {moved}", {"by": by})


def fill(store: PostgresTmdbStore) -> None:
    """Store something in every table, as runs, questions and lists do."""
    texts = {"id": 1, "translations": [{"iso_639_1": "en", "iso_3166_1": "US", "data": {"title": "A Wedding"}}]}
    put(store, movie(1, cast(2, "a"), cast(4, "e")), movie(3, title="饮食男女"))
    put(store, show(5, cast(2, "b")), entity="tv")
    put(store, actor(2, title(7, "c"), title(6, "d", "tv")), entity="person")
    put(store, movie(1, title="Other"), language="en-US")
    put(store, show(5, name="Other"), entity="tv", language="en-US")
    put(store, actor(2, name="Other"), entity="person", language="en-US")
    series = [{"id": 9, "name": "Listed", "popularity": 2, "vote_average": 9.5}]
    store.write(lambda writer: writer.mention(EntityType.TV, series, "zh-CN", NOW))
    found = [{"id": 8, "title": "Listed", "popularity": 2, "vote_average": 9.5, "release_date": "2001-01-01"}]
    store.write(lambda writer: writer.mention(EntityType.MOVIE, found, "zh-CN", NOW))
    store.write(lambda writer: writer.translations(EntityKey(EntityType.MOVIE, 1), texts, NOW))
    store_export(store, EntityType.PERSON, [b'{"id": 99, "name": "Exported", "popularity": 1.5}'])
    asyncio.run(store.persist_enrichment(**{**ASKED, "discover_results_raw": {"results": []}, "payloads": []}))
    shown = [
        {"media_type": "movie", "tmdb_id": 1, "season": 0, "title": "T", "year": 1993, "score": 9, "conflicts": []}
    ]
    match = Match(12, "站内片名", "review", "《T》（1993）得分 9", EntityKey(EntityType.MOVIE, 1), 9.0, shown)
    store.run(lambda connection: links.keep(connection, match))
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO tmdb.snapshot (source, key_hash, request_key, status, sha256, body, parser_version, "
            "fetched_at, seen_at) VALUES ('tmdb', 'h', 'k', 200, 's', '', 'p', %(now)s, %(now)s)",
            {"now": datetime.now(UTC)},
        )


def theirs(store: PostgresTmdbStore) -> list[tuple[str, str]]:
    """Return the columns of the tables of TMDB's facts that still hold something."""
    found = []
    for name in sorted({place.table for place in expired_facts.PLACES}):
        table = metadata.tables[f"tmdb.{name}"]
        for column in table.columns:
            entity = name in ("movies", "people", "tv_shows")
            if column.name in OURS and not (entity and column.name == "title"):
                continue
            [(count,)] = rows(store, f"SELECT count({column.name}) FROM tmdb.{name}")
            found += [(name, column.name)] if count else []
    return found


def finding(store: PostgresTmdbStore) -> Any:
    return age_result(TmdbServices(store.engine, FakeClock(datetime.now(UTC)), TmdbSettings(_env_file=None), store))


def test_what_is_older_than_the_terms_allow_leaves_every_column_and_ids_and_links_stay(store: PostgresTmdbStore):
    fill(store)
    assert finding(store).state == "ok"
    assert theirs(store), "there is something to lose"
    grow_old(store, 400 * DAY)
    seen = finding(store)
    assert seen.state == "warn"
    for name in {place.table for place in expired_facts.PLACES}:
        assert name in seen.message
    store.expire(expiry(datetime.now(UTC)))
    assert theirs(store) == []
    assert finding(store).state == "ok"
    assert rows(store, "SELECT tmdb_id, data_state FROM tmdb.movies ORDER BY 1") == [
        (each, "stub") for each in (1, 3, 7, 8)
    ]
    assert rows(store, "SELECT vod_id, media_type, tmdb_id, score FROM tmdb.vod_link") == [(12, "movie", 1, 9.0)]
    [(candidates, reason, site)] = rows(store, "SELECT candidates, reason, title FROM tmdb.vod_match")
    assert candidates == [{"media_type": "movie", "tmdb_id": 1, "season": 0, "score": 9}]
    assert (reason, site) == (expired_facts.EXPIRED, "站内片名")
    assert rows(store, "SELECT query_text IS NOT NULL, selected_tmdb_id FROM tmdb.enrichment_requests") == [(True, 1)]
    assert {(entity, tmdb_id) for entity, tmdb_id, *_ in queued(store)} >= {("movie", 1), ("movie", 3), ("person", 2)}


@pytest.mark.parametrize("place", expired_facts.PLACES, ids=lambda place: f"{place.table}: {place.what}")
def test_the_check_sees_a_column_without_its_answer(store: PostgresTmdbStore, place: expired_facts.FactsPlace):
    fill(store)
    grow_old(store, 400 * DAY)
    before = datetime.now(UTC) - 180 * DAY
    held = store.run(lambda connection: place.count(connection, before))
    assert held, "the place is filled"
    for other in expired_facts.PLACES:
        if other is not place:
            while store.run(lambda connection, other=other: other.expire(connection, before)):
                pass
    assert store.run(lambda connection: expired_facts.counts(connection, before)) == {place: held}
    assert len(store.run(lambda connection: place.oldest(connection, before, 99))) == held
    seen = finding(store)
    assert (seen.state, place.table in seen.message) == ("warn", True)


def test_what_is_newer_stays_as_it_is(store: PostgresTmdbStore):
    fill(store)
    grow_old(store, 170 * DAY)
    before = theirs(store)
    assert not any(store.expire(expiry(NOW)).values())
    assert theirs(store) == before


def test_the_graph_loses_what_expired(store: PostgresTmdbStore, target: GraphTarget):
    put(store, movie(1, cast(2, "a", name="Old")), movie(3, cast(4, "b", name="New")))
    drain(store, target)
    assert {node.tmdb_id for node in target.dump()[0]} == {1, 2, 3, 4, 18}
    with store.transaction() as connection:
        connection.execute("UPDATE tmdb.movies SET fetched_at = fetched_at - interval '400 days' WHERE tmdb_id = 1")
        connection.execute("UPDATE tmdb.people SET fetched_at = fetched_at - interval '400 days' WHERE tmdb_id = 2")
    store.expire(NOW - 178 * DAY)
    drain(store, target)
    nodes, edges = target.dump()
    assert {node.tmdb_id for node in nodes} == {3, 4, 18}
    assert {key.credit_id for key in edges} == {"b", ""}
    assert_same_when_built_anew(store, target)


def test_a_title_whose_answer_expired_is_called_what_a_newer_person_calls_it(
    store: PostgresTmdbStore, target: GraphTarget
):
    store.persist_payloads(
        [replace(answer("movie", movie(1, title="Old", overview="Old")), fetched_at=NOW - 300 * DAY)]
    )
    put(store, actor(2, title(1, "a", title="New")), entity="person")
    drain(store, target)
    store.expire(NOW - 178 * DAY)
    drain(store, target)
    assert "Old" not in json.dumps(target.ask("MATCH (n) RETURN properties(n) AS p"), ensure_ascii=False)
    assert target.ask("MATCH (m:Movie) RETURN m.title AS title") == [{"title": "New"}]
    assert_same_when_built_anew(store, target)


def test_a_name_stays_as_long_as_a_kept_answer_says_it(store: PostgresTmdbStore):
    """An answer that did not change is not written again, and nor is the graph; yet the names in it are as new."""
    film = answer("movie", movie(1, cast(2, "a")))
    store.persist_payloads([film])
    store.persist_payloads([replace(film, fetched_at=NOW + timedelta(hours=1))])
    assert rows(store, "SELECT fetched_at FROM tmdb.people") == [(NOW + timedelta(hours=1),)]
    for after, more in ((150, {}), (300, {"popularity": 9.0})):
        store.persist_payloads([replace(film, raw={**film.raw, **more}, fetched_at=NOW + after * DAY)])
        assert rows(store, "SELECT fetched_at FROM tmdb.people") == [(NOW + after * DAY,)]
        assert rows(store, "SELECT last_seen_at FROM tmdb.genres") == [(NOW + after * DAY,)]
    store.persist_payloads([replace(film, fetched_at=NOW + 300 * DAY + timedelta(hours=12))])
    assert [each[3] for each in queued(store)] == [1], "the graph was told once"
    store.expire(NOW + 300 * DAY + timedelta(hours=12))
    assert rows(store, "SELECT name FROM tmdb.people") == [("Person 2",)], "the answer is not older either"
    store.expire(NOW + 302 * DAY)
    assert rows(store, "SELECT name FROM tmdb.people") == [(None,)]
    assert [(entity, version) for entity, _, _, version in queued(store)] == [("movie", 2), ("person", 1)]


def test_a_name_that_expired_comes_back_with_the_next_answer_and_the_graph_is_told(
    store: PostgresTmdbStore, target: GraphTarget
):
    film = answer("movie", movie(1, cast(2, "a")))
    store.persist_payloads([film])
    drain(store, target)
    with store.transaction() as connection:
        connection.execute("UPDATE tmdb.people SET fetched_at = fetched_at - interval '400 days'")
    store.expire(NOW - 178 * DAY)
    drain(store, target)
    assert target.ask("MATCH (p:Person) RETURN p.name AS name") == [{"name": None}]
    store.persist_payloads([replace(film, fetched_at=NOW + DAY)])
    drain(store, target)
    assert target.ask("MATCH (p:Person) RETURN p.name AS name") == [{"name": "Person 2"}]


def test_an_older_answer_names_nobody_anew(store: PostgresTmdbStore):
    put(store, movie(1, cast(2, "a", name="New")))
    store.persist_payloads([replace(answer("movie", movie(3, cast(2, "b", name="Old"))), fetched_at=NOW - DAY)])
    assert rows(store, "SELECT name, fetched_at FROM tmdb.people") == [("New", NOW)]


def test_a_list_confirms_a_name_and_replaces_all_that_only_lists_say(store: PostgresTmdbStore):
    def listed(at: datetime, **item: Any) -> list[tuple[Any, ...]]:
        store.write(lambda writer: writer.mention(EntityType.MOVIE, [{"id": 1, **item}], "zh-CN", at))
        return rows(store, "SELECT title, vote_average, popularity, fetched_at, listed_at FROM tmdb.movies")

    first = {"title": "A", "vote_average": 9.0, "popularity": 2.0}
    assert listed(NOW, **first) == [("A", 9.0, 2.0, NOW, NOW)]
    later = NOW + 90 * DAY
    assert listed(later, title="A", popularity=3.0) == [("A", None, 3.0, later, later)]
    assert listed(NOW, **first) == [("A", None, 3.0, later, later)], "an older list"
    assert listed(later + DAY, title="B", popularity=4.0) == [("B", None, 4.0, later + DAY, later + DAY)]
    assert listed(later + 2 * DAY) == [("B", None, 4.0, later + DAY, later + DAY)], "it says nothing"


def test_an_export_that_is_loaded_daily_keeps_what_it_says(store: PostgresTmdbStore):
    line = b'{"id": 1, "original_title": "A", "popularity": 2.0}'
    kept = "SELECT title, original_title, popularity, fetched_at > now() - interval '1 day' FROM tmdb.movies"
    store_export(store, EntityType.MOVIE, [line])
    grow_old(store, 40 * DAY)
    store_export(store, EntityType.MOVIE, [line])
    assert rows(store, kept) == [("A", "A", 2.0, True)]
    grow_old(store, 200 * DAY)
    store.expire(datetime.now(UTC) - 178 * DAY)
    assert rows(store, kept) == [(None, None, None, False)]
    store_export(store, EntityType.MOVIE, [line])
    assert rows(store, kept) == [("A", "A", 2.0, True)]


def test_the_times_of_runs_leave_a_day_for_the_next_one():
    kept = (NOW - expiry(NOW)) / DAY
    assert REFRESH_DAYS < kept == RAW_DAYS - 2
