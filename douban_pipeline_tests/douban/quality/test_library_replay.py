"""The library judged again: only from what is stored, reported in numbers and by example, and nothing is changed."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.quality import figures, stored_verdicts
from douban_pipeline.douban.quality.library_replay import Replay, replay, replay_all
from douban_pipeline.douban.quality.stored_verdicts import (
    NO_ANSWER,
    NO_FACTS,
    UNREADABLE,
    LostVerdict,
    RescoreSelection,
    StoredVerdicts,
)
from douban_pipeline.matching import Kind, Subject, Video
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline.matching.weights import Thresholds, Weights
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.library import video as cms_row
from douban_pipeline_tests.harness.fixtures.scenario import KITE, RIVER, SNOW, TRAM, WHALE, subject
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements
from douban_pipeline_tests.harness.fixtures.shelf import Shelf

STRICT = Profile("plan", thresholds=Thresholds(confirm=103.0))
"""Confirms nothing: no match earns so much."""
RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])


def video_for(entry, vod_id: int, **changes) -> Video:
    known = {
        "year": entry["year"],
        "kind": Kind.FILM,
        "regions": ("大陆",),
        "directors": tuple(entry["directors"]),
        "actors": tuple(entry["actors"][:2]),
        "genres": tuple(entry["genres"]),
        "duration_minutes": entry["duration_min"],
    }
    return Video(vod_id, entry["title"], **{**known, **changes})


@pytest.fixture
def library(shared_library) -> Library:
    library = shared_library.renewed()
    library.add_states(*({"vod_id": vod_id} for vod_id in (4, 5, 6, 70)))
    return library


@pytest.fixture
def shelf(library) -> Shelf:
    return Shelf(library)


def again(library, profile=PLAN, *, chosen=None, examples=5, **selection):
    verdicts = StoredVerdicts(library.services, RescoreSelection(**selection))
    found = replay(verdicts.batches(), profile, chosen=chosen or {}, examples=examples)
    assert found.videos == verdicts.count()
    return found


def test_the_same_rules_say_the_same(library, shelf):
    shelf.judged(video_for(RIVER, 4), [RIVER, WHALE])
    shelf.judged(video_for(RIVER, 5, directors=(), actors=(), duration_minutes=None), [RIVER, RIVAL])
    shelf.judged(video_for(TRAM, 6), [])
    found = again(library)
    assert {status: count for (status, _, _), count in found.moves.items()} == {
        "CONFIRMED": 1,
        "REVIEW": 1,
        "NOT_FOUND": 1,
    }
    assert (found.replayed, found.changed, found.examples, found.lost) == (3, 0, {}, {})
    assert found.codes_before == found.codes_after
    assert figures.code_rows(found) == []
    assert (found.rule_versions, found.profiles) == ({"shelf": 3}, {"plan": 3})


def test_other_thresholds_are_reported_in_numbers_and_by_example(library, shelf):
    shelf.judged(video_for(RIVER, 4), [RIVER, WHALE])
    shelf.judged(video_for(TRAM, 6), [])
    found = again(library, STRICT)
    assert found.moves == {("CONFIRMED", "REVIEW", False): 1, ("NOT_FOUND", "NOT_FOUND", False): 1}
    assert (found.changed, found.confirmed(before=True), found.confirmed(before=False)) == (1, 1, 0)
    [row] = figures.example_rows(found)
    assert (row["影片"], row["变化"]) == ("4 长河落日记事", "自动确认 → 待审核")
    assert "/subject/90000101/" in row["之前条目"]
    assert "相符" in row["之前说明"]
    assert "得分未达自动确认线" in row["之后说明"]
    assert [(row["原因"], row["差"]) for row in figures.code_rows(found)] == [("BELOW_CONFIRM", "+1")]
    moves = [(row["之前"], row["之后"], row["影片"], row["占比"]) for row in figures.move_rows(found)]
    assert moves == [("自动确认", "待审核", 1, "50.00%"), ("未找到", "未找到", 1, "50.00%")]
    assert found.reconsidered == []


def test_laxer_rules_name_who_waits_for_a_link(library, shelf):
    shelf.judged(video_for(RIVER, 4), [RIVER], profile=STRICT)
    shelf.judged(video_for(WHALE, 70), [WHALE], profile=STRICT)
    found = again(library, chosen={4: 90_000_101, 70: 90_000_999})
    assert found.moves == {("REVIEW", "CONFIRMED", False): 2}
    assert found.reconsidered == [4, 70]
    assert (found.people_before, found.people_after) == ({}, {True: 1, False: 1})
    assert [row["之后"] for row in figures.people_rows(found)] == [1, 1]


def test_another_subject_is_a_change_even_where_the_status_stays(library, shelf):
    remake = subject(90_000_204, "长河落日记事", 2022, directors=RIVER["directors"], actors=["子", "丑", "寅"])
    mixed = video_for(RIVER, 4, actors=("子", "丑"), duration_minutes=None, genres=(), regions=())
    shelf.judged(mixed, [RIVER, remake])
    found = again(library, Profile("plan", Weights(year=40.0), Thresholds(confirm=200.0)))
    changed = {move: count for move, count in found.moves.items() if move[2]}
    assert sum(changed.values()) == 1
    [row] = figures.example_rows(found)
    assert ("90000204" in row["之前条目"], "90000101" in row["之后条目"], row["变化"]) == (True, True, "待审核，换首选")


def test_a_subject_nobody_asked_about_is_rebuilt_from_what_the_search_said(library, shelf):
    glimpsed = Subject(90_000_300, "长河落日记事", year=2021, fetched=False)
    shelf.judged(video_for(RIVER, 4), [RIVER], glimpsed=[glimpsed])
    [[item]] = StoredVerdicts(library.services, RescoreSelection()).batches()
    assert glimpsed in item.case.subjects
    assert again(library).changed == 0


def test_what_cannot_be_judged_again_is_counted_and_named(library, shelf):
    shelf.judged(video_for(RIVER, 4), [RIVER])
    shelf.verdict(5)
    shelf.judged(video_for(TRAM, 6), [TRAM])
    shelf.judged(video_for(KITE, 70), [KITE])
    table = library.tables.snapshot
    library.execute(sa.delete(table).where(table.c.request_key == "subject:90000101"))
    library.execute(
        sa.update(table).where(table.c.request_key == "subject:90000103").values(body=b"x\x9c\x03\x00\x00\x00\x00\x01")
    )
    found = again(library)
    assert (found.replayed, found.lost) == (1, {NO_ANSWER: 1, NO_FACTS: 1, UNREADABLE: 1})
    assert found.lost_videos == [LostVerdict(4, NO_ANSWER), LostVerdict(5, NO_FACTS), LostVerdict(6, UNREADABLE)]
    assert {row["原因"]: row["例如"] for row in figures.lost_rows(found)} == {
        NO_ANSWER: "4",
        NO_FACTS: "5",
        UNREADABLE: "6",
    }


def test_the_newest_verdict_counts(library, shelf):
    shelf.judged(video_for(WHALE, 4), [WHALE])
    shelf.judged(video_for(RIVER, 4, directors=(), actors=(), duration_minutes=None), [RIVER, RIVAL])
    assert again(library).moves == {("REVIEW", "REVIEW", False): 1}


def test_a_part_of_the_library(library, shelf):
    for entry, vod_id in ((RIVER, 4), (WHALE, 5), (TRAM, 6), (KITE, 70)):
        shelf.judged(video_for(entry, vod_id), [entry])
        library.clock.advance(days=1)
    assert again(library, shards=(6,)).replayed == 2
    assert again(library, most=3).replayed == 3
    assert again(library, since=library.clock.now() - timedelta(days=2)).replayed == 2
    assert again(library, since=library.clock.now()).replayed == 0


def test_batches_join_up_and_memory_is_bounded(library, shelf, monkeypatch):
    monkeypatch.setattr(stored_verdicts, "BATCH", 2)
    monkeypatch.setattr(stored_verdicts, "KEPT_SUBJECTS", 1)
    for entry, vod_id in ((RIVER, 4), (WHALE, 5), (TRAM, 6), (RIVER, 70)):
        shelf.judged(video_for(entry, vod_id), [entry, KITE])
    verdicts = StoredVerdicts(library.services, RescoreSelection())
    assert [[item.vod_id for item in batch] for batch in verdicts.batches()] == [[4, 5], [6, 70]]
    assert len(verdicts._subjects) == 1
    assert again(library, most=3).replayed == 3


def test_a_batch_costs_the_same_few_queries_whatever_its_size(library, shelf):
    assert library.services.cms, "looked at once, before anything is counted"
    library.add_states(*({"vod_id": vod_id} for vod_id in range(100, 140)))
    counts = []
    for vod_ids in (range(100, 102), range(102, 140)):
        for vod_id in vod_ids:
            shelf.judged(video_for(RIVER, vod_id), [RIVER, WHALE])
        with sent_statements(library.engine) as sent:
            again(library)
        counts.append(len(sent))
    assert counts[0] == counts[1] < 15


def test_everything_else_is_as_it_was_then(library, shelf):
    """Not the rules: an id that stood, a link taken back, a person's choice, a brake, an incomplete search."""
    incomplete = shelf.judged(video_for(RIVER, 4), [RIVER])
    braked = shelf.judged(video_for(WHALE, 5), [WHALE])
    stood = shelf.judged(video_for(TRAM, 6), [TRAM])
    undone = shelf.judged(video_for(KITE, 70), [KITE])
    chosen = shelf.judged(video_for(SNOW, 7), [SNOW])
    gone = shelf.judged(video_for(SNOW, 71), [])
    verdict = library.tables.verdict
    for verdict_id, columns in (
        (incomplete, {"complete": False, "verdict": "REVIEW", "douban_id": 0}),
        (braked, {"reasons": ["STRATUM_BRAKED"], "verdict": "REVIEW", "douban_id": 0}),
        (stood, {"explanation": "CMS 中已有豆瓣 ID 90000999，匹配结果为 90000103，需人工确认", "verdict": "REVIEW"}),
        (undone, {"reasons": ["REVERTED_BEFORE"], "verdict": "REVIEW", "douban_id": 0}),
        (chosen, {"reasons": ["PERSON_CHOSE_OTHER"], "verdict": "REVIEW", "douban_id": 0}),
        (gone, {"explanation": "审核员选定的是 90000105，CMS 中现为 空；没有找到候选。", "verdict": "REVIEW"}),
    ):
        library.execute(sa.update(verdict).where(verdict.c.verdict_id == verdict_id).values(**columns))
    shelf.changed(70, old={"vod_douban_id": 90_000_105}, new={"vod_douban_id": 0}, reverts_change_id=1, operator="小王")
    found = again(library)
    assert found.moves == {("REVIEW", "REVIEW", False): 6}
    refused = {"INCOMPLETE": 1, "STRATUM_BRAKED": 1, "REVERTED_BEFORE": 1, "PERSON_CHOSE_OTHER": 1, "NO_CANDIDATES": 1}
    assert found.codes_after == refused


def test_a_link_taken_back_later_is_none_of_the_rules(library, shelf):
    shelf.judged(video_for(KITE, 70), [KITE])
    library.clock.advance(days=1)
    shelf.changed(70, old={"vod_douban_id": 90_000_105}, new={"vod_douban_id": 0}, reverts_change_id=1, operator="小王")
    assert again(library).moves == {("CONFIRMED", "CONFIRMED", False): 1}


def test_other_videos_of_a_candidate_are_those_that_were_linked_then(library, shelf):
    library.add(
        cms_row(5, vod_name="早先的一部"), cms_row(6, vod_name="后来的一部"), cms_row(70, vod_name="自带的一部")
    )
    for vod_id in (5, 6, 70):
        library.set_state(vod_id, vod_douban_id=90_000_101)
    shelf.changed(5, old={"vod_douban_id": 0}, new={"vod_douban_id": 90_000_101})
    library.clock.advance(days=1)
    shelf.judged(video_for(RIVER, 4), [RIVER, WHALE])
    library.clock.advance(days=1)
    shelf.changed(6, old={"vod_douban_id": 0}, new={"vod_douban_id": 90_000_101})
    [[item]] = StoredVerdicts(library.services, RescoreSelection()).batches()
    assert item.case.circumstances.linked == {90_000_101: ["早先的一部", "自带的一部"]}


GIVEN = {"chosen": {3: 90_000_101, 38: 90_000_103}, "examples": 2}


def shelve_forty(shelf: Shelf) -> None:
    for vod_id in range(1, 41):
        entry = (RIVER, TRAM, WHALE, SNOW, KITE)[vod_id % 5]
        known = {} if vod_id % 3 else {"directors": (), "actors": ()}
        shelf.judged(video_for(entry, vod_id, **known), [entry, RIVAL][: 1 + vod_id % 2])
    [first] = shelf.library.query("select min(snapshot_id) as it from mac_douban_snapshot")
    shelf.library.execute("delete from mac_douban_snapshot where snapshot_id = :it", **first)


def told(found: Replay) -> str:
    found.seconds_reading = found.seconds_judging = 0.0
    return repr(found)


@pytest.mark.parametrize("selection", [{}, {"most": 17}, {"shards": (1, 2, 3, 9, 30)}], ids=str)
def test_pieces_put_together_are_the_whole(library, shelf, selection):
    shelve_forty(shelf)
    stored = StoredVerdicts(library.services, RescoreSelection(**selection))
    whole = replay(stored.batches(), STRICT, **GIVEN)
    pieces = stored.pieces(4)
    assert 3 <= len(pieces) <= 4
    found = Replay()
    for piece in pieces:
        found.add(replay(StoredVerdicts(library.services, piece).batches(), STRICT, **GIVEN), GIVEN["examples"])
    found.sort()
    assert told(found) == told(whole), "the order in which things are counted, too"
    assert whole.moves
    assert whole.lost


def test_two_processes_find_what_one_finds(sqlite_library):
    library = sqlite_library.renewed()
    shelve_forty(Shelf(library))
    done: list[int] = []
    alone = replay_all(library.services, RescoreSelection(), STRICT, processes=1, **GIVEN)
    both = replay_all(library.services, RescoreSelection(), STRICT, processes=2, progress=done.append, **GIVEN)
    assert told(both) == told(alone)
    assert (done[0] < 40, done[-1]) == (True, 40)


def test_an_interruption_ends_every_process_and_changes_nothing(sqlite_library):
    library = sqlite_library.renewed()
    shelve_forty(Shelf(library))
    tables = library.tables.metadata.sorted_tables
    before = [library.query(sa.select(table)) for table in tables]
    heard: list[int] = []

    def interrupted(done: int) -> None:
        heard.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay_all(library.services, RescoreSelection(), STRICT, processes=2, progress=interrupted, **GIVEN)
    assert heard[0] < 40, "in the middle"
    assert multiprocessing.active_children() == []
    assert [library.query(sa.select(table)) for table in tables] == before
