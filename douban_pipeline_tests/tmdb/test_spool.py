"""What waits on the disk until PostgreSQL answers: kept whole, replayed by one process, and forgotten with its user."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from psycopg import OperationalError

from douban_pipeline.tmdb.enrichment import writer as writing
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import LEASE, Spool, SpoolError, conversation_hash, user_hash
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.tmdb.serving import ASKED, FakeStore, ask, job


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path, clock: FakeClock):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be used"):
        Spool(tmp_path / "file" / "spool.sqlite", clock).add(job(clock))
    (tmp_path / "garbage").write_text("this is no database" * 100)
    with pytest.raises(SpoolError, match="not a database"):
        Spool(tmp_path / "garbage", clock).add(job(clock))


def test_a_job_of_five_megabytes_survives_the_disk(spool: Spool, clock: FakeClock):
    large = job(
        clock, payloads=[{"type": "movie", "data": {"id": 1, "overview": "影" * 5_000_000}}], conversation_id=uuid4()
    )
    spool.add(large)
    assert spool.claim() == large


# --- one spool, several processes -------------------------------------------------------------------------------------


def test_two_processes_never_replay_one_job(spool: Spool, fake_store: FakeStore, clock: FakeClock, tmp_path: Path):
    for _ in range(40):
        spool.add(job(clock))
    given: list[UUID] = []
    others = [Spool(spool.path, clock) for _ in range(2)]

    def replay(mine: Spool) -> None:
        while (taken := mine.claim()) is not None:
            given.append(taken.job_id)
            mine.done(taken)

    threads = [threading.Thread(target=replay, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in others:
        each.close()
    assert (len(given), len(set(given))) == (40, 40)


def test_a_process_that_dies_while_replaying_leaves_its_job_to_others(spool: Spool, clock: FakeClock):
    spool.add(job(clock))
    assert Spool(spool.path, clock).claim() is not None
    assert spool.claim() is None
    clock.advance(seconds=LEASE.total_seconds() + 1)
    assert spool.claim() is not None


# --- to be forgotten --------------------------------------------------------------------------------------------------


def test_who_is_forgotten_is_forgotten_in_the_spool_too(spool: Spool, fake_store: FakeStore, clock: FakeClock):
    talk = uuid4()
    for mine in (job(clock), job(clock, user_id="u2", conversation_id=talk), job(clock, user_id="u3")):
        spool.add(mine)
    assert spool.forget(user_hash("u1")) == 1
    assert spool.forget(conversation_hash(talk)) == 1
    clock.advance(seconds=1)
    spool.add(job(clock, query_text="asked later"))
    Writer(fake_store, spool, writing.Metrics()).replay()
    assert sorted(row["user_id"] for row in fake_store.rows.values()) == ["u1", "u3"]
    spool.close()
    assert ASKED.encode() not in spool.path.read_bytes()
    assert "u2" not in {
        value for row in sqlite3.connect(spool.path).execute("SELECT * FROM forgotten") for value in row
    }


def test_a_deletion_reaches_what_still_waits_in_memory(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    fake_store.gate.clear()
    ask(service)
    assert fake_store.inside.wait(30)
    ask(service)  # waits in the queue
    clock.advance(seconds=1)
    # Another process, as the command is one.
    other = Spool(spool.path, clock)
    other.forget(user_hash("u1"))
    other.close()
    fake_store.gate.set()
    service.close()
    assert fake_store.rows == {}
    assert service.metrics.total("forgotten_total") == 2


def test_a_deletion_while_a_job_is_being_replayed(spool: Spool, fake_store: FakeStore, clock: FakeClock):
    spool.add(job(clock))
    fake_store.kept = lambda: spool.forget(user_hash("u1")) and None  # type: ignore[assignment,return-value]
    metrics = writing.Metrics()
    Writer(fake_store, spool, metrics).replay()
    assert fake_store.rows == {}
    assert metrics.total("forgotten_total") == 1


def test_a_deletion_that_postgresql_missed_is_made_up_for(spool: Spool, fake_store: FakeStore, clock: FakeClock):
    metrics = writing.Metrics()
    writer = Writer(fake_store, spool, metrics)

    def forget_and_stop() -> None:
        spool.forget(user_hash("u1"))
        fake_store.error = OperationalError("stopped")

    fake_store.kept = forget_and_stop
    assert writer.write(job(clock)) == "spooled"
    assert (len(fake_store.rows), spool.counts()) == (1, (1, 0))
    fake_store.error = None
    Writer(fake_store, spool, metrics).replay()
    assert (fake_store.rows, spool.counts()) == ({}, (0, 0))
