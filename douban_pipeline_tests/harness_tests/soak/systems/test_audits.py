"""Every auditor of the further systems finds what is planted for it, and nothing in what is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, UniqueConstraint, create_engine, insert, update

from douban_pipeline.comments.store import tables as comments
from douban_pipeline.comments.types import CommentStatus, EventState
from douban_pipeline.digest.store import tables as digest
from douban_pipeline.digest.types import AnalysedStatus
from douban_pipeline.feeds.store import tables as feeds
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.comments_audit import CommentsNotes, audit_comments
from douban_pipeline_tests.harness.soak.digest_audit import DigestNotes, audit_digest
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
        (("a", "b", "b"), {}, {}, "news: b (b) is stored twice"),
        (("a", "b", "c"), {}, {}, "news: c (c) is stored, and nobody published it"),
        (("a", "b"), {}, {"requests": {"host 1": [SINCE, SINCE + 1, SINCE + 2]}}, "host 1: 3 requests in 60 s"),
        (("a", "b"), {"lease": "dead"}, {}, "news: still leased by dead"),
        (("a", "b"), {"checked_at": SINCE - 1}, {}, "news: not asked since all was well"),
    ],
)
def test_feeds_that_are_not(
    guids: tuple[str, ...], stored: Mapping[str, Any], given: Mapping[str, Any], expected: str, engine: Engine
):
    followed(engine, *guids, **stored)
    assert expected in broken(audit_feeds(engine, feeds_notes(**given)))


def test_a_newcomer_that_is_handed_over_twice_is_seen(engine: Engine):
    followed(engine, "a", "b")
    for guid in "ab":
        held = {"source_id": "s1", "guid_hash": guid, "remote_id": "77", "name": "n", "facts": {}, "changed": False}
        put(engine, feeds.newcomer, **held, seen_at=1)
    assert "news: newcomer 77 is handed over twice" in broken(audit_feeds(engine, feeds_notes()))


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


def digested(engine: Engine, *loose: Table) -> None:
    """Store a day that went well; the tables of ``loose`` without what forbids that a row is there twice."""
    make(engine, digest.metadata)
    for table in loose:
        copy = table.to_metadata(MetaData())
        copy.constraints = {each for each in copy.constraints if not isinstance(each, UniqueConstraint)}
        table.drop(engine)
        copy.create(engine)
    message(engine, "finding-10:00")
    message(engine, "report-11:00", push_type="report")
    report(engine)
    article(engine, "1-1")
    slot(engine, "11:00", "success")


def report(engine: Engine) -> None:
    made = {"report_date": NOW.date(), "state": "good", "reason": "", "digest_md": "", "digest_json": {}}
    put(engine, digest.daily_report, **made, slots_done=[], stats={}, created_at=NOW, updated_at=NOW)


def slot(engine: Engine, name: str, status: str, **more: Any) -> None:
    usual = {"run_date": NOW.date(), "slot": name, "status": status, "error": "", "counters": {}}
    put(engine, digest.slot_run, **usual, scheduled_at=NOW, started_at=NOW, updated_at=NOW, **more)


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
        ({"taken": ["report-11:00", *2 * ["finding-10:00"]]}, "finding of 10:00 on first: taken 2 times"),
        ({"taken": ["report-11:00", "finding-10:00", "other"]}, "a message of the key other was taken"),
        ({"channels": ["first", "second"]}, "on second it is not in the outbox"),
        ({"day": date(2026, 11, 23)}, "there are 0 reports of 2026-11-23"),
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


def test_articles_and_reports_that_are_there_twice_are_seen(engine: Engine):
    digested(engine, digest.content_item, digest.daily_report)
    article(engine, "1-1")
    report(engine)
    found = broken(audit_digest(engine, digest_notes()))
    assert "article 1-1 of 09:59:00 is there 2 times" in found
    assert f"there are 2 reports of {NOW.date()}" in found


def test_an_article_that_is_missing_is_nobody_s_fault_while_no_slot_ran_when_all_was_well(engine: Engine):
    digested(engine)
    given = {"articles": {"9-9": NOW - timedelta(minutes=1)}, "well_since": NOW + timedelta(seconds=1)}
    assert broken(audit_digest(engine, digest_notes(**given))) == ""


def test_a_message_that_was_given_up_and_taken_nevertheless_is_seen(engine: Engine):
    digested(engine)
    message(engine, "finding-10:30", "dead")
    given_up = digest_notes(taken=["finding-10:00", "report-11:00"])
    assert broken(audit_digest(engine, given_up)) == ""
    taken = digest_notes(taken=["finding-10:00", "report-11:00", "finding-10:30"])
    assert "finding of 10:30 on first: given up, and was taken" in broken(audit_digest(engine, taken))


def test_a_report_that_was_not_sent_is_seen(engine: Engine):
    digested(engine)
    message(engine, "report-12:00", "dead", push_type="report", channel="second")
    given = {"channels": ["first", "second"]}
    assert "on second it is dead" in broken(audit_digest(engine, digest_notes(**given)))


@pytest.mark.parametrize(
    ("analyses", "expected"),
    [(0, "1-1: stands as analysed, and has no analysis"), (1, ""), (2, "item 1 has 2 analyses")],
)
def test_analyses_that_are_missing_or_doubled_are_seen(engine: Engine, analyses: int, expected: str):
    digested(engine, digest.analysis_result)
    with engine.begin() as connection:
        connection.execute(update(digest.content_item).values(analyzed_status=AnalysedStatus.DONE.value))
    for _ in range(analyses):
        told = {"score": 5, "has_opportunity": False, "summary": "", "suspicions": [], "model": "m", "raw": {}}
        put(engine, digest.analysis_result, content_item_id=1, run_id=1, **told, rubric_hash="", created_at=NOW)
    found = broken(audit_digest(engine, digest_notes()))
    assert expected in found if expected else found == ""


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
        (("一", "二", "二"), (), {}, "'二' is there 2 times"),
        (("一", "二", "九"), (), {}, "'九' is there, and nobody wrote it"),
        (("一", "二"), (1, 3), {}, "floors up to 3"),
        (("一", "二"), (), {"wanted_hidden": {101}}, "101 was to be hidden and is shown"),
        (("一", "二"), (), {"served": ["101, hidden for 2.0 s, was in x"]}, "101, hidden for 2.0 s, was in x"),
        (("一", "二"), (), {"votes": {(100, "u:1"): 1}}, "u:1 on 100: accepted 1, stored 0"),
    ],
)
def test_comments_that_are_not(
    texts: tuple[str, ...], floors: tuple[int, ...], given: Mapping[str, Any], expected: str, engine: Engine
):
    commented(engine, *texts, floors=floors)
    assert expected in broken(audit_comments(engine, comments_notes(**given)))


def test_a_comment_that_was_refused_says_why(engine: Engine):
    commented(engine, "一")
    given = {"shard": 1, "section_id": 1, "comment_id": 101, "kind": "publish", "actor": "u:1", "payload": {}}
    reason = "所回复的评论不存在"
    put(engine, comments.event, **given, request_key="k", state=EventState.FINISHED, created_at=NOW, refusal=reason)
    found = audit_comments(engine, comments_notes())
    assert broken(found) == ""
    assert "1 refused: 所回复的评论不存在" in found[0].note


def test_an_event_that_was_never_applied_is_seen(engine: Engine):
    commented(engine, "一", "二")
    given = {"shard": 1, "section_id": 1, "kind": "vote", "actor": "u:1", "payload": {}, "request_key": "k"}
    put(engine, comments.event, **given, state=EventState.PENDING, created_at=NOW)
    assert "1 events wait" in broken(audit_comments(engine, comments_notes()))


# Comment 102 is a reply to 101, and 103 was never published.
GONE, SAME = "评论不存在或未显示", "没有变化"


@pytest.mark.parametrize(
    ("number", "hidden", "events", "stored", "accepted", "expected"),
    [
        (101, True, [(1, GONE)], None, 1, ""),
        (102, True, [(1, GONE)], None, 1, ""),
        (103, False, [(1, GONE)], None, 1, ""),
        (101, True, [(1, ""), (-1, GONE)], 1, -1, ""),
        (101, False, [(1, ""), (1, SAME)], 1, 1, ""),
        (101, False, [(1, GONE)], None, 1, "opinion of u:1 on 101: accepted 1, stored 0, refused: " + GONE),
        (102, False, [(1, GONE)], None, 1, "opinion of u:1 on 102: accepted 1, stored 0, refused: " + GONE),
        (101, True, [(1, "")], None, 1, "opinion of u:1 on 101: accepted 1, stored 0"),
        (101, True, [], None, 1, "opinion of u:1 on 101: accepted 1, stored 0"),
        (103, False, [], None, 1, "opinion of u:1 on 103: accepted 1, stored 0"),
        (101, True, [(1, GONE), (-1, "")], None, -1, "opinion of u:1 on 101: accepted -1, stored 0"),
        (101, True, [(1, ""), (-1, GONE)], None, -1, "opinion of u:1 on 101: accepted -1, stored 0, refused: " + GONE),
        (101, True, [(1, GONE)], None, -1, "opinion of u:1 on 101: accepted -1, stored 0, refused: " + GONE),
        (101, True, [(None, GONE)], None, None, ""),
        (103, False, [(None, GONE)], None, None, ""),
        (101, False, [(None, GONE)], None, None, "report of u:1 on 101: accepted 1, stored 0, refused: " + GONE),
        (101, True, [(None, "")], None, None, "report of u:1 on 101: accepted 1, stored 0"),
        (101, True, [(1, GONE)], None, None, "report of u:1 on 101: accepted 1, stored 0"),
    ],
)
def test_an_opinion_may_be_refused_with_a_reason_on_a_comment_that_is_not_shown_and_nothing_else(
    number: int,
    hidden: bool,
    events: Sequence[tuple[int | None, str]],
    stored: int | None,
    accepted: int | None,
    expected: str,
    engine: Engine,
):
    """``accepted`` is the vote that the service accepted last, None where it was a report."""
    commented(engine, "一", "二", "三")
    with engine.begin() as connection:
        reply = update(comments.comment).where(comments.comment.c.comment_id == 102)
        connection.execute(reply.values(root_id=101))
        if hidden:
            gone = update(comments.comment).where(comments.comment.c.comment_id == 101)
            connection.execute(gone.values(status=int(CommentStatus.DELETED)))
    for place, (value, refusal) in enumerate(events):
        what = {"kind": "report", "payload": {}} if value is None else {"kind": "vote", "payload": {"value": value}}
        given = {"shard": 1, "section_id": 1, "comment_id": number, "actor": "u:1", "refusal": refusal, **what}
        put(engine, comments.event, **given, request_key=str(place), state=EventState.FINISHED, created_at=NOW)
    if stored is not None:
        put(engine, comments.vote, comment_id=number, voter="u:1", value=stored, updated_at=NOW)
    place = (number, "u:1")
    notes = comments_notes(accepted={100: "一", 101: "二", 102: "三"})
    if accepted is None:
        notes.reports.add(place)
    else:
        notes.votes[place] = accepted
    [found] = [each for each in audit_comments(engine, notes) if each.invariant.startswith("each opinion")]
    assert (found.examples, found.checked) == ((expected,) if expected else (), 1)
    if not expected and stored != accepted:
        assert found.note == f"1 refused: {GONE}"
