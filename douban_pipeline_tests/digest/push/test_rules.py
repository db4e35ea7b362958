"""What becomes of a message that was not taken, and quiet hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.digest.push.rules import (
    FIRST_WAIT,
    LONGEST_WAIT,
    MOST_ATTEMPTS,
    PushState,
    PushType,
    after_failure,
    may_go_out,
    message_id,
    quiet_until,
)
from douban_pipeline.digest.settings import read_quiet_hours

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")
TYPES = st.sampled_from(PushType)


@given(push_type=TYPES, attempts=st.integers(1, 200), wait=st.none() | st.floats(0, 90_000))
def test_a_finding_that_may_have_arrived_is_never_tried_again_and_a_report_always(
    push_type: PushType, attempts: int, wait: float | None
) -> None:
    outcome = after_failure(push_type, attempts, "x", uncertain=True, retry_after=wait, now=NOW)
    if push_type is PushType.FINDING:
        assert (outcome.state, outcome.next_attempt_at) == (PushState.UNKNOWN, None)
    elif attempts < MOST_ATTEMPTS[push_type]:
        assert outcome.state is PushState.FAILED
        assert outcome.next_attempt_at is not None
        assert outcome.next_attempt_at >= NOW + FIRST_WAIT


@given(push_type=TYPES, attempts=st.integers(1, 200))
def test_waits_grow_and_end(push_type: PushType, attempts: int) -> None:
    outcome = after_failure(push_type, attempts, "x", uncertain=False, retry_after=None, now=NOW)
    if attempts >= MOST_ATTEMPTS[push_type]:
        assert (outcome.state, outcome.next_attempt_at) == (PushState.DEAD, None)
    else:
        assert outcome.next_attempt_at is not None
        assert FIRST_WAIT <= outcome.next_attempt_at - NOW <= LONGEST_WAIT


def test_a_platform_is_left_alone_as_long_as_it_asks() -> None:
    outcome = after_failure(PushType.REPORT, 1, "x", uncertain=False, retry_after=300, now=NOW)
    assert outcome.next_attempt_at == NOW + timedelta(seconds=300)


def test_ids_of_messages_have_separators() -> None:
    day = date(2026, 11, 20)
    ids = {
        message_id(day, "22:00", "report", "a", "bc"),
        message_id(day, "22:00", "report", "ab", "c"),
        message_id(day, "22:00", "finding", "a", "bc"),
        message_id(day, "18:00", "report", "a", "bc"),
        message_id(date(2026, 11, 21), "22:00", "report", "a", "bc"),
    }
    assert len(ids) == 5
    assert all(len(each) == 40 for each in ids)


@pytest.mark.parametrize(
    ("hours", "clock", "until"),
    [
        ("", "23:30", None),
        ("23:00-07:00", "22:59", None),
        ("23:00-07:00", "23:00", "21 07:00"),
        ("23:00-07:00", "00:30", "20 07:00"),
        ("23:00-07:00", "07:00", None),
        ("21:30-22:30", "22:00", "20 22:30"),
    ],
)
def test_quiet_hours_hold_findings_and_never_the_report(hours: str, clock: str, until: str | None) -> None:
    quiet = read_quiet_hours(hours)
    now = datetime.fromisoformat(f"2026-11-20T{clock}:00").replace(tzinfo=SHANGHAI).astimezone(UTC)
    found = quiet_until(now, quiet, SHANGHAI)
    assert (None if found is None else f"{found:%d %H:%M}") == until
    assert may_go_out(PushType.FINDING, now, quiet, SHANGHAI) == (until is None)
    assert may_go_out(PushType.REPORT, now, quiet, SHANGHAI)
    assert may_go_out(PushType.ALERT, now, quiet, SHANGHAI)


@pytest.mark.parametrize("text", ["23:00", "23-7", "23:00-23:00", "25:00-07:00", "-"])
def test_quiet_hours_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="dash between"):
        read_quiet_hours(text)
