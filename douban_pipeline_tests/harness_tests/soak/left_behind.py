"""A small soak that went well, as it was left behind: what the auditor must find nothing wrong with.

The chain ran, people decided, locked and took back, and outsiders wrote in between. Tests copy it and spoil one thing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.fixtures.library import Library, build_library
from douban_pipeline_tests.harness.fixtures.runs import STEPS, play
from douban_pipeline_tests.harness.fixtures.scenario import FAST, FILMS, row_of
from douban_pipeline_tests.harness.soak.audit import audit
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding, snapshot_of
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness.soak.outside import Outside
from douban_pipeline_tests.harness.soak.site import Site, as_stored
from douban_pipeline_tests.stand_ins.replay import ReplayServer

SHARDS = range(1, 12)
WATCHED = ("writes_take_hold",)
"""Guards that object to what outsiders write over our writes, as they do here."""


class Films:
    """The films of the tests as a source: video n is of film n, and beyond the last they begin anew."""

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected."""
        return as_stored(row_of(FILMS[(vod_id - 1) % len(FILMS)], vod_id))

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video."""
        return int(FILMS[(vod_id - 1) % len(FILMS)]["id"])


@dataclass
class LeftBehind:
    """A soak that is over: its folder, and what was noted of it."""

    folder: Path
    evidence: Evidence
    library: Library = field(repr=False)

    def copy(self, folder: Path) -> LeftBehind:
        """Return a copy that may be spoiled."""
        shutil.copytree(self.folder, folder)
        library = Library(_url(folder), clock=SystemClock(), options=self.library.options)
        journal = Journal(folder / "journal.jsonl")
        return LeftBehind(folder, replace(self.evidence, services=library.services, journal=journal), library)

    def spoil(self, statement: str, **values: Any) -> None:
        """Change the database behind everybody's back."""
        self.library.execute(statement.replace("{own}", "mac_douban_"), **values)

    def under(self, **changes: Any) -> None:
        """Change what was noted."""
        self.evidence = replace(self.evidence, **changes)

    def broken(self) -> dict[str, Finding]:
        """Return the invariants that do not hold."""
        return {finding.invariant: finding for finding in audit(self.evidence) if not finding.held}

    def close(self) -> None:
        """Close the database."""
        self.library.engine.dispose()
        self.evidence.journal.close()


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / 'library.sqlite'}"


def leave_behind(folder: Path) -> LeftBehind:
    """Let a small soak take place in ``folder``."""
    source, began = Films(), datetime.now(UTC)
    folder.mkdir()
    with ReplayServer(FILMS) as upstream:
        urls = {"douban_url": upstream.douban_url, "search_url": upstream.search_url, "llm_url": upstream.llm_url}
        intros = {
            "ai_intros": True,
            "openrouter_api_key": "test",
            "llm_requests_per_minute": 60_000,
            "llm_tokens_per_minute": 10_000_000,
        }
        videos = [source.row(vod_id) for vod_id in range(1, 9)]
        options: dict[str, Any] = {**urls, **FAST, **intros}
        library = build_library(_url(folder), videos, clock=SystemClock(), **options)
        services = library.services
        initial = snapshot_of(services)
        journal = Journal(folder / "journal.jsonl")
        outside = Outside(_url(folder), journal)
        site = Site(outside, source, Random(1))
        _live(library, site)
        requests = upstream.requests.describe()
        outside.close()
    limits = {"douban": (60_000.0, 2), "searxng": (60_000.0, 1), "openrouter": (60_000.0, 2)}
    now = datetime.now(UTC)
    evidence = Evidence(services, journal, initial, requests, limits, [], began, now, now)
    # The last connection to close puts everything into one file, which can be copied.
    library.engine.dispose()
    return LeftBehind(folder, evidence, library)


def _live(library: Library, site: Site) -> None:
    services = library.services
    run = _runner(services)
    site.open_form(2)
    site.toggle_lock(8)
    run()
    site.save_form()
    site.collect(1)
    site.write_directly(1)
    _decide(
        services,
        Decision(3, DecisionAction.lock_id),
        Decision(4, DecisionAction.clear_id),
        Decision(5, DecisionAction.ignore),
        Decision(6, DecisionAction.sync_now),
        Decision(6, DecisionAction.redo_intro),
        Decision(7, DecisionAction.unlock_intro),
    )
    run()
    change_log = services.change_log("person")
    revert(change_log, ChangeSelection(vod_ids=(3,)), operator="小王", reason="看错了", dry_run=False)
    again = services.change_log("person")
    revert(again, ChangeSelection(batch_id=change_log.batch_id), operator="小王", reason="没看错", dry_run=False)
    _decide(services, Decision(3, DecisionAction.lock_id), Decision(7, DecisionAction.lock_intro))
    site.arrive(9)
    site.arrive(10)
    site.delete(4)
    site.recycle(10)
    site.edit_in_batch([1, 2, 6])
    library.intake.changes()
    library.intake.sweep(0, 1)
    run()


def _decide(services: Services, *decisions: Decision) -> None:
    record(services, decisions, reviewer="小王", note="", run_id="person", dry_run=False)


def _runner(services: Services) -> Callable[[], None]:
    def run() -> None:
        played = play(services, SHARDS, STEPS)
        if played.failed_guards and played.failed_guards <= set(WATCHED):
            # Outsiders wrote over what was written.
            play(services, SHARDS, STEPS[-1:])

    return run
