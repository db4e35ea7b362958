"""Sources whose clocks are wrong: learned from when their entries appear; those that are right are never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import Message
from email.utils import formatdate
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn
from douban_pipeline.feeds.clock_skew import LEAST, QUARTER, Sighting, SourceClock
from douban_pipeline.feeds.reading.sources import sources_page
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, Stage, stage

EIGHT = 8 * HOUR


def sightings(count: int, error: int, gap: int, seed: int = 1, late: int = 0, start: int = START) -> Sequence[Sighting]:
    """Sightings of a source whose times are wrong by ``error``, polled every ``gap``, shown up to ``late`` late."""
    random = Random(seed)
    found = []
    for number in range(count):
        published = start + number * DAY + random.randrange(DAY // 2)
        shown = published + random.randrange(late + 1)
        before = shown - random.randrange(gap)
        found.append(Sighting(before + gap, published + error, before))
    return found


def clock_of(seen: Sequence[Sighting], clock: SourceClock | None = None) -> SourceClock:
    clock = clock or SourceClock()
    for each in seen:
        clock = clock.after(each)
    return clock


@settings(max_examples=100)
@given(
    gap=st.integers(600, DAY),
    late=st.sampled_from([0, 600, HOUR, 4 * HOUR, DAY]),
    seed=st.integers(0, 10**6),
    count=st.integers(1, 40),
)
def test_a_source_that_is_right_is_never_corrected(gap: int, late: int, seed: int, count: int) -> None:
    clock = SourceClock()
    for each in sightings(count, 0, gap, seed, late):
        clock = clock.after(each)
        assert clock.skew == 0


@settings(max_examples=100)
@given(
    quarters=st.integers(-56, 56),
    gap=st.integers(600, 6 * HOUR),
    seed=st.integers(0, 10**6),
)
def test_a_wrong_clock_is_never_made_worse_and_hours_are_learned_exactly(quarters: int, gap: int, seed: int) -> None:
    error = quarters * QUARTER
    clock = clock_of(sightings(40, error, gap, seed))
    assert abs(clock.skew + error) <= abs(error)
    if error % HOUR == 0:
        assert clock.skew in (0, -error)


@pytest.mark.parametrize("hours", [-14, -8, -3, 1, 8, 14])
@pytest.mark.parametrize("gap", [900, HOUR, 2 * HOUR])
def test_an_hour_s_error_is_learned_within_days(hours: int, gap: int) -> None:
    assert clock_of(sightings(LEAST - 1, hours * HOUR, gap)).skew == 0
    assert clock_of(sightings(15, hours * HOUR, gap)).skew == -hours * HOUR


def test_what_is_no_clock_teaches_nothing() -> None:
    # A date alone: every entry of the morning is stated to be of midnight.
    midnight = START - (START + EIGHT) % DAY
    seen = [
        Sighting(midnight + n * DAY + 9 * HOUR, midnight + n * DAY, midnight + n * DAY + 8 * HOUR) for n in range(9)
    ]
    assert clock_of(seen).skew == 0
    # Shown two hours late, to the minute: late, not wrong.
    late = [Sighting(each.found + 2 * HOUR, each.stated, each.before + 2 * HOUR) for each in sightings(9, 0, 900)]
    assert clock_of(late).skew == 0


def test_a_clock_that_was_put_right_is_believed_again() -> None:
    wrong = clock_of(sightings(12, EIGHT, HOUR))
    assert (wrong.skew, wrong.since) == (-EIGHT, 0)
    right = clock_of(sightings(LEAST, 0, HOUR, start=START + 20 * DAY), wrong)
    assert right.skew == 0
    assert right.since > START + 19 * DAY
    assert SourceClock.from_json(right.to_json()).skew == 0
    assert SourceClock.from_json({"seen": "?"}) == SourceClock()


@dataclass
class WrongClock(LoopbackStandIn):
    """A feed whose times are ``ahead`` of the true ones, and that says they are UTC."""

    ahead: int = 0
    times: list[int] = field(default_factory=list)

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        items = "".join(
            f"<item><guid>{time}</guid><title>t</title><pubDate>{formatdate(time + self.ahead)}</pubDate></item>"
            for time in self.times
        )
        return HttpAnswer(200, f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), "application/rss+xml")


def live(at: Stage, feed: WrongClock, days: int) -> None:
    """Let the feed publish once a day, and poll it before and after."""
    random = Random(days)
    for _ in range(days):
        coming = int(at.clock.at) + HOUR + random.randrange(DAY - 2 * HOUR)
        before = coming - random.randrange(1, 3000)
        for moment in (before, before + 3000):
            at.clock.at = moment
            if coming <= moment:
                feed.times.append(coming)
            at.make_due()
            at.poll()


@pytest.mark.parametrize("ahead", [EIGHT, -EIGHT, 14 * HOUR, 0])
def test_stored_times_become_the_true_ones(tmp_path: Path, ahead: int) -> None:
    with stage(tmp_path, {}) as at, WrongClock(ahead=ahead) as feed:
        feed.times = [START - number * DAY - 1234 * number for number in range(3, 9)]
        [source] = follow(at.services, [SourceRequest(url=f"{feed.base}/feed")], dry_run=False).added
        at.make_due()
        at.poll()
        # Nothing is published after it is found, whatever a clock says.
        live(at, feed, 2)
        stored = at.entries(source.source_id)
        assert all(each["published_at"] <= each["found_at"] for each in stored)
        live(at, feed, 10)
        stored = at.entries(source.source_id)
        assert len(stored) == len(feed.times)
        off = [each["published_at"] - int(each["guid"].rpartition("/")[2]) for each in stored]
        # While the error was not known, what was ahead was taken to be published when it was found.
        assert all(0 <= each <= HOUR for each in off)
        assert off.count(0) >= 10
        text = sources_page(at.services, words="", state="", folder=None, after="")
        assert ("来源写的时间" in text) is bool(ahead)
        if ahead:
            assert f"来源写的时间{'快' if ahead > 0 else '慢'} {abs(ahead) // HOUR} 小时，已校正" in text
