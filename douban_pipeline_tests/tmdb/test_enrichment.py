"""The service: answers wait for TMDB until a deadline and never for PostgreSQL, and nothing that was asked is lost."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg import DataError, OperationalError
from psycopg.errors import ProgramLimitExceeded, UndefinedTable

from douban_pipeline.tmdb.enrichment import writer as writing
from douban_pipeline.tmdb.enrichment.results import State
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import Spool, user_hash
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline_tests.tmdb.given import show
from douban_pipeline_tests.tmdb.serving import ASKED, FakeStore, ask, job, service_of

# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_named_film_is_found_and_written_down_behind_the_answer(
    service: TMDBEnrichmentService, fake_store: FakeStore
):
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
    [row] = fake_store.rows.values()
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


def test_recommendations_fetch_the_first_ones(
    service: TMDBEnrichmentService, fake_store: FakeStore, server: TmdbServer
):
    result = ask(service, "推荐几部国产剧")
    assert (result.endpoint, result.state) == ("/discover/tv", State.ANSWERED)
    assert "《甄嬛传》（2011）、《琅琊榜》（2015）" in result.answer
    assert {each["type"] for each in result.payloads} == {"tv"}
    ask(service, "推荐几部喜剧电影")
    service.close()
    endpoints = [row["tmdb_endpoint"] for row in fake_store.rows.values()]
    assert sorted(endpoints) == ["/discover/movie", "/discover/tv"]
    assert all(row["discover_results_raw"]["results"] for row in fake_store.rows.values())


def test_a_person_two_people_and_a_choice(service: TMDBEnrichmentService):
    assert "《卧虎藏龙》" in ask(service, "李安导演过哪些电影").answer
    both = ask(service, "李安和郎雄合作过哪些电影")
    assert [str(each.key.type) for each in both.selected] == ["person", "person"]
    chosen = ask(service, choice=EntityKey(EntityType.MOVIE, 90_000_034))
    assert "安德鲁·安" in chosen.answer


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("《喜宴》评分多少", "《喜宴》（1993）：TMDB 评分 7.4（717 人）。"),
        ("喜宴哪年上映的", "《喜宴》（1993）：1993 年 8 月 4 日上映。"),
        ("《喜宴》是哪国拍的", "《喜宴》（1993）：制片国家或地区：中国台湾。"),
        ("《喜宴》的原声", "TMDB 没有记载《喜宴》（1993）的这一项。"),
        ("甄嬛传有多少集", "《甄嬛传》（2011）：共 1 季，54 集。"),
        ("甄嬛传第九季有几集", "TMDB 没有记载《甄嬛传》（2011）的这一项。"),
        ("李安和郎雄合作过哪些电影", "李安、郎雄共同的作品有《饮食男女》《喜宴》《卧虎藏龙》《推手》。"),
        ("李安1990到1993年的电影", "李安导演了《喜宴》《推手》。"),
        ("类似喜宴的电影", "与《喜宴》（1993）同类型（喜剧、剧情、爱情）的有《卧虎藏龙》（2000）"),
        ("When was 喜宴 released?", "The Wedding Banquet (1993): released on 1993-08-04."),
        ("movies with 李安 and 郎雄", "李安, 郎雄 have in common: 饮食男女, 喜宴, 卧虎藏龙, 推手."),
        ("how many episodes does 甄嬛传 have", "seasons: 1, episodes: 54."),
        ("喜宴", "导演：李安；主演：赵文瑄"),
    ],
)
def test_a_question_is_answered_by_the_fact_that_it_asks_for_in_its_language(
    service: TMDBEnrichmentService, question: str, says: str
):
    assert says in ask(service, question).answer


def test_the_episodes_of_one_season_are_told(service: TMDBEnrichmentService, server: TmdbServer):
    seasons = [{"season_number": 1, "episode_count": 8}, {"season_number": 2, "episode_count": 9}]
    server.learn({"path": "/3/tv/77", "body": show(77, name="长街往事", seasons=seasons, number_of_seasons=2)})
    assert ask(service, "长街往事第二季有几集").answer == "《长街往事》：第 2 季有 9 集。"


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
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool
):
    for more in ({"incognito": True}, {"user_id": None}, {"session_id": ""}, {"message": "今天天气怎么样"}):
        assert ask(service, **more).persistence == "skipped"
    service.close()
    assert fake_store.rows == {}
    assert not spool.path.exists()


@pytest.mark.parametrize("kind", ["hanging", "failing", "cut", "throttled", "refused_key", "schema"])
def test_tmdb_in_trouble_is_an_answer_in_time(
    server: TmdbServer, fake_store: FakeStore, spool: Spool, clock: FakeClock, kind: str
):
    server.faults.append(TmdbFault(kind))
    with ExitStack() as stack:
        result = ask(service_of(server, fake_store, spool, clock, stack, deadline=0.4))
        assert result.state in (State.LATE, State.FAILED)
        assert "稍后再试" in result.answer
        assert result.problem
        assert result.duration_ms < 2000


def test_a_deadline_gives_what_was_there_by_then(
    server: TmdbServer, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    server.faults.append(TmdbFault("hanging", match="/movie/"))
    with ExitStack() as stack:
        service = service_of(server, fake_store, spool, clock, stack, deadline=0.4)
        result = ask(service)
        assert (result.state, result.persistence) == (State.LATE, "queued")
        assert result.candidates_top3[0]["tmdb_id"] == 9261
        service.close()
        [row] = fake_store.rows.values()
    assert (row["payloads"], row["multi_results_raw"]["page"]) == ([], 1)


# --- behind the answer ------------------------------------------------------------------------------------------------


def test_a_store_that_hangs_holds_up_no_answer_and_what_overflows_goes_to_the_disk(
    server: TmdbServer, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    fake_store.gate.clear()
    with ExitStack() as stack:
        service = service_of(server, fake_store, spool, clock, stack, queue_size=2)
        went = [ask(service).persistence]
        assert fake_store.inside.wait(30)
        went += [ask(service).persistence for _ in range(4)]
        assert went == ["queued"] * 3 + ["spooled"] * 2
        assert spool.counts() == (2, 0)
        fake_store.gate.set()
        service.close()
    Writer(fake_store, spool, service.metrics).replay()
    assert (len(fake_store.rows), spool.counts()) == (5, (0, 0))


def test_under_steady_load_the_spool_is_replayed_too(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    writer = service.writer
    assert writer is not None
    assert writer.submit(job(clock)) == "queued"
    assert fake_store.inside.wait(30)
    waiting = job(clock)
    spool.add(waiting)  # as during an outage that has ended
    for _ in range(3):
        written = threading.Event()
        fake_store.kept = written.set
        writer.submit(job(clock))
        assert written.wait(30)
    service.close()
    assert waiting.job_id in fake_store.rows


@pytest.mark.parametrize(
    "error", [OperationalError("server closed the connection"), OSError("no route"), UndefinedTable("no schema yet")]
)
def test_an_outage_loses_nothing(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, error: Exception, caplog: Any
):
    fake_store.error = error
    assert all(ask(service).persistence == "queued" for _ in range(3))
    service.close()
    assert (fake_store.rows, spool.counts()[0]) == ({}, 3)
    assert "tmdb persistence job failed" in caplog.text
    assert service.metrics.total("persist_failures_total") == 1, "while it is down nobody asks it"
    fake_store.error = None
    assert Writer(fake_store, spool, service.metrics).replay() == 3
    assert len({row["query_text"] for row in fake_store.rows.values()}) == 1
    assert len(fake_store.rows) == 3


def test_the_spool_is_replayed_when_a_service_starts(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    spool.add(job(clock))
    done = threading.Event()
    fake_store.kept = done.set
    assert service.writer is not None
    service.writer.start()
    assert done.wait(30)
    service.close()
    assert spool.counts() == (0, 0)


def test_questions_are_written_together_and_one_that_is_refused_holds_up_no_other(
    spool: Spool, fake_store: FakeStore, clock: FakeClock
):
    metrics = writing.Metrics()
    writer = Writer(fake_store, spool, metrics)
    jobs = [job(clock, query_text=f"question {number}") for number in range(3)]
    together: list[int] = []
    persist = fake_store.persist_questions

    def persist_all_but_one(asked: Any) -> None:
        together.append(len(asked))
        if jobs[1].job_id in asked:
            raise DataError("invalid byte sequence")
        persist(asked)

    fake_store.persist_questions = persist_all_but_one  # type: ignore[method-assign]
    writer._persist_together(jobs)
    assert (fake_store.rows.keys(), spool.counts()) == ({jobs[0].job_id, jobs[2].job_id}, (0, 1))
    writer._persist_together([*jobs[2:], job(clock), job(clock)])
    assert (together, metrics.total("persisted_total")) == ([3, 1, 1, 1, 3], 5)


def test_questions_forgotten_while_they_are_written_together_are_deleted_again(
    spool: Spool, fake_store: FakeStore, clock: FakeClock
):
    writer = Writer(fake_store, spool, writing.Metrics())
    fake_store.kept = lambda: spool.forget(user_hash("u1")) and None  # type: ignore[assignment,return-value]
    writer._persist_together([job(clock), job(clock, user_id="u2"), job(clock)])
    assert [row["user_id"] for row in fake_store.rows.values()] == ["u2"]


@pytest.mark.parametrize("error", [DataError("invalid byte sequence"), ProgramLimitExceeded("index row"), ValueError()])
def test_a_question_that_postgresql_refuses_is_put_aside_and_the_next_goes_on(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, clock: FakeClock, caplog: Any, error: Exception
):
    fake_store.error = error
    assert service.writer is not None
    assert service.writer.write(job(clock)) == "rejected"
    fake_store.error = None
    assert service.writer.write(job(clock)) == "written"
    assert spool.counts() == (0, 1)
    assert "put aside" in caplog.text
    assert service.writer.replay() == 0


def test_without_asynchronous_writing_it_is_written_before_the_answer(
    server: TmdbServer, fake_store: FakeStore, spool: Spool, clock: FakeClock
):
    with ExitStack() as stack:
        service = service_of(server, fake_store, spool, clock, stack, asynchronous=False)
        assert ask(service).persistence == "written"
        assert len(fake_store.rows) == 1
        fake_store.error = OperationalError("down")
        result = ask(service)
    assert (result.persistence, result.state) == ("spooled", State.ANSWERED)
    assert spool.counts() == (1, 0)


def test_a_full_disk_is_counted_and_the_answer_stands(
    service: TMDBEnrichmentService, fake_store: FakeStore, spool: Spool, caplog: Any, clock: FakeClock
):
    spool.add(job(clock))
    with spool._lock:
        connection = spool._opened()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
    fake_store.error = OperationalError("down")
    with suppress(Exception):
        spool.add(job(clock, query_text="x" * 9_000_000))
    results = [ask(service) for _ in range(30)]
    service.close()
    assert {result.state for result in results} == {State.ANSWERED}
    assert service.metrics.total("lost_total") > 0
    assert "disk is full" in caplog.text
    assert "lost_total" in service.metrics.text()


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_are_given_as_prometheus_reads_them(service: TMDBEnrichmentService):
    ask(service)
    text = service.metrics.text(queue_size=0)
    assert 'douban_pipeline_tmdb_enrichments_total{outcome="answered"} 1' in text
    assert 'douban_pipeline_tmdb_answer_seconds_bucket{le="+Inf"} 1' in text
    assert "douban_pipeline_tmdb_queue_size 0" in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0


def test_how_many_changes_wait_for_the_graph_is_a_figure(spool: Spool, fake_store: FakeStore):
    metrics = writing.Metrics()
    writer = Writer(fake_store, spool, metrics, backlog=lambda: 7)
    writer._record_backlog()
    writer.close()
    assert "douban_pipeline_tmdb_outbox_backlog 7" in metrics.text()


def test_the_pause_between_attempts_grows_and_ends(spool: Spool, fake_store: FakeStore, clock: FakeClock):
    writer = Writer(fake_store, spool, writing.Metrics())
    pauses = []
    for _ in range(7):
        writer._outage(OperationalError("down"))
        pauses.append(writer._pause)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert writer.is_down
    assert timedelta(seconds=writing.LONGEST_PAUSE) == timedelta(seconds=30)
