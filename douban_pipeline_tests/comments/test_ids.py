"""Ids of comments: unique, growing, and readable as moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from douban_pipeline.comments.ids import EPOCH, NODES, IdGenerator, first_of, milliseconds, moment_of

START = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Times:
    def __init__(self, *moments: datetime) -> None:
        self.moments = list(moments)

    def __call__(self) -> datetime:
        return self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]


def test_ids_grow_within_a_millisecond_and_beyond_its_last_count():
    ids = IdGenerator(7, Times(START))
    drawn = [ids.next() for _ in range(9000)]
    assert drawn == sorted(set(drawn))
    assert moment_of(drawn[0]) == START
    assert moment_of(drawn[-1]) == START + timedelta(milliseconds=2)


def test_a_clock_that_is_set_back_is_not_followed():
    ids = IdGenerator(0, Times(START, START - timedelta(hours=1), START + timedelta(seconds=1)))
    assert (first := ids.next()) < (second := ids.next()) < ids.next()
    assert moment_of(first) == moment_of(second) == START


def test_nodes_never_give_the_same_id_and_order_follows_time():
    one, other = IdGenerator(1, Times(START)), IdGenerator(2, Times(START))
    assert not {one.next() for _ in range(5000)} & {other.next() for _ in range(5000)}
    later = IdGenerator(0, Times(START + timedelta(milliseconds=1)))
    assert IdGenerator(NODES - 1, Times(START)).next() < later.next()


def test_a_bound_by_time_lies_between():
    before, after = (IdGenerator(3, Times(START + timedelta(milliseconds=by))).next() for by in (-1, 0))
    assert before < first_of(START) <= after


def test_ids_fit_into_sixty_three_bits_until_2093():
    assert IdGenerator(NODES - 1, Times(datetime(2093, 9, 1, tzinfo=UTC))).next() < 2**63
    assert milliseconds(EPOCH) == 0


@pytest.mark.parametrize("node", [-1, NODES])
def test_a_node_beyond_the_bits_is_refused(node):
    with pytest.raises(ValueError, match="none of 0 to 1023"):
        IdGenerator(node, Times(START))
