"""Hundreds of decisions, fifty of them bad: the good ones are applied and logged, the bad ones are refused with a
sentence, and taking the batch back restores every byte but those that somebody else changed since.

``DOUBAN_TEST_DECISIONS`` says how many (270 by default, more than any step takes at once; 1000 takes some minutes).
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.decision_lane.open_orders import OpenOrders, open_orders
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction as Do
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.intros.room import KEY
from douban_pipeline_tests.harness.fixtures.library import Library, video
from douban_pipeline_tests.harness.fixtures.scenario import Scenario, row_of, subject

pytestmark = pytest.mark.mariadb

Rows = dict[int, dict[str, Any]]

DECISIONS = int(os.environ.get("DOUBAN_TEST_DECISIONS", "270"))
BAD = 50
GOOD = DECISIONS - BAD
EACH = GOOD // len(Do)
"""Good decisions an action; `sync_now` gets what is left over."""

IN_SCOPE = 8
"""Every so many videos are worked on automatically, where a decision does not need it: it takes time."""

EDITED = 3
"""Videos of an action that somebody edits afterwards."""

LEFT_ALONE = 7
"""A category that is not worked on; what people decide about its videos holds all the same."""

_MEANINGFUL = "零一二三四五六七八九十百千万两季部集版全第上中下前后传之番外篇特别国粤语影剧场年月日号续新真电视动漫画终"
POOR = {"vod_director": "", "vod_actor": "", "vod_class": ""}
"""A row of which too little is known for a machine to decide."""


def _titles() -> Iterator[str]:
    """Yield titles with nothing in common, of the simplified characters that are used most."""
    pool = [bytes((high, low)).decode("gb2312", "ignore") for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFF)]
    pool = [letter for letter in pool if letter and letter not in _MEANINGFUL]
    chance = random.Random(950)
    while True:
        yield "".join(chance.sample(pool, 6))


@dataclass
class Site:
    """Rows and subjects that are still to be put on a stage."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    subjects: list[dict[str, Any]] = field(default_factory=list)
    requested: list[Decision] = field(default_factory=list)
    names: Iterator[str] = field(default_factory=_titles)

    def film(self, **facts: Any) -> dict[str, Any]:
        number = len(self.subjects)
        self.subjects.append(subject(91_000_000 + number, facts.pop("title", next(self.names)), 2012, **facts))
        return self.subjects[-1]

    def twins(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return two films of one name and year, by other people."""
        one = self.film()
        return one, self.film(title=one["title"], directors=["别人"], actors=["子", "丑", "寅"])

    def add(self, entry: dict[str, Any], **columns: Any) -> int:
        vod_id = len(self.rows) + 1
        self.rows.append(row_of(entry, vod_id, **columns))
        return vod_id

    def doubtful(self, **columns: Any) -> tuple[int, int, int]:
        """Add a video that two films may be; return it and the two."""
        one, other = self.twins()
        return self.add(one, **POOR, **columns), one["id"], other["id"]

    def linked(self, entry: dict[str, Any] | None = None, **columns: Any) -> int:
        entry = entry or self.film()
        return self.add(entry, vod_douban_id=entry["id"], **columns)

    def unknown(self, **columns: Any) -> int:
        """Add a video that no upstream has heard of."""
        vod_id = len(self.rows) + 1
        self.rows.append(video(vod_id, vod_name=next(self.names), **columns))
        return vod_id

    def decide(self, vod_id: int, action: Do, douban_id: int = 0, **given: Any) -> None:
        self.requested.append(Decision(vod_id, action, douban_id, **given))


def _good(site: Site) -> dict[Do, list[int]]:
    """Decide `GOOD` times well, and return the videos by action."""
    shared = [site.film() for _ in range(12)]
    locks = (Do.lock_id, Do.unlock_id, Do.lock_intro, Do.unlock_intro)
    refreshed = [site.film() for _ in range(12)]
    about: dict[Do, list[int]] = {}
    for action in Do:
        count = EACH if action is not Do.sync_now else GOOD - (len(Do) - 1) * EACH
        for number in range(count):
            given: dict[str, Any] = {}
            # For most videos nothing automatic is done, where no decision needs it: that would only take time here.
            type_id = 6 if number % IN_SCOPE == 0 else LEFT_ALONE
            if action in (Do.confirm_top1, Do.choose):
                vod_id, given = site.doubtful()[0], {"rank": 2 if action is Do.choose else 0, "lock": number % 5 == 0}
            elif action is Do.set_id:
                vod_id, one, _ = site.doubtful(type_id=type_id)
                given = {"douban_id": one, "lock": number % 5 == 0}
            elif action is Do.replace_and_lock:
                one, other = site.twins()
                vod_id = site.add(one, **POOR, vod_douban_id=one["id"], type_id=type_id)
                given = {"douban_id": other["id"], "accept_conflicts": True}
            elif action is Do.ignore:
                vod_id, given = site.unknown(type_id=type_id), {"days": 30 * (number % 3)}
            elif action is Do.rematch:
                vod_id = (site.unknown if number % (2 * IN_SCOPE) else site.linked)(type_id=type_id)
            elif action in locks:
                vod_id = site.linked(shared[number % 12], type_id=type_id)
            elif action is Do.sync_now:
                vod_id = site.linked(refreshed[number % 12])
            elif action is Do.clear_id:
                vod_id = site.linked(type_id=type_id)
            else:
                vod_id = site.linked()
            about.setdefault(action, []).append(vod_id)
            site.decide(vod_id, action, **given)
    for entry in refreshed:
        entry["rated_later"] = True
    return about


def _bad(site: Site) -> dict[str, list[int]]:
    """Decide `BAD` times in ways that must be refused; return the videos of which somebody has yet to do something."""
    todo: dict[str, list[int]] = {"locked": [], "binned": [], "renamed": [], "relinked": [], "deleted": []}
    for number in range(4):
        site.decide(900_001 + number, Do.confirm_top1)
        site.decide(site.doubtful()[0], Do.set_id)
        site.decide(site.doubtful()[0], Do.set_id, 99_000_000 + number)
        site.decide(site.doubtful()[0], Do.set_id, site.film()["id"])
    for _ in range(2):
        site.decide(site.doubtful()[0], Do.choose, rank=9)
        site.decide(site.doubtful()[0], Do.choose, site.film()["id"])
        site.decide(site.doubtful()[0], Do.confirm_top1, verdict_id=10**9)
        site.decide(site.unknown(), Do.confirm_top1)
        site.decide(site.unknown(), Do.sync_now)
        site.decide(site.linked(), Do.ignore, days=-1)
    # Two that contradict each other, two that want one subject, one that wants another video's.
    vod_id, one, other = site.doubtful()
    site.decide(vod_id, Do.set_id, one)
    site.decide(vod_id, Do.set_id, other)
    one_film = site.film()
    for _ in range(2):
        site.decide(site.add(one_film, **POOR), Do.set_id, one_film["id"])
    taken = site.film()
    site.linked(taken)
    site.decide(site.add(taken, **POOR), Do.set_id, taken["id"])
    for action, given in ((Do.set_id, site.film()["id"]), (Do.clear_id, 0), (Do.rematch, 0)):
        todo["locked"].append(site.linked())
        site.decide(todo["locked"][-1], action, given)
    todo["binned"].append(site.linked())
    site.decide(todo["binned"][-1], Do.lock_id)
    site.decide(site.linked(), Do.unlock_id, lock=True)
    site.decide(site.linked(), Do.lock_intro, note="长" * 501)
    # Sound when they are recorded.
    for _ in range(4):
        vod_id, one, _ = site.doubtful()
        todo["renamed"].append(vod_id)
        site.decide(vod_id, Do.set_id, one)
    for action in (Do.lock_id, Do.sync_now, Do.clear_id, Do.lock_id):
        todo["relinked"].append(site.linked())
        site.decide(todo["relinked"][-1], action)
    while len(site.requested) < GOOD + BAD:
        todo["deleted"].append(site.linked())
        site.decide(todo["deleted"][-1], Do.lock_intro)
    return todo


def _furnished(
    stage: Callable[..., Scenario], site: Site, server: Library, about: dict[Do, list[int]], todo: dict[str, list[int]]
) -> Scenario:
    """Return the site as reviewers find it: matched and synced, some of it locked, and no intro due but by order."""
    given = {
        "batch_size": 2000,
        "run_seconds": 1500,
        "excluded_type_ids": frozenset({LEFT_ALONE}),
        "bulk_unlockers": ("小王",),
    }
    model = {"ai_intros": True, "openrouter_api_key": KEY}
    scenario = stage(site.rows, site.subjects, on=server, **given, **model)
    scenario = scenario.under(llm_url=scenario.upstream.llm_url)
    library, now = scenario.library, scenario.clock.now()
    video = library.tables.video
    library.execute(sa.update(video).values(intro_ai_last_at=now))
    _play_until_quiet(scenario)
    held = [*about[Do.unlock_id], *about[Do.replace_and_lock], *todo["locked"]]
    for vod_ids, lock in (
        (held, {"douban_id_locked": True, "douban_id_lock_time": now}),
        (about[Do.unlock_intro], {"intro_locked": True, "intro_lock_time": now}),
    ):
        library.execute(sa.update(video).where(video.c.vod_id.in_(vod_ids)).values(**lock))
    for vod_id in todo["binned"]:
        library.set_cms(vod_id, vod_recycle_time=1_700_000_000)
    return scenario


def _meddle(scenario: Scenario, site: Site, todo: dict[str, list[int]]) -> None:
    """Do what others do between the recording and the run that carries out."""
    library = scenario.library
    for number, vod_id in enumerate(todo["renamed"]):
        library.set_cms(vod_id, vod_name=f"改成了另一部片{number}")
    for vod_id in todo["relinked"]:
        library.set_cms(vod_id, vod_douban_id=site.subjects[0]["id"])
    library.execute(sa.delete(library.cms.vod).where(library.cms.vod.c.vod_id.in_(todo["deleted"])))
    for entry in site.subjects:
        if entry.pop("rated_later", False):
            entry["rating"] = 3.3


def _play_until_quiet(scenario: Scenario, *, reported: frozenset[str] = frozenset()) -> None:
    """Run the chain until nothing is due and no decision waits; ``reported``: guards that may say something."""
    services = scenario.services
    for _ in range(10):
        scenario.clock.advance(minutes=2)
        work = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
        if not work and open_orders(services) == OpenOrders(0, 0, 0):
            return
        assert scenario.play().failed_guards == reported
    raise AssertionError("there is always something to do")


_OVER = (Do.set_id, Do.clear_id, Do.sync_now, Do.redo_intro)
"""Actions of which somebody writes over the very column."""

_RHYTHM = {"douban_last_sync_at", "douban_next_sync_at", "douban_last_fail_at", "intro_ai_last_at"}


def _states(scenario: Scenario) -> dict[int, dict[str, Any]]:
    """Return our state rows without the times at which work was done."""
    return {
        vod_id: {name: value for name, value in row.items() if name not in _RHYTHM}
        for vod_id, row in scenario.library.states().items()
    }


def _rows(scenario: Scenario) -> Rows:
    """Return every byte of the CMS's rows, by id and column."""
    names = [column["name"] for column in sa.inspect(scenario.library.engine).get_columns("mac_vod")]
    rows = (dict(zip(names, row, strict=True)) for row in scenario.library.all_bytes())
    return {int(row["vod_id"], 16): row for row in rows}


def _differences(before: Rows, after: Rows) -> dict[int, set[str]]:
    """Return the columns that differ, by video."""
    assert set(before) == set(after)
    found = {
        vod_id: {column for column in row if row[column] != after[vod_id][column]} for vod_id, row in before.items()
    }
    return {vod_id: columns for vod_id, columns in found.items() if columns}


def _assert_told_in_full(
    decisions: list[dict[str, Any]], log: list[dict[str, Any]], differences: dict[int, set[str]]
) -> None:
    """Every decision that was applied has its change, signed, and nothing else was written to any row."""
    by_decision: dict[int, list[dict[str, Any]]] = {}
    for change in log:
        assert change["state"] == "applied"
        assert change["reason"]
        by_decision.setdefault(change["decision_id"], []).append(change)
    applied = {row["decision_id"]: row for row in decisions if row["state"] == "applied"}
    assert set(by_decision) == set(applied), "no change without a decision, and no decision without a change"
    for decision_id, changes in by_decision.items():
        decision = applied[decision_id]
        assert {change["vod_id"] for change in changes} == {decision["vod_id"]}
        carried = {Do.sync_now: ("sync", "pipeline"), Do.redo_intro: ("intro", decision["reviewer"])}
        expected = carried.get(Do(decision["action"]), (decision["action"], decision["reviewer"]))
        assert [(change["action"], change["operator"]) for change in changes].count(expected) == 1
    logged: dict[int, set[str]] = {}
    for change in log:
        written = {name for name, value in change["new_values"].items() if value != change["old_values"][name]}
        logged.setdefault(change["vod_id"], set()).update(written)
    assert differences == {vod_id: columns for vod_id, columns in logged.items() if columns}


def _written_over(about: dict[Do, list[int]]) -> set[int]:
    """Return the videos whose decision stands for what `_edit` does to them."""
    over = {vod_id for action in _OVER for vod_id in about[action][:EDITED]}
    return over | set(about[Do.confirm_top1][1 : 1 + EDITED])


def _edit(scenario: Scenario, site: Site, about: dict[Do, list[int]]) -> dict[int, set[str]]:
    """Do what others do after the decisions were applied; return which columns that keeps, by video."""
    library, other = scenario.library, site.subjects[0]["id"]
    kept = {}
    for action, values in (
        (Do.set_id, {"vod_douban_id": other}),
        (Do.clear_id, {"vod_douban_id": other}),
        (Do.choose, {"vod_writer": "站长"}),
        (Do.sync_now, {"vod_douban_score": Decimal("9.9")}),
        (Do.redo_intro, {"vod_content": "<p>站长写的</p>"}),
        (Do.lock_id, {"vod_remarks": "站长写的"}),
    ):
        for vod_id in about[action][:EDITED]:
            library.set_cms(vod_id, **values)
            kept[vod_id] = set(values)
    for vod_id in about[Do.confirm_top1][1 : 1 + EDITED]:
        library.set_state(vod_id, douban_id_locked=True, douban_id_lock_time=scenario.clock.now())
        kept[vod_id] = {"vod_douban_id"}
    return kept


@pytest.mark.long
def test_of_hundreds_of_decisions_fifty_are_bad(stage: Callable[..., Scenario], mariadb_library: Library) -> None:
    site = Site()
    about, todo = _good(site), _bad(site)
    requested = random.Random(1).sample(site.requested, GOOD + BAD)
    scenario = _furnished(stage, site, mariadb_library, about, todo)
    library = scenario.library
    signed = {"reviewer": "小王", "note": "人工核对", "run_id": "launch", "dry_run": False}
    recording = record(scenario.services, requested, **signed)
    later = sum(len(todo[name]) for name in ("renamed", "relinked", "deleted"))
    assert Counter(item.status for item in recording.items) == {"recorded": GOOD + later, "refused": BAD - later}
    _meddle(scenario, site, todo)
    before, states, logged = _rows(scenario), _states(scenario), len(library.log())

    _play_until_quiet(scenario)
    decisions = scenario.decisions()
    assert Counter(row["state"] for row in decisions) == {"applied": GOOD, "refused": BAD}
    refused = [row["state_reason"] for row in decisions if row["state"] == "refused"]
    assert all(re.search("[一-鿿]{2}", reason) for reason in refused), refused
    assert len({re.sub(r"\d+|《.*?》", "", reason) for reason in refused}) > 15, "each says what is wrong with it"
    _assert_told_in_full(decisions, library.log()[logged:], _differences(before, _rows(scenario)))

    kept = _edit(scenario, site, about)
    undo = {"operator": "小李", "reason": "整批有误", "dry_run": False}
    results = revert(library.change_log("undo"), ChangeSelection(batch_id=recording.batch_id), **undo)
    assert _differences(before, _rows(scenario)) == kept
    # What was matched since, or written over, cannot be taken back any more.
    matched = {vod_id for action in (Do.clear_id, Do.rematch) for vod_id in about[action][::IN_SCOPE]}
    held = {row["vod_id"] for row in scenario.decisions() if row["state"] == "applied"}
    assert held == matched.intersection(about[Do.rematch]) | _written_over(about)
    assert sum(row["state"] == "reverted" for row in scenario.decisions()) == GOOD - len(held)
    assert {result.vod_id for result in results if result.skipped} == held | set(about[Do.choose][:EDITED])
    now = _states(scenario)
    moved = {vod_id for vod_id in now if now[vod_id] != states[vod_id]}
    assert moved <= {*kept, *matched, *itertools.chain(*todo.values())}
    # Nor is anything that was taken back written again.
    _play_until_quiet(scenario, reported=frozenset({"writes_take_hold", "locked_untouched"}))
    assert _differences(before, _rows(scenario)) == kept
