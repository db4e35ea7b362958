"""Taking the CMS's videos into our state table, and noticing how they change.

New and changed rows are found by `vod_id` above the last seen and by `vod_time`; a rolling sweep over all ids
catches what neither shows (batch edits and adopted AI annotations do not bump `vod_time`, and a source may hand in a
time of long ago).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, RowMapping, bindparam, func, or_, select, update

from douban_pipeline.cms.maccms import MATCH_COLUMNS, Cms, in_recycle_bin
from douban_pipeline.cms.numbers import year_of
from douban_pipeline.cms.people import PEOPLE_COLUMNS, People, names_of_row
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import insert_missing, reading, run_transaction
from douban_pipeline.douban.chain.due.cleared_ids import cleared_states
from douban_pipeline.douban.pace import PLAN_TIERS, Tiers, updated_at
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import chosen_subjects
from douban_pipeline.douban.store.states import BY_PEOPLE, IdSource, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK, CLEARED_IN_CMS, GONE, fingerprint, state_rows
from douban_pipeline.matching.text import simplify

if TYPE_CHECKING:
    import numpy as np

OVERLAP = timedelta(hours=1)
"""How far before the newest time seen changes are looked for, against rows that were taken in out of order."""

_BATCH = 2000
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class FirstVisits:
    """When each video is first visited, to the second: 13 bytes a video while it is planned, 8 bytes afterwards."""

    ids: array[int]
    seconds: np.ndarray
    now: datetime

    @classmethod
    def evenly(
        cls, ids: array[int], moments: array[int], places: array[int], now: datetime, tiers: Tiers = PLAN_TIERS
    ) -> FirstVisits:
        """Spread the videos of each tier over its interval, the most recently updated first.

        Args:
            ids: The videos, ascending.
            moments: When each was last updated, unix seconds.
            places: The place of each one's tier.
            now: The first visit of the first.
            tiers: The tiers.
        """
        import numpy as np  # a tenth of a second, which only `initialise` has to wait for

        updated, tier_of = np.asarray(moments), np.asarray(places)
        seconds = np.zeros(len(ids), dtype=np.float32)
        for index, tier in enumerate(tiers.members):
            members = np.flatnonzero(tier_of == index)
            # The complement turns the order round, and keeps the size.
            order = members[np.argsort(~updated[members], kind="stable")]
            step = tier.interval.total_seconds() / max(len(order), 1)
            seconds[order] = np.arange(len(order), dtype=np.float32) * np.float32(step)
        return cls(ids, seconds, now)

    def at(self, vod_id: int) -> datetime:
        """Return the first visit of ``vod_id``; a video that was not planned for is visited at once."""
        position = bisect_left(self.ids, vod_id)
        if position >= len(self.ids) or self.ids[position] != vod_id:
            return self.now
        return self.now + timedelta(seconds=float(self.seconds[position]))


@dataclass(slots=True)
class IntakeReport:
    """How many videos were looked at, newly taken in, changed, and found gone (deleted or in the recycle bin).

    ``names`` is the number of names of people that were new to their table.
    """

    seen: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    names: int = 0
    by_tier: dict[str, int] = field(default_factory=dict)


class Intake:
    """Keeps our state table in step with `mac_vod`.

    With ``dry_run`` it counts what it would take in, change or give up, and writes nothing; ``blank`` means that our
    tables do not exist yet, so that everything would be new.
    """

    def __init__(
        self,
        engine: Engine,
        tables: OwnTables,
        cms: Cms,
        clock: Clock,
        tiers: Tiers = PLAN_TIERS,
        *,
        dry_run: bool = False,
        blank: bool = False,
    ) -> None:
        self.engine = engine
        self.tables = tables
        self.video = tables.video
        self.cms = cms
        self.clock = clock
        self.tiers = tiers
        self.dry_run = dry_run
        self.blank = blank
        self.people = People(engine, tables.person, clock)
        self.columns = [*dict.fromkeys((*MATCH_COLUMNS, *PEOPLE_COLUMNS, "vod_time", "vod_douban_id"))]
        if cms.has_recycle_bin:
            self.columns.append("vod_recycle_time")

    @classmethod
    def of(cls, services: Services, *, dry_run: bool = False, blank: bool = False) -> Intake:
        """Return the intake of ``services``, with the tiers of their settings."""
        parts = (services.engine, services.tables, services.cms, services.clock, services.settings.tiers)
        return cls(*parts, dry_run=dry_run, blank=blank)

    def initialise(self, *, spread: bool = True, progress: Progress = lambda _: None) -> IntakeReport:
        """Take in the whole library; safe to repeat and to go on with after a crash.

        First visits are spread evenly over each tier's interval, the most recently updated first, so that a new
        installation does not ask for everything at once.

        Args:
            spread: ``False`` makes every new video due now (for small libraries).
            progress: Called with how many videos were looked at so far.
        """
        plan = self._plan_first_visits() if spread and not self.dry_run else None
        report = IntakeReport()
        for rows in self.cms.stream(self.engine, self.columns, size=_BATCH):
            self._take_in(rows, report, plan)
            progress(report.seen)
        return report

    def _plan_first_visits(self) -> FirstVisits:
        now = self.clock.now()
        ids, moments, places = array("I"), array("I"), array("b")
        for rows in self.cms.stream(self.engine, ("vod_time", "vod_year"), size=10 * _BATCH):
            for row in rows:
                year = year_of(row["vod_year"])
                moment = updated_at(row["vod_time"], year)
                ids.append(row["vod_id"])
                moments.append(max(0, int(moment.timestamp())) if moment else 0)
                places.append(self.tiers.index(row["vod_time"], year, now))
        return FirstVisits.evenly(ids, moments, places, now, self.tiers)

    def changes(self, *, limit: int = 20_000) -> IntakeReport:
        """Take in rows that are new or whose `vod_time` changed, the oldest first, at most about ``limit``."""
        report = IntakeReport()
        looked: set[int] = set()
        for query_ids in (self._changed_ids, self._new_ids):
            # Stored by then, unless this only counts.
            vod_ids = [vod_id for vod_id in query_ids(limit) if vod_id not in looked]
            looked.update(vod_ids)
            self.look_at(vod_ids, report)
        return report

    def look_at(self, vod_ids: Sequence[int], report: IntakeReport) -> None:
        """Take in these rows of the CMS regardless of `vod_time`, and add the results to ``report``."""
        for start in range(0, len(vod_ids), _BATCH):
            with reading(self.engine) as connection:
                rows = list(self.cms.rows(connection, vod_ids[start : start + _BATCH]).values())
            self._take_in(rows, report)

    def _changed_ids(self, limit: int) -> list[int]:
        vod, video = self.cms.vod, self.video
        with reading(self.engine) as connection:
            now = int(self.clock.now().timestamp())
            newest = connection.execute(select(func.max(video.c.vod_time)).where(video.c.vod_time <= now)).scalar()
            query = (
                select(vod.c.vod_id)
                .outerjoin(video, video.c.vod_id == vod.c.vod_id)
                .where(
                    vod.c.vod_time >= (newest or 0) - int(OVERLAP.total_seconds()),
                    or_(video.c.vod_id.is_(None), video.c.vod_time != vod.c.vod_time),
                )
                .order_by(vod.c.vod_time)
                .limit(limit)
            )
            return list(connection.execute(query).scalars())

    def _new_ids(self, limit: int) -> list[int]:
        vod = self.cms.vod
        with reading(self.engine) as connection:
            last = connection.execute(select(func.max(self.video.c.vod_id))).scalar() or 0
            query = select(vod.c.vod_id).where(vod.c.vod_id > last).order_by(vod.c.vod_id).limit(limit)
            return list(connection.execute(query).scalars())

    def has_begun(self) -> bool:
        """Return whether the library was taken in at all; nothing else may be first, or no visit would be spread."""
        with reading(self.engine) as connection:
            return connection.execute(select(self.video.c.vod_id).limit(1)).first() is not None

    def waiting(self) -> int:
        """Return how many new or changed rows wait, counting no further than 100; two indexed queries."""
        return len({*self._changed_ids(100), *self._new_ids(100)})

    def sweep(self, part: int, parts: int) -> IntakeReport:
        """Check the ``part``-th (from 0) of ``parts`` slices of all ids, regardless of `vod_time`."""
        if not 0 <= part < parts:
            raise ValueError(f"part {part} of {parts}: parts are counted from 0")
        report = IntakeReport()
        with reading(self.engine) as connection:
            keys = (self.cms.vod.c.vod_id, self.video.c.vod_id)
            highest = max(connection.execute(select(func.max(key))).scalar() or 0 for key in keys)
        first, last = highest * part // parts, highest * (part + 1) // parts
        present: set[int] = set()
        for rows in self.cms.stream(self.engine, self.columns, first=first, last=last, size=_BATCH):
            self._take_in(rows, report)
            present.update(row["vod_id"] for row in rows)
        report.gone += run_transaction(self.engine, partial(self._note_gone, first=first, last=last, present=present))
        return report

    def _note_gone(self, connection: Connection, first: int, last: int, present: Collection[int]) -> int:
        """Take videos with ids above ``first`` up to ``last`` off the schedule unless ``present``; return how many."""
        video = self.video
        query = select(video.c.vod_id).where(
            video.c.vod_id > first, video.c.vod_id <= last, video.c.douban_next_sync_at.is_not(None)
        )
        gone = [vod_id for vod_id in connection.execute(query).scalars() if vod_id not in present]
        if self.dry_run:
            return len(gone)
        for start in range(0, len(gone), _BATCH):
            connection.execute(
                update(video)
                .where(video.c.vod_id.in_(gone[start : start + _BATCH]))
                .values(douban_next_sync_at=None, douban_review_reason=GONE)
            )
        return len(gone)

    def _take_in(self, rows: Sequence[RowMapping], report: IntakeReport, plan: FirstVisits | None = None) -> None:
        now = self.clock.now()
        report.seen += len(rows)
        # Of all rows, not only of those that changed: the dictionary may be younger than the library.
        names = {name for row in rows for name in names_of_row(row, self.cms.widths)}
        names.update([*map(simplify, names)])
        report.names += self.people.count_new(names, blank=self.blank) if self.dry_run else self.people.remember(names)
        with reading(self.engine) as connection:
            states = {} if self.blank else state_rows(connection, self.tables, [row["vod_id"] for row in rows])
        rows = [row for row in rows if row["vod_id"] not in states or self._change(row, states[row["vod_id"]], now)]
        if not rows:
            return
        if self.dry_run:
            new = [self.tiers.tier_of_row(row, now).name for row in rows if row["vod_id"] not in states]
            self._count(report, new, len(rows) - len(new))
            return
        tiers, changed = run_transaction(self.engine, partial(self._store, rows=rows, now=now, plan=plan))
        self._count(report, tiers, changed)

    @staticmethod
    def _count(report: IntakeReport, tiers: Sequence[str], changed: int) -> None:
        for tier in tiers:
            report.by_tier[tier] = report.by_tier.get(tier, 0) + 1
        report.new += len(tiers)
        report.changed += changed

    def _store(
        self, connection: Connection, rows: Sequence[RowMapping], now: datetime, plan: FirstVisits | None
    ) -> tuple[list[str], int]:
        """Write the state of videos that are new or changed; return the tier of each new one, and how many changed."""
        # Looked at again, our state under lock and the CMS after it: a run may have linked a video in between, and
        # visited it later than the moment at which this look began.
        states = state_rows(connection, self.tables, [row["vod_id"] for row in rows], lock=True)
        now = max(now, self.clock.now())
        current = self.cms.rows(connection, list(states)) if states else {}
        moved = [n for n in current if current[n]["vod_douban_id"] != states[n]["vod_douban_id"]]
        chosen = chosen_subjects(connection, self.tables, moved)
        cleared = cleared_states(connection, self.tables, self.cms, current, states, chosen, now)
        new: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        tiers: list[str] = []
        for row in rows:
            state = states.get(row["vod_id"])
            if state is None:
                new.append(_first_state(row, plan.at(row["vod_id"]) if plan else now))
                tiers.append(self.tiers.tier_of_row(row, now).name)
            elif row["vod_id"] in current:
                choice = chosen.get(row["vod_id"])
                difference = self._change(current[row["vod_id"]], state, now, choice)
                difference |= cleared.get(row["vod_id"], {})
                if difference:
                    before = {name: state[name] for name in _UPDATED}
                    changed.append(before | difference | {"key": row["vod_id"]})
        if new:
            insert_missing(connection, self.video, new, key="vod_id")
        if changed:
            connection.execute(update(self.video).where(self.video.c.vod_id == bindparam("key")), changed)
        return tiers, len(changed)

    def _change(self, row: RowMapping, state: RowMapping, now: datetime, chosen: int | None = None) -> dict[str, Any]:
        visited = state["douban_last_sync_at"]
        if visited is not None and now <= visited:
            now = visited + timedelta(seconds=1)  # a visit is never before the last one, whatever the clocks say
        return _difference(row, state, now, self.tiers.next_visit_of(row, now), chosen)


_UPDATED = (
    "type_id",
    "vod_time",
    "fingerprint",
    "vod_douban_id",
    "douban_id_source",
    "douban_id_confidence",
    "douban_review_status",
    "douban_review_reason",
    "douban_next_sync_at",
)


def _first_state(row: RowMapping, visit: datetime) -> dict[str, Any]:
    """Return the state row of a video seen for the first time.

    An id in the CMS counts as CONFIRMED, of source ``cms``: it is checked against its subject before
    anything is written for it.
    """
    linked = bool(row["vod_douban_id"])
    return {
        "vod_id": row["vod_id"],
        "type_id": row["type_id"],
        "vod_time": row["vod_time"],
        "vod_douban_id": row["vod_douban_id"],
        "shard": shard_of(row["vod_id"]),
        "fingerprint": fingerprint(row),
        "douban_id_source": IdSource.CMS if linked else "",
        "douban_review_status": ReviewStatus.CONFIRMED if linked else ReviewStatus.NOT_FOUND,
        "douban_next_sync_at": None if in_recycle_bin(row) else visit,
    }


def _difference(
    row: RowMapping, state: RowMapping, now: datetime, visit: datetime, chosen: int | None
) -> dict[str, Any]:
    """Return what to change in the state of a known video, empty if nothing; ``chosen`` is a person's subject."""
    changes: dict[str, Any] = {}
    for name, value in (
        ("type_id", row["type_id"]),
        ("vod_time", row["vod_time"]),
        ("fingerprint", fingerprint(row)),
    ):
        if state[name] != value:
            changes[name] = value
    if state["douban_review_reason"] == CLEARED_IN_BULK and not row["vod_douban_id"]:
        return changes  # nothing is linked or looked for until the operator has answered
    due = state["douban_next_sync_at"]
    ignored = state["douban_review_status"] == ReviewStatus.IGNORED
    if in_recycle_bin(row):
        return changes | ({"douban_next_sync_at": None} if due is not None else {})
    if due is None:
        back = state["douban_ignore_until"] if ignored else now
        changes |= {"douban_next_sync_at": back} if back is not None else {}
    if state["douban_review_reason"] == CLEARED_IN_BULK and row["vod_douban_id"] == state["vod_douban_id"]:
        reason = "豆瓣 ID 在 CMS 中已恢复"
        changes |= {"douban_review_status": ReviewStatus.CONFIRMED, "douban_review_reason": reason}
    elif row["vod_douban_id"] != state["vod_douban_id"] and not ignored:
        changes |= _id_changed(row["vod_douban_id"], state, chosen, now)
    elif not ignored and due is not None:
        undecided = state["douban_review_status"] in (ReviewStatus.NOT_FOUND, ReviewStatus.REVIEW)
        if ("fingerprint" in changes and undecided) or "type_id" in changes:
            # A linked video whose category was moved, too: what kind of work it is may contradict its subject.
            changes["douban_next_sync_at"] = now
        elif "vod_time" in changes and visit < due:
            changes["douban_next_sync_at"] = visit
    return changes


def _id_changed(douban_id: int, state: RowMapping, chosen: int | None, now: datetime) -> dict[str, Any]:
    """Return the state after the id was changed in the CMS from outside.

    It does not replace a person's choice: the video goes to review, and nothing is linked or synced until then.
    """
    if state["douban_id_locked"]:
        reason = f"锁定的豆瓣 ID {state['vod_douban_id']} 在 CMS 中被改为 {douban_id}"
        return {"douban_review_reason": reason} if state["douban_review_reason"] != reason else {}
    source: str = IdSource.CMS if douban_id else ""
    status = ReviewStatus.CONFIRMED if douban_id else ReviewStatus.NOT_FOUND
    reason = "豆瓣 ID 在 CMS 中被修改" if douban_id else CLEARED_IN_CMS
    if chosen is not None and chosen == douban_id:
        source, reason = IdSource.PERSON, "豆瓣 ID 在 CMS 中改回审核员选定的条目"
    elif chosen is not None or state["douban_id_source"] in BY_PEOPLE:
        status = ReviewStatus.REVIEW
        wanted = chosen if chosen is not None else state["vod_douban_id"]
        reason = f"审核员选定的豆瓣 ID {wanted} 在 CMS 中被{f'改为 {douban_id}' if douban_id else '清空'}"
    return {
        "vod_douban_id": douban_id,
        "douban_id_source": source,
        "douban_id_confidence": None,
        "douban_review_status": status,
        "douban_review_reason": reason,
        "douban_next_sync_at": now,
    }
