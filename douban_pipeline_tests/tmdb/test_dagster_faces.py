"""The system in Dagster: assets, checks, sensor and jobs, on a real store, a real graph and the stand-in of the API."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import SecretStr

from douban_pipeline.demo.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline.tmdb import guards
from douban_pipeline.tmdb.definitions import build_defs
from douban_pipeline.tmdb.embedded import GraphAddress
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.linking import link_videos
from douban_pipeline.tmdb.running import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import build_library, video
from douban_pipeline_tests.harness.fixtures.locations import add_run, location_origin
from douban_pipeline_tests.tmdb.given import actor, answer, cast, crew, movie, show

pytestmark = pytest.mark.postgres
NOW = datetime.now(UTC)
KEY = "a-key"


def exchange(path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
    return {"path": path, "query": query, "status": 200, "body": body}


RECORDINGS = [
    exchange("/3/movie/1", movie(1, cast(5, "c1"), crew(6, "c2"), title="Renamed")),
    exchange("/3/tv/2", {**show(2, cast(5, "c3")), "aggregate_credits": {"cast": [], "crew": []}}),
    exchange("/3/person/5", actor(5)),
    exchange(
        "/3/movie/changes", {"results": [{"id": 1}, {"id": 999}], "page": 1, "total_pages": 1}, start_date="2026-11-20"
    ),
]


@pytest.fixture
def server() -> Iterator[TmdbServer]:
    with TmdbServer(RECORDINGS, key=KEY) as running:
        yield running


@pytest.fixture
def settings(store_url: str, graph_address: GraphAddress, server: TmdbServer, tmp_path: Path) -> TmdbSettings:
    given: dict[str, Any] = {
        "home": tmp_path,
        "database_url": SecretStr(store_url),
        "graph_uri": graph_address.uri,
        "graph_user": graph_address.user,
        "graph_password": SecretStr(graph_address.password),
        "graph_database": graph_address.database,
        "api_url": server.api_url,
        "api_key": SecretStr(KEY),
        "requests_per_second": 1000.0,
        "request_timeout_seconds": 2.0,
    }
    return TmdbSettings(_env_file=None, **given)


@pytest.fixture
def services(settings: TmdbSettings) -> Iterator[TmdbServices]:
    opened = open_services(settings)
    yield opened
    opened.close()


def run(
    services: TmdbServices, instance: dg.DagsterInstance, job: str, day: str = "", **config: Any
) -> dg.ExecuteInProcessResult:
    defs = build_defs(settings=services.settings, resource_overrides={"services": services})
    ops = {name: {"config": values} for name, values in config.items()}
    partition = {"partition_key": day} if day else {}
    found = defs.get_repository_def().get_job(job)
    return found.execute_in_process(
        instance=instance, raise_on_error=False, run_config={"ops": ops} if ops else {}, **partition
    )


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def pruned(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [found] = [each for each in result.all_node_events if each.is_successful_output]
    return {name: value.value for name, value in found.step_output_data.metadata.items()}


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}


def execute(store: PostgresTmdbStore, statement: str) -> list[tuple[Any, ...]]:
    with store.transaction() as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_a_change_at_tmdb_arrives_in_the_graph(
    services: TmdbServices, instance: dg.DagsterInstance, target: GraphTarget, server: TmdbServer
) -> None:
    store = services.store
    store.persist_payloads([answer("movie", movie(1, cast(5, "c1"))), answer("movie", movie(3))])
    execute(store, "UPDATE tmdb.movies SET fetched_at = '2026-11-01'")
    assert metadata(run(services, instance, "sync_tmdb_graph"))["written"] == 2
    found = metadata(run(services, instance, "note_tmdb_changes", "2026-11-20"))
    assert (found["movie_ids"], found["movie_due"], found["tv_ids"]) == (2, 1, 0)

    refreshed = run(services, instance, "refresh_tmdb_entities")
    assert metadata(refreshed)["changed_in_graph"] == 1
    assert outcome(refreshed) == {
        "schema_at_head": True,
        "raw_complete": True,
        "nothing_older_than_terms_allow": True,
        "no_relations_in_store": True,
    }
    assert server.count("/movie/3") == 0, "what did not change is not asked for"
    synced = run(services, instance, "sync_tmdb_graph")
    assert (metadata(synced)["written"], metadata(synced)["outbox_waiting"]) == (1, 0)
    assert "data:image/svg+xml" in metadata(synced)["plots"]
    assert outcome(synced) == {"outbox_keeps_up": True, "graph_agrees_with_store": True}
    assert target.ask("MATCH (m:Movie {tmdb_id: 1}) RETURN m.title AS t") == [{"t": "Renamed"}]
    assert metadata(run(services, instance, "refresh_tmdb_entities"))["fetched"] == 0, "nothing is due any more"


def test_stubs_that_are_wanted_come_first_and_what_is_gone_is_marked(
    services: TmdbServices, instance: dg.DagsterInstance
) -> None:
    store = services.store
    store.persist_payloads([answer("movie", movie(8, cast(7, "c7"))), answer("movie", movie(3))])
    execute(store, "UPDATE tmdb.movies SET fetched_at = now() - interval '170 days'")
    execute(store, "INSERT INTO tmdb.tv_shows (tmdb_id, data_state) VALUES (2, 'stub'), (4, 'stub')")
    execute(
        store,
        "INSERT INTO tmdb.vod_link (vod_id, media_type, tmdb_id, state) "
        "VALUES (1, 'tv', 2, 'confirmed'), (2, 'tv', 4, 'review')",
    )
    found = metadata(run(services, instance, "refresh_tmdb_entities"))
    assert (found["new"], found["gone"], found["left"]) == (1, 2, 0)
    assert execute(store, "SELECT tmdb_id FROM tmdb.tv_shows WHERE data_state = 'full'") == [(2,)]
    assert execute(store, "SELECT count(*) FROM tmdb.movies WHERE gone_at IS NOT NULL") == [(2,)]


def test_a_source_that_is_ill_ends_a_run_early_and_nothing_is_lost(
    services: TmdbServices, instance: dg.DagsterInstance, server: TmdbServer
) -> None:
    store = services.store
    store.persist_payloads([answer("movie", movie(1))])
    execute(store, "UPDATE tmdb.movies SET fetched_at = now() - interval '170 days'")
    server.faults.append(TmdbFault("refused_key"))
    result = run(services, instance, "refresh_tmdb_entities")
    assert result.success
    assert metadata(result)["ended_early_because"] != "—"
    assert execute(store, "SELECT count(*) FROM tmdb.movies WHERE gone_at IS NULL") == [(1,)]


def test_translations_that_answers_brought_get_rows_of_their_own(
    services: TmdbServices, instance: dg.DagsterInstance
) -> None:
    texts = [{"iso_639_1": "en", "iso_3166_1": "US", "data": {"title": "A Wedding", "overview": "…"}}]
    services.store.persist_payloads([answer("movie", movie(1, translations={"translations": texts}))])
    assert metadata(run(services, instance, "store_tmdb_translations"))["from_answers"] == 1
    found = execute(services.store, "SELECT tmdb_movie_id, language, title FROM tmdb.movie_translations")
    assert found == [(1, "en-US", "A Wedding")]
    assert metadata(run(services, instance, "store_tmdb_translations"))["from_answers"] == 0


def test_days_that_were_missed_are_made_up_for(settings: TmdbSettings, tmp_path: Path) -> None:
    repository = build_defs(settings=settings).get_repository_def()
    schedule = repository.get_schedule_def("daily_tmdb_changes")
    tick = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)

    def launched() -> list[str | None]:
        context = dg.build_schedule_context(kept, tick, repository_def=repository)
        return [request.partition_key for request in schedule.evaluate_tick(context).run_requests or ()]

    with dg.instance_for_test(temp_dir=str(tmp_path)) as kept:
        assert launched() == ["2026-11-20"]
        for day in ("2026-11-16", "2026-11-17", "2026-11-19"):
            kept.report_runless_asset_event(dg.AssetMaterialization("tmdb_changes", partition=day))
        assert launched() == ["2026-11-18", "2026-11-20"]


def test_while_the_graph_is_down_changes_wait(
    services: TmdbServices, instance: dg.DagsterInstance, settings: TmdbSettings, target: GraphTarget
) -> None:
    services.store.persist_payloads([answer("movie", movie(1, cast(5, "c1")))])
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = settings.model_copy(update={"graph_uri": f"bolt://127.0.0.1:{closed.getsockname()[1]}"})
        without = open_services(down, FakeClock(datetime.now(UTC) + timedelta(hours=2)))
        result = run(without, instance, "sync_tmdb_graph")
        without.close()
    assert metadata(result)["graph_down_because"] != "—"
    assert metadata(result)["outbox_waiting"] == 1
    assert not outcome(result)["outbox_keeps_up"], "it waits for two hours by that clock"
    assert metadata(run(services, instance, "sync_tmdb_graph"))["written"] == 1
    assert execute(services.store, "SELECT attempts FROM tmdb.neo4j_etl_outbox") == [(1,)]


def test_a_contested_credit_whose_claims_are_pending_is_no_difference(
    services: TmdbServices, instance: dg.DagsterInstance, target: GraphTarget
) -> None:
    store, later = services.store, NOW + timedelta(hours=1)
    newer = replace(answer("movie", movie(2, cast(5, "c1"))), fetched_at=later)
    store.persist_payloads([answer("movie", movie(1, cast(5, "c1"))), newer])
    assert outcome(run(services, instance, "sync_tmdb_graph"))["graph_agrees_with_store"]
    store.persist_payloads([replace(answer("movie", movie(2)), fetched_at=later)])
    engine = store.engine()
    with engine.connect() as connection:
        assert list(guards.differing_entities(services, connection)) == []
    engine.dispose()
    assert outcome(run(services, instance, "sync_tmdb_graph"))["graph_agrees_with_store"]


def test_checks_see_what_is_planted(services: TmdbServices, instance: dg.DagsterInstance, target: GraphTarget) -> None:
    store = services.store
    store.persist_payloads([answer("movie", movie(1, cast(5, "c1")))])
    run(services, instance, "sync_tmdb_graph")
    target.ask("MATCH (m:Movie {tmdb_id: 1}) RETURN m")
    with target._driver.session(database=target.database) as session:
        session.run("MATCH (:Person)-[e:ACTED_IN]->(:Movie {tmdb_id: 1}) DELETE e").consume()
    execute(
        store,
        "UPDATE tmdb.neo4j_etl_outbox SET processed_at = NULL, dead_at = now(), last_error = 'why' WHERE tmdb_id = 9",
    )
    found = outcome(run(services, instance, "sync_tmdb_graph"))
    assert found == {"outbox_keeps_up": True, "graph_agrees_with_store": False}
    execute(store, "UPDATE tmdb.movies SET fetched_at = now() - interval '181 days', changed_at = NULL, raw = '{}'")
    execute(store, "CREATE TABLE tmdb.acted_in (a int)")
    execute(store, "INSERT INTO tmdb.movies (tmdb_id, raw, raw_hash) VALUES (4, '{}', 'x')")
    try:
        result = run(services, instance, "look_at_tmdb")
    finally:
        execute(store, "DROP TABLE tmdb.acted_in")
    seen = outcome(result)
    assert (seen["raw_complete"], seen["nothing_older_than_terms_allow"]) == (False, False)
    assert (seen["no_relations_in_store"], seen["schema_at_head"]) == (False, True)


def test_a_day_s_questions_are_counted_for_good(services: TmdbServices, instance: dg.DagsterInstance) -> None:
    store, day = services.store, f"{NOW - timedelta(days=1):%F}"
    execute(
        store,
        "INSERT INTO tmdb.enrichment_requests "
        "(user_id, session_id, query_text, selected_tmdb_id, selected_score, duration_ms, created_at) VALUES "
        f"('u', 's', 'q', 1, 0.8, 10, '{day} 12:00Z'), ('u', 's', 'q', NULL, NULL, 30, '{day} 23:59Z'), "
        f"('v', 's', 'q', NULL, NULL, 30, now() - interval '40 days')",
    )
    found = metadata(run(services, instance, "count_tmdb_requests", day))
    assert (found["requests"], found["hits"], found["hit_rate"]) == (2, 1, 50)
    assert (found["ms_median"], found["mean_score"], found["users"]) == (20, 0.8, 1)
    assert "提问" in found["plots"]
    dry = pruned(run(services, instance, "tmdb_retention", delete_outdated={"dry_run": True}))
    assert (dry["requests"], dry["outbox_rows"], dry["answers_made_stubs"], dry["dry_run"]) == (1, 0, 0, True)
    assert execute(store, "SELECT count(*) FROM tmdb.enrichment_requests") == [(3,)]
    assert pruned(run(services, instance, "tmdb_retention")) == {**dry, "dry_run": False}
    assert execute(store, "SELECT count(*) FROM tmdb.enrichment_requests") == [(2,)]
    assert run(services, instance, "vacuum_tmdb").success


def test_people_forget_users_and_queue_again_what_was_put_aside(
    services: TmdbServices, instance: dg.DagsterInstance, target: GraphTarget
) -> None:
    store = services.store
    execute(store, "INSERT INTO tmdb.enrichment_requests (user_id, session_id, query_text) VALUES ('u', 's', 'q')")
    count = "SELECT count(*) FROM tmdb.enrichment_requests"
    assert run(services, instance, "forget_user", forget={"user_id": "u"}).success
    assert execute(store, count) == [(1,)]
    assert not run(services, instance, "forget_user", forget={"dry_run": False}).success
    assert not run(services, instance, "forget_user", forget={"conversation_id": "x"}).success
    assert run(services, instance, "forget_user", forget={"dry_run": False, "user_id": "u"}).success
    assert execute(store, count) == [(0,)]

    store.persist_payloads([answer("movie", movie(1, cast(5, "c1")))])
    execute(store, "UPDATE tmdb.neo4j_etl_outbox SET dead_at = now(), last_error = 'why'")
    assert run(services, instance, "requeue_outbox").success
    assert metadata(run(services, instance, "sync_tmdb_graph"))["written"] == 0
    assert run(services, instance, "requeue_outbox", requeue={"dry_run": False}).success
    assert metadata(run(services, instance, "sync_tmdb_graph"))["written"] == 1
    before = target.dump()
    assert run(services, instance, "rebuild_tmdb_graph", rebuild={"dry_run": False}).success
    assert target.dump() == before


def test_the_sensor_says_why_it_launches_nothing(
    services: TmdbServices, instance: dg.DagsterInstance, settings: TmdbSettings, server: TmdbServer
) -> None:
    def tick(given: TmdbSettings) -> Any:
        defs = build_defs(settings=given, resource_overrides={"services": services})
        repository = defs.get_repository_def()
        context = dg.build_sensor_context(instance, repository_def=repository)
        context._code_location_origin = location_origin("tmdb")
        return repository.get_sensor_def("outbox_backlog")(context)

    assert "没有等待写入图的变更" in tick(settings).skip_message
    assert "没有指定服务器" in tick(settings.model_copy(update={"database_url": SecretStr("")})).skip_message
    services.store.persist_payloads([answer("movie", movie(1))])
    launched = tick(settings)
    assert launched.tags["tmdb/due"] == "1"
    job = build_defs(settings=settings).get_repository_def().get_job("sync_tmdb_graph")
    add_run(instance, job, location="tmdb")
    assert "已有运行在进行" in tick(settings).skip_message


def test_everything_is_described_and_belongs_to_the_system(settings: TmdbSettings) -> None:
    repository = build_defs(settings=settings).get_repository_def()
    for spec in repository.asset_graph.asset_nodes:
        assert spec.description
        assert spec.group_name == "tmdb"
    for name in repository.job_names:
        job = repository.get_job(name)
        if not name.startswith("__"):
            assert job.description, name
            assert job.tags["system"] == "tmdb", name
    for each in (*repository.sensor_defs, *repository.schedule_defs):
        assert each.description, each.name


# --- the library's videos ---------------------------------------------------------------------------------------------


def detail(tmdb_id: int, title: str, year: int, **more: Any) -> dict[str, Any]:
    named = {"title": title, "original_title": title, "release_date": f"{year}-05-01", "runtime": 100}
    directed = [{"id": tmdb_id + 100, "name": f"{title}导演", "job": "Director", "credit_id": f"d{tmdb_id}"}]
    played = [{"id": tmdb_id + 200, "name": f"{title}主演", "character": "他", "credit_id": f"a{tmdb_id}"}]
    people = {"credits": {"cast": played, "crew": directed}}
    return {"id": tmdb_id, **named, "genres": [{"id": 18, "name": "剧情"}], "popularity": 3.0, **people, **more}


LIBRARY = [detail(11, "远方的灯塔", 2015), detail(12, "夜航船", 1999), detail(13, "夜航船", 2019)]


@pytest.fixture
def with_library(settings: TmdbSettings, tmp_path: Path) -> Iterator[TmdbServices]:
    url = f"sqlite:///{tmp_path / 'cms.sqlite'}"
    lighthouse = {"vod_director": "远方的灯塔导演", "vod_actor": "远方的灯塔主演", "vod_year": "2015"}
    videos = [
        video(1, vod_name="远方的灯塔 HD国语", type_id=6, **lighthouse),
        video(2, vod_name="夜航船", type_id=6, vod_year="", vod_director="", vod_actor=""),
        video(3, vod_name="没有人拍过的片子", type_id=6, vod_year="2020"),
    ]
    server = TmdbServer([exchange(f"/3/movie/{each['id']}", each) for each in LIBRARY], key=KEY)
    with build_library(url, videos), server:
        given = {"library_url": SecretStr(url), "api_url": server.api_url}
        opened = open_services(settings.model_copy(update=given))
        yield opened
        opened.close()


def test_videos_are_linked_by_the_gate_and_doubt_goes_to_a_person(
    with_library: TmdbServices, instance: dg.DagsterInstance
) -> None:
    services, store = with_library, with_library.store
    states = "SELECT vod_id, state FROM tmdb.vod_match ORDER BY 1"
    found = metadata(run(services, instance, "match_tmdb_videos"))
    assert execute(store, states) == [(1, "confirmed"), (2, "review"), (3, "none")]
    assert (found["confirmed_now"], found["review_now"], found["none_now"]) == (1, 1, 1)
    assert "movie/12" in found["doubtful"]
    assert "movie/13" in found["doubtful"]
    links = "SELECT vod_id, media_type, tmdb_id, state FROM tmdb.vod_link ORDER BY 1"
    assert execute(store, links)[0] == (1, "movie", 11, "confirmed")
    assert execute(store, "SELECT count(*) FROM tmdb.movies WHERE data_state = 'full'") == [(3,)]

    again = metadata(run(services, instance, "match_tmdb_videos"))
    assert again["confirmed_now"] + again["review_now"] + again["none_now"] == 0, "looked at a moment ago"
    chosen = {"vod_id": 2, "media_type": "movie", "tmdb_id": 13}
    given = {"reviewer": "小王", "decisions": [chosen]}
    assert run(services, instance, "decide_tmdb_matches", decide_links=given).success
    assert execute(store, links)[1][3] == "review", "a dry run keeps nothing"
    assert not run(services, instance, "decide_tmdb_matches", decide_links={"dry_run": False}).success
    stranger = {**given, "dry_run": False, "decisions": [{**chosen, "vod_id": 99}]}
    assert not run(services, instance, "decide_tmdb_matches", decide_links=stranger).success
    assert run(services, instance, "decide_tmdb_matches", decide_links={**given, "dry_run": False}).success
    assert execute(store, links)[1] == (2, "movie", 13, "confirmed")
    execute(store, "UPDATE tmdb.vod_match SET looked_at = now() - interval '40 days'")
    later = metadata(run(services, instance, "match_tmdb_videos"))
    assert (later["none_now"], later["review_now"]) == (1, 0), "what a person decided is not searched again"
    assert execute(store, links)[1] == (2, "movie", 13, "confirmed")


def test_videos_that_the_library_deleted_do_not_keep_others_from_being_searched_again(
    with_library: TmdbServices,
) -> None:
    services, store = with_library, with_library.store
    with services.client() as client:
        link_videos(services, client, most=10)
        execute(store, "UPDATE tmdb.vod_match SET looked_at = now() - make_interval(days => 50 - vod_id::int)")
        with services.library.begin() as connection:
            connection.exec_driver_sql("DELETE FROM mac_vod WHERE vod_id = 2")
        searched: list[int] = []
        for _ in range(2):
            link_videos(services, client, most=1, on_video=lambda match: searched.append(match.vod_id))
    assert searched == [3]


def test_without_a_key_or_a_library_runs_have_nothing_to_do(
    settings: TmdbSettings, instance: dg.DagsterInstance
) -> None:
    alone = settings.model_copy(update={"api_key": SecretStr("")})
    services = open_services(alone)
    for job, day in (
        ("note_tmdb_changes", "2026-11-20"),
        ("match_tmdb_videos", ""),
        ("refresh_tmdb_entities", ""),
        ("store_tmdb_translations", ""),
    ):
        result = run(services, instance, job, day)
        assert result.success
        assert "API_KEY" in metadata(result)["nothing_to_do"]
    services.close()
    tried = alone.model_copy(update={"database_url": SecretStr("")})
    for given, status in ((alone, "RUNNING"), (tried, "STOPPED")):
        schedules = build_defs(settings=given).get_repository_def().schedule_defs
        assert {each.default_status.name for each in schedules} == {status}
