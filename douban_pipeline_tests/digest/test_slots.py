"""Slots over HTTP: every generation of WeRSS, late bodies, windows, doubles, feeds, re-analysis."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.werss import ACCESS_KEY, GENERATIONS, WeRssStandIn
from douban_pipeline.digest.analysis import analyse_again, articles_to_rework
from douban_pipeline.digest.daily_report import make_report
from douban_pipeline.digest.slot_run import TooEarly, run_slot
from douban_pipeline.digest.store import items
from douban_pipeline.digest.store.slots import SlotClaim
from douban_pipeline.digest.store.tables import account, daily_report, opportunity, slot_run
from douban_pipeline.digest.types import AnalysedStatus, BodyState, FoundArticle, SlotStatus
from douban_pipeline.feeds.store.migrations import TREE as FEEDS_TREE
from douban_pipeline.feeds.store.tables import entry, source
from douban_pipeline_tests.digest.stage import DAY, Stage, key, moment, stage, text_of


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_gives_the_same_articles_and_texts(generation: str, tmp_path: Path) -> None:
    key = {"werss_access_key": ACCESS_KEY} if generation == "1.4.9" else {}
    with stage(tmp_path, generation=generation, **key) as at:
        for number in range(5):
            at.publish(number, 10, hours_ago=number + 1)
        at.publish(100, 80, millis=generation == "main")
        at.publish(101, 80, html=None)
        at.publish(102, 80, html="DELETED")
        at.publish(103, 80, published_at=None)
        at.publish(104, 80, hours_ago=100)
        at.publish(105, 80, deleted=True)
        ended = at.run("07:00")
        items = at.items()
        assert ended.status is SlotStatus.SUCCESS
        assert len(items) == 5 + 3
        texts = {each["content_text"] for title, each in items.items() if title == "第 100 篇"}
        assert texts == {"第 100 篇的正文，讲了一件具体的事。（样值 80）"}
        assert {items[f"第 {number} 篇"]["body_state"] for number in (101, 102)} == {BodyState.PENDING.value}
        assert [each.score for each in ended.findings] == [80]
        assert at.werss.logins == (0 if key else 1)
        assert not any("has_content" in asked for asked in at.werss.asked)


def test_a_day_of_five_slots_on_every_engine(any_database_url: str, tmp_path: Path) -> None:
    with stage(tmp_path, any_database_url) as at:
        at.publish(1, 95)
        at.publish(2, 30)
        assert at.run("07:00").messages == 1
        assert at.run("07:00") is SlotClaim.DONE
        assert at.run("12:00").messages == 0
        at.publish(3, 60)
        assert at.run("14:00").messages == 1
        assert at.run("18:00").messages == 0
        ended = at.run("22:00")
        assert (ended.status, ended.messages) == (SlotStatus.SUCCESS, 1)
        assert at.run("22:00") is SlotClaim.DONE
        titles = [row["title"] for row in at.messages()]
        assert titles == [
            "【机会提醒】07:00 发现 1 条（最高分 95）",
            "【机会提醒】14:00 发现 1 条（最高分 60）",
            "【日报】2026-11-20：2 条机会（最高分 95）",
        ]
        [report] = at.rows(daily_report)
        assert (report["state"], report["slots_done"]) == ("good", ["07:00", "12:00", "14:00", "18:00", "22:00"])
        assert at.messages("report")[0]["target_url"] == "https://digest.example/daily/2026-11-20"
        assert len(at.server.model.seen) == 3 + 1
        assert {row["wire_model"] for row in at.analyses()} == {"deepseek-flash"}
        assert len(at.rows(opportunity)) == 2
        assert "第 1 篇" in at.page()
        sent = at.server.model.seen[0]
        assert (sent["model"], sent["thinking"]) == ("deepseek-flash", {"type": "enabled"})
        assert at.server.model.keys[0] == "Bearer sk-test"


def test_a_body_that_comes_late_is_asked_for_again_and_given_up_after_the_window(at: Stage) -> None:
    late = at.publish(1, 70, html=None)
    at.publish(2, 0, html=None, description="只有简介的文章（样值 65）")
    at.publish(3, 0, html=None)
    at.run("07:00")
    assert not at.analyses()
    late.html = text_of(1, 70)
    assert at.run("12:00").messages == 1
    assert at.items()["第 1 篇"]["body_attempts"] == 1
    at.run("12:00", day=DAY + timedelta(days=3))
    items = at.items()
    assert items["第 2 篇"]["body_state"] == items["第 3 篇"]["body_state"] == BodyState.NONE.value
    assert items["第 2 篇"]["analyzed_status"] == AnalysedStatus.DONE
    assert items["第 3 篇"]["analyzed_status"] == AnalysedStatus.NOTHING


def test_an_article_that_werss_cannot_give_is_asked_for_again_and_keeps_no_other_waiting(
    at: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        at.publish(number, 70, hours_ago=number + 1)
    real, broken = WeRssStandIn._detail, {"3000000001-0"}

    def detail(self: WeRssStandIn, article_id: str) -> HttpAnswer:
        failed = json_answer({"detail": {"code": 50001, "message": "x", "data": None}}, 406)
        return failed if article_id in broken else real(self, article_id)

    monkeypatch.setattr(WeRssStandIn, "_detail", detail)
    at.run("07:00")
    assert len(at.analyses()) == 2
    assert (at.items()["第 0 篇"]["body_state"], at.items()["第 0 篇"]["body_attempts"]) == ("pending", 1)
    broken.clear()
    at.run("12:00")
    assert len(at.analyses()) == 3


def test_an_account_that_cannot_be_stored_stops_no_other(at: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    at.werss.accounts["MP_WXS_2"] = "另一个"
    at.publish(1, 70)
    at.publish(2, 70, mp_id="MP_WXS_2", published_at=moment("07:00").timestamp() - 60)
    real = items.insert_articles

    def insert_articles(connection: Connection, run_id: int, given: Sequence[FoundArticle], now: datetime) -> int:
        broken = [replace(each, description="\ud800") for each in given if each.mp_id == "MP_WXS_1"]
        return real(connection, run_id, broken or given, now)

    monkeypatch.setattr(items, "insert_articles", insert_articles)
    ended = at.run("07:00")
    assert [*at.items()] == ["第 2 篇"]
    assert (ended.status, len(ended.findings)) == (SlotStatus.SUCCESS, 1)
    assert "示例公众号：应答无法处理，见日志" in ended.error


def test_short_summaries_of_feeds_are_no_doubles(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'feeds.sqlite'}")
    FEEDS_TREE.upgrade(engine)
    now = int(moment("07:00").timestamp())
    moments = {"created_at": now, "updated_at": now}
    fields = {"source_id": "rss-1", "kind": "rss", "url": "http://x", "url_hash": "u", "host": "x", "options": {}}
    rows = [
        {
            "source_id": "rss-1",
            "title": f"第 {number} 条",
            "summary": "阅读全文",
            "link": f"https://x/read?tid-{number}",
            "guid": f"g{number}",
            "guid_hash": f"g{number}",
            "published_at": now - 60,
            "content_hash": "c",
            "found_at": now,
            "updated_at": now,
        }
        for number in range(3)
    ]
    with engine.begin() as connection:
        connection.execute(insert(source).values(**fields, title="快讯", **moments))
        connection.execute(insert(entry), rows)
    engine.dispose()
    with stage(tmp_path, werss_url="", feed_sources=["rss-1"]) as at:
        at.run("07:00")
        assert len(at.analyses()) == 3


def test_doubles_by_address_and_by_text_are_analysed_once(at: Stage) -> None:
    long = f"{text_of(1, 70)}<p>{'这是同一篇转载的报道。' * 20}</p>"
    first = at.publish(1, 70, html=long)
    at.run("07:00")
    # An upgrade of WeRSS changes ids, not addresses; a reposted text has another address.
    first.published_at = (first.published_at or 0) + 60
    at.publish(2, 70, html=long)
    at.run("12:00")
    assert len(at.analyses()) == 1
    assert at.items()["第 2 篇"]["analyzed_status"] == AnalysedStatus.DOUBLE


def test_an_article_that_another_process_stores_at_the_same_moment_is_left_out(
    at: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both looked before either had stored: whoever is second learns of it from the database.
    monkeypatch.setattr(items, "unknown", lambda _connection, articles: [*articles])
    articles = [FoundArticle(f"a-{number}", "a", "号", f"第 {number} 篇", "", "", moment("07:00")) for number in (1, 2)]
    with at.services.engine.begin() as connection:
        assert items.insert_articles(connection, 1, articles[:1], moment("07:00")) == 1
        assert items.insert_articles(connection, 2, articles, moment("07:00")) == 1
    assert {title: row["run_id"] for title, row in at.items().items()} == {"第 1 篇": 1, "第 2 篇": 2}


def test_what_is_published_after_the_report_is_in_the_first_slot_of_the_next_day(at: Stage) -> None:
    at.run("22:00")
    at.publish(1, 70, hours_ago=-1)
    ended = at.run("07:00", day=DAY + timedelta(days=1))
    assert [each.title for each in ended.findings] == ["第 1 篇"]
    assert at.rows(slot_run)[-1]["run_date"] == DAY + timedelta(days=1)


def test_an_outage_widens_the_window_to_fourteen_days(at: Stage) -> None:
    at.run("07:00")
    at.clock.at = moment("07:00", DAY + timedelta(days=6))
    at.publish(1, 70, hours_ago=24 * 5)
    at.publish(2, 70, hours_ago=24 * 20)
    at.run("07:00", day=DAY + timedelta(days=6))
    assert [*at.items()] == ["第 1 篇"]
    assert at.rows(account)[0]["last_good_at"] >= moment("07:00", DAY + timedelta(days=6))
    assert max(row["extended_accounts"] for row in at.rows(slot_run)) == 1


def test_the_newest_are_analysed_first_and_the_rest_waits(tmp_path: Path) -> None:
    with stage(tmp_path, max_articles_per_slot=2) as at:
        for number in range(5):
            at.publish(number, 10, hours_ago=number + 1)
        at.run("07:00")
        done = {title for title, row in at.items().items() if row["analyzed_status"] == AnalysedStatus.DONE}
        assert done == {"第 0 篇", "第 1 篇"}
        at.run("12:00")
        at.run("14:00")
        assert len(at.analyses()) == 5


def test_entries_of_feeds_are_digested_by_their_tables(tmp_path: Path) -> None:
    feeds_url = f"sqlite:///{tmp_path / 'feeds.sqlite'}"
    engine = open_engine(feeds_url)
    FEEDS_TREE.upgrade(engine)
    now = int(moment("07:00").timestamp())
    moments = {"created_at": now, "updated_at": now}
    fields = {"source_id": "rss-1", "kind": "rss", "url": "http://x", "url_hash": "u", "host": "x", "options": {}}
    text = {
        "title": "一条",
        "summary": "讲了一件事。（样值 77）",
        "link": "https://x/1",
        "guid": "g",
        "guid_hash": "g1",
    }
    with engine.begin() as connection:
        connection.execute(insert(source).values(**fields, title="快讯", **moments))
        rest = {"source_id": "rss-1", "published_at": now - 60, "content_hash": "c", "found_at": now, "updated_at": now}
        connection.execute(insert(entry).values(**text, **rest))
    engine.dispose()
    with stage(tmp_path, werss_url="", feed_sources=["rss-1", "rss-gone"]) as at:
        ended = at.run("07:00")
        assert [(each.mp_name, each.score) for each in ended.findings] == [("快讯", 77)]
        assert "rss-gone" in ended.error
        assert at.run("12:00").findings == []


def test_feeds_that_do_not_answer_are_named_and_the_rest_of_the_slot_goes_on(tmp_path: Path) -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
        stage(
            tmp_path,
            feed_sources=["*"],
            feeds_url=f"mysql+pymysql://nobody:geheim@127.0.0.1:{silent.getsockname()[1]}/feeds",
        ) as at,
    ):
        others = OtherDatabases(at.services.engine, seconds=0.2)
        vars(at.services)["others"] = others
        at.publish(1, 70)
        ended = at.run("07:00")
        others.close()
    assert "DOUBAN_PIPELINE_FEEDS_DATABASE_URL" in ended.error
    assert "geheim" not in ended.error
    assert [each.score for each in ended.findings] == [70]


def test_feeds_that_were_never_set_up_are_named_and_no_file_is_made(tmp_path: Path) -> None:
    with stage(tmp_path, werss_url="", feed_sources=["*"]) as at:
        assert "feeds setup" in at.run("07:00").error
    assert not (tmp_path / "feeds.sqlite").exists()


@pytest.mark.parametrize("backfill", [True, False])
def test_a_slot_of_the_past_leaves_newer_articles_to_the_slots_of_their_time(at: Stage, *, backfill: bool) -> None:
    at.run("07:00")
    reads = [row["last_good_at"] for row in at.rows(account)]
    day = DAY + timedelta(days=1)
    at.clock.at = moment("14:00", day)
    at.publish(1, 90, hours_ago=20)  # at 18:00 of the day before
    at.publish(2, 80, hours_ago=1)
    ended = run_slot(at.services, key("22:00"), "old", backfill=backfill)
    assert [each.title for each in ended.findings] == ["第 1 篇"]
    assert [row["last_good_at"] for row in at.rows(account)] == reads
    assert not at.messages()
    assert [each.title for each in at.run("14:00", day=day).findings] == ["第 2 篇"]
    assert at.messages("finding")[0]["title"] == "【机会提醒】14:00 发现 1 条（最高分 80）"


def test_articles_that_wait_are_not_analysed_under_a_slot_of_the_past(at: Stage) -> None:
    at.clock.at = moment("14:00", DAY + timedelta(days=1))
    at.publish(1, 80, hours_ago=1)
    late = at.work("14:00", "now")
    late.key = key("14:00", DAY + timedelta(days=1))
    late.begin()
    late.ingest()
    ended = run_slot(at.services, key("22:00"), "old", backfill=True)
    assert (ended.findings, at.analyses()) == ([], [])


@pytest.mark.parametrize(("text", "analysed"), [("图片", 2), ("这是一段很长的正文。" * 30, 1)])
def test_articles_of_the_same_short_phrase_are_no_duplicates(at: Stage, text: str, analysed: int) -> None:
    for number in (1, 2):
        at.publish(number, 0, html=f"<p>{text}</p>")
    at.run("07:00")
    assert len(at.analyses()) == analysed


def test_a_slot_before_its_hour_is_refused_and_a_backfill_pushes_nothing(at: Stage) -> None:
    at.publish(1, 90)
    with pytest.raises(TooEarly, match="还没有到点"):
        at.run("22:00", at="10:00")
    ended = at.run("07:00", backfill=True)
    assert (ended.status, ended.messages) == (SlotStatus.SUCCESS, 0)
    assert "补跑" in ended.push_refusal
    at.clock.at = moment("12:00", DAY + timedelta(days=2))
    old = at.work("22:00", "later")
    old.begin()
    old.ingest()
    assert old.report()[1].messages == 0
    assert not at.messages()


def test_articles_are_analysed_anew_on_request_alone(at: Stage, tmp_path: Path) -> None:
    at.publish(1, 70)
    at.run("07:00")
    [before] = at.analyses()
    at.run("12:00")
    assert len(at.server.model.seen) == 1
    folder = tmp_path / "digest"
    folder.mkdir()
    (folder / "rubric.md").write_text("只看影视。", encoding="utf-8")
    at.services.__dict__.pop("rubric", None)
    assert articles_to_rework(at.services, [], [DAY], only_other_rubric=True) == [before["content_item_id"]]
    report = analyse_again(at.services, [before["content_item_id"]])
    assert (report.analysed, len(at.server.model.seen)) == (1, 2)
    [after] = at.analyses()
    assert (after["analysis_id"], after["run_id"]) == (before["analysis_id"], before["run_id"])
    assert after["rubric_hash"] != before["rubric_hash"]
    assert articles_to_rework(at.services, [], [DAY], only_other_rubric=True) == []
    assert make_report(at.services, DAY, use_model=False).stats.analyses == 1


def test_the_token_is_renewed_and_a_wrong_password_is_tried_once_a_slot(at: Stage) -> None:
    at.publish(1, 10)
    at.run("07:00")
    at.werss.revoke()
    at.services.__dict__.pop("werss", None)
    at.run("12:00")
    assert at.werss.logins == 2


def test_a_refused_login_says_what_to_do_and_does_not_lock_werss(tmp_path: Path) -> None:
    with stage(tmp_path, werss_password="wrong") as at:
        for day in range(3):
            for slot in ("07:00", "12:00", "14:00", "18:00", "22:00"):
                at.services.__dict__.pop("werss", None)
                ended: Any = at.run(slot, day=DAY + timedelta(days=day))
                assert ended.status is SlotStatus.FAILED
        assert at.werss.logins == 3  # of the five that lock it
        assert "重启 WeRSS" in at.messages("alert")[0]["body"]
        assert len(at.messages("report")) == 3
