"""Old answers go, and never one that something rests on, whatever else happens at that time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from douban_pipeline.core import archive as archive_module
from douban_pipeline.core.archive import LONGEST_CACHE
from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.pace import MISS_CACHE_AGE, SUBJECT_CACHE_AGE
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdict, StoredVerdicts
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.upkeep import jobs, retention
from douban_pipeline.douban.upkeep.retention import MARGIN, PrunedAnswers, prune
from douban_pipeline.matching import Subject, Video
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.runs import Run
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements
from douban_pipeline_tests.harness.fixtures.shelf import Shelf

KEPT_DAYS = retention.ARCHIVE_AGE.days


@dataclass(frozen=True)
class Attic:
    """An archive, and what rests on it."""

    library: Library

    def answer(self, key: str, days: float = 0.0, body: bytes = b"x") -> int:
        """Keep an answer that was last seen so many days ago; return its snapshot."""
        snapshot = self.library.tables.snapshot
        snapshot_id = self.library.services.archive.put("douban", key, 200, body, "v")
        seen_at = self.library.clock.now() - timedelta(days=days)
        self.library.execute(
            sa.update(snapshot).where(snapshot.c.snapshot_id == snapshot_id).values(seen_at=seen_at, fetched_at=seen_at)
        )
        return snapshot_id

    @property
    def held(self) -> set[int]:
        """The snapshots there are."""
        return {row["snapshot_id"] for row in self.library.query(sa.select(self.library.tables.snapshot.c.snapshot_id))}

    def prune(self, *, dry_run: bool = False, progress: Callable[[str], None] = lambda _summary: None) -> PrunedAnswers:
        """Drop what is old."""
        return prune(self.library.services, dry_run=dry_run, progress=progress)


def in_verdict(library: Library, ids: list[int], vod_id: int = 1) -> None:
    Shelf(library).verdict(vod_id, snapshots=ids)


def in_candidate(library: Library, ids: list[int], vod_id: int = 1) -> None:
    for rank, snapshot_id in enumerate(ids, start=1):
        Shelf(library).candidate(vod_id, vod_id, rank, Subject(90_000_101, "长河落日记事"), snapshot_id)


def in_log(library: Library, ids: list[int], vod_id: int = 1) -> None:
    for snapshot_id in ids:
        Shelf(library).changed(vod_id, old={}, new={}, snapshot_id=snapshot_id)


def in_intro(library: Library, ids: list[int], vod_id: int = 1) -> None:
    plain = {"vod_id": vod_id, "shard": 1, "run_id": "run", "state": "written", "prompt_version": "1"}
    plain |= {"fact_sheet_hash": "0" * 64, "created_at": library.clock.now()}
    for snapshot_id in ids:
        library.execute(sa.insert(library.tables.intro).values(**plain, snapshot_id=snapshot_id))


def in_reading(library: Library, ids: list[int], vod_id: int = 1) -> None:
    plain = {"vod_id": vod_id, "shard": 1, "run_id": "run", "state": "written", "prompt_version": "1"}
    plain |= {"fact_sheet_hash": "0" * 64, "created_at": library.clock.now()}
    for reading_snapshot_id in ids:
        library.execute(sa.insert(library.tables.intro).values(**plain, reading_snapshot_id=reading_snapshot_id))


def as_search_of_task(library: Library, ids: list[int], vod_id: int = 1) -> None:
    in_task(library, FoundCandidates((), (), False, tuple(ids), 1), vod_id)


def as_subject_of_task(library: Library, ids: list[int], vod_id: int = 1) -> None:
    in_task(
        library,
        FoundCandidates(tuple(FetchedCandidate(90_000_101, number) for number in ids), (), False, (), 1),
        vod_id,
    )


def in_task(library: Library, found: FoundCandidates, vod_id: int) -> None:
    library.enqueue(library.queue(), [NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH)])
    [task] = [task for task in library.queue().lease(range(64), TaskStage.SEARCH, limit=100) if task.vod_id == vod_id]
    with library.engine.begin() as connection:
        library.queue().advance(connection, task, TaskStage.SCORE, found.to_payload())


HOLDERS = {
    "未完成的任务": (as_search_of_task, as_subject_of_task),
    "判定": (in_verdict,),
    "候选条目": (in_candidate,),
    "变更记录": (in_log,),
    "简介": (in_intro,),
    "简介的复核": (in_reading,),
}
HOLD = [(what, hold) for what, holds in HOLDERS.items() for hold in holds]


@pytest.fixture
def attic(shared_library: Library) -> Attic:
    return Attic(shared_library.renewed())


# --- what goes and what stays -----------------------------------------------------------------------------------------


def test_answers_go_when_their_days_and_the_margin_are_over(attic: Attic) -> None:
    limit = KEPT_DAYS + MARGIN.days
    young, just, over = (attic.answer(f"subject:{days}", days) for days in (1, limit, limit + 0.001))
    pruned = attic.prune()
    assert attic.held == {young, just}
    assert (pruned.looked_at, pruned.kept, pruned.dropped, pruned.seen_again) == (1, 0, 1, 0)
    assert over not in attic.held


@pytest.mark.parametrize(("what", "hold"), HOLD, ids=[hold.__name__ for _, hold in HOLD])
def test_what_something_refers_to_stays_as_long_as_it_does(
    attic: Attic, what: str, hold: Callable[[Library, list[int]], None]
) -> None:
    ids = [attic.answer(f"subject:{number}", 4000) for number in range(5)]
    hold(attic.library, [ids[3], ids[1]])
    pruned = attic.prune()
    assert attic.held == {ids[1], ids[3]}
    assert (pruned.looked_at, pruned.kept, pruned.dropped) == (5, 2, 3)
    assert pruned.reasons == {reason: 2 if reason == what else 0 for reason in HOLDERS}
    tables = attic.library.tables
    for table in (tables.verdict, tables.candidate, tables.log, tables.intro, tables.task):
        attic.library.execute(sa.delete(table))
    assert attic.prune().dropped == 2
    assert attic.held == set()


def test_a_closed_task_holds_nothing(attic: Attic) -> None:
    as_subject_of_task(attic.library, [attic.answer("subject:1", 4000)])
    [task] = attic.library.tasks()
    with attic.library.engine.begin() as connection:
        attic.library.queue().finish(connection, task["task_id"], TaskStatus.SUCCESS)
    assert attic.prune().dropped == 1


def test_a_row_that_cannot_be_read_stops_it_before_anything_goes(attic: Attic) -> None:
    old = attic.answer("subject:1", 4000)
    in_verdict(attic.library, [None])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        attic.prune()
    assert attic.held == {old}


def test_a_dry_run_tells_the_same_and_deletes_nothing(attic: Attic) -> None:
    ids = [attic.answer(f"subject:{number}", 4000, bytes(range(200)) * number) for number in range(1, 4)]
    in_log(attic.library, ids[:1])
    pruned = attic.prune(dry_run=True)
    assert attic.held == set(ids)
    assert pruned == attic.prune()
    assert pruned.dropped_bytes > 300
    assert attic.held == {ids[0]}


def test_no_body_is_read_of_what_stays(attic: Attic) -> None:
    in_verdict(attic.library, [attic.answer(f"subject:{number}", 4000) for number in range(3)])
    with sent_statements(attic.library.engine) as sent:
        assert attic.prune().kept == 3
    assert any("snapshot_id" in statement for statement, _ in sent)
    assert not [statement for statement, _ in sent if "body" in statement]


def test_a_verdict_can_be_judged_again_after_years(attic: Attic) -> None:
    video = Video(4, RIVER["title"], year=RIVER["year"])
    Shelf(attic.library).judged(video, [RIVER, WHALE])
    attic.library.services.archive.put("douban", "subject:1", 200, b"x", "v")
    attic.library.clock.advance(days=4000)
    assert attic.prune().dropped == 1
    [[stored]] = StoredVerdicts(attic.library.services, RescoreSelection()).batches()
    assert isinstance(stored, StoredVerdict)
    assert len(stored.case.subjects) == 2


# --- while others work ------------------------------------------------------------------------------------------------

MOMENTS = ("answers were", "douban_task", "douban_verdict", "douban_review_candidate", "douban_log", "douban_intro")


def at(moment: str, act: Callable[[], None]) -> Callable[[str], None]:
    """Return a listener that acts when the run tells that it has come so far."""
    done: list[str] = []

    def listen(pruned: str) -> None:
        if moment in pruned and not done:
            done.append(pruned)
            act()

    return listen


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_passes_from_a_task_to_its_verdict_during_the_run_is_not_lost(attic: Attic, moment: str) -> None:
    old = attic.answer("subject:1", 4000)
    as_subject_of_task(attic.library, [old])
    [task] = attic.library.tasks()

    def judge() -> None:
        in_verdict(attic.library, [old])
        with attic.library.engine.begin() as connection:
            attic.library.queue().finish(connection, task["task_id"], TaskStatus.SUCCESS)

    attic.prune(progress=at(moment, judge))
    assert attic.held == {old}
    assert attic.library.tasks()[0]["status"] == TaskStatus.SUCCESS


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_is_seen_again_during_the_run_stays(attic: Attic, moment: str) -> None:
    old, again = attic.answer("subject:1", 4000), attic.answer("subject:2", 4000)
    archive = attic.library.services.archive
    pruned = attic.prune(progress=at(moment, lambda: archive.put("douban", "subject:2", 200, b"x", "v")))
    assert attic.held == {again}
    assert (pruned.looked_at, pruned.dropped, pruned.seen_again) == (2, 1, 1)
    assert old not in attic.held


def test_what_a_cache_may_still_give_is_never_old() -> None:
    """The grounds of the module's argument: no cache and no run lasts longer than it says."""

    def bound(name: str, end: str) -> float:
        return next(getattr(item, end) for item in Settings.model_fields[name].metadata if hasattr(item, end))

    assert retention.ARCHIVE_AGE >= LONGEST_CACHE
    assert timedelta(days=bound("search_cache_days", "le")) <= LONGEST_CACHE
    assert max(SUBJECT_CACHE_AGE, MISS_CACHE_AGE) <= LONGEST_CACHE
    work = bound("run_seconds", "le") + 60 * bound("request_timeout_seconds", "le")
    work += Settings(_env_file=None, run_seconds=1500).lease.total_seconds()
    assert timedelta(seconds=work) < MARGIN


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_a_run_that_is_stopped_is_gone_on_with(
    attic: Attic, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    monkeypatch.setattr(retention, "_DROPPED_AT_ONCE", 2)
    ids = [attic.answer(f"subject:{number}", 4000) for number in range(9)]
    in_log(attic.library, [ids[4]])
    archive = attic.library.services.archive
    dropped: list[int] = []

    def drop(snapshot_ids: list[int], before: Any) -> Any:
        if len(dropped) == 4:
            raise stop
        dropped.extend(snapshot_ids)
        return type(archive).drop(archive, snapshot_ids, before)

    with monkeypatch.context() as patched:
        patched.setattr(archive, "drop", drop)
        with pytest.raises(stop):
            attic.prune()
    assert len(attic.held) == 5
    assert attic.prune().dropped == 4
    assert attic.held == {ids[4]}


@contextmanager
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(archive_module, "_IDS", 3)
        patched.setattr(retention, "_ROWS_AT_ONCE", 2)
        patched.setattr(retention, "_DROPPED_AT_ONCE", 2)
        yield


@profile(max_examples=25, deadline=None)
@given(
    ages=st.lists(st.sampled_from([0, 100, 181.5, 181.5, 400, 4000]), max_size=12),
    held_by=st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 11), max_size=4)), max_size=6),
)
def test_nothing_that_is_held_is_ever_dropped(
    shared_library: Library, ages: list[float], held_by: list[tuple[int, set[int]]]
) -> None:
    attic = Attic(shared_library.renewed())
    ids = [attic.answer(f"subject:{number}", days) for number, days in enumerate(ages)]
    held = set()
    for vod_id, (kind, places) in enumerate(held_by, start=1):
        named = [ids[place] for place in places if place < len(ids)]
        held.update(named)
        HOLD[kind][1](attic.library, named, vod_id)
    young = {snapshot_id for snapshot_id, days in zip(ids, ages, strict=True) if days < 181}
    with small_batches():
        pruned = attic.prune()
    assert attic.held == held | young
    assert pruned.kept == len(held - young)
    assert pruned.dropped == len(set(ids) - held - young)
    assert attic.prune().dropped == 0


# --- what people see --------------------------------------------------------------------------------------------------


def launch(attic: Attic, instance: dg.DagsterInstance, config: dict[str, Any] | None = None) -> Run:
    definitions = dg.Definitions(jobs=jobs.jobs, resources={"services": attic.library.services})
    job = definitions.resolve_job_def("prune_archive")
    given = {"ops": {"delete_answers": {"config": config}}} if config else None
    return Run(job.execute_in_process(run_config=given, instance=instance, raise_on_error=False))


def test_the_job_only_counts_unless_it_is_asked_to_delete(attic: Attic, dagster_instance: dg.DagsterInstance) -> None:
    kept, gone = (attic.answer(f"subject:{number}", 4000) for number in range(2))
    in_log(attic.library, [kept])
    run = launch(attic, dagster_instance)
    assert (run.output["dry_run"], run.output["looked_at"], run.output["deleted"]) == (True, 2, 1)
    assert attic.held == {kept, gone}
    run = launch(attic, dagster_instance, {"dry_run": False})
    assert (run.output["dry_run"], run.output["kept"], run.output["deleted"]) == (False, 1, 1)
    assert run.output["bytes_freed"] > 0
    assert "| 变更记录 | 1 " in " ".join(run.output["kept_because"].split())
    assert "| douban | 2xx | 1 " in " ".join(run.output["archive"].split())
    assert attic.held == {kept}
