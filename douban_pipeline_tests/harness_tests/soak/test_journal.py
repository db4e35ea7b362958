"""What the journal holds is what happened, however its writer ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline_tests.harness.soak.journal import Fate, Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "journal.jsonl"


def test_an_act_is_reported_with_the_values_before_and_after(path: Path) -> None:
    with Journal(path) as journal:
        number = journal.intend("admin", "saved", 7)
        journal.begin(number, {"vod_name": "甲"}, {"vod_name": "乙"})
        journal.done(number, {"vod_name": "乙"})
    with Journal(path) as again:
        [entry] = again.entries()
    assert (entry.who, entry.what, entry.vod_id, entry.fate) == ("admin", "saved", 7, Fate.DONE)
    assert entry.edges() == {"vod_name": ("甲", "乙")}
    assert entry.ended_at is not None
    assert entry.ended_at >= entry.at


def test_who_died_before_the_write_did_nothing_and_who_died_after_it_left_a_doubt(path: Path) -> None:
    with Journal(path) as journal:
        journal.intend("admin", "was about to", 1)
        number = journal.intend("admin", "sent it", 2)
        journal.begin(number, {"vod_name": "甲"}, {"vod_name": "乙"})
        # Read while the writer lives: nothing waits in a buffer.
        with Journal(path) as other:
            intended, begun = other.entries()
    assert not intended.happened
    assert not intended.doubtful
    assert begun.doubtful
    assert begun.edges() == {"vod_name": ("甲", "乙")}


def test_a_line_that_a_kill_cut_off_is_dropped_and_the_journal_goes_on(path: Path) -> None:
    with Journal(path) as journal:
        journal.tell("小王", "lock_id", 3)
    with path.open("a") as file:
        file.write('{"n": 2, "who": "adm')
    with Journal(path) as journal:
        journal.missed(journal.intend("admin", "saved", 7), "no such video")
        reported, missed = journal.entries()
    assert (reported.number, missed.number) == (1, 2)
    assert reported.fate is Fate.REPORTED
    assert not missed.happened
    assert not missed.doubtful
    with Journal(path) as again:
        assert again.entries() == [reported, missed]
