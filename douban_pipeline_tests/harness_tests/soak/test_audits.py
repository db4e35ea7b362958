"""Every auditor of the further systems finds what is planted for it, and nothing in what is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, create_engine, insert

from douban_pipeline.comments.store import tables as comments
from douban_pipeline.comments.types import CommentStatus, EventState
from douban_pipeline.digest.store import tables as digest
from douban_pipeline.digest.types import AnalysedStatus
from douban_pipeline.feeds.store import tables as feeds
from douban_pipeline_tests.harness.soak.comments_audit import CommentsNotes, audit_comments
from douban_pipeline_tests.harness.soak.digest_audit import DigestNotes, audit_digest
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.feeds import FeedsNotes, audit_feeds

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
SINCE = NOW.timestamp()


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = create_engine("sqlite://")
    yield made
    made.dispose()


def put(engine: Engine, table: Table, **values: Any) -> None:
    with engine.begin() as connection:
        connection.execute(insert(table), values)


def make(engine: Engine, metadata: MetaData) -> None:
    metadata.create_all(engine)


def broken(findings: list[Finding]) -> str:
    """Return what is violated, each invariant with its first example."""
    return "\n".join(f"{each.invariant}: {each.examples[0]}" for each in findings if not each.held)


# --- feeds


def followed(engine: Engine, *guids: str, checked_at: float = SINCE + 5, lease: str = "") -> None:
    make(engine, feeds.metadata)
    put(
        engine,
        feeds.source,
        source_id="s1",
        kind="rss",
        url="u",
        url_hash="h",
        host="x",
        title="news",
        options={},
        created_at=1,
        updated_at=1,
    )
    put(engine, feeds.stats, source_id="s1", last_check_at=int(checked_at), lease_token=lease)
    for number, guid in enumerate(guids):
        held = {"source_id": "s1", "guid_hash": f"{number}", "guid": guid, "link": "", "title": guid, "summary": ""}
        put(engine, feeds.entry, **held, published_at=1, content_hash="", found_at=1, updated_at=1)


def feeds_notes(**given: Any) -> FeedsNotes:
    usual: dict[str, Any] = {
        "published": {"news": frozenset({"a", "b"})},
        "requests": {"host 1": [SINCE + 30 * number for number in range(4)]},
        "per_minute": 2,
        "since": SINCE,
    }
    return FeedsNotes(**{**usual, **given})


def test_feeds_that_are_well(engine: Engine):
    followed(engine, "a", "b")
    assert broken(audit_feeds(engine, feeds_notes())) == ""


@pytest.mark.parametrize(
    ("guids", "stored", "given", "expected"),
    [
        (("a",), {}, {}, "news: b was published and is not stored"),
        (("a", "b", "c"), {}, {}, "news: c (c) is stored, and nobody published it"),
        (("a", "b"), {}, {"requests": {"host 1": [SINCE, SINCE + 1, SINCE + 2]}}, "host 1: 3 requests in 60 s"),
        (("a", "b"), {"lease": "dead"}, {}, "news: still leased by dead"),
    ],
)
def test_feeds_that_are_not(
    guids: tuple[str, ...], stored: Mapping[str, Any], given: Mapping[str, Any], expected: str, engine: Engine
):
    followed(engine, *guids, **stored)
    assert expected in broken(audit_feeds(engine, feeds_notes(**given)))


# --- the digest


def message(engine: Engine, key: str, state: str = "sent", push_type: str = "finding", channel: str = "first") -> None:
    put(
        engine,
        digest.notification_log,
        msg_uuid=key,
        report_date=NOW.date(),
        slot=key[-5:],
        push_type=push_type,
        channel=channel,
        target_url="",
        title="t",
        body="b",
        payload_hash="",
        state=state,
        created_at=NOW,
        updated_at=NOW,
    )


def digested(engine: Engine) -> None:
    """Store a day that went well."""
    make(engine, digest.metadata)
    message(engine, "finding-10:00")
    message(engine, "report-11:00", push_type="report")
    report(engine)
    article(engine, "1-1")
    slot(engine, "11:00", "success")


def report(engine: Engine) -> None:
    made = {"report_date": NOW.date(), "state": "good", "reason": "", "digest_md": "", "digest_json": {}}
    put(engine, digest.daily_report, **made, slots_done=[], stats={}, created_at=NOW, updated_at=NOW)


def slot(engine: Engine, name: str, status: str, **more: Any) -> None:
    usual: dict[str, Any] = {"run_date": NOW.date(), "slot": name, "status": status, "error": "", "counters": {}}
    put(engine, digest.slot_run, **usual | more, scheduled_at=NOW, started_at=NOW, updated_at=NOW)


def article(engine: Engine, name: str, **more: Any) -> None:
    usual = {"external_id": name, "mp_id": "m", "url": "", "description": "", "body_state": "done", "run_id": 1}
    usual["analyzed_status"] = AnalysedStatus.NOTHING.value
    put(engine, digest.content_item, **usual | more, created_at=NOW, updated_at=NOW)


def digest_notes(**given: Any) -> DigestNotes:
    usual: dict[str, Any] = {
        "day": NOW.date(),
        "channels": ["first"],
        "taken": ["finding-10:00", "report-11:00", "report-11:00"],
        "articles": {"1-1": NOW - timedelta(minutes=1)},
        "well_since": NOW - timedelta(seconds=1),
        "report_due": True,
    }
    return DigestNotes(**{**usual, **given})


def test_a_digest_that_is_well_may_send_a_report_twice_and_tell_a_finding_as_unknown(engine: Engine):
    digested(engine)
    message(engine, "finding-10:30", "unknown")
    assert broken(audit_digest(engine, digest_notes())) == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"taken": ["report-11:00"]}, "finding of 10:00 on first: stands as sent, and no robot took it"),
        ({"taken": ["report-11:00", "finding-10:00", "other"]}, "a message of the key other was taken"),
        ({"channels": ["first", "second"]}, "on second it is not in the outbox"),
        ({"articles": {"9-9": NOW - timedelta(minutes=1)}}, "article 9-9 of 09:59:00 is there 0 times"),
    ],
)
def test_a_digest_that_is_not(given: Mapping[str, Any], expected: str, engine: Engine):
    digested(engine)
    assert expected in broken(audit_digest(engine, digest_notes(**given)))


def test_what_a_dead_run_of_the_digest_left_is_seen(engine: Engine):
    digested(engine)
    later = datetime.now(UTC) + timedelta(minutes=5)
    message(engine, "finding-10:30", "sending")
    slot(engine, "10:30", "running", lease_owner="dead", lease_until=later)
    article(engine, "2-2", claim_owner="dead", claim_until=later)
    found = broken(audit_digest(engine, digest_notes()))
    assert "finding of 10:30 on first: still sending" in found
    assert "10:30 is running, held by dead" in found
    assert "2-2: still held by dead" in found


def test_a_slot_that_could_read_nothing_and_of_which_nobody_was_told_is_seen(engine: Engine):
    digested(engine)
    slot(engine, "10:30", "success", pushes=True, counters={"ingest_failed": 3})
    assert "10:30 could read nothing, and nobody was alerted" in broken(audit_digest(engine, digest_notes()))


# --- comments


def commented(engine: Engine, *texts: str, floors: tuple[int, ...] = (), status: CommentStatus = CommentStatus.NORMAL):
    make(engine, comments.metadata)
    count = len(texts)
    shown = count if status is CommentStatus.NORMAL else 0
    numbers = {"total_count": count, "root_count": shown, "visible_count": shown, "hidden_count": count - shown}
    moments = {"created_at": NOW, "updated_at": NOW}
    section = {"section_id": 1, "type": 1, "object_id": 1, "settings": {}, "pinned": []}
    put(engine, comments.section, **section, **numbers, floor_seq=max(floors, default=count), active_at=NOW, **moments)
    for place, text in enumerate(texts):
        floor = floors[place] if floors else place + 1
        given = {"comment_id": 100 + place, "section_id": 1, "floor": floor, "length": 1, "status": int(status)}
        put(engine, comments.comment, **given, meta={}, **moments)
        put(engine, comments.content, comment_id=100 + place, content=text, content_hash="")


def comments_notes(**given: Any) -> CommentsNotes:
    return CommentsNotes(**{"accepted": {100: "一", 101: "二"}, **given})


def test_comments_that_are_well(engine: Engine):
    commented(engine, "一", "二", "三")
    assert broken(audit_comments(engine, comments_notes(doubtful={"三", "四"}))) == ""


@pytest.mark.parametrize(
    ("texts", "floors", "given", "expected"),
    [
        (("一",), (), {}, "101 was accepted as '二', and is None"),
        (("一", "二"), (1, 3), {}, "floors up to 3"),
        (("一", "二"), (), {"wanted_hidden": {101}}, "101 was to be hidden and is shown"),
        (("一", "二"), (), {"votes": {(100, "u:1"): 1}}, "u:1 on 100: accepted 1, stored 0"),
    ],
)
def test_comments_that_are_not(
    texts: tuple[str, ...], floors: tuple[int, ...], given: Mapping[str, Any], expected: str, engine: Engine
):
    commented(engine, *texts, floors=floors)
    assert expected in broken(audit_comments(engine, comments_notes(**given)))


def test_an_event_that_was_never_applied_is_seen(engine: Engine):
    commented(engine, "一", "二")
    given = {"shard": 1, "section_id": 1, "kind": "vote", "actor": "u:1", "payload": {}, "request_key": "k"}
    put(engine, comments.event, **given, state=EventState.PENDING, created_at=NOW)
    assert "1 events wait" in broken(audit_comments(engine, comments_notes()))
