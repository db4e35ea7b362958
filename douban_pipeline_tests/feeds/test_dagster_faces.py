"""The code location: its assets, checks, jobs of people and sensor, through Dagster, on a real server and database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import insert, update

from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds.checks import checks
from douban_pipeline.feeds.definitions import build_defs
from douban_pipeline.feeds.reading.sources import sources_page
from douban_pipeline.feeds.resources import POOL_LIMITS
from douban_pipeline.feeds.schedules import schedules_for
from douban_pipeline.feeds.sensors import due_feeds_sensor, idle_reason
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.store import sources
from douban_pipeline.feeds.store.tables import entry, poll, source, stats
from douban_pipeline.feeds.types import Gap, GapReason, SourceState
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, HandClock, Stage, given_settings, hourly, stage


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Stage]:
    channels = {
        "news": SourceStandIn("rss", hourly(12), "新闻"),
        "site": SourceStandIn("maccms", hourly(4), "资源站"),
        "login": SourceStandIn("rss", hourly(2), fault="unauthorised"),
    }
    with stage(tmp_path, channels, profile="budget") as opened:
        yield opened


def run(at: Stage, instance: dg.DagsterInstance, job: str, **config: Any) -> dg.ExecuteInProcessResult:
    defs = build_defs(settings=at.services.settings, resource_overrides={"services": at.services})
    ops = {name: {"config": values} for name, values in config.items()}
    found = defs.get_repository_def().get_job(job)
    return found.execute_in_process(instance=instance, raise_on_error=False, run_config={"ops": ops})


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {each.check_name: each.passed for each in result.get_asset_check_evaluations()}


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    [found] = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in found.metadata.items()}


def test_sources_are_followed_polled_analysed_and_shown(at: Stage, instance: dg.DagsterInstance) -> None:
    given = [{"url": at.server.url("news")}, {"url": at.server.url("site"), "kind": "maccms", "title": "资源站"}]
    given.append({"url": at.server.url("login"), "title": "<b>登录</b>"})
    assert run(at, instance, "follow_sources", store_sources={"sources": given}).success
    with at.services.engine.connect() as connection:
        assert not sources.all_sources(connection)  # a dry run by default
    assert run(at, instance, "follow_sources", store_sources={"sources": given, "dry_run": False}).success
    at.make_due()
    polled = run(at, instance, "poll_feeds")
    assert polled.success
    found = metadata(polled, "feed_polls")
    assert (found["polled"], found["hit"], found["failed"]) == (3, 2, 1)
    assert metadata(polled, "feed_entries")["entries"] == 12 + 3
    assert outcome(polled) == {
        "no_source_starved": True,
        "every_source_planned": True,
        "hosts_within_limits": True,
        "errors_explained": False,
        "hit_rate_in_range": True,
        "nothing_left_unread": True,
        "entries_not_doubled": True,
    }
    reviewed = run(at, instance, "review_feeds")
    assert reviewed.success
    assert metadata(reviewed, "feed_cadence")["budget_polls_a_day"] == 72
    page = Path(metadata(reviewed, "feeds_page")["path"]).read_text(encoding="utf-8")
    listed = sources_page(at.services, words="", state="", folder=None, after="")
    assert "新闻" in listed
    assert 'svg class="hours"' in listed
    for shown in (page, listed):
        assert "&lt;b&gt;登录" in shown
        assert "<b>登录" not in shown
        # Why a source fails is said in Chinese, whatever is stored.
        assert "要求登录，或凭据已失效（HTTP 401）" in shown
        assert "unauthorised" not in shown
        assert "它要求登录：写好凭据" in shown


def test_people_pause_resume_poll_and_import(at: Stage, instance: dg.DagsterInstance) -> None:
    [news] = at.follow("news")
    assert not run(at, instance, "pause_sources", change_states={"sources": ["news"], "dry_run": False}).success
    reason = {"sources": ["news"], "dry_run": False, "reason": "改版"}
    assert run(at, instance, "pause_sources", change_states=reason).success
    assert at.source(news)["state"] == SourceState.PAUSED.value
    at.clock.at += 10 * DAY
    assert at.poll().polled == 0
    assert run(
        at, instance, "pause_sources", change_states={"sources": [news], "dry_run": False, "resume": True}
    ).success
    at.poll()
    # Asked a second time although it is not due.
    assert run(at, instance, "poll_sources_now", poll_now={"dry_run": False, "sources": ["news"]}).success
    assert at.stats(news)["check_count"] == 2
    assert not run(at, instance, "poll_sources_now", poll_now={"dry_run": False, "sources": ["nobody"]}).success
    outline = f'<opml><body><outline xmlUrl="{at.server.url("site")}" text="S"/></body></opml>'
    assert run(at, instance, "import_opml", import_outline={"opml": outline, "dry_run": False}).success
    with at.services.engine.connect() as connection:
        assert [each.title for each in sources.all_sources(connection)] == ["S", "news"]


def test_the_sensor_says_why_it_does_not_launch_and_how_many_are_due(at: Stage, instance: dg.DagsterInstance) -> None:
    def tick() -> Any:
        context = dg.build_sensor_context(instance=instance, resources={"services": at.services})
        return due_feeds_sensor(context)

    assert "没有到期的来源" in tick().skip_message
    [news] = at.follow("news")
    with at.services.engine.begin() as connection:
        connection.execute(update(stats).values(next_due_at=START - 5))
    assert "1 个来源到期，最早的已等 5 秒" in tick().skip_message
    at.clock.at += 60
    request = tick()
    assert request.tags["feeds/due"] == "1"
    with at.services.engine.begin() as connection:
        connection.execute(update(stats).where(stats.c.source_id == news).values(next_due_at=START + HOUR))
    assert "下一个在 2026-" in tick().skip_message
    assert idle_reason(20, 0) is None
    assert idle_reason(0, 999) == "没有到期的来源"


@pytest.mark.parametrize("url", ["mysql+pymysql://root@127.0.0.1:1/x", "postgresql+psycopg://x@127.0.0.1:1/x"])
def test_the_sensor_says_that_its_database_is_away_and_launches_nothing(
    tmp_path: Path, instance: dg.DagsterInstance, url: str
) -> None:
    services = open_services(given_settings(tmp_path, database_url=url), HandClock())
    context = dg.build_sensor_context(instance=instance, resources={"services": services})
    skipped = due_feeds_sensor(context)
    assert isinstance(skipped, dg.SkipReason)
    assert skipped.skip_message is not None
    assert "数据库无法读取，没有启动抓取；恢复后自动继续" in skipped.skip_message
    assert "127.0.0.1" in skipped.skip_message
    services.close()


@pytest.mark.mariadb
def test_the_sensor_says_that_its_tables_are_missing(
    instance: dg.DagsterInstance, tmp_path: Path, mariadb_url: str
) -> None:
    services = open_services(given_settings(tmp_path, database_url=mariadb_url), HandClock())
    context = dg.build_sensor_context(instance=instance, resources={"services": services})
    skipped = due_feeds_sensor(context)
    assert isinstance(skipped, dg.SkipReason)
    assert "setup --system feeds" in str(skipped.skip_message)
    services.close()


def test_the_hourly_review_analyses_every_source(at: Stage, instance: dg.DagsterInstance) -> None:
    [news], [site] = at.follow("news"), at.follow("site", kind="maccms")
    at.poll()
    with at.services.engine.begin() as connection:
        connection.execute(update(stats).values(cadence="P6", known_count=0))
    reviewed = run(at, instance, "review_feeds")
    assert (metadata(reviewed, "feed_cadence")["sources"], metadata(reviewed, "feed_cadence")["changed"]) == (2, 2)
    assert [at.stats(each)["known_count"] for each in (news, site)] == [12, 3]
    [schedule] = [each for each in schedules_for("Asia/Shanghai") if each.job_name == "review_feeds"]
    assert schedule.cron_schedule == "7 * * * *"


def test_checks_find_what_was_planted(at: Stage, instance: dg.DagsterInstance) -> None:
    [news] = at.follow("news")
    at.poll()
    row = {
        **dict.fromkeys(("guid", "link", "summary"), "x"),
        "source_id": news,
        "link_hash": "l",
        "content_hash": "c",
        "published_at": START,
        "found_at": START,
        "updated_at": START,
    }
    polls = {"source_id": news, "host": "h", "at": START, "outcome": "hit"}
    with at.services.engine.begin() as connection:
        connection.execute(insert(entry), [{**row, "guid_hash": "1"}, {**row, "guid_hash": "2"}])
        connection.execute(insert(poll), [polls] * 250)
        late = {"next_due_at": START - DAY, "fail_count": 4, "error_kind": "other failure", "last_error": "?"}
        connection.execute(update(stats).values(**late, lease_token="x", lease_until=START + HOUR // 2))
        gap = Gap(START, 4, GapReason.LIMIT).to_json()
        connection.execute(update(source).values(gap=gap))
    limited = at.services.settings.model_copy(update={"requests_per_minute": 100})
    object.__setattr__(at.services, "settings", limited)
    result = run(at, instance, "poll_feeds")
    assert outcome(result) == dict.fromkeys(outcome(result), False) | {"every_source_planned": True}
    assert len(outcome(result)) == 7
    assert result.success  # they all only warn: the data of others are in order
    assert "早该抓取" in metadata(result, "feed_polls")["alerts"]


def test_old_polls_and_answers_go_and_entries_stay(at: Stage, instance: dg.DagsterInstance) -> None:
    [news] = at.follow("news")
    at.poll()
    at.clock.sleep(timedelta(days=31).total_seconds())
    polls = len(at.polls(news))
    assert polls
    assert run(at, instance, "prune_feeds", prune={"dry_run": True}).success
    assert len(at.polls(news)) == polls
    assert run(at, instance, "prune_feeds", prune={"dry_run": False}).success
    assert at.polls(news) == []
    assert len(at.entries(news)) == 12


def test_the_location_loads_and_its_runs_carry_its_name() -> None:
    from douban_pipeline.locations.feeds import defs

    repository = defs.get_repository_def()
    names = {job for job in repository.job_names if not job.startswith("__")}
    assert names >= {"poll_feeds", "review_feeds", "follow_sources", "pause_sources", "poll_sources_now", "import_opml"}
    assert all(repository.get_job(job).tags["system"] == "feeds" for job in names)
    assert all(pool.startswith("feeds_") for pool in POOL_LIMITS)
    assert {spec.name for check in checks for spec in check.check_specs} >= {"no_source_starved", "entries_not_doubled"}
