"""What people's acts say of automatic links: a table of cases, on both engines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.core.database import reading
from douban_pipeline.douban.quality.labels import (
    ActKind,
    PersonAct,
    acts_of_people,
    chosen_by_people,
    labels,
    last_word,
    settled_by_people,
)
from douban_pipeline.matching import Subject
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.shelf import Shelf

LINKED, OTHER = 90_000_101, 90_000_102


def acts(*acts_given):
    return [
        PersonAct(START + timedelta(minutes=number), ActKind(what), subject, "小王")
        for number, (what, subject) in enumerate(acts_given)
    ]


@pytest.mark.parametrize(
    ("acts_given", "right"),
    [
        ([], None),
        ([("chosen", LINKED)], True),
        ([("chosen", OTHER)], False),
        ([("cleared", 0)], False),
        ([("kept", 0)], True),
        ([("taken_back", LINKED)], False),
        ([("taken_back", OTHER)], None),
        # The newest counts.
        ([("chosen", OTHER), ("chosen", LINKED)], True),
        ([("kept", 0), ("cleared", 0)], False),
        ([("cleared", 0), ("chosen", LINKED)], True),
        ([("taken_back", LINKED), ("chosen", LINKED)], True),
        # A lock, a clearing, a revert is about what stands by then.
        ([("chosen", OTHER), ("kept", 0)], False),
        ([("cleared", 0), ("kept", 0)], False),
        ([("chosen", OTHER), ("taken_back", LINKED)], False),
        ([("chosen", OTHER), ("cleared", 0)], False),
    ],
)
def test_the_last_word(acts_given, right):
    word = last_word(LINKED, acts(*acts_given))
    assert (word[0] if word else None) is right


@pytest.fixture
def shelf(library):
    shelf = Shelf(library)
    shelf.linked(4, LINKED, "season", "rich", score=87.0)
    library.clock.advance(minutes=1)
    return shelf


def found(library):
    with reading(library.engine) as connection:
        given = acts_of_people(connection, library.tables)
        return labels(connection, library.tables, given), settled_by_people(connection, library.tables, given), given


def revert(shelf, change_id, **columns):
    said = {"operator": "小李", "reason": "关联错误：不是同一部"}
    given = {"old": {"vod_douban_id": LINKED}, "new": {"vod_douban_id": 0}, "action": "revert", **said}
    return shelf.changed(4, reverts_change_id=change_id, **{**given, **columns})


@pytest.mark.parametrize(
    ("action", "subject", "columns", "right"),
    [
        ("set_id", LINKED, {}, True),
        ("set_id", OTHER, {}, False),
        ("confirm_top1", LINKED, {}, True),
        ("confirm_top1", OTHER, {}, False),
        ("clear_id", 0, {}, False),
        ("lock_id", 0, {}, True),
        ("set_id", OTHER, {"state": "pending"}, False),
        ("set_id", OTHER, {"state": "refused"}, None),
        ("clear_id", 0, {"state": "reverted"}, None),
        ("unlock_id", 0, {}, None),
        ("ignore", 0, {}, None),
        ("rematch", 0, {}, None),
    ],
)
def test_decisions_are_labels(library, shelf, action, subject, columns, right):
    shelf.decided(4, action, subject, **columns)
    judged, _, _ = found(library)
    assert [label.right for label in judged] == ([] if right is None else [right])
    for label in judged:
        assert (label.link.strata, label.link.score, label.person) == (("season", "rich"), 87.0, "小王")
        assert label.judged_at == library.clock.now()


def test_a_decision_before_the_link_is_about_something_else(library, shelf):
    shelf.decided(4, "clear_id", created_at=START - timedelta(days=1))
    assert found(library)[0] == []


@pytest.mark.parametrize("state", ["pending", "refused", "superseded", "dry_run"])
def test_only_what_was_written_is_a_link(library, shelf, state):
    shelf.verdict(5, douban_id=OTHER, state=state)
    shelf.decided(5, "clear_id")
    assert found(library)[0] == []


def test_a_person_s_revert_overrules_until_it_is_itself_taken_back(library, shelf):
    change = shelf.changed(4, old={"vod_douban_id": 0}, new={"vod_douban_id": LINKED})
    undo = revert(shelf, change)
    [label] = found(library)[0]
    assert (label.right, label.person) == (False, "小李")
    library.execute(f"UPDATE mac_douban_log SET state = 'reverted' WHERE change_id = {undo}")
    revert(shelf, undo, old={"vod_douban_id": 0}, new={"vod_douban_id": LINKED})
    assert found(library)[0] == []


def test_a_revert_that_does_not_say_that_the_link_is_wrong_is_no_label(library, shelf):
    change = shelf.changed(4, old={"vod_douban_id": 0}, new={"vod_douban_id": LINKED})
    revert(shelf, change, reason="整批撤销：换了分类")
    assert found(library)[0] == []


def test_reverts_of_other_columns_and_of_people_s_writes_are_no_labels(library, shelf):
    fields = shelf.changed(4, old={"vod_year": ""}, new={"vod_year": "2021"})
    revert(shelf, fields, old={"vod_year": "2021"}, new={"vod_year": ""})
    person = shelf.changed(4, old={"vod_douban_id": 0}, new={"vod_douban_id": LINKED}, operator="小王")
    revert(shelf, person)
    assert found(library)[0] == []


def test_each_link_of_a_video_is_judged_by_what_came_after_it(library, shelf):
    shelf.decided(4, "clear_id")
    library.clock.advance(days=1)
    second = shelf.linked(4, OTHER, "rich")
    library.clock.advance(minutes=1)
    shelf.decided(4, "lock_id")
    judged, _, given = found(library)
    assert [(label.link.douban_id, label.right) for label in judged] == [(LINKED, False), (OTHER, True)]
    assert judged[1].link.verdict_id == second
    assert chosen_by_people(given) == {}


def candidates(shelf, verdict_id, vod_id, *subjects):
    for rank, subject in enumerate(subjects, start=1):
        shelf.candidate(verdict_id, vod_id, rank, Subject(subject, "片名"))


@pytest.mark.parametrize(
    ("action", "subject", "top_right", "place"),
    [
        ("confirm_top1", LINKED, True, 1),
        ("set_id", LINKED, True, 1),
        ("set_id", OTHER, False, 2),
        ("set_id", 90_000_999, False, None),
        ("clear_id", 0, False, None),
        ("ignore", 0, None, None),
        ("lock_id", 0, None, None),
    ],
)
@pytest.mark.parametrize("status", ["REVIEW", "NOT_FOUND"])
def test_verdicts_that_waited_are_settled_by_people(library, shelf, status, action, subject, top_right, place):
    waited = shelf.verdict(5, verdict=status, reasons=["SEASON_ONE_SIDED", "LEAD_TOO_SMALL"], strata=["season"])
    candidates(shelf, waited, 5, LINKED, OTHER)
    shelf.decided(5, action, subject)
    _, settled, given = found(library)
    assert [(item.top_right, item.place) for item in settled] == ([] if top_right is None else [(top_right, place)])
    for item in settled:
        assert (item.verdict_id, item.status, item.codes) == (waited, status, ("SEASON_ONE_SIDED", "LEAD_TOO_SMALL"))
    assert chosen_by_people(given) == ({5: subject} if subject else {})


def test_what_a_person_settles_is_the_newest_verdict_before(library, shelf):
    first = shelf.verdict(5, verdict="REVIEW", reasons=["A"])
    candidates(shelf, first, 5, OTHER)
    library.clock.advance(minutes=1)
    second = shelf.verdict(5, verdict="REVIEW", reasons=["B"])
    candidates(shelf, second, 5, LINKED)
    shelf.decided(5, "set_id", LINKED)
    library.clock.advance(minutes=1)
    shelf.verdict(5, verdict="NOT_FOUND", reasons=["C"])
    _, settled, _ = found(library)
    assert [(item.verdict_id, item.codes, item.top_right) for item in settled] == [(second, ("B",), True)]
