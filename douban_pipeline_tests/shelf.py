"""Verdicts as earlier runs left them, put straight into a library: with candidates, facts and archived answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from douban_pipeline.demo.answers import douban_answer
from douban_pipeline.douban.chain.linking.facts import subject_facts
from douban_pipeline.douban.sources.douban_php import PARSER_VERSION, parse_subject
from douban_pipeline.douban.store.states import VerdictState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.matching import Subject, Video, judge
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline_tests.library import Library


@dataclass(frozen=True)
class Shelf:
    """Puts verdicts into ``library`` the way a run stores them."""

    library: Library

    def answer(self, entry: Mapping[str, Any]) -> int:
        """Archive Douban's answer about ``entry``; return its snapshot."""
        body = douban_answer(entry).body
        return self.library.services.archive.put("douban", f"subject:{entry['id']}", 200, body, PARSER_VERSION)

    def judged(
        self,
        video: Video,
        entries: Sequence[Mapping[str, Any]],
        *,
        glimpsed: Sequence[Subject] = (),
        profile: Profile = PLAN,
        **columns: Any,
    ) -> int:
        """Judge ``video`` and store the verdict, ``columns`` changed; return its id."""
        snapshots = {entry["id"]: self.answer(entry) for entry in entries}
        subjects = [subject_facts(parse_subject(douban_answer(entry).body, entry["id"])) for entry in entries]
        verdict = judge(video, [*subjects, *glimpsed], profile=profile)
        confirmed = verdict.douban_id is not None
        verdict_id = self.verdict(
            video.vod_id,
            verdict=str(verdict.status),
            douban_id=verdict.douban_id or 0,
            score=verdict.score,
            lead=verdict.lead,
            reasons=list(verdict.codes),
            explanation=verdict.explanation[:500],
            facts=asdict(video),
            snapshots=list(snapshots.values()),
            profile=verdict.profile,
            strata=list(verdict.strata),
            **columns,
        )
        if confirmed and columns.get("state", VerdictState.APPLIED) == VerdictState.APPLIED:
            self.library.set_state(
                video.vod_id,
                vod_douban_id=verdict.douban_id,
                douban_review_status="CONFIRMED",
                douban_id_source="auto",
            )
        elif not confirmed:
            self.library.set_state(video.vod_id, douban_review_status=str(verdict.status))
        for candidate in verdict.candidates:
            self.candidate(
                verdict_id,
                video.vod_id,
                candidate.rank,
                candidate.subject,
                snapshots.get(candidate.subject.douban_id),
            )
        return verdict_id

    def candidate(
        self, verdict_id: int, vod_id: int, rank: int, subject: Subject, snapshot_id: int | None = None
    ) -> None:
        """Store a candidate of a verdict."""
        self.library.execute(
            sa.insert(self.library.tables.candidate).values(
                verdict_id=verdict_id,
                vod_id=vod_id,
                rank=rank,
                douban_id=subject.douban_id,
                title=subject.title,
                year=subject.year,
                score=1.0,
                points=[],
                rejects=[],
                conflicts={},
                facts=asdict(subject),
                fetched=subject.fetched,
                snapshot_id=snapshot_id,
                created_at=self.library.clock.now(),
            )
        )

    def verdict(self, vod_id: int, **columns: Any) -> int:
        """Store a verdict, a confirmed and written one by default; return its id."""
        values = {
            "vod_id": vod_id,
            "shard": shard_of(vod_id),
            "task_id": 1,
            "verdict": "CONFIRMED",
            "score": 95.0,
            "lead": 30.0,
            "complete": True,
            "source_healthy": True,
            "rejects": [],
            "reasons": [],
            "facts": {},
            "snapshots": [],
            "rule_version": "shelf",
            "state": VerdictState.APPLIED,
            "run_id": "shelf",
            "created_at": self.library.clock.now(),
            **columns,
        }
        with self.library.engine.begin() as connection:
            key = connection.execute(sa.insert(self.library.tables.verdict).values(values)).inserted_primary_key
        assert key is not None
        return int(key[0])

    def linked(self, vod_id: int, douban_id: int, *strata: str, **columns: Any) -> int:
        """Store an automatic link that stands; return its verdict."""
        self.library.add_states({"vod_id": vod_id}) if vod_id not in self.library.states() else None
        self.library.set_state(
            vod_id, vod_douban_id=douban_id, douban_review_status="CONFIRMED", douban_id_source="auto"
        )
        return self.verdict(vod_id, douban_id=douban_id, strata=list(strata), **columns)

    def decided(self, vod_id: int, action: str, douban_id: int = 0, **columns: Any) -> int:
        """Store a decision that was carried out; return its id."""
        values = {
            "vod_id": vod_id,
            "shard": shard_of(vod_id),
            "action": action,
            "douban_id": douban_id,
            "reviewer": "小王",
            "state": "applied",
            "run_id": "shelf",
            "created_at": self.library.clock.now(),
            **columns,
        }
        with self.library.engine.begin() as connection:
            key = connection.execute(sa.insert(self.library.tables.decision).values(values)).inserted_primary_key
        assert key is not None
        return int(key[0])

    def changed(self, vod_id: int, *, old: Mapping[str, Any], new: Mapping[str, Any], **columns: Any) -> int:
        """Store an applied row of the change log, automatic by default; return its id."""
        now: datetime = self.library.clock.now()
        values = {
            "vod_id": vod_id,
            "shard": shard_of(vod_id),
            "action": "link",
            "old_values": dict(old),
            "new_values": dict(new),
            "state_old": {},
            "state_new": {},
            "operator": "pipeline",
            "batch_id": "shelf",
            "run_id": "shelf",
            "state": "applied",
            "prepared_at": now,
            "applied_at": now,
            **columns,
        }
        with self.library.engine.begin() as connection:
            key = connection.execute(sa.insert(self.library.tables.log).values(values)).inserted_primary_key
        assert key is not None
        return int(key[0])
