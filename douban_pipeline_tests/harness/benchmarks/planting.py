"""What runs leave behind, put into our tables fast for generated videos, and taken out again.

Verdicts are judged by the rules in force and stored as a run stores them, changes stand in the CMS as they were
written: only the way here is shorter. Whatever is planted gets ids above all that are there, by which it is told.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

from sqlalchemy import Column, Table, delete, func, insert, select

from douban_pipeline.core.database import reading
from douban_pipeline.demo.stand_ins.answers import douban_answer
from douban_pipeline.douban.chain.match.rechecks import respect_current_id
from douban_pipeline.douban.match_inputs import glimpsed_facts, profile_of, subject_facts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import PARSER_VERSION, SOURCE, parse_subject
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.douban.store.states import VerdictState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline.matching import RULE_VERSION, Subject, Verdict, Video, judge
from douban_pipeline.matching.site_videos import video_facts
from douban_pipeline_tests.harness.benchmarks.measuring import World
from douban_pipeline_tests.harness.generated.works import known, subject_id_of, work_id_of, work_of

_CANDIDATES = (2, 3, 4, 5, 5, 5, 5, 5, 6, 8)
"""Candidates of a video: 4.8, as runs on real records left them."""

_FETCHED = (1, 1, 1, 1, 1, 2, 2, 2, 3, 3)
"""Those of them that Douban was asked about."""

_START = 2
"""First letters of a title that its neighbours in a search share."""

_NEAR = range(-3, 4)
"""Where works of one family stand, around each of them."""

Work = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject that a search named: its work, whether Douban was asked about it, and what is known of it then."""

    work: Work
    fetched: bool
    subject: Subject

    @property
    def douban_id(self) -> int:
        """The subject's id."""
        return self.subject.douban_id


@dataclass(slots=True)
class Searches:
    """Names candidates for videos, from the works of all videos that are looked at together.

    A video's own work comes first, if Douban knows it, then its family, then works that begin alike.
    """

    seed: int
    vod_ids: Sequence[int]
    _works: dict[int, Work] = field(default_factory=dict)
    _alike: dict[str, list[int]] = field(default_factory=dict)
    _fetched: dict[int, Subject] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look at the works of all videos."""
        for work_id in dict.fromkeys(work_id_of(vod_id, self.seed) for vod_id in self.vod_ids):
            if known(work_id, self.seed):
                self._alike.setdefault(self._work(work_id)["title"][:_START], []).append(work_id)

    def candidates(self, vod_id: int) -> list[Candidate]:
        """Return the candidates of a video, those asked about first."""
        work_id, dice = work_id_of(vod_id, self.seed), crc32(str(vod_id).encode())
        most, asked = _CANDIDATES[dice % 10], _FETCHED[dice // 10 % 10]
        found = list(dict.fromkeys([*self._family(work_id), *self._others(work_id, most, dice)]))[:most]
        return [self._candidate(each, fetched=place < asked) for place, each in enumerate(found)]

    def _family(self, work_id: int) -> list[int]:
        start = self._work(work_id)["title"][:_START]
        near = [work_id + step for step in sorted(_NEAR, key=abs) if work_id + step > 0]
        return [each for each in near if known(each, self.seed) and self._work(each)["title"][:_START] == start]

    def _others(self, work_id: int, most: int, dice: int) -> list[int]:
        alike = self._alike.get(self._work(work_id)["title"][:_START], [])
        if len(alike) <= most:
            any_work = work_id_of(self.vod_ids[dice % len(self.vod_ids)], self.seed)
            steps = range(7, 7 + 3 * most, 2)
            return [*alike, *(each for step in steps if known(each := any_work + step, self.seed))]
        at = dice % len(alike)
        return [*alike[at : at + most], *alike[: max(0, at + most - len(alike))]]

    def _work(self, work_id: int) -> Work:
        if work_id not in self._works:
            self._works[work_id] = work_of(work_id, self.seed)
        return self._works[work_id]

    def _candidate(self, work_id: int, *, fetched: bool) -> Candidate:
        work = self._work(work_id)
        if not fetched:
            return Candidate(work, False, glimpsed_facts(hit_of(work)))
        if work_id not in self._fetched:
            douban_id = subject_id_of(work_id)
            record = parse_subject(douban_answer(work).body, douban_id)
            self._fetched[work_id] = subject_facts(record, hit_of(work).kind)
        return Candidate(work, True, self._fetched[work_id])


def hit_of(work: Work) -> Hit:
    """Return what Douban's own suggestions say of a work."""
    original = work.get("original_title") or ""
    return Hit(
        int(work["id"]),
        title=work["title"],
        url=f"https://movie.douban.com/subject/{work['id']}/",
        original_title="" if original == work["title"] else original,
        year=work.get("year"),
        kind="tv" if work.get("kind") == "tv" else "",
        episodes=work.get("episodes"),
    )


RUN = "planted"
"""The run that all of it is said to be of."""

_PIECE = 1_000
"""Videos whose rows are put in at once."""


@dataclass(slots=True)
class Planted:
    """How much was planted; see `planted_verdicts`."""

    videos: int = 0
    candidates: int = 0
    fetched: int = 0
    answers: int = 0


def spread(size: int, count: int) -> list[int]:
    """Return ``count`` videos, spread evenly over a library of ``size``; all of them if there are no more."""
    count = min(size, count)
    return [1 + place * size // count for place in range(count)]


@contextmanager
def taken_out_again(services: Services, *tables: Table) -> Iterator[dict[str, int]]:
    """Give the highest id of each table, by its name; what has a higher one afterwards is deleted."""
    keys = {table: _key(table) for table in tables}
    with reading(services.engine) as connection:
        last = {table: connection.execute(select(func.max(key))).scalar() or 0 for table, key in keys.items()}
    try:
        yield {table.name: highest for table, highest in last.items()}
    finally:
        for table, key in keys.items():
            with services.engine.begin() as connection:
                connection.execute(delete(table).where(key > last[table]))


@contextmanager
def planted_verdicts(world: World, vod_ids: Sequence[int]) -> Iterator[Planted]:
    """Have verdicts of ``vod_ids`` in the library: candidates, their facts, and the answers they rest on."""
    services, tables = world.services, world.services.tables
    with taken_out_again(services, tables.verdict, tables.candidate, tables.snapshot) as last:
        planted, searches = Planted(), Searches(world.seed, vod_ids)
        snapshots = _Snapshots(services, last[tables.snapshot.name])
        verdict_id = last[tables.verdict.name]
        for start in range(0, len(vod_ids), _PIECE):
            with reading(services.engine) as connection:
                rows = services.cms.rows(connection, vod_ids[start : start + _PIECE])
            verdicts: list[dict[str, Any]] = []
            candidates: list[dict[str, Any]] = []
            for vod_id, row in rows.items():
                verdict_id += 1
                found = searches.candidates(vod_id)
                of_subject = {each.douban_id: snapshots.of(each) for each in found if each.fetched}
                video = video_facts(row, services.cms, services.categories)
                judged = judge(video, [each.subject for each in found], profile=profile_of(services.settings))
                verdicts.append(_verdict_row(services, verdict_id, row, video, judged, list(of_subject.values())))
                candidates += _candidate_rows(services, verdict_id, vod_id, judged, of_subject)
                planted.fetched += len(of_subject)
            planted.answers += snapshots.put()
            with services.engine.begin() as connection:
                connection.execute(insert(tables.verdict), verdicts)
                if candidates:
                    connection.execute(insert(tables.candidate), candidates)
            planted.videos += len(verdicts)
            planted.candidates += len(candidates)
            world.say(f"{planted.videos:,} of {len(vod_ids):,} verdicts planted")
        yield planted


class _Snapshots:
    """Answers that are about to be put into the archive, each once."""

    def __init__(self, services: Services, last: int) -> None:
        self._services, self._last = services, last
        self._ids: dict[int, int] = {}
        self._rows: list[dict[str, Any]] = []

    def of(self, candidate: Candidate) -> int:
        if candidate.douban_id not in self._ids:
            self._last += 1
            self._ids[candidate.douban_id] = self._last
            body = douban_answer(candidate.work).body
            self._rows.append(
                snapshot_row(self._services, self._last, SOURCE, f"subject:{candidate.douban_id}", body, PARSER_VERSION)
            )
        return self._ids[candidate.douban_id]

    def put(self) -> int:
        count = len(self._rows)
        if count:
            with self._services.engine.begin() as connection:
                connection.execute(insert(self._services.tables.snapshot), self._rows)
            self._rows = []
        return count


def snapshot_row(
    services: Services, snapshot_id: int, source: str, key: str, body: bytes, parser_version: str
) -> dict[str, Any]:
    """Return the row of an answer, as `Archive.put` writes it."""
    now = services.clock.now()
    return {
        "snapshot_id": snapshot_id,
        "source": source,
        "key_hash": hashlib.sha256(key.encode()).hexdigest(),
        "request_key": key[:500],
        "status": 200,
        "sha256": hashlib.sha256(body).hexdigest(),
        "body": zlib.compress(body, 6),
        "parser_version": parser_version,
        "fetched_at": now,
        "seen_at": now,
    }


def _verdict_row(
    services: Services, verdict_id: int, row: Any, video: Video, verdict: Verdict, snapshots: Sequence[int]
) -> dict[str, Any]:
    status, explanation = respect_current_id(verdict, row["vod_douban_id"])
    return {
        "verdict_id": verdict_id,
        "vod_id": video.vod_id,
        "shard": shard_of(video.vod_id),
        "task_id": 0,
        "verdict": str(status),
        "douban_id": verdict.douban_id or 0,
        "score": verdict.score,
        "lead": verdict.lead,
        "complete": True,
        "source_healthy": True,
        "rejects": list(verdict.candidates[0].comparison.rejects) if verdict.candidates else [],
        "reasons": list(verdict.codes),
        "explanation": explanation[:500],
        "facts": asdict(video),
        "snapshots": list(snapshots),
        "fingerprint": fingerprint(row),
        "profile": verdict.profile,
        "strata": list(verdict.strata),
        "crowded": False,
        "rule_version": RULE_VERSION,
        "state": VerdictState.APPLIED,
        "run_id": RUN,
        "created_at": services.clock.now(),
    }


def _candidate_rows(
    services: Services, verdict_id: int, vod_id: int, verdict: Verdict, snapshots: dict[int, int]
) -> list[dict[str, Any]]:
    now = services.clock.now()
    return [
        {
            "verdict_id": verdict_id,
            "vod_id": vod_id,
            "rank": each.rank,
            "douban_id": each.subject.douban_id,
            "title": each.subject.title[:255],
            "year": each.subject.year,
            "score": each.score,
            "points": [item.to_json() for item in each.comparison.items],
            "rejects": list(each.comparison.rejects),
            "conflicts": {finding.code: finding.text for finding in each.comparison.findings},
            "facts": asdict(each.subject),
            "fetched": each.subject.fetched,
            "snapshot_id": snapshots.get(each.subject.douban_id),
            "created_at": now,
        }
        for each in verdict.candidates
    ]


def _key(table: Table) -> Column[int]:
    return next(iter(table.primary_key.columns))
