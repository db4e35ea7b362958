"""Which changes are meant: each filter alone and with others, and what cancels out."""

from __future__ import annotations

import functools
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert_selection import ChangeSelection, TooManyError, count, select_changes
from douban_pipeline_tests.douban.writes.reverting import revert_writes
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id) for vod_id in (7, 8, 9)])


def chosen(library, *, most=None, **filters):
    with reading(library.engine) as connection:
        found = select_changes(connection, library.tables, ChangeSelection(**filters), most=most)
    return [each.change_id for each in found]


def counted(library, *, applied_only, **filters):
    with reading(library.engine) as connection:
        return count(connection, library.tables, ChangeSelection(**filters), applied_only=applied_only)


def write(library, vod_id, column="vod_year", *, run_id="run", batch_id="batch", rule_version="test", **given):
    """Write a value of its own into a column; return the change."""
    numbers = library.__dict__.setdefault("numbers", iter(range(1000, 9999)))
    old, new = {column: library.row(vod_id)[column]}, {column: str(next(numbers))}
    log = library.change_log(run_id, batch_id=batch_id, rule_version=rule_version)
    [outcome] = log.write([Change(vod_id, given.pop("action", "sync"), old, new, **given)])
    assert outcome.state == "applied", outcome.reason
    return outcome.change_id


def decide(library, vod_id, reviewer="小李", batch_id="decided", action=DecisionAction.set_id):
    table = library.tables.decision
    row = {"vod_id": vod_id, "shard": vod_id, "action": action, "reviewer": reviewer, "batch_id": batch_id}
    row |= {"state": "applied", "run_id": "recording", "created_at": library.clock.now()}
    with library.engine.begin() as connection:
        key = connection.execute(sa.insert(table).values(row)).inserted_primary_key
    return int(key[0])


def test_each_filter_finds_its_own(library):
    decision = decide(library, 7)
    one = write(library, 7, run_id="r1", batch_id="b1", rule_version="1")
    library.clock.advance(minutes=1)
    two = write(library, 8, run_id="r1", batch_id="b2", rule_version="2")
    library.clock.advance(minutes=1)
    three = write(library, 7, run_id="r2", batch_id="b2", rule_version="2", operator="小李", decision_id=decision)
    four = write(library, 7, "vod_area", run_id="r2", batch_id="b2", rule_version="2", decision_id=decision)
    find = functools.partial(chosen, library)
    assert find(change_ids=(one, three)) == [three, one]
    assert find(batch_id="b2") == [four, three, two]
    assert find(batch_id="decided") == [four, three], "everything that the decisions of the batch wrote"
    assert find(run_id="r1") == [two, one]
    assert find(decision_ids=(decision,)) == [four, three]
    assert find(reviewer="小李") == [four, three], "the sync that followed goes along"
    assert find(reviewer="pipeline") == [four, two, one]
    assert find(rule_version="2") == [four, two], "what a person chose met the rules, and was not written by them"
    assert find(rule_version="2", reviewer="小李") == [four, three]
    assert find(rule_version="2", batch_id="b2") == [four, three, two]
    assert find(since=START + timedelta(minutes=1)) == [four, three, two]
    assert find(until=START + timedelta(minutes=1)) == [one]
    assert find(vod_ids=(7, 8, 9)) == [four, two]
    assert find(batch_id="nothing") == find(reviewer="nobody") == find(change_ids=(99,)) == []


def test_filters_combine(library):
    decision = decide(library, 8)
    one = write(library, 7, batch_id="b1", run_id="r1")
    library.clock.advance(minutes=1)
    two = write(library, 8, batch_id="b1", run_id="r2", decision_id=decision)
    three = write(library, 7, "vod_area", batch_id="b2", run_id="r2", operator="小李")
    find = functools.partial(chosen, library)
    assert find(batch_id="b1", run_id="r2") == [two]
    assert find(change_ids=(one, two), reviewer="小李") == [two]
    assert find(reviewer="小李", batch_id="b2") == [three]
    assert find(reviewer="小李", batch_id="decided") == [two]
    assert find(change_ids=(one, three), decision_ids=(decision,)) == []
    assert find(vod_ids=(7, 8), batch_id="b1") == [two, one], "of the batch the newest of each video"
    assert find(vod_ids=(7,), until=library.clock.now()) == [one]
    assert find(vod_ids=(7, 8), reviewer="小李") == [three, two]
    assert find(run_id="r2", since=START, until=START + timedelta(minutes=1)) == []


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (0, 1, True),
        (0, None, True),
        (None, 1, True),
        (-60, 60, True),
        (0.000001, None, False),
        (None, 0, False),
        (-60, 0, False),
    ],
)
def test_a_window_holds_its_beginning_and_not_its_end(library, since, until, found):
    change_id = write(library, 7)
    moments = {
        name: START + timedelta(seconds=seconds)
        for name, seconds in (("since", since), ("until", until))
        if seconds is not None
    }
    assert chosen(library, **moments) == ([change_id] if found else [])


def test_one_step_back_after_another_walks_further_back(library):
    before = library.all_bytes()
    first, second = write(library, 7), write(library, 7, "vod_area")
    other = write(library, 8)
    third = write(library, 7)
    steps = [[item.change_id for item in revert_writes(library, vod_ids=(7,))] for _ in range(4)]
    assert steps == [[third], [second], [first], []]
    assert [row["state"] for row in library.log() if row["change_id"] == other] == ["applied"]
    revert_writes(library, vod_ids=(7, 8, 9))
    assert library.all_bytes() == before


def test_a_step_that_could_only_be_half_done_does_not_stop_the_walk(library):
    first = write(library, 7, "vod_area")
    row = library.row(7)
    old = {name: row[name] for name in ("vod_year", "vod_lang")}
    [outcome] = library.change_log("run").write([Change(7, "sync", old, {"vod_year": "1999", "vod_lang": "法语"})])
    library.set_cms(7, vod_lang="站长改的")
    half, whole = revert_writes(library, vod_ids=(7,)), revert_writes(library, vod_ids=(7,))
    assert [(item.change_id, item.restored, item.skipped) for item in half + whole] == [
        (outcome.change_id, ("vod_year",), ("vod_lang",)),
        (first, ("vod_area",), ()),
    ]


def test_a_revert_and_what_it_took_back_cancel_out(library):
    changed = write(library, 7)
    library.clock.advance(minutes=1)
    revert_writes(library, changed)
    undone = library.log()[-1]["change_id"]
    assert chosen(library, since=START) == [], "as it was when the window began, it is again"
    assert chosen(library, since=library.clock.now()) == [undone], "back to what stood when the window began"
    assert chosen(library, change_ids=(changed, undone)) == []
    assert chosen(library, change_ids=(undone,)) == [undone]


def test_a_revert_of_a_revert_leaves_the_first_change_to_be_taken_back(library):
    changed = write(library, 7)
    revert_writes(library, changed)
    revert_writes(library, library.log()[-1]["change_id"])
    assert [row["state"] for row in library.log()] == ["applied", "reverted", "applied"]
    assert chosen(library, since=START) == [changed]
    before = library.row(7)["vod_year"]
    [item] = revert_writes(library, since=START)
    assert (item.skipped, library.row(7)["vod_year"]) == ((), "2024")
    assert before != "2024"


def test_more_than_meant_are_counted_and_none_is_chosen(library):
    decision = decide(library, 7)
    for _ in range(3):
        write(library, 7, operator="小李", decision_id=decision)
    write(library, 8)
    assert len(chosen(library, batch_id="batch", most=4)) == 4
    for filters, number in (({"batch_id": "batch"}, 4), ({"reviewer": "小李"}, 3), ({"vod_ids": (7, 8, 9)}, 2)):
        with pytest.raises(TooManyError) as caught:
            chosen(library, most=number - 1, **filters)
        assert (caught.value.count, caught.value.most) == (number, number - 1)


def test_everything_is_never_meant(library):
    write(library, 7)
    with pytest.raises(ValueError, match="name a change"):
        chosen(library)
