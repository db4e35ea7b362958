"""What must hold of comments: accepted ones are there once, floors and counters are exact, nothing hidden is served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine, func, select

from douban_pipeline.comments.store.counting import count_differences
from douban_pipeline.comments.store.tables import comment, content, event, section, vote
from douban_pipeline.comments.types import CommentStatus, EventKind, EventState
from douban_pipeline.core.database import reading
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.evidence import Finding


@dataclass(slots=True)
class CommentsNotes:
    """What visitors and operators noted.

    Attributes:
        accepted: Text of each comment that the service accepted, by its id.
        doubtful: Texts of those of which nobody knows whether they were accepted.
        votes: The last opinion of a voter on a comment that was accepted.
        doubted_votes: Voters and comments where nobody knows which opinion was the last.
        hidden: Comments whose hiding is committed, and since when.
        wanted_hidden: Comments of which an accepted decision says that they are hidden.
        pages: How many answers were looked at for what is hidden.
        served: What of it was in an answer that was asked for later, in words.
    """

    accepted: dict[int, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    votes: dict[tuple[int, str], int] = field(default_factory=dict)
    doubted_votes: set[tuple[int, str]] = field(default_factory=set)
    hidden: dict[int, float] = field(default_factory=dict)
    wanted_hidden: set[int] = field(default_factory=set)
    pages: int = 0
    served: list[str] = field(default_factory=list)


def audit_comments(engine: Engine, notes: CommentsNotes) -> list[Finding]:
    """Return what became of each invariant."""
    with reading(engine) as connection:
        query = select(comment.c.comment_id, content.c.content, comment.c.status).outerjoin(
            content, content.c.comment_id == comment.c.comment_id
        )
        rows = connection.execute(query).tuples().all()
        votes = connection.execute(select(vote.c.comment_id, vote.c.voter, vote.c.value)).tuples().all()
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
    texts = {number: text or "" for number, text, _ in rows}
    statuses = {number: status for number, _, status in rows}
    return [
        _there_once(texts, refused, notes),
        _counted(differences, len(rows)),
        _opinions({(number, voter): value for number, voter, value in votes}, notes),
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


def _opinions(stored: Mapping[tuple[int, str], int], notes: CommentsNotes) -> Finding:
    case = Case("each opinion stored is the last one that was accepted")
    for place, value in notes.votes.items():
        if place in notes.doubted_votes:
            continue
        case.checked += 1
        if stored.get(place, 0) != value:
            case.breaks(f"{place[1]} on {place[0]}: accepted {value}, stored {stored.get(place, 0)}")
    return case.finding()


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
