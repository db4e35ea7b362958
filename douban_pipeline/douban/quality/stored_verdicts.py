"""Reads stored verdicts back as they were judged: the video's facts, and its candidates from archived answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, pairwise
from typing import Any

from sqlalchemy import Connection, RowMapping, String, case, false, func, or_, select, type_coerce

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.match.judgement import Case, Circumstances
from douban_pipeline.douban.evidence.added_facts import Added, posters_of
from douban_pipeline.douban.evidence.known_names import stored_names
from douban_pipeline.douban.match_inputs import subject_facts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.verdict_facts import subject_of, video_of
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline.matching import Code, Subject
from douban_pipeline.matching.strata import OPENINGS

BATCH = 150
"""Verdicts read at once. For lists longer than 199, MariaDB and MySQL estimate the number of rows from statistics that
may be stale, and then read the whole table (`eq_range_index_dive_limit`)."""
KEPT_SUBJECTS = 20_000
"""Subjects kept in memory: the same subject is a candidate of many videos, mostly with nearby ids."""

NO_FACTS = "没有保存影片的事实"
NO_ANSWER = "存档的应答已不在"
UNREADABLE = "存档的应答无法解析"

_STANDING = re.compile(r"CMS 中(?:已有|的)豆瓣 ID (\d+)")
_CHOSEN = re.compile(r"审核员选定的是 (\d+)")
_FROM_CMS = "cms"


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict with all that it depended on.

    Attributes:
        status: The stored status.
        douban_id: The subject, confirmed or not; 0 without candidates.
        current_id: The id in the CMS then, 0 for none.
        case: What was judged. Of people's choices it holds only one that affected the verdict; of brakes the strata
            whose brake was on, of reverted and linked videos and of known names those of that moment.
    """

    vod_id: int
    status: str
    douban_id: int
    explanation: str
    codes: tuple[str, ...]
    strata: tuple[str, ...]
    profile: str
    rule_version: str
    current_id: int
    case: Case


@dataclass(frozen=True, slots=True)
class LostVerdict:
    """A verdict that cannot be judged again, and why."""

    vod_id: int
    why: str


@dataclass(frozen=True, slots=True)
class RescoreSelection:
    """Which videos are judged again; empty fields do not restrict.

    Attributes:
        shards: Only videos of these shards.
        since: Only videos judged at this time or later.
        most: Most videos, those with the smallest ids; 0 for all.
        after: Only videos with larger ids.
        until: Only videos with ids up to this one; None for all.
    """

    shards: tuple[int, ...] = ()
    since: datetime | None = None
    most: int = 0
    after: int = -1
    until: int | None = None


@dataclass(frozen=True, slots=True)
class LinkedVideos:
    """Videos that are linked to the candidates of a batch of verdicts: one subject seldom belongs to two videos.

    Attributes:
        owners: Videos by subject.
        titles: Titles of the videos that another video's verdict needs.
        since: When our write or a person made the link, by video; an id that came with the row has none.
    """

    owners: Mapping[int, Sequence[int]]
    titles: Mapping[int, str]
    since: Mapping[int, datetime]

    @classmethod
    def read(
        cls,
        services: Services,
        connection: Connection,
        verdicts: Iterable[Mapping[Any, Any]],
        candidates: Mapping[int, Sequence[Mapping[Any, Any]]],
    ) -> LinkedVideos:
        """Return the current links; titles and times are read only for links of other videos."""
        asked = {
            (row["vod_id"], each["douban_id"])
            for row in verdicts
            for each in candidates.get(row["verdict_id"], ())
            if each["fetched"]
        }
        video, log, vod = services.tables.video, services.tables.log, services.cms.vod
        query = select(video.c.vod_douban_id, video.c.vod_id).where(
            video.c.vod_douban_id.in_({subject for _, subject in asked})
        )
        owners: dict[int, list[int]] = {}
        for subject, vod_id in connection.execute(query.order_by(video.c.vod_id)):
            owners.setdefault(subject, []).append(vod_id)
        others = {other: subject for vod_id, subject in asked for other in owners.get(subject, ()) if other != vod_id}
        if not others:
            return cls(owners, {}, {})
        names = connection.execute(select(vod.c.vod_id, vod.c.vod_name).where(vod.c.vod_id.in_(others)))
        writes = select(log.c.vod_id, log.c.applied_at, log.c.new_values).where(
            log.c.vod_id.in_(others), log.c.state == ChangeState.APPLIED
        )
        since: dict[int, datetime] = {}
        for vod_id, applied_at, values in connection.execute(writes.order_by(log.c.change_id)):
            if decode(values).get("vod_douban_id") == others[vod_id]:
                since[vod_id] = applied_at
        return cls(owners, {vod_id: readable(name) for vod_id, name in names}, since)

    def of(self, verdict: Mapping[Any, Any], candidates: Iterable[Mapping[Any, Any]]) -> dict[int, list[str]]:
        """Return the titles of the other videos that were linked when ``verdict`` was reached, by subject."""
        if not self.titles:
            return {}
        found: dict[int, list[str]] = {}
        for each in candidates:
            for other in self.owners.get(each["douban_id"], ()) if each["fetched"] else ():
                linked_then = other not in self.since or self.since[other] <= verdict["created_at"]
                if other != verdict["vod_id"] and other in self.titles and linked_then:
                    found.setdefault(each["douban_id"], []).append(self.titles[other])
        return found


@dataclass(slots=True)
class StoredVerdicts:
    """The newest verdict of every selected video, read in batches; see `batches`."""

    services: Services
    selection: RescoreSelection
    _subjects: dict[tuple[int, bool], Subject | None] = field(default_factory=dict)
    _glimpses: dict[str, Subject] = field(default_factory=dict)

    def count(self) -> int:
        """Return how many videos are selected."""
        verdict = self.services.tables.verdict
        query = select(func.count(verdict.c.vod_id.distinct())).where(*self._conditions())
        with reading(self.services.engine) as connection:
            found = int(connection.execute(query).scalar_one())
        return min(found, self.selection.most) if self.selection.most else found

    def batches(self) -> Iterator[list[StoredVerdict | LostVerdict]]:
        """Yield the newest verdicts by `vod_id`; every batch is read in a few queries, and only from the database."""
        with reading(self.services.engine) as connection:
            reverted = _reverts(self.services.tables, connection)
        last, left = self.selection.after, self.selection.most
        while True:
            size = min(BATCH, left) if self.selection.most else BATCH
            with reading(self.services.engine) as connection:
                newest = self._newest(connection, last, size)
                if not newest:
                    return
                yield self._batch(connection, newest, reverted)
            last, left = newest[-1]["vod_id"], left - len(newest)

    def _conditions(self) -> list[Any]:
        verdict, chosen = self.services.tables.verdict, self.selection
        conditions: list[Any] = [verdict.c.shard.in_(chosen.shards)] if chosen.shards else []
        conditions += [verdict.c.vod_id > chosen.after] if chosen.after >= 0 else []
        conditions += [verdict.c.vod_id <= chosen.until] if chosen.until is not None else []
        return [*conditions, verdict.c.created_at >= chosen.since] if chosen.since else conditions

    def pieces(self, count: int) -> list[RescoreSelection]:
        """Return the selection divided into at most ``count`` of about equal size, in the order of video ids."""
        verdict = self.services.tables.verdict
        query = select(verdict.c.vod_id).where(*self._conditions()).distinct()
        with reading(self.services.engine) as connection:
            ordered = connection.execute(query.order_by(verdict.c.vod_id).limit(self.selection.most or None))
            vod_ids = list(ordered.scalars())
        size = max(1, -(-len(vod_ids) // count))
        last = [self.selection.after, *(some[-1] for some in chunks(vod_ids, size))]
        return [replace(self.selection, most=0, after=after, until=until) for after, until in pairwise(last)]

    def _newest(self, connection: Connection, after: int, most: int) -> Sequence[RowMapping]:
        verdict, video = self.services.tables.verdict, self.services.tables.video
        wanted = "vod_id verdict_id verdict douban_id explanation reasons strata profile rule_version complete"
        wanted += " source_healthy crowded facts created_at"
        newest = (
            select(func.max(verdict.c.verdict_id).label("verdict_id"))
            .where(verdict.c.vod_id > after, *self._conditions())
            .group_by(verdict.c.vod_id)
            .order_by(verdict.c.vod_id)
            .limit(most)
            .subquery()
        )
        query = (
            select(*(verdict.c[name] for name in wanted.split()), video.c.vod_douban_id, video.c.douban_id_source)
            .join(newest, newest.c.verdict_id == verdict.c.verdict_id)
            .outerjoin(video, video.c.vod_id == verdict.c.vod_id)
            .order_by(verdict.c.vod_id)
        )
        return connection.execute(query).mappings().all() if most > 0 else []

    def _batch(
        self,
        connection: Connection,
        verdicts: Sequence[RowMapping],
        reverted: Mapping[int, Sequence[tuple[datetime, int]]],
    ) -> list[StoredVerdict | LostVerdict]:
        candidates = self._candidates(connection, [row["verdict_id"] for row in verdicts])
        self._fetch(connection, candidates)
        linked = LinkedVideos.read(self.services, connection, verdicts, candidates)
        batch = [self._stored(row, candidates.get(row["verdict_id"], ()), reverted, linked) for row in verdicts]
        _forget(self._subjects)
        _forget(self._glimpses)
        return batch

    def _candidates(self, connection: Connection, verdict_ids: Sequence[int]) -> dict[int, list[RowMapping]]:
        table = self.services.tables.candidate
        query = (
            select(
                *(table.c[name] for name in ("verdict_id", "douban_id", "snapshot_id", "fetched")),
                # Facts of fetched candidates are not needed: their answers are read. Text, because it is the cache key.
                case((table.c.fetched == false(), type_coerce(table.c.facts, String)), else_=None).label("facts"),
                type_coerce(table.c.facts, String).contains('"serial": true').label("serial"),
            )
            .where(table.c.verdict_id.in_(verdict_ids))
            .order_by(table.c.verdict_id, table.c.rank)
        )
        found: dict[int, list[RowMapping]] = {}
        for row in connection.execute(query).mappings():
            found.setdefault(row["verdict_id"], []).append(row)
        return found

    def _fetch(self, connection: Connection, candidates: Mapping[int, Sequence[RowMapping]]) -> None:
        """Read and parse the answers that are not in memory; one that the parser refuses is kept as None."""
        missing = {
            (row["snapshot_id"], bool(row["serial"])): row["douban_id"]
            for rows in candidates.values()
            for row in rows
            if row["fetched"] and (row["snapshot_id"], bool(row["serial"])) not in self._subjects
        }
        snapshot_ids = {snapshot_id for snapshot_id, _ in missing if snapshot_id is not None}
        bodies = self.services.archive.bodies(connection, snapshot_ids)
        for key, douban_id in missing.items():
            if key[0] in bodies:
                self._subjects[key] = _parsed(bodies[key[0]], douban_id, serial=key[1])

    def _glimpse(self, facts: str) -> Subject:
        if facts not in self._glimpses:
            self._glimpses[facts] = subject_of(json.loads(facts))
        return self._glimpses[facts]

    def _stored(
        self,
        row: RowMapping,
        candidates: Sequence[RowMapping],
        reverted: Mapping[int, Sequence[tuple[datetime, int]]],
        linked: LinkedVideos,
    ) -> StoredVerdict | LostVerdict:
        if not row["facts"]:
            return LostVerdict(row["vod_id"], NO_FACTS)
        subjects: list[Subject] = []
        for each in candidates:
            if not each["fetched"]:
                if not each["facts"]:
                    return LostVerdict(row["vod_id"], NO_FACTS)
                subjects.append(self._glimpse(each["facts"]))
                continue
            key = (each["snapshot_id"], bool(each["serial"]))
            subject = self._subjects.get(key)
            if subject is None:
                return LostVerdict(row["vod_id"], UNREADABLE if key in self._subjects else NO_ANSWER)
            subjects.append(subject)
        codes, strata = tuple(row["reasons"] or ()), tuple(row["strata"] or ())
        return StoredVerdict(
            vod_id=row["vod_id"],
            status=row["verdict"],
            douban_id=row["douban_id"] or (candidates[0]["douban_id"] if candidates else 0),
            explanation=row["explanation"],
            codes=codes,
            strata=strata,
            profile=row["profile"],
            rule_version=row["rule_version"],
            current_id=_current_id(row),
            case=Case(
                video_of(row["facts"]),
                tuple(subjects),
                complete=row["complete"],
                source_healthy=row["source_healthy"],
                crowded=row["crowded"],
                posters=posters_of(row["facts"]),
                circumstances=Circumstances(
                    reverted=frozenset(
                        subject for moment, subject in reverted.get(row["vod_id"], ()) if moment <= row["created_at"]
                    ),
                    linked=linked.of(row, candidates),
                    chosen=_chosen(row, codes),
                    braked=frozenset(strata if Code.STRATUM_BRAKED in codes else ()),
                    opened=frozenset(OPENINGS.keys() & strata if row["verdict"] == ReviewStatus.CONFIRMED else ()),
                    names=stored_names(row["facts"]),
                ),
                added=Added.of_facts(row["facts"]),
            ),
        )


def _forget(kept: dict[Any, Any]) -> None:
    """Drop the oldest entries beyond `KEPT_SUBJECTS`."""
    for key in list(islice(kept, max(0, len(kept) - KEPT_SUBJECTS))):
        del kept[key]


def _parsed(body: bytes, douban_id: int, *, serial: bool) -> Subject | None:
    try:
        return subject_facts(parse_subject(body, douban_id, compared_only=True), "tv" if serial else "")
    except SourceError:
        return None


def _current_id(row: RowMapping) -> int:
    """Return the id in the CMS when the verdict was reached: from its explanation, else the id that the row came with.

    0 if there was none.
    """
    named = _STANDING.search(row["explanation"])
    if named:
        return int(named[1])
    return int(row["vod_douban_id"] or 0) if row["douban_id_source"] == _FROM_CMS else 0


def _chosen(row: RowMapping, codes: Sequence[str]) -> int | None:
    """Return the subject that a person had chosen: from the verdict's explanation, else the current id."""
    named = _CHOSEN.search(row["explanation"])
    if named:
        return int(named[1])
    return _current_id(row) if Code.PERSON_CHOSE_OTHER in codes else None


def _reverts(tables: OwnTables, connection: Connection) -> dict[int, list[tuple[datetime, int]]]:
    """Return the reverted links of each video, with the moment; see `ChangeLog.undone_values`."""
    log = tables.log
    query = select(log.c.vod_id, log.c.applied_at, log.c.old_values).where(
        or_(log.c.reverts_change_id.is_not(None), log.c.action == DecisionAction.clear_id),
        log.c.state == ChangeState.APPLIED,
    )
    found: dict[int, list[tuple[datetime, int]]] = {}
    for vod_id, moment, values in connection.execute(query):
        subject = decode(values).get("vod_douban_id")
        if subject:
            found.setdefault(vod_id, []).append((moment, subject))
    return found
