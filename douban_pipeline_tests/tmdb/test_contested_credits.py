"""Several answers with one credit: the graph has the newest claim, and the next one when that is withdrawn."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.graph_sync import build_batch, drain
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.tmdb.given import NOW, actor, answer, cast, movie, title
from douban_pipeline_tests.tmdb.test_graph_sync import assert_same_when_built_anew, edges_of

pytestmark = pytest.mark.postgres
HOUR = timedelta(hours=1)


def differences(store: PostgresTmdbStore, target: GraphTarget) -> list[str]:
    keys = [EntityKey(entity, tmdb_id) for entity in EntityType for _, tmdb_id in store.full_ids(entity)]
    assert not [each for key in keys for each in target.differences(build_batch(store, [key]))]
    return target.differences(build_batch(store, keys))


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("way", ["withdrawn", "gone", "expired"])
@pytest.mark.parametrize("newer_first", [False, True])
def test_when_the_newer_of_two_claims_to_a_credit_is_withdrawn_the_older_one_counts(
    store: PostgresTmdbStore, target: GraphTarget, at_once: bool, way: str, newer_first: bool
):
    older = answer("movie", movie(1, cast(9, "c")))
    newer = replace(answer("movie", movie(2, cast(9, "c"))), fetched_at=NOW + HOUR)
    for each in (newer, older) if newer_first else (older, newer):
        store.persist_payloads([each])
        if not at_once:
            drain(store, target)
    drain(store, target)
    assert ("ACTED_IN", 9, 2, "c") in edges_of(target)
    assert ("ACTED_IN", 9, 1, "c") not in edges_of(target)
    assert differences(store, target) == []
    if way == "withdrawn":
        store.persist_payloads([replace(answer("movie", movie(2)), fetched_at=NOW + 2 * HOUR)])
    elif way == "gone":
        store.write(lambda writer: writer.gone(EntityKey(EntityType.MOVIE, 2)))
    else:
        with store.transaction() as connection:
            connection.execute("UPDATE tmdb.movies SET fetched_at = %s WHERE tmdb_id = 2", (NOW - HOUR,))
        store.expire(NOW)
    drain(store, target)
    assert ("ACTED_IN", 9, 1, "c") in edges_of(target)
    assert differences(store, target) == []
    with store.transaction() as connection:
        assert connection.execute("SELECT * FROM tmdb.credit_claim").fetchall() == [], "settled"
    assert_same_when_built_anew(store, target)


def test_a_claim_that_is_confirmed_later_counts(store: PostgresTmdbStore, target: GraphTarget):
    older = answer("movie", movie(1, cast(9, "c")))
    store.persist_payloads([older, replace(answer("movie", movie(2, cast(9, "c"))), fetched_at=NOW + HOUR)])
    drain(store, target)
    store.persist_payloads([replace(older, fetched_at=NOW + 2 * HOUR)])
    drain(store, target)
    assert ("ACTED_IN", 9, 1, "c") in edges_of(target)
    assert differences(store, target) == []
    assert_same_when_built_anew(store, target)


def test_a_title_that_becomes_full_settles_what_people_claim_of_it(store: PostgresTmdbStore, target: GraphTarget):
    older, newer = (answer("person", actor(each, title(6 + each, "c"))) for each in (1, 2))
    store.persist_payloads([older, replace(newer, fetched_at=NOW + HOUR)])
    drain(store, target)
    assert edges_of(target) == [("ACTED_IN", 2, 8, "c")]
    store.persist_payloads([answer("movie", movie(8, cast(3, "d")))])
    drain(store, target)
    assert ("ACTED_IN", 1, 7, "c") in edges_of(target), "the film knows better than its person"
    assert differences(store, target) == []
    assert_same_when_built_anew(store, target)


def test_after_any_history_of_contested_credits_the_graph_is_the_one_built_anew(
    store: PostgresTmdbStore, target: GraphTarget
):
    draw = random.Random(7)
    for hour in range(40):
        entity, tmdb_id = draw.choice(["movie", "person"]), draw.randrange(1, 4)
        credits = draw.sample(["c", "d", "e"], 2)
        if draw.random() < 0.2:
            key = EntityKey(EntityType(entity), tmdb_id)
            store.write(lambda writer, key=key: writer.gone(key))
            continue
        if entity == "person":
            raw = actor(tmdb_id, *(title(draw.randrange(1, 4), credit) for credit in credits))
        else:
            raw = movie(tmdb_id, *(cast(draw.randrange(1, 4), credit) for credit in credits))
        store.persist_payloads([replace(answer(entity, raw), fetched_at=NOW + draw.choice((-1, 1)) * hour * HOUR)])
        if draw.random() < 0.5:
            drain(store, target, batch=draw.choice((1, 3)))
    drain(store, target)
    assert differences(store, target) == []
    assert_same_when_built_anew(store, target)
