"""Whatever people launch, in whatever order: what waits can all be meant at once, and nothing of a launch is lost."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from douban_pipeline.douban.store.decisions import LINKING, Decision, contradict
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.review.world import A, B, C, D, asking, decide, furnish, stored
from douban_pipeline_tests.harness.fixtures.library import Library


@pytest.fixture(scope="module")
def library(shared_library: Library) -> Library:
    """The world: recording changes nothing in it but when videos are due."""
    return furnish(shared_library)


VIDEOS = (4, 5, 6, 7, 8, 13, 15, 404)
SUBJECTS = (0, A, B, C, D, 90_000_115, 90_000_404)


def rows() -> st.SearchStrategy[Decision]:
    """Return rows as anybody may write them, most of them sound."""
    fields = {"lock": st.booleans(), "accept_conflicts": st.booleans()}
    naming = st.sampled_from([action for action in DecisionAction if action in LINKING])
    others = st.sampled_from([action for action in DecisionAction if action not in LINKING])
    video = st.sampled_from(VIDEOS)
    linking = st.builds(Decision, video, naming, st.sampled_from(SUBJECTS), st.integers(0, 3), **fields)
    plain = st.builds(Decision, video, others, days=st.sampled_from((0, 0, 30)), **fields)
    return st.one_of(linking, plain)


LAUNCHES = st.lists(st.lists(rows(), min_size=1, max_size=6), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launches=LAUNCHES)
def test_whatever_is_launched_what_waits_can_all_be_meant(library: Library, launches: list[list[Decision]]) -> None:
    library.execute(sa.delete(library.tables.decision))
    before = library.all_bytes()
    with asking({C: "与《别的片》对不上：年份冲突：差 9 年"}):
        for requested in launches:
            library.clock.advance(minutes=1)
            known = {row["decision_id"] for row in stored(library)}
            recording = decide(library, *requested)
            check(library, before)
            # Nothing is lost: every row is told of, and every one that is news is written down, with its reason.
            assert [item.vod_id for item in recording.items] == [each.vod_id for each in requested]
            outcomes = Counter(item.status for item in recording.items)
            new = [row for row in stored(library) if row["decision_id"] not in known]
            assert len(new) == outcomes["recorded"] + outcomes["refused"]
            assert {row["batch_id"] for row in new} <= {recording.batch_id}
            assert all(item.reason for item in recording.of("refused", "known", "already"))
            again(library, requested)


def check(library: Library, before: list[tuple[object, ...]]) -> None:
    """Assert what holds of the decisions that wait, whatever was launched."""
    waiting = stored(library, state="pending")
    for one, other in itertools.combinations(waiting, 2):
        if one["vod_id"] == other["vod_id"]:
            pair = [(DecisionAction(each["action"]), each["lock"]) for each in (one, other)]
            assert not contradict(*pair), "two that wait cannot both be meant"
        elif one["douban_id"] and one["douban_id"] == other["douban_id"]:
            assert one["accept_conflicts"] or other["accept_conflicts"], "a subject for two videos, and nobody said so"
    states = library.states()
    for each in waiting:
        assert (each["state_reason"], each["settled_at"]) == ("", None)
        assert states[each["vod_id"]]["douban_next_sync_at"] <= library.clock.now(), "it is due"
        named = each["action"] in ("set_id", "replace_and_lock")
        assert (each["checked_at"] is not None) == named
        assert not (each["action"] in LINKING and each["douban_id"] == C and named and not each["accept_conflicts"])
    for each in stored(library, state="refused"):
        assert each["state_reason"]
        assert (each["pending_key"], each["settled_at"] is None) == (None, False)
    assert library.all_bytes() == before, "recording writes nothing to the CMS"


def again(library: Library, requested: list[Decision]) -> None:
    """Assert that the same launch again, as after a kill, changes nothing that waits."""
    waiting = stored(library, state="pending")
    library.clock.advance(seconds=1)
    recording = decide(library, *requested, run_id="again")
    assert stored(library, state="pending") == waiting
    assert not recording.of("recorded")
