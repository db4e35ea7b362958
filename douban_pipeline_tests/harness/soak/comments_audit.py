"""What must hold of comments: accepted ones are there once, counters exact, nothing hidden served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, func, select

from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.tables import comment, content, event, report, section, vote
from douban_pipeline.comments.types import CommentStatus, EventKind, EventState
from douban_pipeline.core.database import reading
from douban_pipeline_tests.harness.soak.audit.records import Case
from douban_pipeline_tests.harness.soak.evidence import Finding


@dataclass(slots=True)
class CommentsNotes:
    """What visitors and operators noted."""

    accepted: dict[int, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    votes: dict[tuple[int, str], int] = field(default_factory=dict)
    doubted_votes: set[tuple[int, str]] = field(default_factory=set)
    reports: set[tuple[int, str]] = field(default_factory=set)
    hidden: dict[int, float] = field(default_factory=dict)
    wanted_hidden: set[int] = field(default_factory=set)
    pages: int = 0
    served: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Opinions:
    """The opinions of one kind: what is stored, and what became of each that was accepted."""

    stored: dict[tuple[int, str], int]
    asked: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    applied: dict[tuple[int, str], int] = field(default_factory=dict)


def audit_comments(engine: Engine, notes: CommentsNotes) -> list[Finding]:
    """Return what became of each invariant."""
    with reading(engine) as connection:
        columns = comment.c.comment_id, content.c.content, comment.c.status, comment.c.root_id
        query = select(*columns).outerjoin(content, content.c.comment_id == comment.c.comment_id)
        rows = connection.execute(query).tuples().all()
        votes, reports = _votes(connection), _reports(connection)
        states = select(event.c.state, func.count()).group_by(event.c.state)
        refusals = select(event.c.comment_id, event.c.refusal).where(
            event.c.kind == EventKind.PUBLISH, event.c.refusal != ""
        )
        refused = dict(connection.execute(refusals).tuples().all())
        events = dict(connection.execute(states).tuples().all())
        differences = [
            each
            for (number,) in connection.execute(select(section.c.section_id))
            for each in count_differences(connection, number)
        ]
    texts = {number: text or "" for number, text, _, _ in rows}
    statuses = {number: status for number, _, status, _ in rows}
    normal = {number for number, status in statuses.items() if status == CommentStatus.NORMAL}
    shown = {number for number, _, _, root in rows if number in normal and (not root or root in normal)}
    return [
        _there_once(texts, refused, notes),
        _counted(differences, len(rows)),
        _opinions(votes, reports, shown, notes),
        _hidden(statuses, notes),
        _applied(events),
    ]


def _there_once(texts: Mapping[int, str], refused: Mapping[int, str], notes: CommentsNotes) -> Finding:
    case = Case("each accepted comment is there once or says why it was refused, and there is none that nobody wrote")
    known: dict[str, int] = {}
    reasons: Counter[str] = Counter()
    for text in texts.values():
        known[text] = known.get(text, 0) + 1
    for number, text in notes.accepted.items():
        case.checked += 1
        if number in refused and number not in texts:
            reasons[refused[number]] += 1  # such as a reply to a comment that was hidden in the meantime
        elif texts.get(number) != text:
            case.breaks(f"{number} was accepted as {text!r}, and is {texts.get(number)!r}")
    written = {*notes.accepted.values(), *notes.doubtful}
    for text, count in known.items():
        case.checked += 1
        if text not in written:
            case.breaks(f"{text!r} is there, and nobody wrote it")
        if count > 1:
            case.breaks(f"{text!r} is there {count} times")
    case.notes += [f"{count} refused: {reason}" for reason, count in reasons.items()]
    case.notes.append(f"{sum(text in known for text in notes.doubtful)} of {len(notes.doubtful)} doubtful ones arrived")
    return case.finding()


def _counted(differences: Collection[str], comments: int) -> Finding:
    case = Case("floors have no gap and no double, and every counter is what its rows say", checked=comments)
    for each in differences:
        case.breaks(each)
    return case.finding()


def _opinions(votes: _Opinions, reports: _Opinions, shown: Collection[int], notes: CommentsNotes) -> Finding:
    case = Case("each opinion stored is the last one that was accepted, unless it was refused on a comment not shown")
    reasons: Counter[str] = Counter()
    accepted = [(votes, place, value) for place, value in notes.votes.items() if place not in notes.doubted_votes]
    accepted += [(reports, place, 1) for place in sorted(notes.reports)]
    for opinions, place, value in accepted:
        case.checked += 1
        stored = opinions.stored.get(place, 0)
        asked, refusal = opinions.asked.get(place, (None, ""))
        if stored == value:
            continue
        # Hidden before its turn came, or never published: what was applied before is what is stored.
        if refusal and asked == value and place[0] not in shown and stored == opinions.applied.get(place, 0):
            reasons[refusal] += 1
            continue
        kind = "report" if opinions is reports else "opinion"
        why = f", refused: {refusal}" if refusal else ""
        case.breaks(f"{kind} of {place[1]} on {place[0]}: accepted {value}, stored {stored}{why}")
    case.notes += [f"{count} refused: {reason}" for reason, count in reasons.items()]
    return case.finding()


def _votes(connection: Connection) -> _Opinions:
    rows = connection.execute(select(vote.c.comment_id, vote.c.voter, vote.c.value)).tuples()
    return _with_events(connection, EventKind.VOTE, {(number, voter): value for number, voter, value in rows})


def _reports(connection: Connection) -> _Opinions:
    rows = connection.execute(select(report.c.comment_id, report.c.reporter)).tuples()
    return _with_events(connection, EventKind.REPORT, dict.fromkeys(rows, 1))


def _with_events(connection: Connection, kind: EventKind, stored: dict[tuple[int, str], int]) -> _Opinions:
    found = _Opinions(stored)
    query = select(event.c.comment_id, event.c.actor, event.c.payload, event.c.refusal).where(
        event.c.kind == kind, event.c.state != EventState.PENDING
    )
    for number, actor, payload, refusal in connection.execute(query.order_by(event.c.event_id)):
        value = int(payload["value"]) if kind is EventKind.VOTE else 1
        found.asked[number, actor] = value, refusal
        if not refusal:
            found.applied[number, actor] = value
    return found


def _hidden(statuses: Mapping[int, int], notes: CommentsNotes) -> Finding:
    case = Case("what was hidden stays hidden, and no answer holds it", checked=notes.pages + len(notes.wanted_hidden))
    for number in notes.wanted_hidden:
        if statuses.get(number) == CommentStatus.NORMAL:
            case.breaks(f"{number} was to be hidden and is shown")
    for each in notes.served:
        case.breaks(each)
    case.notes.append(f"{notes.pages} answers looked at, {len(notes.hidden)} comments hidden meanwhile")
    return case.finding()


def _applied(events: Mapping[int, int]) -> Finding:
    case = Case("every event was applied", checked=sum(events.values()))
    if waiting := events.get(EventState.PENDING, 0):
        case.breaks(f"{waiting} events wait")
    return case.finding()
