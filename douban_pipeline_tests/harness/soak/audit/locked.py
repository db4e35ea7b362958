"""Whether anything automatic changed what was locked, ignored, or locked in the CMS itself.

A lock of ours stands from when the log says that it was applied until the change that takes it off was prepared. A
write happened between its own two times. So what is told is certain: both moments lie within the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Change, Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding
from douban_pipeline_tests.harness.soak.journal import Entry
from douban_pipeline_tests.harness.soak.values import canonical

SETTLES = timedelta(seconds=5)
"""How long after the time that the log gives a lock its transaction may still have waited, on a busy machine."""

_ID = frozenset({"vod_douban_id"})
_SYNOPSIS = frozenset({"vod_content", "vod_blurb"})
_RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which columns of a video were not to be touched; all of them if none is named.

    Attributes:
        values: What restoring may put back, by column; where nothing is known of a column, anything.
    """

    since: datetime
    until: datetime | None
    columns: frozenset[str]
    why: str
    values: dict[str, str]

    def touched_by(self, change: Change) -> set[str]:
        """Return which of its columns ``change`` writes."""
        return set(change.written) & self.columns if self.columns else set(change.written)

    def holds(self, change: Change) -> bool:
        """Return whether ``change`` was certainly written in this time."""
        done = change.applied_at or change.prepared_at
        return change.prepared_at > self.since and (self.until is None or done < self.until)


def no_locked_value_changed(evidence: Evidence, records: Records) -> Finding:
    """Check every automatic write against the locks of its video."""
    case = Case("nothing automatic changed a locked id, a locked synopsis, an ignored video or a row with vod_lock")
    entries: dict[int, list[Entry]] = {}
    for entry in evidence.journal.entries():
        if (entry.happened or entry.doubtful) and ("vod_lock" in entry.edges()):
            entries.setdefault(entry.vod_id, []).append(entry)
    restored = spans_seen = 0
    for vod_id, changes in records.by_video.items():
        spans = list(_spans(changes, records.locked_ids))
        if evidence.services.settings.respect_vod_lock:
            spans += _spans_of_the_cms(evidence, vod_id, entries.get(vod_id, []))
        spans_seen += len(spans)
        for change in changes:
            if not (change.happened and change.automatic and change.written):
                continue
            case.checked += 1
            holding = [span for span in spans if span.touched_by(change) and span.holds(change)]
            # A lock that was set anew protects what stood then, not what an earlier one did.
            newest = {span.columns: span for span in sorted(holding, key=lambda span: span.since) if span.columns}
            if change.action == _RESTORE and newest and not any(_wrong(change, span) for span in newest.values()):
                restored += 1
                holding = [span for span in holding if not span.columns]
            for span in holding[:1]:
                touched = span.touched_by(change)
                shown = ", ".join(f"{name} {change.old.get(name)!r} → {change.new[name]!r}" for name in sorted(touched))
                case.breaks(f"video {vod_id}: {change.named} of {change.prepared_at:%H:%M:%S} wrote {shown} {span.why}")
    case.notes.append(f"{spans_seen} locks, {restored} locked values put back after others had changed them")
    return case.finding()


def _wrong(change: Change, span: Span) -> bool:
    """Return whether a restore puts back something else than what was locked."""
    return any(span.values.get(name, value) != value for name, value in change.new.items() if name in span.columns)


def _spans(changes: list[Change], locked_ids: Mapping[int, int]) -> Iterator[Span]:
    """Yield the times in which our own locks stood, as the log tells them."""
    shown = sorted(
        (change for change in changes if change.happened),
        key=lambda each: (each.applied_at or each.prepared_at, each.change_id),
    )
    for name, columns, words in (
        ("douban_id_locked", _ID, "while the id was locked"),
        ("intro_locked", _SYNOPSIS, "while the synopsis was locked"),
    ):
        values: dict[str, str] = {}
        locked = False
        for place, change in enumerate(shown):
            written = _values(change, columns)
            values |= written
            if columns == _ID and (found := locked_ids.get(change.decision_id or 0)) is not None:
                values["vod_douban_id"] = canonical("vod_douban_id", found)
            locked = bool(change.state_new.get(name, locked))
            # Under a lock a person may still write, or take a write back; then it protects that.
            if change.state_new.get(name) or (locked and written and not change.automatic):
                off = (each.prepared_at for each in shown[place + 1 :] if each.state_new.get(name, True) is False)
                until = next(off, None)
                yield Span(_since(change), until, columns, f"{words} by change {change.change_id}", dict(values))
    status = "douban_review_status"
    for place, change in enumerate(shown):
        if change.state_new.get(status) == "IGNORED":
            ends = (
                each.prepared_at for each in shown[place + 1 :] if each.state_new.get(status, "IGNORED") != "IGNORED"
            )
            until = next(ends, None)
            over = change.state_new.get("douban_ignore_until")
            if isinstance(over, dict):
                awake = datetime.fromisoformat(over["time"])
                until = min(until, awake) if until else awake
            yield Span(_since(change), until, frozenset(), f"while it was ignored by change {change.change_id}", {})


def _values(change: Change, columns: frozenset[str]) -> dict[str, str]:
    """Return what a change wrote or noted of ``columns``."""
    values = {name: value for name, value in change.new.items() if name in columns}
    if columns == _ID and "vod_douban_id" in change.state_new:
        values["vod_douban_id"] = canonical("vod_douban_id", change.state_new["vod_douban_id"])
    return {} if change.action == _RESTORE else values


def _since(change: Change) -> datetime:
    return (change.applied_at or change.prepared_at) + SETTLES


def _spans_of_the_cms(evidence: Evidence, vod_id: int, entries: list[Entry]) -> Iterator[Span]:
    """Yield the times in which the row was locked in the CMS, as the journal tells them."""
    locked = evidence.initial.value(vod_id, "vod_lock") == "1"
    since: datetime | None = evidence.began if locked else None
    for entry in entries:
        if since is not None:
            yield Span(since, entry.at, frozenset(), "while the row was locked in the CMS", {})
        after = entry.edges()["vod_lock"][1]
        since = entry.ended_at if after == "1" and entry.happened else None
    if since is not None:
        yield Span(since, None, frozenset(), "while the row was locked in the CMS", {})
