"""Recording under load: launches that are killed, two at once, and a thousand rows."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.review.records import record as recording_module
from douban_pipeline_tests.douban.review.world import A, asking, decide, decision_on, furnish, judged, stored
from douban_pipeline_tests.harness.fixtures.library import Library, video

FREE = 90_000_200
"""A subject nobody has."""


@pytest.fixture
def library(shared_library: Library) -> Library:
    """The world, anew for each test."""
    return furnish(shared_library)


def telling(rows, *columns):
    return [tuple(row[column] for column in columns) for row in rows]


class Killed(BaseException):
    """The process ends here."""


def test_a_launch_that_is_killed_goes_on_where_it_was(shared_library, monkeypatch):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 121)])
    requested = [decision_on(vod_id, "ignore", days=vod_id) for vod_id in range(1, 121)] + [decision_on(500, "ignore")]
    real, chunks = recording_module._store, []

    def dying(*args):
        chunks.append(len(stored(library)))
        if len(chunks) == 3:
            real(*args)
            raise Killed  # within the third chunk's transaction
        return real(*args)

    monkeypatch.setattr(recording_module, "_store", dying)
    with pytest.raises(Killed):
        decide(library, *requested)
    assert chunks == [0, 50, 100]
    assert Counter(row["state"] for row in stored(library)) == {"pending": 100}, (
        "whole chunks, and nothing of the third"
    )
    monkeypatch.undo()
    again = decide(library, *requested, run_id="run-2")
    assert Counter(item.status for item in again.items) == {"known": 100, "recorded": 20, "refused": 1}
    assert Counter(row["state"] for row in stored(library)) == {"pending": 120, "refused": 1}
    assert Counter(row["run_id"] for row in stored(library)) == {"run-1": 100, "run-2": 21}


def at_once(*works):
    """Do ``works``, a thread each, beginning together; return what they came to."""
    results: list[object] = [None] * len(works)
    start = threading.Barrier(len(works))

    def play(number, work):
        start.wait(timeout=60)
        try:
            results[number] = work()
        except Exception as error:  # noqa: BLE001 (handed to the test)
            results[number] = error

    threads = [threading.Thread(target=play, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    for result in results:
        assert not isinstance(result, Exception), result
    return results


def test_two_launches_at_once_record_the_same_once_and_contradictions_never(shared_library):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 201)])
    same = [decision_on(vod_id, "ignore") for vod_id in range(1, 101)]
    one = [decision_on(vod_id, "set_id", FREE + vod_id) for vod_id in range(101, 201)]
    other = [decision_on(vod_id, "ignore", days=9) for vod_id in range(200, 100, -1)]
    with asking():
        first, second = at_once(
            lambda: decide(library, *same, *one, run_id="one"),
            lambda: decide(library, *other, *same, run_id="other"),
        )
    assert {item.status for item in (*first.items, *second.items)} <= {"recorded", "known"}
    waiting = Counter(row["vod_id"] for row in stored(library, state="pending"))
    assert waiting == dict.fromkeys(range(1, 201), 1)
    ignored = Counter(item.status for item in (*first.items, *second.items) if item.vod_id <= 100)
    assert ignored == {"recorded": 100, "known": 100}
    # Nothing is lost: what lost the race stands as replaced.
    assert len(stored(library)) == 300


def test_two_launches_at_once_do_not_give_a_subject_twice(shared_library):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 201)])
    with asking():
        at_once(
            lambda: decide(library, *(decision_on(number, "set_id", FREE + number) for number in range(1, 101))),
            lambda: decide(
                library, *(decision_on(100 + number, "set_id", FREE + number) for number in range(100, 0, -1))
            ),
        )
    given = Counter(row["douban_id"] for row in stored(library, state="pending"))
    assert given == dict.fromkeys(range(FREE + 1, FREE + 101), 1)
    refused = stored(library, state="refused")
    assert len(refused) == 100
    assert all("待执行的决定把条目" in row["state_reason"] for row in refused)


WAITING = """
SELECT COUNT(*) AS number FROM information_schema.processlist
WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE 'SELECT%FOR UPDATE'
"""


def test_whoever_looks_at_what_waits_writes_before_anybody_else_looks(library, monkeypatch):
    """The slower of two launches has looked, and goes on only when the other is done, or waits for it."""
    real, looked, done = recording_module.read_pending, threading.Event(), threading.Event()

    def read_pending(*args):
        found = real(*args)
        if threading.current_thread().name == "slow":
            looked.set()
            # SQLite lets one write at a time anyhow, and does not say who waits.
            while library.mysql and not done.is_set() and not library.query(WAITING)[0]["number"]:
                pass
        return found

    def slow():
        threading.current_thread().name = "slow"
        return decide(library, decision_on(6, "set_id", FREE), decision_on(8, "ignore", days=5), run_id="slow")

    def quick():
        assert looked.wait(timeout=60)
        try:
            return decide(library, decision_on(5, "set_id", FREE), decision_on(8, "ignore", days=6), run_id="quick")
        finally:
            done.set()

    monkeypatch.setattr(recording_module, "read_pending", read_pending)
    with asking():
        at_once(slow, quick)
    assert telling(stored(library, state="pending"), "vod_id", "run_id") == [(6, "slow"), (8, "quick")]
    replaced, refused = stored(library, state="refused")
    assert (replaced["vod_id"], replaced["state_reason"]) == (8, "被更新的决定取代")
    assert refused["vod_id"] == 5
    assert refused["state_reason"].startswith(f"待执行的决定把条目 {FREE} 给了影片 6")


def test_a_thousand_rows_with_fifty_bad_ones(shared_library):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 961)])
    for vod_id in range(1, 201):
        judged(library, vod_id, 91_000_000 + vod_id, 92_000_000 + vod_id)
    good = [decision_on(vod_id, "confirm_top1") for vod_id in range(1, 101)]
    good += [decision_on(vod_id, "choose", rank=2) for vod_id in range(101, 201)]
    good += [decision_on(vod_id, "set_id", 93_000_000 + vod_id) for vod_id in range(201, 401)]
    good += [decision_on(vod_id, "ignore", days=30) for vod_id in range(401, 951)]
    bad = [decision_on(5000 + number, "ignore") for number in range(20)]
    bad += [decision_on(951 + number, "confirm_top1") for number in range(10)]
    bad += [decision_on(1 + number, "lock_intro", A) for number in range(20)]
    requested = sorted([*good, *bad], key=lambda each: each.vod_id % 97)
    statements: list[str] = []

    def count(connection, cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(library.engine, "before_cursor_execute", count)
    try:
        with asking():
            recording = decide(library, *requested)
    finally:
        sa.event.remove(library.engine, "before_cursor_execute", count)
    assert [item.vod_id for item in recording.items] == [each.vod_id for each in requested]
    assert Counter(item.status for item in recording.items) == {"recorded": 950, "refused": 50}
    assert Counter(item.reason for item in recording.of("refused")) == {
        "没有这部影片，请把示例换成真实的 vod_id": 20,
        "没有候选条目，请改用 set_id": 10,
        "lock_intro 不使用 douban_id，请改为 0，或改用 set_id": 20,
    }
    states = Counter((row["state"], bool(row["state_reason"])) for row in stored(library))
    assert states == {("pending", False): 950, ("refused", True): 50}
    assert Counter(row["batch_id"] for row in stored(library)) == {recording.batch_id: 1000}
    assert len(statements) < 250, "no query a row"
