"""A run is started where it is worth one, and no more of them than allowed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from douban_pipeline.douban.chain.due.demand import Demand, choose_shards
from douban_pipeline.douban.chain.due.shard_work import ShardDue
from douban_pipeline.douban.pace import shards_at_once
from douban_pipeline_tests.harness.fixtures.clocks import START

DEMAND = Demand(min_due=10, max_wait=timedelta(minutes=10), max_runs=2)


def due(shard, count=10, minutes=1.0):
    return ShardDue(shard, count, START - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("shards", "running", "paused", "under_way", "chosen"),
    [
        ([due(3), due(5)], (), (), 0, [3, 5]),
        ([due(3), due(5), due(6)], (), (), 0, [3, 5]),
        ([due(3), due(5)], (), (), 1, [3]),
        ([due(3), due(5)], (3,), (), 1, [5]),
        ([due(3, 9), due(5, 10)], (), (), 0, [5]),
        ([due(3, 1, 10), due(5, 9, 9.99)], (), (), 0, [3]),
        ([due(3, 1, 600)], (), (), 0, [3]),
        ([due(3), due(5)], (), (3,), 0, [5]),
        ([replace(due(3, 4), tasks=6), due(5, 9)], (), (), 0, [3]),
        ([replace(due(3, 0), ordered=True), due(5, 9)], (), (), 0, [3]),
    ],
)
def test_shards_worth_a_run_the_most_pressing_first(shards, running, paused, under_way, chosen):
    runs = [range(shard, shard + 1) for shard in chosen]
    assert choose_shards(shards, running, paused, under_way, DEMAND, START) == (runs, "")


@pytest.mark.parametrize(
    ("shards", "running", "under_way", "runs"),
    [
        ([due(3), due(4), due(5), due(6)], (), 1, [range(3, 6)]),
        ([due(5), due(3), due(4), due(6), due(7)], (), 0, [range(5, 8), range(3, 5)]),
        ([due(63), due(62), due(0)], (), 0, [range(62, 64), range(1)]),
        ([due(3), due(4), due(5)], (4,), 0, [range(3, 4), range(5, 6)]),
        ([due(3), due(4, 1), due(5)], (), 0, [range(3, 4), range(5, 6)]),
    ],
)
def test_a_run_covers_neighbouring_shards_where_sources_allow_many_requests(shards, running, under_way, runs):
    wide = replace(DEMAND, shards_per_run=3)
    assert choose_shards(shards, running, (), under_way, wide, START) == (runs, "")


def test_runs_are_as_wide_as_the_rate_needs():
    assert [shards_at_once(rate, 50, 8) for rate in (20, 30, 60, 300, 600)] == [1, 1, 2, 8, 8]
    assert shards_at_once(30, 2000, 8) == 1


@pytest.mark.parametrize(
    ("shards", "running", "paused", "under_way", "reason"),
    [
        ([], (), (), 0, "没有到期的影片"),
        ([due(3)], (7, 8), (), 2, "主作业已有 2 次运行，达到上限（2）"),
        ([due(3)], (7,), (), 5, "主作业已有 5 次运行，达到上限（2）"),
        ([due(3, 4), due(5, 6)], (3, 5), (), 1, "2 个分片有影片到期，都正在运行"),
        ([due(3, 4), due(5, 5)], (), (), 0, "2 个分片有 9 部影片到期，不够一次运行：其中一部等满 10 分钟时启动"),
        ([due(3, 40), due(5, 5)], (3,), (), 1, "1 个分片有 5 部影片到期，不够一次运行"),
        ([due(3), due(5)], (3,), (5,), 1, "1 个分片有影片到期，但上次运行失败，暂停"),
    ],
)
def test_why_there_is_no_run_now(shards, running, paused, under_way, reason):
    chosen, reason_given = choose_shards(shards, running, paused, under_way, DEMAND, START)
    assert chosen == []
    assert reason_given.startswith(reason)
