"""Polling over real HTTP: sources of every kind, every fault, and none that stops the others."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from sqlalchemy import Connection, insert, select, text, update

from douban_pipeline.demo.stand_ins.feed_server import ACCOUNT, PASSWORD, SourceStandIn
from douban_pipeline.feeds import guards, subscriptions
from douban_pipeline.feeds.cadence_review import drop_old, review
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.reading.sources import sources_page
from douban_pipeline.feeds.reports import page
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.store import entries
from douban_pipeline.feeds.store.tables import entry, newcomer, snapshot, stats
from douban_pipeline.feeds.subscriptions import SourceRequest
from douban_pipeline.feeds.types import Entry, PollOutcome
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, HandClock, channels, given_settings, hourly, stage


def test_sources_of_every_kind_give_their_entries(tmp_path: Path) -> None:
    times = hourly(5)
    given = {form: SourceStandIn(form, times, f"{form} 频道") for form in ("rss", "atom", "jsonfeed", "maccms", "json")}
    options = {"path": "data.rows", "id": "no", "title": "name", "link": "href", "time": "at"}
    settings = {"werss_username": ACCOUNT, "werss_password": PASSWORD}
    with stage(tmp_path, {**given, "account": SourceStandIn("werss", times, "公众号")}, **settings) as at:
        services = open_services(given_settings(tmp_path, werss_url=at.server.base, **settings), at.clock)
        requests = [SourceRequest(url=at.server.url(name)) for name in ("rss", "atom", "jsonfeed")]
        requests.append(SourceRequest("maccms", at.server.url("maccms")))
        requests.append(SourceRequest("json", at.server.url("json"), options=options))
        requests.append(SourceRequest("werss", mp_id="account"))
        added = subscriptions.follow(services, requests, dry_run=False).added
        at.make_due()
        report = Poller(services, seconds=60).run()
        services.close()
        assert report.outcomes == {PollOutcome.HIT.value: 6}, report.problems
        for source in added:
            found = at.entries(source.source_id)
            expected = 4 if source.kind.value == "maccms" else 5
            assert len(found) == expected
            assert max(each["published_at"] for each in found) == int(times[-1])
            assert all(each["dated"] and each["title"] for each in found)
        titles = {at.source(source.source_id)["title"] for source in added}
        assert {"rss 频道", "atom 频道", "jsonfeed 频道", "公众号"} <= titles
        with at.services.engine.connect() as connection:
            waiting = connection.execute(select(newcomer.c.remote_id, newcomer.c.taken_at)).all()
        assert sorted(waiting) == [("1", None), ("2", None), ("4", None), ("6", None)]


def test_a_new_episode_is_a_publication_and_told_again(tmp_path: Path) -> None:
    with stage(tmp_path, channels(site=SourceStandIn("maccms", [*hourly(2), START + HOUR, START + 2 * HOUR]))) as at:
        [site] = at.follow("site", kind="maccms")
        at.poll()
        with at.services.engine.begin() as connection:
            connection.execute(update(newcomer).values(taken_at=START))
        at.clock.at = START + 3 * HOUR
        at.make_due()
        report = at.poll()
        assert (report.new, report.edited, report.handed_over) == (1, 1, 2)
        assert at.stats(site)["hit_count"] == 2
        with at.services.engine.connect() as connection:
            rows = connection.execute(select(newcomer).order_by(newcomer.c.newcomer_id)).all()
        assert ("1", True, None) in [(row.remote_id, row.changed, row.taken_at) for row in rows]
        assert any("第 3 集" in row.facts["vod_remarks"] for row in rows)


def test_nothing_new_is_asked_for_conditionally(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)), rows=SourceStandIn("json", hourly(3)))) as at:
        [news] = at.follow("news")
        [rows] = at.follow("rows", kind="json", options={"path": "data.rows", "id": "no"})
        at.poll()
        at.make_due()
        report = at.poll()
        # One says 304, the other sends the same answer again, which is not read twice.
        assert report.outcomes == {PollOutcome.UNCHANGED.value: 2}
        assert [(each.status, each.conditional) for each in at.server.seen if each.channel == "news"] == [
            (200, False),
            (304, True),
        ]
        assert (at.stats(news)["check_count"], at.stats(rows)["hit_count"]) == (2, 1)


def test_edited_entries_are_updated_and_changed_guids_do_not_double(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3), "旧名"))) as at:
        [news] = at.follow("news")
        at.poll()
        at.server.channels["news"] = SourceStandIn("rss", [*hourly(3), START + 1], "新名")
        at.clock.at += 60
        at.make_due()
        report = at.poll()
        assert (report.new, report.edited) == (1, 3)
        found = at.entries(news)
        assert len(found) == 4
        assert all("新名" in each["title"] for each in found)
        assert [each["published_at"] for each in found[:3]] == sorted({int(t) for t in hourly(3)}, reverse=True)


FAULTS = {
    "broken": ("answer unreadable", 15 * 60),
    "page": ("answer unreadable", 15 * 60),
    "empty": ("answer unreadable", 15 * 60),
    "bomb": ("answer unreadable", 15 * 60),
    "large": ("answer too large", 15 * 60),
    "hanging": ("no answer in time", 15 * 60),
    "failing": ("HTTP 5xx", 15 * 60),
    "forbidden": ("HTTP 403 forbidden", 12 * HOUR),
    "unauthorised": ("HTTP 401 unauthorised", 0),
    "gone": ("HTTP 410 gone", 15 * 60),
}


def test_every_fault_ends_in_a_clear_state_and_stops_no_other_source(tmp_path: Path) -> None:
    given = {name: SourceStandIn("rss", hourly(3), fault=name) for name in FAULTS}
    given["well"] = SourceStandIn("rss", hourly(3))
    with stage(tmp_path, given, request_timeout_seconds=3.0) as at:
        ids = dict(zip(given, at.follow(*given), strict=True))
        report = at.poll()
        assert report.outcomes == {PollOutcome.FAILED.value: len(FAULTS), PollOutcome.HIT.value: 1}
        for name, (kind, backoff) in FAULTS.items():
            row = at.stats(ids[name])
            assert (row["error_kind"], row["fail_count"], row["check_count"]) == (kind, 1, 1), name
            assert row["last_error"]
            if name != "gone":
                assert row["backoff_until"] - int(at.clock.at) <= backoff
                assert row["next_due_at"] >= int(at.clock.at) + 15 * 60 - 1
            assert not at.entries(ids[name])
        assert at.source(ids["gone"])["state"] == "gone"
        assert len(at.entries(ids["well"])) == 3
        assert at.poll().polled == 0


def test_an_answer_that_cannot_be_stored_is_its_source_s_failure_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, channels(bad=SourceStandIn("rss", hourly(3)), good=SourceStandIn("rss", hourly(3)))) as at:
        bad, good = at.follow("bad", "good")
        real = entries.store_entries

        def store(connection: Connection, source_id: str, given: Sequence[Entry], *rest: Any) -> entries.StoredEntries:
            broken = [replace(each, title="\ud800") for each in given] if source_id == bad else given
            return real(connection, source_id, broken, *rest)

        monkeypatch.setattr(entries, "store_entries", store)
        report = at.poll()
        assert report.outcomes == {PollOutcome.FAILED.value: 1, PollOutcome.HIT.value: 1}
        assert (at.stats(bad)["fail_count"], at.stats(bad)["lease_token"]) == (1, "")
        assert at.stats(bad)["next_due_at"] >= START + 15 * 60
        assert (len(at.entries(bad)), len(at.entries(good))) == (0, 3)


def test_a_refusal_that_asks_to_wait_is_heeded(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3), fault="missing", retry_after=5 * HOUR))) as at:
        [news] = at.follow("news")
        at.poll()
        assert at.stats(news)["error_kind"] == "HTTP 404 not found"
        assert at.stats(news)["next_due_at"] == START + 5 * HOUR


def test_a_throttling_host_is_left_alone_for_as_long_as_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.poller.WORKERS", 1)
    throttled = SourceStandIn("rss", hourly(3), fault="throttled", retry_after=7 * HOUR)
    given = {"busy": throttled, "other": SourceStandIn("rss", hourly(2))}
    with stage(tmp_path, given) as at:
        [busy] = at.follow("busy")
        at.poll()
        row = at.stats(busy)
        assert row["error_kind"] == "HTTP 429 too many requests"
        assert row["backoff_until"] >= START + 7 * HOUR
        # The host's gate is closed for its other sources too, which are put off and not counted as checked.
        [other] = at.follow("other")
        report = at.poll()
        assert report.outcomes == {PollOutcome.DEFERRED.value: 1}
        row = at.stats(other)
        assert (row["check_count"], row["fail_count"], row["lease_token"]) == (0, 0, "")
        assert row["next_due_at"] > at.clock.at


def test_a_manual_cadence_holds_until_three_publications_are_known(tmp_path: Path) -> None:
    given = channels(news=SourceStandIn("rss", [START - 9 * DAY, START - DAY, START + DAY, START + 2 * DAY]))
    with stage(tmp_path, given, profile="plan") as at:
        [news] = at.follow("news", cadence="P5")
        at.poll()
        row = at.stats(news)
        assert (row["why"]["cadence"], row["why"]["origin"]) == ("P5", "manual")
        assert 0.85 * 8 * HOUR <= row["next_due_at"] - START <= 1.15 * 8 * HOUR
        at.clock.at = START + 3 * DAY
        at.make_due()
        at.poll()
        row = at.stats(news)
        assert (row["known_count"], row["cadence"]) == (4, "P4")
        assert row["next_due_at"] - at.clock.at <= 8 * HOUR


def test_max_age_is_a_floor(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3), max_age=5 * HOUR))) as at:
        [news] = at.follow("news", cadence="P0")
        at.poll()
        assert at.stats(news)["next_due_at"] == START + 5 * HOUR


def test_delays_are_measured_from_the_second_look_on(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", [*hourly(2), START + 600]))) as at:
        [news] = at.follow("news")
        at.poll()
        at.clock.at = START + 900
        at.make_due()
        at.poll()
        assert [each["delay"] for each in at.polls(news)] == [None, 300]


def test_a_lost_lease_stores_nothing(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)))) as at:
        [news] = at.follow("news")
        poller = Poller(at.services, seconds=60)
        [claimed] = poller._claim("mine", START, 10, ())
        with at.services.engine.begin() as connection:
            connection.execute(update(stats).values(lease_token="another's"))
        assert poller.poll(claimed, "127.0.0.1", "mine") is None
        assert not at.entries(news)
        assert at.stats(news)["check_count"] == 0


def test_the_time_of_a_run_is_kept_and_leases_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.poller.WORKERS", 1)
    ticks = iter(range(0, 1000, 10))
    given = {f"n{number}": SourceStandIn("rss", hourly(2)) for number in range(12)}
    with stage(tmp_path, given) as at:
        at.follow(*given)
        report = Poller(at.services, seconds=60, monotonic=lambda: next(ticks)).run()
        assert 0 < report.polled < 12
        assert report.polled + report.left == 12
        with at.services.engine.connect() as connection:
            assert not connection.execute(select(stats.c.source_id).where(stats.c.lease_token != "")).all()


def test_who_stops_a_run_waits_for_the_requests_under_way_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {f"n{number}": SourceStandIn("rss", hourly(2)) for number in range(12)}
    polled = []
    poll = Poller.poll

    def interrupted(poller: Poller, *which: Any) -> Any:
        polled.append(which)
        if len(polled) == 1:
            time.sleep(0.5)  # until the main thread waits
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return poll(poller, *which)

    monkeypatch.setattr(Poller, "poll", interrupted)
    monkeypatch.setattr("douban_pipeline.feeds.poller.WORKERS", 1)
    with stage(tmp_path, given) as at:
        at.follow(*given)
        with pytest.raises(KeyboardInterrupt):
            Poller(at.services, seconds=60).run()
    assert len(polled) == 1


def test_the_budget_profile_says_why_and_costs_what_it_should(tmp_path: Path) -> None:
    given = {
        "often": SourceStandIn("rss", hourly(60), "often"),
        "rarely": SourceStandIn("rss", [START - 40 * DAY, START - 20 * DAY, START - 9 * DAY], "rarely"),
    }
    with stage(tmp_path, given, polls_per_source_per_day=12) as at:
        often, rarely = at.follow(*given)
        at.poll()
        at.make_due()
        at.poll()
        rows = [at.stats(each) for each in (often, rarely)]
        assert all(row["why"]["profile"] == "budget" for row in rows)
        waits = [row["next_due_at"] - START for row in rows]
        assert waits[0] < waits[1] <= DAY
        why = rows[0]["why"]
        assert why["expected"] > 0
        assert 0 < why["share"] < 1.5


@pytest.mark.parametrize(
    "damage",
    ["UPDATE source_stats SET why = '{not json'", "UPDATE source_stats SET fail_count = NULL, check_count = NULL"],
)
def test_a_damaged_row_stops_no_other_and_is_mended(tmp_path: Path, damage: str) -> None:
    with stage(tmp_path, {"one": SourceStandIn("rss", [60]), "two": SourceStandIn("rss", [60])}) as at:
        one, two = at.follow("one", "two")
        with at.services.engine.begin() as connection:
            connection.execute(text(f"{damage} WHERE source_id = :of"), {"of": one})
        at.poll()
        assert [len(at.polls(each)) for each in (one, two)] == [1, 1]
        assert at.stats(one)["check_count"] == 1


def test_a_source_that_cannot_be_read_is_set_aside_and_told_of(tmp_path: Path) -> None:
    with stage(tmp_path, {"one": SourceStandIn("rss", [60]), "two": SourceStandIn("rss", [60])}) as at:
        one, two = at.follow("one", "two")
        with at.services.engine.begin() as connection:
            connection.execute(text("UPDATE feed_source SET options = '{not json' WHERE source_id = :of"), {"of": one})
        at.poll()
        assert [len(at.polls(each)) for each in (one, two)] == [0, 1]
        with at.services.engine.connect() as connection:
            [told] = guards.unexplained(at.services, connection)
        assert "不是 JSON" in told.what
        # Once it is put right, it goes on by itself.
        with at.services.engine.begin() as connection:
            connection.execute(text("UPDATE feed_source SET options = '{}'"))
        at.clock.sleep(2 * 86_400)
        at.poll()
        assert len(at.polls(one)) == 1


def test_a_source_without_a_time_is_found(tmp_path: Path) -> None:
    with stage(tmp_path, {"one": SourceStandIn("rss", [60])}) as at:
        [one] = at.follow("one")
        with at.services.engine.begin() as connection:
            assert list(guards.never_polled(at.services, connection)) == []
            connection.execute(text("UPDATE source_stats SET next_due_at = NULL WHERE source_id = :of"), {"of": one})
            [told] = guards.never_polled(at.services, connection)
        assert "不会被抓取" in told.what


def test_answers_are_archived_and_clocks_may_be_other_than_the_machine_s(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)))) as at:
        assert isinstance(at.services.clock, HandClock)
        at.follow("news")
        at.poll()
        with at.services.engine.connect() as connection:
            [row] = connection.execute(select(snapshot.c.request_key, snapshot.c.status)).all()
        assert row.request_key.startswith("source rss-")
        assert row.status == 200


def test_polls_analysis_checks_and_page_work_on_every_engine(any_database_url: str, tmp_path: Path) -> None:
    given = channels(
        news=SourceStandIn("rss", [*hourly(40), START + 60], "新闻 😀"), site=SourceStandIn("maccms", hourly(3))
    )
    with stage(tmp_path, given, any_database_url, profile="budget") as at:
        [news] = at.follow("news")
        at.follow("site", kind="maccms")
        at.poll()
        at.clock.at += 120
        at.make_due()
        assert at.poll().new == 1
        assert [each["delay"] for each in at.polls(news)] == [None, 60]
        report = review(at.services)
        assert (report.sources, report.plan is not None) == (2, True)
        view = page.look(at.services)
        assert all("新闻 😀" in each["title"] for each in at.entries(news))
        assert "feeds/sources" in page.page(view, at.services)
        # What can be done stands on each row of the list, filled in.
        listed = sources_page(at.services, words="news", state="active", folder=None, after="")
        actions = re.findall(r'<a href="([^"]+config=[^"]+)">(立即抓取)</a>', listed)
        assert [text for _, text in actions] == ["立即抓取"]
        for address, _ in actions:
            config = yaml.safe_load(unquote(unescape(address).partition("?config=")[2]))
            assert news in config["ops"].popitem()[1]["config"]["sources"]
        assert view.figures["hits"] == 3
        with at.services.engine.connect() as connection:
            for find in (guards.starved, guards.over_limit, guards.unexplained, guards.odd_hit_rate):
                assert not [*find(at.services, connection)]
            assert not guards.duplicate_entries(at.services, connection)
        at.clock.at += 40 * DAY
        counted = drop_old(at.services, dry_run=True)
        polls, answers = drop_old(at.services)
        assert counted == (polls, answers)
        assert polls == 4
        assert answers >= 2


def test_the_same_entry_under_another_guid_is_told_of_for_a_day(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(1)))) as at:
        [news] = at.follow("news")
        at.poll()
        [stored] = at.entries(news)
        at.clock.at += 30 * DAY
        with at.services.engine.begin() as connection:
            again = {**stored, "guid": "other", "guid_hash": "f" * 64, "found_at": at.services.now()}
            del again["entry_id"]
            connection.execute(insert(entry), again)
            [breach] = guards.duplicate_entries(at.services, connection)
            assert breach.source == news
            assert breach.what.startswith("2 条相同的条目")
        at.clock.at += 2 * DAY
        with at.services.engine.connect() as connection:
            assert not guards.duplicate_entries(at.services, connection)
