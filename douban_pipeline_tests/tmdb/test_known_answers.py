"""What is stored is answered from the store, and what several want at once is requested once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from douban_pipeline.core.errors import NotFound
from douban_pipeline.matching import parse_title
from douban_pipeline.tmdb.enrichment import known_answers
from douban_pipeline.tmdb.enrichment.factory import open_service
from douban_pipeline.tmdb.enrichment.known_answers import StoredTitles
from douban_pipeline.tmdb.enrichment.results import EnrichmentResult, State
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.shared_client import ThreadFlights
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.entities import EntityWriter
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline_tests.tmdb.given import actor, answer, cast, crew, movie, title
from douban_pipeline_tests.tmdb.stored import rows

ASKED = "《好人》的导演是谁？"
STOPPED = "postgresql://nobody@127.0.0.1:1/x"
WHO = {"kb_prefix": "movie", "user_id": "u", "session_id": "s"}


@contextmanager
def serving(server: TmdbServer, home: Path, url: str, **more: Any) -> Iterator[TMDBEnrichmentService]:
    """Yield the service at its default limits."""
    given = {"api_key": "k", **more}
    settings = TmdbSettings(_env_file=None, home=home, database_url=url, api_url=server.api_url, **given)
    store = PostgresTmdbStore(url, wait_seconds=0.1) if url else None
    with open_service(settings, store) as service:
        yield service


def ask(service: TMDBEnrichmentService, message: str = ASKED, **more: Any) -> EnrichmentResult:
    return asyncio.run(service.enrich_query(message, **{**WHO, **more}))


def keep(store: PostgresTmdbStore, *raws: dict[str, Any], age: timedelta = timedelta(), entity: str = "movie") -> None:
    at = datetime.now(UTC) - age
    store.persist_payloads([replace(answer(entity, raw), fetched_at=at) for raw in raws])


def film(tmdb_id: int = 1, **more: Any) -> dict[str, Any]:
    made = crew(5, f"d{tmdb_id}", name="一位导演")
    return movie(tmdb_id, made, cast(6, f"c{tmdb_id}", name="一位演员"), title="好人", **more)


@pytest.mark.postgres
def test_what_is_stored_is_answered_without_tmdb(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    keep(store, film(), age=timedelta(days=100))
    keep(store, actor(5, title(1, "d1", job="Director", title="好人"), name="一位导演"), entity="person")
    server.faults.append(TmdbFault("refused_key"))
    with serving(server, tmp_path, store_url) as service:
        found = ask(service)
        assert (found.state, found.source) == (State.ANSWERED, "store")
        assert found.answer == "《好人》（1993）的导演是一位导演。"
        assert found.as_of is not None
        assert datetime.fromisoformat(found.as_of) < datetime.now(UTC) - timedelta(days=99)
        assert "一位演员" in ask(service, "《好人》的主演有谁？").answer
        assert ask(service, "《好人》（1993）的导演是谁？").source == "store"
        assert "《好人》" in ask(service, "一位导演导演过哪些电影").answer
        assert ask(service, choice=EntityKey(EntityType.MOVIE, 1)).source == "store"
        assert ask(service, "《original 1》的导演是谁").source == "store", "by its original name, in any case"
    assert server.count("/search/multi") == 0
    logged = rows(store, "SELECT candidates_top3, selected, selected_tmdb_id FROM tmdb.enrichment_requests")
    assert len(logged) == 6
    assert "好人" not in json.dumps(logged, ensure_ascii=False), "the log is younger than these facts"
    assert rows(store, "SELECT fetched_at < now() - interval '99 days' FROM tmdb.movies") == [(True,)]


@pytest.mark.postgres
def test_without_a_key_what_is_stored_is_answered_and_the_rest_is_said_to_be_unknown(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    keep(store, film(), age=timedelta(days=170))
    with serving(server, tmp_path, store_url, api_key="") as service:
        assert ask(service).answer == "《好人》（1993）的导演是一位导演。"
        unknown = ask(service, "《喜宴》的导演是谁？")
        assert (unknown.state, unknown.retry_after) == (State.REFUSED, 0)
        assert unknown.answer == "没有存过相关资料，也没有去问 TMDB：没有设置 TMDB 的密钥。"
        assert ask(service, "Who directed Arrow?").answer.startswith("Nothing is stored of that")
        keep(
            store, movie(2, cast(6, "x", name="一位演员"), title="坏人", genres=film()["genres"]), age=timedelta(days=9)
        )
        works = ask(service, "一位演员演过哪些电影").answer
        assert all(said in works for said in ("一位演员出演", "《好人》", "《坏人》", "只来自已存的"))
        assert "《坏人》" in ask(service, "一位演员都有啥值得翻出来再看的").answer, "the longest stored name in it"
        assert ask(service, "有没有和好人类似的电影").answer.endswith("有相同的人：《坏人》（1993）。")
    assert server.asked == []


def settled(service: TMDBEnrichmentService) -> None:
    """Wait until nothing is fetched behind the answers any more."""
    service._threads.shutdown(wait=True)


@pytest.mark.postgres
@pytest.mark.parametrize("behind", ["votes that changed", "a film that TMDB lost", "a TMDB that fails", "no key"])
def test_what_is_old_is_answered_first_and_fetched_again_behind_the_answer(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path, behind: str
):
    keep(store, film(), age=timedelta(days=9))
    if behind == "votes that changed":
        server.learn({"path": "/3/movie/1", "body": {**film(), "vote_average": 9.9}})
    elif behind == "a TMDB that fails":
        server.faults.append(TmdbFault("failing"))
    with serving(server, tmp_path, store_url, api_key="" if behind == "no key" else "k") as service:
        found = ask(service)
        settled(service)
    assert (found.state, found.source) == (State.ANSWERED, "store")
    assert found.to_json()["refreshing"] is (behind != "no key")
    kept = rows(store, "SELECT vote_average, fetched_at > now() - interval '1 day', gone_at IS NULL FROM tmdb.movies")
    changed = {"votes that changed": (9.9, True, True), "a film that TMDB lost": (7.0, False, False)}
    assert kept == [changed.get(behind, (7.0, False, True))]
    assert server.count("/search/multi") == 0


@pytest.mark.postgres
@pytest.mark.parametrize("given", [{"age": timedelta(hours=20)}, {"incognito": True}])
def test_what_is_fresh_or_asked_in_confidence_is_not_fetched_again(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path, given: dict[str, Any]
):
    keep(store, film(), age=given.pop("age", timedelta(days=9)))
    with serving(server, tmp_path, store_url) as service:
        assert (ask(service, **given).source, ask(service, **given).refreshing) == ("store", False)
        settled(service)
    assert server.asked == []


@pytest.mark.postgres
@pytest.mark.parametrize("why", ["no key", "failing", "throttled"])
def test_of_a_question_that_is_known_in_part_that_part_is_answered_while_tmdb_is_not(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path, why: str
):
    keep(store, film())
    if why != "no key":
        server.faults.append(TmdbFault(why, retry_after=300))
    with serving(server, tmp_path, store_url, api_key="" if why == "no key" else "k") as service:
        for message in ("《喜宴》和《好人》的导演是谁？", "《好人》和《喜宴》的导演是谁？"):
            both = ask(service, message)
            assert both.state is State.ANSWERED
            assert both.answer == "《好人》（1993）的导演是一位导演。没有存过“喜宴”的资料，TMDB 现在也没有给出答案。"
            assert both.problem
        like = ask(service, "和《好人》类似的电影有哪些")
        assert (like.state, like.answer[:11]) == (State.ANSWERED, "《好人》（1993）。")


@pytest.mark.postgres
@pytest.mark.parametrize("why", ["too old", "gone", "another year", "another language", "a namesake that is a stub"])
def test_what_the_store_cannot_say_is_asked(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path, why: str
):
    keep(store, film(), age=timedelta(days=181 if why == "too old" else 1))
    more: dict[str, Any] = {"language": "en-US"} if why == "another language" else {}
    message = "《好人》（2001）的导演是谁？" if why == "another year" else ASKED
    if why == "gone":
        store.write(lambda writer: writer.gone(EntityKey(EntityType.MOVIE, 1)))
    if why == "a namesake that is a stub":
        known = [{"id": 2, "title": "好人", "popularity": 500.0, "release_date": "2001-01-01"}]
        store.write(lambda writer: writer.mention(EntityType.MOVIE, known, "zh-CN", datetime.now(UTC)))
    with serving(server, tmp_path, store_url) as service:
        assert ask(service, message, **more).source != "store"
    assert server.count("/search/multi") == 1


@pytest.mark.postgres
def test_a_film_that_was_asked_for_is_known_from_then_on_with_its_namesakes(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    with serving(server, tmp_path, store_url, enrichment_async_write_enable=False) as service:
        first = ask(service, "《喜宴》的导演是谁？")
        assert (first.source, server.count("/search/multi")) == ("tmdb", 1)
    with serving(server, tmp_path, store_url) as service:  # in any process
        again = ask(service, "《喜宴》的导演是谁？")
        other = ask(service, "《喜宴》的主演有谁？")
    assert (again.source, again.answer, again.uncertain) == ("store", first.answer, first.uncertain)
    assert other.source == "store"
    assert len(again.candidates_top3) == len(first.candidates_top3) == 2
    assert (server.count("/search/multi"), server.count("/movie/9261")) == (1, 1)


@pytest.mark.parametrize("url", ["", STOPPED])
def test_fifty_who_ask_the_same_at_once_share_two_requests(server: TmdbServer, tmp_path: Path, url: str):
    server.seconds = 0.1

    async def crowd(service: TMDBEnrichmentService) -> list[EnrichmentResult]:
        await service.enrich_query("今天天气怎么样")
        return await asyncio.gather(*(service.enrich_query("《喜宴》的导演是谁？", **WHO) for _ in range(50)))

    with serving(server, tmp_path, url) as service:
        found = asyncio.run(crowd(service))
    assert {each.state for each in found} == {State.ANSWERED}
    assert (server.count("/search/multi"), server.count("/movie/9261")) == (1, 1)


def test_requests_under_way_are_shared_by_different_questions_and_so_are_their_errors():
    flights, inside, go_on = ThreadFlights(), threading.Event(), threading.Event()
    found: list[object] = []

    def work() -> str:
        inside.set()
        assert go_on.wait(30)
        if len(flights._flights) > 1:
            raise NotFound("tmdb", "none")
        return "answer"

    def fly(key: str) -> None:
        try:
            found.append(flights.fly(key, work))
        except NotFound as error:
            found.append(error)

    def crowd(key: str) -> None:
        threads = [threading.Thread(target=fly, args=(key,)) for _ in range(3)]
        threads[0].start()
        assert inside.wait(30)
        for thread in threads[1:]:
            thread.start()
        while len(flights._flights[key]._condition._waiters) < 2:  # type: ignore[attr-defined]
            pass
        go_on.set()
        for thread in threads:
            thread.join(30)
        assert key not in flights

    crowd("a")
    assert found == ["answer"] * 3
    found.clear()
    inside.clear()
    go_on.clear()
    flights._flights["another"] = None  # type: ignore[assignment]
    crowd("b")
    assert len(found) == 3
    assert len({id(error) for error in found}) == 1


@pytest.mark.postgres
def test_different_questions_than_can_be_answered_are_refused_at_once_and_those_in_the_store_never(
    server: TmdbServer, store: PostgresTmdbStore, store_url: str, tmp_path: Path
):
    keep(store, film())

    # Names with nothing to simplify or to cut off: those are searched twice.
    possible = (f"无此{chr(number)}影" for number in range(0x4E00, 0x9FA5))
    names = list(islice((name for name in possible if parse_title(name).base == name), 200))

    async def crowd(service: TMDBEnrichmentService) -> tuple[list[EnrichmentResult], list[EnrichmentResult]]:
        others = [service.enrich_query(f"《{name}》的导演是谁？", **WHO) for name in names]
        known = [service.enrich_query(ASKED, **WHO) for _ in range(20)]
        found = await asyncio.gather(*others, *known)
        return [*found[:200]], [*found[200:]]

    with serving(server, tmp_path, store_url) as service:
        others, known = asyncio.run(crowd(service))
    assert {each.state for each in known} == {State.ANSWERED}
    refused = [each for each in others if each.state is State.REFUSED]
    assert len(refused) >= 150
    assert all(each.retry_after and 1 <= each.retry_after <= 31 for each in refused)
    assert all(f"请在 {each.retry_after} 秒后再问" in each.answer for each in refused)
    assert {each.persistence for each in refused} == {"skipped"}
    assert server.count("/search/multi") <= 200 - len(refused), "nothing was requested for them"


def test_a_database_that_hangs_is_not_waited_for_and_not_asked_again(monkeypatch: pytest.MonkeyPatch, clock: FakeClock):
    class Hanging:
        asked, go_on = 0, threading.Event()

        @contextmanager
        def lookup(self) -> Iterator[None]:
            self.asked += 1
            self.go_on.wait(30)
            raise OSError
            yield

    monkeypatch.setattr(known_answers, "LOOKUP_SECONDS", 0.05)
    store: Any = Hanging()
    known = StoredTitles(store, clock, timedelta(days=150))
    key = EntityKey(EntityType.MOVIE, 1)
    assert asyncio.run(known.film(key, "zh-CN")) is None
    assert known.is_down
    assert asyncio.run(known.film(key, "zh-CN")) is None
    assert known.answer(key, "zh-CN") is None
    assert store.asked == 1
    store.go_on.set()
    known.close()


@pytest.mark.postgres
def test_what_a_search_lists_is_dated_by_the_answer_beside_it(store: PostgresTmdbStore):
    at = datetime.now(UTC) - timedelta(days=9)
    item = {"id": 2, "media_type": "movie", "title": "好人", "popularity": 1.0}
    payload = {"type": "movie", "data": film(), "fetched_at": at.isoformat()}
    asyncio.run(
        store.persist_enrichment(
            user_id="u",
            session_id="s",
            query_text="q",
            tmdb_endpoint="/search/multi",
            extracted_entities=[],
            disambiguation=[],
            payloads=[payload],
            multi_results_raw=[{"results": [item]}, {"results": [{"media_type": "person", "id": 9, "name": "人"}]}],
        )
    )
    listed = rows(store, "SELECT tmdb_id, title, fetched_at, listed_at FROM tmdb.movies WHERE data_state = 'stub'")
    assert listed == [(2, "好人", at, at)]
    assert rows(store, "SELECT name FROM tmdb.people WHERE tmdb_id = 9") == [("人",)]
    assert store.write(lambda writer: isinstance(writer, EntityWriter))
