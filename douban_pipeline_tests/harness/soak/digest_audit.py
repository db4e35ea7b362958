"""What must hold of the digest: every message sent once or told as unknown, the report delivered, no article lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Engine, Row, select

from douban_pipeline.core.database import reading
from douban_pipeline.digest.push.rules import AT_MOST_ONCE, PushState, PushType
from douban_pipeline.digest.store.tables import analysis_result, content_item, daily_report, notification_log, slot_run
from douban_pipeline.digest.types import AnalysedStatus, SlotStatus
from douban_pipeline_tests.harness.soak.audit.records import Case
from douban_pipeline_tests.harness.soak.evidence import Finding


@dataclass(frozen=True, slots=True)
class DigestNotes:
    """What was noted outside of the digest."""

    day: date
    channels: Collection[str]
    taken: Sequence[str]
    articles: Mapping[str, datetime]
    well_since: datetime
    report_due: bool


def audit_digest(engine: Engine, notes: DigestNotes) -> list[Finding]:
    """Return what became of each invariant."""
    with reading(engine) as connection:
        messages = connection.execute(select(notification_log)).all()
        reports = connection.execute(select(daily_report).where(daily_report.c.report_date == notes.day)).all()
        articles = connection.execute(select(content_item)).all()
        analysed = connection.execute(select(analysis_result.c.content_item_id)).scalars().all()
        slots = connection.execute(select(slot_run)).all()
    well = [row.started_at for row in slots if row.status == SlotStatus.SUCCESS and row.started_at >= notes.well_since]
    now = datetime.now(UTC)
    return [
        _sent_once(messages, notes),
        _named(messages, notes),
        _delivered(messages, reports, notes),
        _taken_in(articles, analysed, notes, max(well, default=None), now),
        _ended(slots, now),
        _alerted(slots, messages),
    ]


def _sent_once(messages: Sequence[Row[Any]], notes: DigestNotes) -> Finding:
    case = Case("each message was sent once, or is told as unknown or given up; a report rather twice than never")
    times = Counter(notes.taken)
    states: Counter[str] = Counter()
    for row in messages:
        case.checked += 1
        states[row.state] += 1
        taken, once = times[row.msg_uuid], PushType(row.push_type) in AT_MOST_ONCE
        name = f"{row.push_type} of {row.slot} on {row.channel}"
        if row.state == PushState.SENT and not taken:
            case.breaks(f"{name}: stands as sent, and no robot took it")
        if once and taken > 1:
            case.breaks(f"{name}: taken {taken} times, stands as {row.state}")
        if row.state not in (PushState.SENT, PushState.UNKNOWN, PushState.DEAD):
            case.breaks(f"{name}: still {row.state}: {row.error or ''}")
        if row.state == PushState.DEAD and taken:
            case.breaks(f"{name}: given up, and was taken")
    case.notes.append(", ".join(f"{name} {count}" for name, count in states.items()))
    return case.finding()


def _named(messages: Sequence[Row[Any]], notes: DigestNotes) -> Finding:
    case = Case("robots took nothing that the outbox does not name", checked=len(notes.taken))
    known = {row.msg_uuid for row in messages}
    for key in sorted(set(notes.taken) - known):
        case.breaks(f"a message of the key {key} was taken")
    return case.finding()


def _delivered(messages: Sequence[Row[Any]], reports: Sequence[Row[Any]], notes: DigestNotes) -> Finding:
    case = Case("the report of the day was made, and delivered on every channel")
    if not notes.report_due:
        case.notes.append("it was ended before its hour")
        return case.finding()
    case.checked = 1 + len(notes.channels)
    if len(reports) != 1:
        case.breaks(f"there are {len(reports)} reports of {notes.day}")
    for row in reports:
        case.notes.append(f"{row.state}: slots {', '.join(map(str, row.slots_done))[:200]}")
    own = [row for row in messages if row.push_type == PushType.REPORT and row.report_date == notes.day]
    states = {row.channel: row.state for row in own}
    for channel in notes.channels:
        if states.get(channel) != PushState.SENT:
            case.breaks(f"on {channel} it is {states.get(channel, 'not in the outbox')}")
    return case.finding()


def _taken_in(
    articles: Sequence[Row[Any]], analysed: Sequence[int], notes: DigestNotes, read_at: datetime | None, now: datetime
) -> Finding:
    case = Case("every article is taken in once and analysed once, and none stays a dead run's")
    count = Counter(str(row.external_id) for row in articles)
    for each, published_at in sorted(notes.articles.items()):
        case.checked += 1
        if count[each] > 1 or (not count[each] and read_at is not None and published_at < read_at):
            case.breaks(f"article {each} of {published_at:%H:%M:%S} is there {count[each]} times")
    done = Counter(analysed)
    for number, times in done.items():
        if times > 1:
            case.breaks(f"item {number} has {times} analyses")
    for row in articles:
        if row.claim_owner and row.claim_until > now:
            case.breaks(f"{row.external_id}: still held by {row.claim_owner}")
        if row.analyzed_status == AnalysedStatus.DONE and not done[row.content_item_id]:
            case.breaks(f"{row.external_id}: stands as analysed, and has no analysis")
    states = Counter(AnalysedStatus(row.analyzed_status).name.lower() for row in articles)
    case.notes.append(", ".join(f"{state} {number}" for state, number in sorted(states.items())))
    if read_at is None:
        case.notes.append("no slot ran when all was well: what is missing is not told")
    return case.finding()


def _ended(slots: Sequence[Row[Any]], now: datetime) -> Finding:
    case = Case("no slot stays a dead run's", checked=len(slots))
    for row in slots:
        if row.status == SlotStatus.RUNNING and row.lease_until is not None and row.lease_until > now:
            case.breaks(f"{row.run_date} {row.slot} is running, held by {row.lease_owner}")
    states = Counter(row.status for row in slots)
    case.notes.append(", ".join(f"{state} {number}" for state, number in sorted(states.items())))
    return case.finding()


def _alerted(slots: Sequence[Row[Any]], messages: Sequence[Row[Any]]) -> Finding:
    case = Case("people are alerted of each slot that could read no source, unless it pushes nothing")
    told = {(row.report_date, row.slot) for row in messages if row.push_type == PushType.ALERT}
    for row in slots:
        if row.pushes and row.status != SlotStatus.RUNNING and (row.counters or {}).get("ingest_failed"):
            case.checked += 1
            if (row.run_date, row.slot) not in told:
                case.breaks(f"{row.run_date} {row.slot} could read nothing, and nobody was alerted")
    return case.finding()
