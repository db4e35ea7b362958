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

from douban_pipeline.demo.stand_ins.tmdb_server import TmdbFault, TmdbServer
from douban_pipeline.tmdb import guards
from douban_pipeline.tmdb.definitions import build_defs
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.locations import add_run, location_origin
from douban_pipeline_tests.tmdb.given import KEY, actor, answer, cast, crew, movie, show
from douban_pipeline_tests.tmdb.location import exchange, execute, metadata, run

pytestmark = pytest.mark.postgres
NOW = datetime.now(UTC)

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
def services(settings: TmdbSettings) -> Iterator[TmdbServices]:
    opened = open_services(settings)
    yield opened
    opened.close()


def pruned(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [found] = [each for each in result.all_node_events if each.is_successful_output]
    return {name: value.value for name, value in found.step_output_data.metadata.items()}


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}


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
    dry = pruned(run(services, instance, "tmdb_retention", delete_outdated={"dry_run": True}))
    assert (dry["requests"], dry["outbox_rows"], dry["answers_made_stubs"], dry["dry_run"]) == (1, 0, 0, True)
    assert execute(store, "SELECT count(*) FROM tmdb.enrichment_requests") == [(3,)]
    assert pruned(run(services, instance, "tmdb_retention", delete_outdated={"dry_run": False})) == {
        **dry,
        "dry_run": False,
    }
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
