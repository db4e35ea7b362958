"""The crash matrix of a slot: whoever is killed, down, full, late or doubled, the day's report is in the outbox once.

What happens between the outbox and a channel is tested with the sender, in `digest/push`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from douban_pipeline.core.owner import owner_name
from douban_pipeline.digest import slot_run
from douban_pipeline.digest.daily_report import failed_report, make_report
from douban_pipeline.digest.push.sender import Sender
from douban_pipeline.digest.report_watch import alert_undelivered, ensure_reports
from douban_pipeline.digest.slot_run import SlotWork
from douban_pipeline.digest.store import items
from douban_pipeline.digest.store.slots import SlotClaim, SlotLost
from douban_pipeline.digest.store.tables import daily_report
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline_tests.digest.stage import DAY, Stage, key, moment, stage
from douban_pipeline_tests.stand_ins.push_server import PushServer

KILLED = """
import os, signal, sys
from pathlib import Path
from douban_pipeline.digest import slot_run
from douban_pipeline.digest.services import open_services
from douban_pipeline.digest.store import analyses
from douban_pipeline_tests.digest.stage import HandClock, given_settings, key, moment

where, home, werss, model = sys.argv[1:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
settings = given_settings(Path(home), werss_url=werss, werss_username="demo", werss_password="demo", deepseek_url=model,
                          public_url="https://digest.example")
if where == "between the analyses":
    kept = analyses.store
    analyses.store = lambda *given, **more: (kept(*given, **more), given[0].commit(), die())
elif where == "before the insert into the outbox":
    slot_run.enqueue = die
elif where == "after the insert, before the commit":
    insert = slot_run.enqueue
    slot_run.enqueue = lambda *given, **more: (insert(*given, **more), die())
services = open_services(settings, HandClock(moment("22:00")))
slot_run.run_slot(services, key("22:00"), "first")
"""


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path, at="22:00") as opened:
        yield opened


@pytest.mark.parametrize(
    "where", ["between the analyses", "before the insert into the outbox", "after the insert, before the commit"]
)
def test_a_killed_run_is_taken_over_and_the_report_is_there_once(where: str, at: Stage, tmp_path: Path) -> None:
    for number in range(3):
        at.publish(number, 70)
    command = [sys.executable, "-c", KILLED, where, str(tmp_path), at.server.base, at.server.model_url]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert at.slot("22:00")["status"] == "running"
    assert not at.messages()
    ended = at.run("22:00", run_id="second")
    assert (ended.status, ended.messages) == (SlotStatus.SUCCESS, 1)
    assert at.slot("22:00")["attempts"] == 2
    assert len(at.analyses()) == 3
    # What was paid for is not paid twice: an answer that came is in the archive. One call may be under way at the kill.
    under_way = where == "between the analyses"
    assert len([request for request in at.server.model.seen if "analyses" not in str(request)]) <= 3 + under_way
    assert at.run("22:00", run_id="third") is SlotClaim.DONE
    assert len(at.messages("report")) == 1


def test_werss_down_all_day_still_gives_the_report_and_says_so(at: Stage) -> None:
    at.werss.down = True
    for slot in ("07:00", "12:00", "14:00", "18:00", "22:00"):
        assert at.run(slot).status is SlotStatus.FAILED
    [report] = at.messages("report")
    assert report["title"] == "【日报】2026-11-20：今日没能读取文章，有无机会不知道"
    assert "没有读到来源的时段 07:00、12:00、14:00、18:00、22:00" in report["body"]
    assert [row["slot"] for row in at.messages("alert")] == ["07:00", "12:00", "14:00", "18:00", "22:00"]
    assert all("没有读到任何来源：WeRSS" in row["body"] for row in at.messages("alert"))
    [row] = at.rows(daily_report)
    assert (row["state"], row["slots_done"]) == ("unread", [])
    page = at.page()
    assert "今日没能读取文章，有无机会不知道" in page
    assert "没有投资机会" not in page
    assert "07:00：WeRSS：" in report["body"]
    assert "22:00：WeRSS：" in report["body"]
    assert not at.messages("finding")


def test_the_model_down_all_day_still_gives_a_plain_report(at: Stage) -> None:
    at.clock.at = moment("07:00")
    at.publish(1, 70)
    at.run("07:00")
    at.server.model.always = "overloaded"
    for number, slot in enumerate(("12:00", "14:00", "18:00"), 2):
        at.clock.at = moment(slot)
        at.publish(number, 70)
        assert at.run(slot).status is SlotStatus.FAILED
    assert at.run("22:00").messages == 2  # the report, and that nothing could be analysed
    [row] = at.rows(daily_report)
    assert row["state"] == "plain"
    assert "503" in row["reason"] or "闸门" in row["reason"] or "模型调用已停止" in row["reason"]
    assert row["digest_json"]["failures"] == []  # they wait
    assert "第 1 篇" in row["digest_md"]
    assert at.messages("report")[0]["title"] == "【日报】2026-11-20：1 条机会（最高分 70）；另有 3 篇未能分析"


def test_a_slot_is_not_taken_over_while_the_model_writes_its_report(at: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claims: list[SlotClaim] = []
    real = slot_run.make_report

    def make_report(*given: Any, **more: Any) -> Any:
        at.clock.at += timedelta(minutes=9)  # a call may begin after four minutes and take five
        claims.append(at.work("22:00", "second").begin().claim)
        return real(*given, **more)

    monkeypatch.setattr(slot_run, "make_report", make_report)
    assert at.run("22:00").messages == 1
    assert claims == [SlotClaim.BUSY]


def test_two_daemons_at_once_do_the_slot_once(tmp_path: Path) -> None:
    with stage(tmp_path, at="22:00") as at:
        for number in range(4):
            at.publish(number, 70)
        ends: dict[str, Any] = {}
        begun = threading.Barrier(2)

        def daemon(name: str) -> None:
            # Owners on another machine: nobody here can tell that they are dead.
            work = SlotWork(at.services, key("22:00"), name)
            begun.wait()
            claimed = work.begin()
            if claimed.claim is not SlotClaim.TAKEN:
                ends[name] = claimed.claim
                return
            work.ingest()
            work.analyse()
            ends[name] = work.report()[1].status

        threads = [threading.Thread(target=daemon, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, ends.values())) == ["busy", "success"]
        assert len(at.messages("report")) == 1
        assert len(at.analyses()) == 4


def test_a_run_that_lost_its_slot_changes_nothing_more(at: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    at.publish(1, 70)
    slow = at.work("22:00", "slow")
    slow.begin()
    slow.ingest()
    at.clock.at += timedelta(hours=1)
    monkeypatch.setattr(slot_run, "owner_name", lambda run: owner_name(run).replace("@", "@another-"))
    other = at.work("22:00", "other")
    assert other.begin().died == owner_name("slow")
    monkeypatch.undo()
    for part in (slow.analyse, slow.report):
        with pytest.raises(SlotLost):
            part()
    assert not at.messages()


def test_midnight_between_slot_and_run_changes_no_day(at: Stage) -> None:
    at.publish(1, 70)
    at.clock.at = moment("22:00") + timedelta(hours=2, minutes=5)
    work = at.work("22:00", "late")
    work.begin()
    work.ingest()
    work.analyse()
    made, ended = work.report()
    assert made.title == "【日报】2026-11-20：1 条机会（最高分 70）"
    assert ended.messages == 1
    assert at.messages("report")[0]["report_date"] == DAY


def test_the_watchdog_makes_up_for_a_slot_that_never_ran_or_hangs(at: Stage) -> None:
    at.clock.at = moment("07:00")
    at.publish(1, 70)
    at.run("07:00")
    hanging = at.work("22:00", "hanging")
    at.clock.at = moment("22:00")
    hanging.begin()
    hanging.ingest()
    at.clock.at = moment("22:00") + timedelta(minutes=29)
    assert ensure_reports(at.services) == []
    hanging.begin()  # it lives, and keeps its lease
    at.clock.at += timedelta(minutes=1)
    [found] = ensure_reports(at.services)
    assert (found.was_there, found.messages) == (False, 1)
    assert ensure_reports(at.services)[0].was_there
    # The slot ends after all: its report replaces the page, and nobody is told twice.
    assert hanging.report()[1].messages == 0
    assert len(at.messages("report")) == 1


def test_a_report_that_cannot_be_made_says_so_and_why_and_is_made_up_for(at: Stage) -> None:
    at.clock.at = moment("14:00")
    at.publish(1, 70)
    at.run("14:00")
    at.werss.down = True
    at.clock.at = moment("18:00")
    at.run("18:00")
    broken_slot = at.slot("18:00")["error"]
    assert broken_slot.startswith("WeRSS")
    at.clock.at = moment("22:00") + timedelta(minutes=31)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("douban_pipeline.digest.report_watch.make_report", lambda *_, **__: 1 / 0)
        [found] = ensure_reports(at.services, reason="运行失败：磁盘损坏")
        assert found.messages == 1
        [message] = at.messages("report")
        assert "日报生成失败，请稍后刷新" in message["title"]
        for cause in ("磁盘损坏", "ZeroDivisionError", f"18:00：{broken_slot}"):
            assert cause in message["body"]
            assert cause in at.page()
        assert "日报生成失败，请稍后刷新" in at.page()
        assert ensure_reports(at.services)[0].was_there
        assert at.rows(daily_report)[0]["state"] == "failed"
    # Who comes back as the page says finds the report; nobody is told twice.
    at.clock.at += timedelta(minutes=15)
    assert ensure_reports(at.services)[0].was_there
    [row] = at.rows(daily_report)
    assert (row["state"], row["stats"]["analyses"]) == ("plain", 1)
    assert "日报生成失败" not in at.page()
    assert "1 条机会" in at.page()
    assert len(at.messages("report")) == 1


def test_a_report_fails_with_its_causes_even_if_the_slots_cannot_be_read(
    at: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.clock.at = moment("22:00") + timedelta(minutes=31)
    monkeypatch.setattr("douban_pipeline.digest.report_watch.make_report", lambda *_, **__: 1 / 0)
    monkeypatch.setattr("douban_pipeline.digest.daily_report.slots.of_day", lambda *_: 1 / 0)
    made = failed_report(at.services, DAY, ["磁盘损坏"])
    assert made.digest["causes"] == ["磁盘损坏"]


@pytest.fixture
def robots() -> Iterator[PushServer]:
    with PushServer(now=moment("22:00").timestamp) as server:
        yield server


def alerted(robots: PushServer) -> dict[str, Any]:
    """The alerts' webhook, at a robot that answers."""
    url, _, secret = robots.channel("webhook").partition("+")[2].partition("#")
    return {"alert_webhook_url": url, "alert_webhook_secret": secret, "alert_webhook_kind": "generic"}


def test_the_operators_hear_once_of_a_report_that_reached_nobody(robots: PushServer, tmp_path: Path) -> None:
    with stage(
        tmp_path, at="22:00", **alerted(robots)
    ) as at:  # its only other channel is at a port where nobody listens
        at.run("22:00")
        Sender(at.services).run()
        at.clock.at = moment("22:44")
        assert alert_undelivered(at.services) == ([], 0)
        at.clock.at = moment("22:46")
        [found], new = alert_undelivered(at.services)
        assert (found.day, new) == (str(DAY), 2)
        assert alert_undelivered(at.services)[1] == 0
        Sender(at.services).run()
        at.clock.at += timedelta(hours=1)
        Sender(at.services).run()
        [taken] = robots.taken
        assert taken.title == "【告警】2026-11-20 的日报没有送达"
        assert "work：发送失败，会再试" in taken.text
        assert "digest push --test all" in taken.text


def test_without_an_operator_s_channel_an_undelivered_report_is_only_found(tmp_path: Path) -> None:
    with stage(tmp_path, push_channels="work=webhook+http://127.0.0.1:9/robot") as at:
        at.run("22:00")
        at.clock.at = moment("22:46")
        found, new = alert_undelivered(at.services)
        assert ([each.what for each in found], new) == (["22:00"], 0)
        assert not at.messages("undelivered")


def test_what_a_slot_alerts_of_also_goes_to_the_webhook_and_reports_do_not(robots: PushServer, tmp_path: Path) -> None:
    with stage(tmp_path, at="22:00", **alerted(robots)) as at:
        at.publish(1, 70)
        at.server.model.always = "unpaid"
        at.run("22:00")
        channels = [(row["push_type"], row["channel"]) for row in at.messages()]
        assert sorted(channels) == [("alert", "operator"), ("alert", "告警"), ("report", "work")]
        Sender(at.services).run()
        assert [taken.title for taken in robots.taken] == ["【告警】22:00 需要处理"]


def test_a_run_that_takes_a_slot_over_reports_its_own_problems_alone(
    at: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.publish(1, 70)
    at.server.model.always = "unpaid"
    at.clock.at = moment("07:00")
    died = at.work("07:00", "first")
    died.begin()
    died.ingest()
    died.analyse()
    with monkeypatch.context() as patch:
        patch.setattr(SlotWork, "_end", lambda *_: None)
        died.end()
    at.server.model.always = ""
    at.clock.at += timedelta(days=1)  # the gate opens, and the lease has expired
    ended = at.run("07:00", run_id="second", at="12:00")
    assert (ended.status, ended.error) == (SlotStatus.SUCCESS, "")
    assert not at.messages("alert")


def test_failures_belong_to_the_day_whose_slot_met_them(at: Stage) -> None:
    at.run("22:00")
    day = DAY + timedelta(days=1)
    at.clock.at = moment("07:00", day)
    at.publish(1, 70)
    at.server.model.always = "broken"
    assert at.run("07:00", day=day).status is SlotStatus.FAILED
    assert make_report(at.services, day, use_model=False).stats.failures == 1
    assert make_report(at.services, DAY, use_model=False).stats.failures == 0


@pytest.mark.mariadb
def test_a_database_restarted_while_articles_are_read_delays_them(
    mariadb_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, mariadb_url) as at:
        at.publish(1, 70)
        stored, cuts = items.insert_articles, []

        def cut_off(*given: Any) -> int:
            cuts.append(_cut_connections(mariadb_url) if not cuts else 0)
            return stored(*given)

        monkeypatch.setattr(items, "insert_articles", cut_off)
        ended = at.run("07:00")
        assert cuts[0]
        assert (ended.status, len(at.analyses())) == (SlotStatus.SUCCESS, 1)


@pytest.mark.mariadb
def test_a_database_restarted_during_the_report_delays_it(mariadb_url: str, tmp_path: Path) -> None:
    with stage(tmp_path, mariadb_url, at="22:00") as at:
        at.publish(1, 70)
        at.clock.at = moment("22:00")
        work = at.work("22:00")
        work.begin()
        work.ingest()
        cuts = _cut_connections(mariadb_url)
        work.analyse()
        cuts += _cut_connections(mariadb_url)
        made, ended = work.report()
        assert cuts
        assert made.title.endswith("1 条机会（最高分 70）")
        assert (ended.status, len(at.messages("report"))) == (SlotStatus.SUCCESS, 1)


def _cut_connections(url: str) -> int:
    """Kill every other connection to a database, as a restart does; return how many."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    query = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    with engine.connect() as connection:
        ids = [row[0] for row in connection.exec_driver_sql(query)]
        for each in ids:
            connection.exec_driver_sql(f"KILL {each}")
    engine.dispose()
    return len(ids)
