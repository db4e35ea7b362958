"""The service: answers wait for TMDB until a deadline and never for PostgreSQL, and nothing that was asked is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import DataError, OperationalError
from psycopg.errors import ProgramLimitExceeded, UndefinedTable

from douban_pipeline.demo.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline.tmdb.enrichment import writer as writing
from douban_pipeline.tmdb.enrichment.opening import open_online_client
from douban_pipeline.tmdb.enrichment.results import EnrichmentResult, State
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import LEASE, Job, Spool, SpoolError, conversation_hash, user_hash
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

ASKED = "《喜宴》的导演是谁？"
WHO = {"user_id": "u1", "session_id": "s1"}


class FakeStore:
    """A store that keeps what it is given, or fails as it is told to; `gate` holds it up.

    Attributes:
        rows: What it was given, by id.
        error: What it raises in place of keeping it.
    """

    def __init__(self) -> None:
        self.rows: dict[UUID, dict[str, Any]] = {}
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()
        self.kept: Callable[[], None] = lambda: None

    async def persist_enrichment(self, *, logged_id: UUID | None = None, **arguments: Any) -> None:
        self.inside.set()
        await asyncio.to_thread(self.gate.wait, 30)
        if self.error is not None:
            raise self.error
        assert logged_id is not None
        self.rows[logged_id] = arguments
        self.kept()

    def delete_request(self, logged_id: UUID) -> int:
        if self.error is not None:
            raise self.error
        return int(self.rows.pop(logged_id, None) is not None)


@pytest.fixture
def server() -> Iterator[TmdbServer]:
    with TmdbServer() as running:
        yield running


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def spool(tmp_path: Path, clock: FakeClock) -> Iterator[Spool]:
    opened = Spool(tmp_path / "tmdb" / "spool.sqlite", clock)
    yield opened
    opened.close()


@pytest.fixture
def service(server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock) -> Iterator[TMDBEnrichmentService]:
    with ExitStack() as stack:
        yield service_of(server, store, spool, clock, stack)


def service_of(
    server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock, stack: ExitStack, **options: Any
) -> TMDBEnrichmentService:
    settings = TmdbSettings(api_url=server.api_url, api_key="k", service_requests_per_second=1000)
    client = stack.enter_context(open_online_client(settings))
    service = TMDBEnrichmentService(tmdb_client=client, store=store, spool=spool, clock=clock, **options)
    stack.callback(service.close)
    return service


def ask(service: TMDBEnrichmentService, message: str = ASKED, **more: Any) -> EnrichmentResult:
    return asyncio.run(service.enrich_query(message, **{"kb_prefix": "movie", **WHO, **more}))


def job(clock: FakeClock, **more: Any) -> Job:
    asked = {**WHO, "query_text": ASKED, "conversation_id": None, **more}
    return Job(uuid4(), clock.now(), asked)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_named_film_is_found_and_written_down_behind_the_answer(service: TMDBEnrichmentService, store: FakeStore):
    conversation, message = uuid4(), uuid4()
    result = ask(service, request_id="r1", conversation_id=conversation, user_message_id=message)
    assert result.state is State.ANSWERED
    assert result.answer.startswith("《喜宴》（1993）的导演是李安。")
    assert "同名的还有《喜宴》（2025）" in result.answer
    assert [str(each.key) for each in result.selected] == ["movie/9261"]
    assert result.uncertain
    assert len(result.candidates_top3) == 2
    assert result.tmdb_ms <= result.duration_ms
    assert result.persistence == "queued"
    service.close()
    [row] = store.rows.values()
    assert row["query_text"] == ASKED
    assert (row["user_id"], row["session_id"], row["request_id"]) == ("u1", "s1", "r1")
    assert (row["conversation_id"], row["user_message_id"]) == (conversation, message)
    assert (row["tmdb_endpoint"], row["role_hint"], row["tmdb_language"]) == ("/search/multi", "director", "zh-CN")
    assert row["multi_results_raw"]["results"]
    assert row["extracted_entities"] == ["喜宴"]
    assert row["disambiguation"][0]["selected"]["tmdb_id"] == 9261
    assert [each["type"] for each in row["payloads"]] == ["movie"]
    assert row["duration_ms"] > 0


def test_a_film_found_only_by_another_language(service: TMDBEnrichmentService, server: TmdbServer):
    server._known["movie"][146]["original_title"] = "Crouching Tiger, Hidden Dragon (2000)"
    result = ask(service, "《Crouching Tiger, Hidden Dragon》的主演有谁")
    assert "周润发" in result.answer
    assert result.selected[0].exact, "the details name it so"


def test_recommendations_fetch_the_first_ones(service: TMDBEnrichmentService, store: FakeStore, server: TmdbServer):
    result = ask(service, "推荐几部国产剧")
    assert (result.endpoint, result.state) == ("/discover/tv", State.ANSWERED)
    assert "《甄嬛传》（2011）、《琅琊榜》（2015）" in result.answer
    assert {each["type"] for each in result.payloads} == {"tv"}
    ask(service, "推荐几部喜剧电影")
    service.close()
    endpoints = [row["tmdb_endpoint"] for row in store.rows.values()]
    assert sorted(endpoints) == ["/discover/movie", "/discover/tv"]
    assert all(row["discover_results_raw"]["results"] for row in store.rows.values())


def test_a_person_two_people_and_a_choice(service: TMDBEnrichmentService):
    assert "《卧虎藏龙》" in ask(service, "李安导演过哪些电影").answer
    both = ask(service, "李安和郎雄合作过哪些电影")
    assert [str(each.key.type) for each in both.selected] == ["person", "person"]
    chosen = ask(service, choice=EntityKey(EntityType.MOVIE, 90_000_034))
    assert "安德鲁·安" in chosen.answer


@pytest.mark.parametrize(
    ("message", "state", "says"),
    [
        ("今天天气怎么样", State.SKIPPED, "与影视作品无关"),
        ("《没有这部电影》的导演是谁", State.NOTHING, "没有找到“没有这部电影”"),
        ("《<script>alert(1)</script>》的导演是谁", State.NOTHING, "没有找到"),
        ("《'; DROP TABLE tmdb.movies; --》的导演是谁", State.NOTHING, "没有找到"),
        ("《喜宴'}) DETACH DELETE n //》的导演是谁", State.NOTHING, "没有找到"),
        ("\x00\ud800" + "啊" * 100_000, State.SKIPPED, "无关"),
    ],
)
def test_what_cannot_be_found_and_hostile_text(service: TMDBEnrichmentService, message: str, state: State, says: str):
    result = ask(service, message)
    assert result.state is state
    assert says in result.answer


def test_nothing_is_written_for_who_is_incognito_or_unnamed(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool
):
    for more in ({"incognito": True}, {"user_id": None}, {"session_id": ""}, {"message": "今天天气怎么样"}):
        assert ask(service, **more).persistence == "skipped"
    service.close()
    assert store.rows == {}
    assert not spool.path.exists()


@pytest.mark.parametrize("kind", ["hanging", "failing", "cut", "throttled", "refused_key", "schema"])
def test_tmdb_in_trouble_is_an_answer_in_time(
    server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock, kind: str
):
    server.faults.append(TmdbFault(kind))
    with ExitStack() as stack:
        result = ask(service_of(server, store, spool, clock, stack, deadline=0.4))
        assert result.state in (State.LATE, State.FAILED)
        assert "稍后再试" in result.answer
        assert result.problem
        assert result.duration_ms < 2000


def test_a_deadline_gives_what_was_there_by_then(server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock):
    server.faults.append(TmdbFault("hanging", match="/movie/"))
    with ExitStack() as stack:
        service = service_of(server, store, spool, clock, stack, deadline=0.4)
        result = ask(service)
        assert (result.state, result.persistence) == (State.LATE, "queued")
        assert result.candidates_top3[0]["tmdb_id"] == 9261
        service.close()
        [row] = store.rows.values()
    assert (row["payloads"], row["multi_results_raw"]["page"]) == ([], 1)


# --- behind the answer ------------------------------------------------------------------------------------------------


def test_a_store_that_hangs_holds_up_no_answer_and_what_overflows_goes_to_the_disk(
    server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock
):
    store.gate.clear()
    with ExitStack() as stack:
        service = service_of(server, store, spool, clock, stack, queue_size=2)
        went = [ask(service).persistence]
        assert store.inside.wait(30)
        went += [ask(service).persistence for _ in range(4)]
        assert went == ["queued"] * 3 + ["spooled"] * 2
        assert spool.counts() == (2, 0)
        store.gate.set()
        service.close()
    Writer(store, spool, service.metrics).replay()
    assert (len(store.rows), spool.counts()) == (5, (0, 0))


def test_under_steady_load_the_spool_is_replayed_too(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, clock: FakeClock
):
    writer = service.writer
    assert writer is not None
    assert writer.submit(job(clock)) == "queued"
    assert store.inside.wait(30)
    waiting = job(clock)
    spool.add(waiting)  # as during an outage that has ended
    for _ in range(3):
        written = threading.Event()
        store.kept = written.set
        writer.submit(job(clock))
        assert written.wait(30)
    service.close()
    assert waiting.job_id in store.rows


@pytest.mark.parametrize(
    "error", [OperationalError("server closed the connection"), OSError("no route"), UndefinedTable("no schema yet")]
)
def test_an_outage_loses_nothing(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, error: Exception, caplog: Any
):
    store.error = error
    assert all(ask(service).persistence == "queued" for _ in range(3))
    service.close()
    assert (store.rows, spool.counts()[0]) == ({}, 3)
    assert "tmdb persistence job failed" in caplog.text
    assert service.metrics.total("persist_failures_total") == 1, "while it is down nobody asks it"
    store.error = None
    assert Writer(store, spool, service.metrics).replay() == 3
    assert len({row["query_text"] for row in store.rows.values()}) == 1
    assert len(store.rows) == 3


def test_the_spool_is_replayed_when_a_service_starts(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, clock: FakeClock
):
    spool.add(job(clock))
    done = threading.Event()
    store.kept = done.set
    assert service.writer is not None
    service.writer.start()
    assert done.wait(30)
    service.close()
    assert spool.counts() == (0, 0)


@pytest.mark.parametrize("error", [DataError("invalid byte sequence"), ProgramLimitExceeded("index row"), ValueError()])
def test_a_question_that_postgresql_refuses_is_put_aside_and_the_next_goes_on(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, clock: FakeClock, caplog: Any, error: Exception
):
    store.error = error
    assert service.writer is not None
    assert service.writer.write(job(clock)) == "rejected"
    store.error = None
    assert service.writer.write(job(clock)) == "written"
    assert spool.counts() == (0, 1)
    assert "put aside" in caplog.text
    assert service.writer.replay() == 0


def test_without_asynchronous_writing_it_is_written_before_the_answer(
    server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock
):
    with ExitStack() as stack:
        service = service_of(server, store, spool, clock, stack, asynchronous=False)
        assert ask(service).persistence == "written"
        assert len(store.rows) == 1
        store.error = OperationalError("down")
        result = ask(service)
    assert (result.persistence, result.state) == ("spooled", State.ANSWERED)
    assert spool.counts() == (1, 0)


def test_a_full_disk_is_counted_and_the_answer_stands(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, caplog: Any, clock: FakeClock
):
    spool.add(job(clock))
    with spool._lock:
        connection = spool._opened()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
    store.error = OperationalError("down")
    with suppress(Exception):
        spool.add(job(clock, query_text="x" * 9_000_000))
    results = [ask(service) for _ in range(30)]
    service.close()
    assert {result.state for result in results} == {State.ANSWERED}
    assert service.metrics.total("lost_total") > 0
    assert "disk is full" in caplog.text
    assert "lost_total" in service.metrics.text()


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


def test_two_processes_never_replay_one_job(spool: Spool, store: FakeStore, clock: FakeClock, tmp_path: Path):
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


def test_who_is_forgotten_is_forgotten_in_the_spool_too(spool: Spool, store: FakeStore, clock: FakeClock):
    talk = uuid4()
    for mine in (job(clock), job(clock, user_id="u2", conversation_id=talk), job(clock, user_id="u3")):
        spool.add(mine)
    assert spool.forget(user_hash("u1")) == 1
    assert spool.forget(conversation_hash(talk)) == 1
    clock.advance(seconds=1)
    spool.add(job(clock, query_text="asked later"))
    Writer(store, spool, writing.Metrics()).replay()
    assert sorted(row["user_id"] for row in store.rows.values()) == ["u1", "u3"]
    spool.close()
    assert ASKED.encode() not in spool.path.read_bytes()
    assert "u2" not in {
        value for row in sqlite3.connect(spool.path).execute("SELECT * FROM forgotten") for value in row
    }


def test_a_deletion_reaches_what_still_waits_in_memory(
    service: TMDBEnrichmentService, store: FakeStore, spool: Spool, clock: FakeClock
):
    store.gate.clear()
    ask(service)
    assert store.inside.wait(30)
    ask(service)  # waits in the queue
    clock.advance(seconds=1)
    # Another process, as the command is one.
    other = Spool(spool.path, clock)
    other.forget(user_hash("u1"))
    other.close()
    store.gate.set()
    service.close()
    assert store.rows == {}
    assert service.metrics.total("forgotten_total") == 2


def test_a_deletion_while_a_job_is_being_replayed(spool: Spool, store: FakeStore, clock: FakeClock):
    spool.add(job(clock))
    store.kept = lambda: spool.forget(user_hash("u1")) and None  # type: ignore[assignment,return-value]
    metrics = writing.Metrics()
    Writer(store, spool, metrics).replay()
    assert store.rows == {}
    assert metrics.total("forgotten_total") == 1


def test_a_deletion_that_postgresql_missed_is_made_up_for(spool: Spool, store: FakeStore, clock: FakeClock):
    metrics = writing.Metrics()
    writer = Writer(store, spool, metrics)

    def forget_and_stop() -> None:
        spool.forget(user_hash("u1"))
        store.error = OperationalError("stopped")

    store.kept = forget_and_stop
    assert writer.write(job(clock)) == "spooled"
    assert (len(store.rows), spool.counts()) == (1, (1, 0))
    store.error = None
    Writer(store, spool, metrics).replay()
    assert (store.rows, spool.counts()) == ({}, (0, 0))


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_are_given_as_prometheus_reads_them(service: TMDBEnrichmentService):
    ask(service)
    text = service.metrics.text(queue_size=0)
    assert 'douban_pipeline_tmdb_enrichments_total{outcome="answered"} 1' in text
    assert 'douban_pipeline_tmdb_answer_seconds_bucket{le="+Inf"} 1' in text
    assert "douban_pipeline_tmdb_queue_size 0" in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0


def test_how_many_changes_wait_for_the_graph_is_a_figure(spool: Spool, store: FakeStore):
    metrics = writing.Metrics()
    writer = Writer(store, spool, metrics, backlog=lambda: 7)
    writer._record_backlog()
    writer.close()
    assert "douban_pipeline_tmdb_outbox_backlog 7" in metrics.text()


def test_the_pause_between_attempts_grows_and_ends(spool: Spool, store: FakeStore, clock: FakeClock):
    writer = Writer(store, spool, writing.Metrics())
    pauses = []
    for _ in range(7):
        writer._outage(OperationalError("down"))
        pauses.append(writer._pause)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert writer.is_down
    assert timedelta(seconds=writing.LONGEST_PAUSE) == timedelta(seconds=30)
