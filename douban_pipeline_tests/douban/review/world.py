"""A library in which something is known of every video, so that every rule of recording has a video to meet it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import sqlalchemy as sa

from douban_pipeline.douban.review.records import record as recording_module
from douban_pipeline.douban.review.records.record import Recording, record
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline_tests.harness.fixtures.library import Library, video

A, B, C, D, E, F = (90_000_101, 90_000_102, 90_000_103, 90_000_104, 90_000_105, 90_000_106)
"""Subjects."""


@dataclass
class Subjects:
    """Who is asked about subjects here: what speaks against one, or the error that comes instead.

    Attributes:
        answers: By subject; nothing speaks against the others.
        asked: Who was asked about, as video and subject.
    """

    answers: Mapping[int, str | Exception] = field(default_factory=dict)
    asked: list[tuple[int, int]] = field(default_factory=list)

    def conflicts_of(self, services: Any, row: Mapping[Any, Any], douban_id: int) -> str:
        """Stand in for `subject_check.conflicts_of`."""
        self.asked.append((row["vod_id"], douban_id))
        answer = self.answers.get(douban_id, "")
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def asking(answers: Mapping[int, str | Exception] | None = None) -> Iterator[Subjects]:
    """Have subjects asked about here instead of at a source."""
    subjects = Subjects(answers or {})
    with patch.object(recording_module, "conflicts_of", subjects.conflicts_of):
        yield subjects


def decide(library: Library, *decisions: Decision, dry_run: bool = False, **given: Any) -> Recording:
    """Record ``decisions`` as the jobs do."""
    signed = {"reviewer": "小王", "note": "海报一致", "run_id": "run-1", **given}
    return record(library.services, decisions, dry_run=dry_run, **signed)


def decision_on(vod_id: int, action: str, douban_id: int = 0, **fields: Any) -> Decision:
    """Return a decision as a person writes it."""
    return Decision(vod_id, DecisionAction(action), douban_id, **fields)


def reported(recording: Recording) -> list[tuple[int, str, str]]:
    """Return what became of each row, shortly."""
    return [(item.vod_id, item.status, item.reason) for item in recording.items]


def only(recording: Recording) -> Decision:
    """Return the only row of a launch."""
    [item] = recording.items
    return item


def stored(library: Library, **where: Any) -> list[dict[str, Any]]:
    """Return decisions as they were recorded, the oldest first."""
    table = library.tables.decision
    conditions = [table.c[name] == value for name, value in where.items()]
    return library.query(sa.select(table).where(*conditions).order_by(table.c.decision_id))


def judged(library: Library, vod_id: int, *subjects: int, **columns: Any) -> int:
    """Plant a verdict about a video with these candidates, the best first; return its id."""
    tables, now = library.tables, library.clock.now()
    values = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "task_id": 0,
        "verdict": "REVIEW",
        "complete": True,
        "source_healthy": True,
        "fingerprint": fingerprint(library.row(vod_id)),
        "rule_version": "planted",
        "state": "superseded",
        "run_id": "planted",
        "created_at": now,
        **columns,
    }
    with library.engine.begin() as connection:
        key = connection.execute(sa.insert(tables.verdict).values(values)).inserted_primary_key
        assert key is not None
        verdict_id = int(key[0])
        for rank, douban_id in enumerate(subjects, start=1):
            candidate = {"verdict_id": verdict_id, "vod_id": vod_id, "rank": rank, "douban_id": douban_id}
            candidate |= {"title": f"条目{douban_id % 100}", "year": 2021, "score": 90 - rank, "created_at": now}
            connection.execute(sa.insert(tables.candidate).values(points=[], conflicts={}, **candidate))
    return verdict_id


def linked(library: Library, vod_id: int, douban_id: int, **state: Any) -> None:
    """Have a video carry a subject, in the CMS and for us; ``state`` is changed too."""
    library.set_cms(vod_id, vod_douban_id=douban_id)
    status = {"douban_review_status": "CONFIRMED", "douban_id_source": "auto"}
    library.set_state(vod_id, vod_douban_id=douban_id, **status, **state)


def furnish(empty: Library, **options: Any) -> Library:
    """Return the world; which video is what stands beside it."""
    library = empty.renewed([video(vod_id) for vod_id in range(4, 20) if vod_id != 11], **options)
    judged(library, 4, A, B, C)  # 4: in review, with three candidates
    library.set_state(4, douban_review_status="REVIEW")
    # 5: nothing is known of it
    linked(library, 6, C)  # 6: linked by the machine
    linked(library, 7, D, douban_id_locked=True)  # 7: its id is locked
    judged(library, 7, D, E)
    library.set_state(8, douban_review_status="IGNORED", douban_next_sync_at=None)  # 8: ignored
    library.set_cms(9, vod_recycle_time=1_700_000_000)  # 9: in the recycle bin
    library.execute("DELETE FROM mac_vod WHERE vod_id = 10")  # 10: deleted
    library.add(video(11))  # 11: not taken in yet
    judged(library, 12, A, fingerprint="0" * 32)  # 12: changed since it was judged
    linked(library, 13, E)  # 13: an id that stands, in review
    library.set_state(13, douban_review_status="REVIEW")
    linked(library, 14, F)  # 14: its id was changed in the CMS a moment ago
    library.set_cms(14, vod_douban_id=90_000_999)
    linked(library, 15, 90_000_115, intro_locked=True, douban_id_locked=True)  # 15: all a person can say was said
    library.set_state(15, douban_id_source="person")
    judged(library, 16)  # 16: judged without candidates
    judged(library, 17, B, A, fingerprint="")  # 17: judged by a release that kept no fingerprint
    return library
