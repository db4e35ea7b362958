"""The outbox of changes for the graph: claimed by one worker, kept until it is done, put aside when it always fails."""

from __future__ import annotations

from datetime import timedelta

import pytest
from psycopg import Connection

from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.tmdb.given import NOW, movie
from douban_pipeline_tests.tmdb.stored import put, queued, rows

pytestmark = pytest.mark.postgres


def claim(store: PostgresTmdbStore, worker: str = "w", most: int = 10, lease: float = 60) -> list[outbox.OutboxClaim]:
    return store.run(lambda connection: outbox.claim(connection, worker, most, lease))


def acknowledge(store: PostgresTmdbStore, claims: list[outbox.OutboxClaim], worker: str = "w") -> int:
    return store.run(lambda connection: outbox.acknowledge(connection, worker, claims))


def make_due(connection: Connection) -> None:
    connection.execute("UPDATE tmdb.neo4j_etl_outbox SET available_at = now() - interval '1 second'")


def test_each_row_is_claimed_by_one_worker_and_done_once(store: PostgresTmdbStore):
    put(store, *(movie(each) for each in range(1, 6)))
    first = claim(store, "a", most=3)
    second = claim(store, "b", most=3)
    assert len(first) == 3
    assert len(second) == 2
    assert not {each.key for each in first} & {each.key for each in second}
    assert acknowledge(store, first, "a") == 3
    assert acknowledge(store, first, "a") == 0
    assert claim(store) == []


def test_a_row_of_a_dead_worker_comes_back_after_its_lease(store: PostgresTmdbStore):
    put(store, movie(1))
    assert len(claim(store, "dead", lease=-1)) == 1
    [again] = claim(store, "b")
    assert again.attempts == 2


def test_a_change_while_a_worker_has_the_row_stays_queued_for_after_it(store: PostgresTmdbStore):
    put(store, movie(1))
    claims = claim(store)
    put(store, movie(1, title="B"))
    assert claim(store, "other") == [], "the first worker may still be writing what it read"
    assert acknowledge(store, claims) == 0
    [again] = claim(store, "other")
    assert again.version == 2


def test_a_failure_waits_longer_each_time_and_is_put_aside_in_the_end(store: PostgresTmdbStore):
    put(store, movie(1))
    waits = []
    for attempt in (1, 2, 3):
        [claimed] = claim(store)
        dead = store.run(lambda connection, c=claimed: outbox.fail(connection, "w", c, "no\x00pe", 3))
        assert dead is (attempt == 3)
        [(wait,)] = rows(store, "SELECT extract(epoch FROM available_at - last_attempt_at) FROM tmdb.neo4j_etl_outbox")
        waits.append(float(wait))
        store.run(make_due)
    assert 29 < waits[0] < 40
    assert 59 < waits[1] < 80
    assert claim(store) == []
    [buried] = store.run(outbox.dead)
    assert (buried["tmdb_id"], buried["last_error"]) == (1, "nope")
    assert store.run(outbox.requeue_dead) == 1
    assert len(claim(store)) == 1


def test_a_new_change_takes_a_row_out_of_the_dead_ones(store: PostgresTmdbStore):
    put(store, movie(1))
    [claimed] = claim(store)
    store.run(lambda connection: outbox.fail(connection, "w", claimed, "no", 1))
    assert store.run(outbox.counts).dead == 1
    put(store, movie(1, title="B"))
    assert store.run(outbox.counts).dead == 0
    assert len(claim(store)) == 1


def test_a_failure_of_what_changed_meanwhile_does_not_count(store: PostgresTmdbStore):
    put(store, movie(1))
    [claimed] = claim(store)
    put(store, movie(1, title="B"))
    assert store.run(lambda connection: outbox.fail(connection, "w", claimed, "no", 1)) is False
    [again] = claim(store)
    assert again.attempts == 1


def test_released_rows_are_due_at_once_and_lost_no_attempt(store: PostgresTmdbStore):
    put(store, movie(1))
    claims = claim(store)
    store.run(lambda connection: outbox.release(connection, "w", claims))
    assert [each.attempts for each in claim(store)] == [1]


def test_done_rows_are_pruned_by_age_and_counted(store: PostgresTmdbStore):
    put(store, movie(1), movie(2))
    acknowledge(store, claim(store, most=1))
    counts = store.run(outbox.counts)
    assert (counts.waiting, counts.failing, counts.dead) == (1, 0, 0)
    assert store.prune_outbox(NOW + timedelta(days=36500)) == 1
    assert store.prune_outbox(NOW + timedelta(days=36500)) == 0
    assert len(queued(store)) == 1
