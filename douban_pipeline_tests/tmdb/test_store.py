"""What the store keeps of answers and of questions."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from douban_pipeline.tmdb.projection import project
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.entities import EntityWriter, StoreResult
from douban_pipeline.tmdb.store.exports import store_export
from douban_pipeline.tmdb.store.lookups import CREDITING
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError
from douban_pipeline.tmdb.values import graph_hash
from douban_pipeline_tests.tmdb.given import NOW, actor, answer, cast, movie, show, title
from douban_pipeline_tests.tmdb.stored import FILM, put, queued, rows

pytestmark = pytest.mark.postgres


# --- what changed -----------------------------------------------------------------------------------------------------


def test_a_change_is_stored_and_only_one_of_the_graph_is_queued(store: PostgresTmdbStore):
    film = movie(1, cast(2, "a"))
    assert put(store, film) == [StoreResult.NEW]
    assert put(store, film) == [StoreResult.UNCHANGED]
    assert queued(store) == [("movie", 1, "upsert", 1)]
    assert put(store, {**film, "popularity": 99}) == [StoreResult.CHANGED]
    assert queued(store) == [("movie", 1, "upsert", 1)]
    assert rows(store, "SELECT popularity, raw->>'popularity' FROM tmdb.movies WHERE tmdb_id = 1") == [(99.0, "99")]
    assert put(store, {**film, "title": "B"}) == [StoreResult.GRAPH]
    assert queued(store) == [("movie", 1, "upsert", 2)]
    expected = graph_hash(project(EntityType.MOVIE, {**film, "title": "B"}))
    assert rows(store, "SELECT graph_hash FROM tmdb.neo4j_etl_outbox") == [(expected,)]


def test_back_to_what_it_was_is_a_change_and_so_is_every_one_of_a_batch(store: PostgresTmdbStore):
    first, second = movie(1, title="A"), movie(1, title="B")
    assert put(store, first, second, first) == [StoreResult.NEW, StoreResult.GRAPH, StoreResult.GRAPH]
    assert queued(store) == [("movie", 1, "upsert", 3)]


def test_two_writers_lose_no_change(store: PostgresTmdbStore):
    """One stores B and has not committed when the other stores A again: whoever is last, the queue knows of it."""
    put(store, movie(1, title="A"))
    claims = store.run(lambda connection: outbox.claim(connection, "w", 9, 60))
    store.run(lambda connection: outbox.acknowledge(connection, "w", claims))
    changes: list[StoreResult] = []
    with store.transaction() as connection:
        EntityWriter(connection, "zh-CN").write([answer("movie", movie(1, title="B"))])
        other = threading.Thread(target=lambda: changes.extend(put(store, movie(1, title="A"))))
        other.start()
        wait_until_blocked(store)
    other.join()
    assert changes == [StoreResult.GRAPH]
    assert queued(store) == [("movie", 1, "upsert", 3)]
    assert rows(store, "SELECT title FROM tmdb.movies") == [("A",)]


def wait_until_blocked(store: PostgresTmdbStore) -> None:
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while rows(store, blocked) == [(0,)]:
        pass


def test_credits_make_stubs_that_never_replace_what_is_full(store: PostgresTmdbStore):
    put(store, actor(2, name="Full"), entity="person")
    put(store, movie(1, cast(2, "a", name="Other"), cast(3, "b")), show(5, cast(3, "c")))
    assert rows(store, "SELECT tmdb_id, name, data_state FROM tmdb.people ORDER BY 1") == [
        (2, "Full", "full"),
        (3, "Person 3", "stub"),
    ]
    put(store, actor(9, title(1, "a"), title(5, "c", "tv"), title(7, "d")), entity="person")
    assert rows(store, "SELECT tmdb_id, title, data_state FROM tmdb.movies ORDER BY 1") == [
        (1, "Movie 1", "full"),
        (5, "Movie 5", "full"),
        (7, "Movie 7", "stub"),
    ]
    assert put(store, movie(7)) == [StoreResult.NEW]
    assert rows(store, "SELECT data_state FROM tmdb.movies WHERE tmdb_id = 7") == [("full",)]


def test_a_stub_is_called_what_the_newest_answer_calls_it(store: PostgresTmdbStore):
    put(store, movie(1, cast(2, "a", name="A")), movie(3, cast(2, "b", name="B")))
    assert rows(store, "SELECT name FROM tmdb.people") == [("B",)]
    put(store, movie(1, cast(2, "a", name="A"), popularity=0.1))
    assert rows(store, "SELECT name FROM tmdb.people") == [("A",)]
    store.write(
        lambda writer: writer.mention(EntityType.PERSON, [{"id": 2, "name": "C", "popularity": 3}], "zh-CN", NOW)
    )
    assert rows(store, "SELECT name, popularity FROM tmdb.people") == [("C", 3.0)]
    assert ("person", 2, "upsert") in [each[:3] for each in queued(store)], "the graph is told"


def test_what_has_no_credits_is_kept_beside_the_base_row(store: PostgresTmdbStore):
    short = {"id": 1, "title": "A", "release_date": ""}
    assert put(store, short) == [StoreResult.NEW]
    assert put(store, short, {**short, "overview": "…"}) == [StoreResult.UNCHANGED, StoreResult.CHANGED]
    assert rows(store, "SELECT title, release_date, data_state FROM tmdb.movies") == [("A", None, "stub")]
    assert queued(store) == []
    full = movie(1, cast(2, "a"))
    put(store, full)
    put(store, short)
    assert rows(store, "SELECT data_state, raw = %s::jsonb FROM tmdb.movies", '{"id": 1}') == [("full", False)]
    assert rows(store, "SELECT language FROM tmdb.movie_translations") == [("zh-CN",)]


def test_another_language_goes_to_the_translations(store: PostgresTmdbStore):
    put(store, movie(1, title="喜宴"))
    assert put(store, movie(1, title="The Wedding Banquet"), language="en-US") == [StoreResult.NEW]
    assert put(store, movie(1, title="The Wedding Banquet"), language="en-US") == [StoreResult.UNCHANGED]
    assert rows(store, "SELECT title, raw_language FROM tmdb.movies") == [("喜宴", "zh-CN")]
    assert rows(store, "SELECT language, title FROM tmdb.movie_translations") == [("en-US", "The Wedding Banquet")]
    assert queued(store) == [("movie", 1, "upsert", 1)]


def test_a_makeshift_in_another_language_gives_way_to_the_base_language(store: PostgresTmdbStore):
    assert put(store, movie(1, title="The Wedding Banquet"), language="en-US") == [StoreResult.NEW]
    assert put(store, movie(1, title="喜宴")) == [StoreResult.GRAPH]
    assert rows(store, "SELECT title, raw_language FROM tmdb.movies") == [("喜宴", "zh-CN")]
    assert rows(store, "SELECT language, title FROM tmdb.movie_translations") == [("en-US", "The Wedding Banquet")]
    put(store, movie(1, title="Das Hochzeitsbankett"), language="de-DE")
    assert rows(store, "SELECT title FROM tmdb.movies") == [("喜宴",)]


def test_an_item_of_the_list_of_translations_does_not_replace_an_answer(store: PostgresTmdbStore):
    put(store, movie(1))
    put(store, movie(1, title="Given"), language="it-IT")
    listed = {
        "id": 1,
        "translations": [
            {"iso_639_1": "it", "iso_3166_1": "IT", "data": {"title": "Listed", "overview": ""}},
            {"iso_639_1": "de", "iso_3166_1": "DE", "data": {"title": "Gelistet"}},
            {"iso_639_1": None, "data": {}},
        ],
    }
    for changes in ([StoreResult.UNCHANGED, StoreResult.NEW], [StoreResult.UNCHANGED, StoreResult.UNCHANGED]):
        stored = store.write(lambda writer: writer.translations(FILM, listed, NOW))
        assert [each.change for each in stored] == changes
    assert rows(store, "SELECT language, title FROM tmdb.movie_translations ORDER BY 1") == [
        ("de-DE", "Gelistet"),
        ("it-IT", "Given"),
    ]


def test_values_that_postgresql_cannot_hold_do_not_stop_an_answer(store: PostgresTmdbStore):
    odd = movie(1, title="A\x00B", release_date="", overview="\ud800", revenue=2**70, vote_count=2**40)
    assert put(store, odd) == [StoreResult.NEW]
    assert put(store, odd) == [StoreResult.UNCHANGED]
    [(name, day, votes, raw)] = rows(store, "SELECT title, release_date, vote_count, raw FROM tmdb.movies")
    assert (name, day, votes, raw["title"], raw["revenue"]) == ("AB", None, None, "AB", 2**70)


@pytest.mark.parametrize("raw", [{"id": "x"}, {"id": 2**31}, {}, {"id": 1, "x": float("nan")}])
def test_what_is_no_answer_is_refused_and_nothing_of_its_batch_is_stored(store: PostgresTmdbStore, raw: dict[str, Any]):
    with pytest.raises(PayloadError):
        put(store, movie(5), raw)
    assert rows(store, "SELECT count(*) FROM tmdb.movies") == [(0,)]


def test_people_who_credit_a_title_are_found(store: PostgresTmdbStore):
    separate = {"movie_credits": {"cast": [title(1, "c")], "crew": []}, "tv_credits": {"cast": [], "crew": []}}
    put(store, actor(2, title(1, "a")), actor(3, title(1, "b", "tv")), {"id": 4, **separate}, entity="person")
    assert store.people_crediting({EntityType.MOVIE: [1]}) == [2, 4]
    assert store.people_crediting({EntityType.TV: [1, 5]}) == [3]
    assert store.people_crediting({EntityType.MOVIE: [9]}) == []
    with store.transaction() as connection:
        connection.execute(
            "INSERT INTO tmdb.people (tmdb_id, raw, raw_hash) SELECT n, jsonb_build_object('combined_credits', "
            "jsonb_build_object('cast', jsonb_build_array(jsonb_build_object('media_type', 'movie', 'id', n)))), 'x' "
            "FROM generate_series(100, 3000) AS n"
        )
        connection.execute("ANALYZE tmdb.people")
        given = {"ids": ["[1]", "[5]"], "titles": Jsonb({"movies": [1], "shows": [5]})}
        plan = str(connection.execute(SQL("EXPLAIN {}").format(CREDITING), given).fetchall())
    assert "idx_tmdb_people_credited" in plan, "not every person is read"


# --- gone, retention --------------------------------------------------------------------------------------------------


def test_what_is_gone_is_marked_and_comes_back(store: PostgresTmdbStore):
    put(store, movie(1))
    assert store.write(lambda writer: [writer.gone(FILM, NOW), writer.gone(FILM, NOW)]) == [True, False]
    assert queued(store) == [("movie", 1, "delete", 2)]
    assert put(store, movie(1)) == [StoreResult.NEW]
    assert queued(store) == [("movie", 1, "upsert", 3)]
    assert rows(store, "SELECT gone_at FROM tmdb.movies") == [(None,)]
    assert store.write(lambda writer: writer.gone(EntityKey(EntityType.TV, 1))) is False


# --- a user's question ------------------------------------------------------------------------------------------------

ASKED: dict[str, Any] = {
    "user_id": "u",
    "session_id": "s",
    "query_text": "《喜宴》的导演是谁？'; DROP TABLE tmdb.movies; --\x00",
    "tmdb_endpoint": "/search/multi",
    "extracted_entities": ["喜宴"],
    "disambiguation": [
        {
            "selected": {"media_type": "movie", "tmdb_id": 1, "score": 91.5},
            "candidates": [
                {"media_type": "movie", "tmdb_id": 1, "score": 91.5},
                {"media_type": "tv", "id": 8, "score": 3},
            ],
        }
    ],
    "payloads": [{"type": "movie", "data": movie(1, cast(2, "a"))}, {"type": "person", "data": actor(2)}],
    "request_id": "r1",
    "conversation_id": uuid4(),
    "user_message_id": uuid4(),
    "candidates_top3": [{"id": 1}],
    "multi_results_raw": {"page": 1, "results": [], "total_pages": 1},
    "role_hint": "director",
    "tmdb_language": "zh-CN",
    "duration_ms": 12.5,
}


def ask(store: PostgresTmdbStore, **more: Any) -> None:
    asyncio.run(store.persist_enrichment(**{**ASKED, **more}))


def test_a_question_is_persisted_with_all_that_it_brought(store: PostgresTmdbStore):
    ask(store)
    [row] = rows(
        store,
        "SELECT user_id, session_id, query_text, selected_media_type, selected_tmdb_id, selected_score, selected, "
        "extracted_entities, multi_results_raw->>'total_pages', discover_results_raw, duration_ms, conversation_id "
        "FROM tmdb.enrichment_requests",
    )
    assert row[2] == ASKED["query_text"].replace("\x00", "")
    assert row[3:6] == ("movie", 1, 91.5)
    assert row[6:] == (
        ASKED["disambiguation"][0]["selected"],
        ["喜宴"],
        "1",
        None,
        12.5,
        ASKED["conversation_id"],
    )
    entities = "SELECT entity_type, tmdb_id, selected, score FROM tmdb.enrichment_request_entities ORDER BY 1, 2"
    assert rows(store, entities) == [
        ("movie", 1, True, 91.5),
        ("person", 2, False, None),
        ("tv", 8, False, 3.0),
    ]
    assert rows(store, "SELECT entity_type, tmdb_id, request_id FROM tmdb.neo4j_etl_outbox ORDER BY 1") == [
        ("movie", 1, "r1"),
        ("person", 2, "r1"),
    ]


def test_a_payload_that_is_none_is_left_out_with_a_warning(store: PostgresTmdbStore, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        ask(store, payloads=[{"type": "movie", "data": {"id": 0}}, {"type": "x"}, *ASKED["payloads"]])
    assert len(caplog.records) == 2
    assert rows(store, "SELECT count(*) FROM tmdb.movies WHERE data_state = 'full'") == [(1,)]


def test_a_question_is_persisted_whole_or_not_at_all(store: PostgresTmdbStore, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("douban_pipeline.tmdb.store.postgres.requests.log_requests", fails)
    with pytest.raises(RuntimeError):
        ask(store)
    assert rows(store, "SELECT count(*) FROM tmdb.movies") == [(0,)]
    assert queued(store) == []


@pytest.mark.parametrize("by", ["user", "conversation", "age"])
def test_deleting_leaves_nothing_that_names_the_request(store: PostgresTmdbStore, by: str):
    ask(store)
    ask(store, user_id="other", conversation_id=None, request_id="r2", payloads=[])
    with store.transaction() as connection:
        connection.execute("UPDATE tmdb.enrichment_requests SET created_at = %s WHERE user_id = 'u'", (NOW,))
    if by == "user":
        assert store.delete_user("u") == 1
    elif by == "conversation":
        assert store.delete_conversation(ASKED["conversation_id"]) == 1
    else:
        assert store.delete_requests(NOW + timedelta(seconds=1)) == 1
    assert rows(store, "SELECT user_id FROM tmdb.enrichment_requests") == [("other",)]
    assert rows(store, "SELECT count(*) FROM tmdb.enrichment_request_entities WHERE tmdb_id = 2") == [(0,)]
    assert rows(store, "SELECT DISTINCT request_id FROM tmdb.neo4j_etl_outbox") == [(None,)]
    assert rows(store, "SELECT count(*) FROM tmdb.movies") == [(1,)]


# --- the daily list of ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entity", "name", "table"),
    [("movie", "original_title", "movies"), ("person", "name", "people"), ("tv", "original_name", "tv_shows")],
)
def test_the_list_of_ids_makes_stubs_of_what_is_not_known(store: PostgresTmdbStore, entity: str, name: str, table: str):
    raw = {"movie": movie, "person": actor, "tv": show}[entity](1)
    put(store, raw, entity=entity)
    items = [{"id": 1, name: "X", "popularity": 0.1}, {"id": 2, name: "A\x00\tB\\", "popularity": 2}, {"id": 2}]
    lines = [json.dumps(item).encode() for item in items] + [b"{", b"[]", b'{"id": -1}']
    report = store_export(store, EntityType(entity), lines)
    assert (report.new, report.known, report.unreadable) == (1, 2, 3)
    assert store_export(store, EntityType(entity), [b'{"id": 2, "popularity": 9.5}']).new == 0
    shown = "name" if entity != "movie" else "title"
    found = rows(store, f"SELECT tmdb_id, {shown}, popularity, data_state FROM tmdb.{table} ORDER BY 1")
    assert found == [(1, raw[shown], raw["popularity"], "full"), (2, None, 9.5, "stub")]


def test_names_of_the_list_of_ids_arrive_as_they_are(store: PostgresTmdbStore):
    names = ["霸王别姬", "a\\tb", "tab\there", "two\nlines\r", "\\N", "é\u2028x", "\\."]
    lines = [json.dumps({"id": number, "name": name}).encode() for number, name in enumerate(names, 1)]
    assert store_export(store, EntityType.PERSON, reversed(lines)).new == len(names)
    found = rows(store, "SELECT name FROM tmdb.people ORDER BY tmdb_id")
    assert [name for (name,) in found] == [name.strip() for name in names]
