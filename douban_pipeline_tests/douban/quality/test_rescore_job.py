"""The job as a person launches it: a prefilled launchpad, every mistake at once, and a report that reads."""

from __future__ import annotations

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.core import http
from douban_pipeline.douban.quality.jobs import RescoreConfig, jobs_for
from douban_pipeline_tests.douban.quality.test_library_replay import video_for
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of
from douban_pipeline_tests.harness.fixtures.shelf import Shelf


@pytest.fixture
def scenario(stage):
    """Video 4 is linked by itself; 5 and 6 wait for a person, 6 under a lock."""
    found = stage([row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6)], FILMS)
    shelf = Shelf(found.library)
    for entry, vod_id in ((RIVER, 4), (WHALE, 5), (TRAM, 6)):
        shelf.judged(video_for(entry, vod_id), [entry])
    verdict = found.library.tables.verdict
    waits = {"verdict": "REVIEW", "douban_id": 0, "reasons": ["BELOW_CONFIRM"], "explanation": "得分 80.0"}
    found.library.execute(sa.update(verdict).where(verdict.c.vod_id.in_([5, 6])).values(**waits))
    later = found.clock.now().replace(year=2030)
    for vod_id in (4, 5, 6):
        found.library.set_state(vod_id, douban_next_sync_at=later)
    for vod_id in (5, 6):
        found.library.set_state(vod_id, douban_review_status="REVIEW", vod_douban_id=0, douban_id_source="")
    found.library.set_state(6, douban_id_locked=True)
    return found


def rescore(scenario, **config):
    return scenario.launch("rescore_library", {"rescore": {"config": config}})


def everything(scenario):
    tables = scenario.library.tables.metadata.sorted_tables
    return [scenario.library.query(sa.select(table)) for table in tables], scenario.library.all_bytes()


def test_the_launchpad_opens_with_the_settings_in_force():
    settings = GivenSettings(confirm_score=88, match_profile="calibrated", score_weights="director=14")
    job, _ = jobs_for(settings)
    config = job.run_config["ops"]["rescore"]["config"]
    assert set(config) == set(RescoreConfig.model_fields)
    assert all(value is not None for value in config.values()), "everything is filled in"
    assert (config["profile"], config["confirm_score"], config["weight_director"]) == ("calibrated", 88.0, 14.0)
    assert (config["queue_changed"], config["shards"], config["max_videos"]) == (False, [], 0)
    assert dg.validate_run_config(job, job.run_config)


def test_what_would_change_is_reported_and_nothing_is_changed(scenario, monkeypatch):
    def forbidden(*_args, **_options):
        raise AssertionError("a replay makes no request")

    monkeypatch.setattr(http.Fetcher, "__init__", forbidden)
    before = everything(scenario)
    run = rescore(scenario, confirm_score=103)
    assert run.success
    assert (run.output["replayed"], run.output["changed"], run.output["lost"]) == (3, 1, 0)
    assert (run.output["confirmed_before"], run.output["confirmed_after"]) == (1, 0)
    assert "自动确认 → 待审核" in run.output["examples"]
    assert "[90000101](https://movie.douban.com/subject/90000101/)" in run.output["examples"]
    assert "BELOW\\_CONFIRM" in run.output["reasons"]
    assert "shelf" in run.output["judged_by"]
    assert run.output["config"]["confirm_score"] == 103
    assert run.output["microseconds_per_video"] > 0
    assert everything(scenario) == before
    assert scenario.upstream.requests.count("douban") == 0


def test_changed_videos_come_due_on_request_only(scenario):
    now = scenario.clock.now()
    assert rescore(scenario).output["queued"] == 0
    before = scenario.library.all_bytes()
    run = rescore(scenario, queue_changed=True)
    assert (run.output["changed"], run.output["queued"]) == (2, 1)
    due = {vod_id for vod_id, state in scenario.library.states().items() if state["douban_next_sync_at"] <= now}
    assert due == {5}, "4 is linked and 6 is locked"
    assert scenario.library.all_bytes() == before
    assert rescore(scenario, queue_changed=True).output["queued"] == 0


def test_every_mistake_is_reported_at_once(scenario):
    before = everything(scenario)
    run = rescore(
        scenario,
        profile="best",
        confirm_score=60,
        title_floor=2,
        year_gap=1,
        weight_actors=-1,
        shards=[64],
        max_videos=-1,
        since_days=-2,
        examples=51,
    )
    assert not run.success
    assert run.failure.split("\n- ")[1:] == [
        "profile: 只能是 plan 或 calibrated，现为 'best'",
        "title_floor: 应在 0 到 1 之间，现为 2",
        "year_gap: 应在 2 到 50 之间，现为 1",
        "weight_actors: 应在 0 到 1000 之间，现为 -1",
        "shards: 应在 0 到 63 之间，现为 64",
        "max_videos: 应在 0 到 1e+09 之间，现为 -1",
        "since_days: 应在 0 到 36500 之间，现为 -2",
        "examples: 应在 0 到 50 之间，现为 51",
        "review_score: 不得高于 confirm_score（60），现为 70",
    ]
    assert everything(scenario) == before


def test_a_secret_of_the_environment_cannot_be_written_down(scenario, monkeypatch):
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    run = rescore(scenario, profile={"env": "SITE_DATABASE_PASSWORD"})
    assert run.failure.endswith("配置中不得引用环境变量：SITE_DATABASE_PASSWORD")
    assert "geheim" not in str(run.result.all_events)


@pytest.mark.parametrize("profile", ["plan", "calibrated"])
def test_what_the_chain_has_judged_comes_out_the_same(stage, profile):
    thin = {"vod_director": "", "vod_actor": "", "vod_class": ""}
    rows = [row_of(RIVER, 4), row_of(WHALE, 5, **thin), row_of(TRAM, 6, vod_douban_id=90_000_999), row_of(RIVER, 7)]
    rows += [row_of(TRAM, 8, vod_name="从未有过的片名"), row_of(WHALE, 9, vod_year="1990")]
    scenario = stage(rows, FILMS, match_profile=profile)
    scenario.library.set_state(6, douban_review_status="REVIEW")
    assert scenario.play().success
    scenario.clock.advance(days=1)
    before = everything(scenario)
    asked = scenario.upstream.requests.count("douban"), scenario.upstream.requests.count("search")
    run = rescore(scenario)
    assert (run.output["replayed"], run.output["changed"], run.output["lost"]) == (6, 0, 0), run.output["examples"]
    assert run.output["confirmed_before"] > 0
    assert run.output["reasons"] == "—", "for the same reasons, too"
    assert everything(scenario) == before
    assert (scenario.upstream.requests.count("douban"), scenario.upstream.requests.count("search")) == asked
