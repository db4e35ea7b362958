"""A worker is killed at every step: nothing is lost, nothing happens twice, counters are exact."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
import sqlalchemy as sa

from douban_pipeline.comments.services import CommentIds
from douban_pipeline.comments.store import shards, tables
from douban_pipeline.comments.store.shards import LostShardError, claim_shards, lease_node, lock_shard
from douban_pipeline.comments.types import SHARDS, CommentStatus, EventState
from douban_pipeline_tests.comments.crashing import POINTS
from douban_pipeline_tests.comments.stage import OPERATOR, stage, user


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_killed_worker_leaves_all_of_a_batch_or_nothing(engine, request):
    url = request.getfixturevalue(f"{engine}_url")
    told: list[int] = []

    class Told:
        def follow(self, applied):
            told.extend(event.event_id for event in applied)

        def work(self):
            return 0

    command = [sys.executable, "-m", "douban_pipeline_tests.comments.crashing", url]
    with (
        stage(url, followers=(Told(),)) as place,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as crashing,
    ):
        assert crashing.stdin is not None
        assert crashing.stdout is not None
        comments = []
        for number, point in enumerate(POINTS):
            root = place.publish(user(10 + number), f"根 {number}")
            comments += [root, place.publish(user(50 + number), f"回 {number}", root)]
            place.vote(user(90), root, 1)
            if number % 3 == 2:
                place.set_status(OPERATOR, comments[-4], CommentStatus.DELETED)
            crashing.stdin.write(f"{point}\n")
            assert crashing.stdout.readline() == "killed\n", point
            assert place.differences() == [], point
            place.work()
            place.worker.stop()
            assert place.differences() == [], point
        crashing.stdin.close()
        with place.engine.connect() as connection:
            states = connection.execute(sa.select(tables.event.c.state, tables.event.c.seq)).all()
            ids = connection.execute(sa.select(tables.event.c.event_id)).scalars().all()
        assert {state for state, _ in states} == {EventState.FINISHED}
        assert sorted(seq for _, seq in states) == list(range(1, len(states) + 1))
        found = [place.comment(number) for number in comments]
        assert [comment.floor for comment in found] == list(range(1, len(comments) + 1))
        assert [comment.like_count for comment in found] == [1, 0] * len(POINTS)
        killed_after_marks = 4
        assert len(ids) - len(set(told)) == killed_after_marks, "only what a killed worker had told itself"


def test_a_worker_that_was_thought_dead_writes_nothing_any_more(sqlite_url):
    with stage(sqlite_url) as place:
        first = place.publish(user(2), "根")
        old = claim_shards(place.engine, "a@other:1", place.clock.now(), place.worker._lease)
        place.clock.advance(seconds=60)
        place.work()
        assert place.roots() == [first]
        with pytest.raises(LostShardError), place.engine.begin() as connection:
            lock_shard(connection, place.section_id, old[place.section_id])


def test_workers_share_the_shards_and_give_back_what_they_have_too_many_of(sqlite_url):
    with stage(sqlite_url) as place:
        now, lease = place.clock.now(), place.worker._lease
        assert len(claim_shards(place.engine, "a@other:1", now, lease)) == SHARDS
        assert claim_shards(place.engine, "b@other:1", now, lease) == {}
        first = claim_shards(place.engine, "a@other:1", now, lease, most=32)
        second = claim_shards(place.engine, "b@other:1", now, lease, most=32)
        assert (len(first), len(second)) == (32, 32)
        assert not set(first) & set(second)
        shards.release_shards(place.engine, "a@other:1")
        assert len(claim_shards(place.engine, "b@other:1", now, lease)) == SHARDS


@pytest.mark.parametrize("same_name", [True, False])
def test_ids_of_a_process_that_died_are_not_repeated_where_the_clock_was_set_back(sqlite_url, same_name):
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    names = (
        [f"service@{socket.gethostname()}:{dead.pid}"] * 2
        if same_name
        else [f"service@{socket.gethostname()}:{dead.pid}", "service@other:1"]
    )
    with stage(sqlite_url) as place:  # its clock stands still, as one does that is set back by as much as passed
        first, again = (CommentIds(place.engine, place.clock, name).next() for name in names)
    assert first != again


def test_numbers_of_ids_are_leased_and_never_shared(sqlite_url):
    with stage(sqlite_url) as place:
        now, lease = place.clock.now(), place.worker._lease
        numbers = [lease_node(place.engine, f"service@other:{pid}", now, lease) for pid in (1, 2, 1, 3)]
        assert numbers == [0, 1, 0, 2]
        later = now + 2 * lease
        assert lease_node(place.engine, "service@other:4", later, lease) == 0


def test_a_number_of_ids_stays_leased_as_long_as_before_where_the_clock_was_set_back(sqlite_url):
    with stage(sqlite_url) as place:
        now, lease = place.clock.now(), place.worker._lease
        assert lease_node(place.engine, "service@other:1", now, lease) == 0
        assert lease_node(place.engine, "service@other:1", now - 10 * lease, lease) == 0
        # It has given out ids of the time before the clock was set back: nobody may repeat them.
        assert lease_node(place.engine, "service@other:2", now, lease) == 1
        assert lease_node(place.engine, "service@other:3", now + lease, lease) == 0
