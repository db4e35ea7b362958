"""The code location: its assets, checks and jobs of people, through Dagster, on tables and lists of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import delete, func, insert, select, update

from douban_pipeline.comments import capacity, guards
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.tables import bigram, comment, event, impression, moderation, rule, score, section
from douban_pipeline.comments.types import IMPORTED, CommentStatus, Rank
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline_tests.comments.location import (
    given_settings,
    metadata,
    outcome,
    planted,
    problem,
    run,
    shown,
)
from douban_pipeline_tests.comments.sections import NOW
from douban_pipeline_tests.conftest import missing, server_url
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def services(tmp_path: Path) -> Iterator[CommentsServices]:
    prefix = f"test-{uuid.uuid4().hex[:8]}:"
    settings = given_settings(tmp_path, redis_url=server_url("redis"), redis_prefix=prefix)
    client = Redis.from_url(server_url("redis"))
    try:
        client.ping()
    except RedisError as error:
        missing("redis", str(error))
    opened = open_services(settings, "test", FakeClock(NOW)).ready()
    yield opened
    opened.close()
    for key in client.scan_iter(f"{prefix}*"):
        client.delete(key)
    client.close()


def test_a_sweep_scores_publishes_and_is_checked(services, instance):
    ids = planted(services)
    result = run(services, instance, "score_comments")
    assert result.success
    found = metadata(result, "hot_scores")
    assert (found["sections"], found["comments"], found["scores_written"], found["left_for_next_run"]) == (1, 3, 3, 0)
    assert outcome(result) == dict.fromkeys(
        ("counters_agree", "nothing_hidden_is_served", "events_keep_up", "caches_agree", "audits_stand"), True
    )
    assert services.heat_lists.ids(1).tolist() == ids
    assert services.lists.heat.ids(1).tolist() == ids, "what workers change and pages read"


def test_what_is_planted_is_found_by_its_check(services, instance):
    ids = planted(services)
    assert run(services, instance, "score_comments").success
    late = NOW - timedelta(hours=1)
    entry = {"event_id": 1, "section_id": 1, "comment_id": ids[1], "action": "deleted", "actor": "ops:a"}
    entry |= {"old_status": 0, "old_rank": 0, "new_status": 2, "new_rank": int(Rank.AUDIT), "created_at": late}
    waiting = {"shard": 2, "section_id": 2, "kind": "vote", "actor": "u:1", "payload": {}, "request_key": "k"}
    with services.engine.begin() as connection:
        connection.execute(update(section).values(visible_count=2))
        connection.execute(update(comment).where(comment.c.comment_id == ids[0]).values(status=2, updated_at=late))
        connection.execute(update(score).where(score.c.comment_id == ids[2]).values(heat=7))
        connection.execute(insert(moderation).values(**entry))
        connection.execute(insert(event).values(**waiting, created_at=late))
        clock, lists = services.clock, services.heat_lists
        found = {
            "counters": [each.what for each in guards.miscounted(connection)],
            "hidden": [each.what for each in guards.hidden_in_lists(connection, lists, services.lists, clock)],
            "lists": [each.what for each in guards.differing_lists(connection, lists)],
            "events": [each.what for each in guards.late_events(connection, clock)],
            "audits": [each.what for each in guards.overturned_audits(connection)],
        }
        assert list(guards.hidden_in_lists(connection, None, None, clock)) == []
        assert list(guards.differing_lists(connection, None)) == []
    assert "section 1: hidden_count is 0, its rows say 1" in found["counters"]
    assert found["hidden"] == [f"评论 {ids[0]} 已隐藏，却仍在列表 heat 中"]
    assert found["lists"] == [f"热度列表中 1 条的热度与数据库不同，如评论 {ids[2]}"]
    assert found["events"] == ["最早的事件已等待 3600 秒；请查看 comment-worker 是否在运行"]
    assert found["audits"] == [f"评论 {ids[1]} 的状态是 0，审核定为 2"]


def test_slow_events_are_told_of(services):
    planted(services)
    rows = [
        {"shard": 1, "section_id": 1, "kind": "vote", "actor": "u:1", "payload": {}, "request_key": f"{number}"}
        | {"state": 2, "created_at": NOW - timedelta(minutes=9), "applied_at": NOW - timedelta(minutes=9 - number)}
        for number in range(3)
    ]
    # Nobody waits for what is taken over from the CMS.
    taken = {**rows[0], "request_key": f"{IMPORTED}000000000007", "applied_at": NOW}
    with services.engine.begin() as connection:
        connection.execute(insert(event), [*rows, taken])
        [found] = guards.late_events(connection, services.clock)
        waits = guards.waits_of_events(connection, services.clock)
    assert "超过 60.0 秒才生效" in found.what
    assert waits == [0.0, 60.0, 120.0]


def test_reports_show_factors_capacity_and_what_waits(services, instance):
    ids = planted(services)
    hours = [NOW - timedelta(minutes=30 + 60 * number) for number in range(3) for _ in range(number + 1)]
    rows = [
        {"shard": 1, "section_id": 1, "kind": "vote", "actor": "u:1", "payload": {}, "request_key": f"{number}"}
        | {"state": 2, "created_at": at, "applied_at": at}
        for number, at in enumerate(sorted(hours))
    ]
    with services.engine.begin() as connection:
        connection.execute(insert(event), rows)
        connection.execute(update(comment).where(comment.c.comment_id == ids[1]).values(status=1, status_rank=2))
        seen = {"comment_id": ids[0], "section_id": 1, "hour": NOW - timedelta(hours=1), "shown": 7_200_000}
        connection.execute(insert(impression).values(**seen))
        assert capacity.events_by_hour(connection, NOW, 1)[-4:] == [0, 3, 2, 1]
    result = run(services, instance, "report_comments")
    assert result.success
    factors = metadata(result, "comment_factors")
    assert factors["comments"] == 3
    assert "近 24 小时点赞率的下界" in factors["meanings"]
    report = metadata(result, "capacity_report")
    assert report["pages_per_second"] == 100.0
    assert report["service_processes"] == 2
    assert report["lag_p95_seconds"] == 0.0
    queue = metadata(result, "comment_review_queue")
    assert queue["waiting"] == 1
    assert "加群领取资源" in queue["comments"]
    assert "由自动策略转审" in queue["comments"]


@pytest.mark.parametrize(
    ("events", "pages", "nodes", "workers"),
    [(0.0, 0.0, 1, 1), (1.0, 10.0, 1, 1), (70.0, 70.0, 1, 1), (70.1, 70.1, 2, 2), (700.0, 7000.0, 100, 10)],
)
def test_capacity_by_hand(events, pages, nodes, workers):
    found = capacity.capacity(events, pages)
    assert (found.service_nodes, found.workers) == (nodes, workers)
    assert found.hot_pages > 0


RULE = {"name": "spam", "expression": "content =~~ '加群'", "decision": "boost", "amount": 2.0, "try_on": 1}


def test_a_rule_is_tried_first_and_then_in_force(services, instance):
    ids = planted(services)
    tried = shown(run(services, instance, "save_comment_rule", save_rule=RULE))
    assert (tried["dry_run"], tried["revision"], tried["changed"], tried["moved"]) == (True, 0, 1, 2)
    assert str(ids[1]) in tried["moves"]
    given = {**RULE, "dry_run": False, "operator": "ann"}
    assert shown(run(services, instance, "save_comment_rule", save_rule=given))["revision"] == 1
    result = run(services, instance, "score_comments")
    assert "spam" in metadata(result, "comment_rules")["in_force"]
    assert services.heat_lists.ids(1)[0] == ids[1]
    assert run(services, instance, "retire_comment_rule", retire_rule={"name": "spam", "dry_run": False}).success
    rebuilt = run(services, instance, "rebuild_comment_section", rebuild_section={"dry_run": False, "section": 1})
    assert rebuilt.success
    assert services.heat_lists.ids(1).tolist() == ids
    gone = run(services, instance, "retire_comment_rule", retire_rule={"name": "spam"})
    assert "没有启用中的规则「spam」" in problem(gone)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"expression": "likse > 3"}, "规则「spam」（likse > 3）：没有名为 likse 的因子，是否想写 likes"),
        ({"try_on": 9}, "没有编号为 9 的评论区"),
        ({"dry_run": False}, "需要写明操作人"),
        ({"decision": "exempt", "amount": 0.0}, "须在 exempts 中写明"),
    ],
)
def test_bad_rules_are_refused_in_the_launchpad(services, instance, changed, message):
    planted(services)
    result = run(services, instance, "save_comment_rule", save_rule={**RULE, **changed})
    assert message in problem(result)
    with services.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(rule)).scalar_one() == 0


def test_a_rule_that_no_longer_holds_stops_the_sweep_before_scores(services, instance):
    planted(services)
    given = {**RULE, "dry_run": False, "operator": "ann"}
    assert run(services, instance, "save_comment_rule", save_rule=given).success
    with services.engine.begin() as connection:
        connection.execute(update(rule).values(expression="gone > 1"))
    result = run(services, instance, "score_comments")
    assert not result.success
    assert "没有名为 gone 的因子" in problem(result)
    assert not result.asset_materializations_for_node("hot_scores")


def test_many_comments_are_decided_at_once_and_taken_back(services, instance):
    ids = planted(services)
    given = {"section": 1, "words": "加群", "comments": [ids[0]], "batch": "广告", "operator": "小王"}
    planned = shown(run(services, instance, "moderate_comments", moderate=given))
    assert (planned["comments_found"], planned["refused"], planned["events"]) == (2, 0, 0)
    real = {**given, "dry_run": False, "reason": "广告"}
    assert shown(run(services, instance, "moderate_comments", moderate=real))["events"] == 2
    worker = services.worker()
    while worker.turn():
        pass
    assert statuses(services, ids) == [CommentStatus.DELETED, CommentStatus.DELETED, CommentStatus.NORMAL]
    undo = {"action": "undo", "batch": "广告", "operator": "小王", "reason": "误删", "dry_run": False}
    assert shown(run(services, instance, "moderate_comments", moderate=undo))["events"] == 2
    while worker.turn():
        pass
    assert statuses(services, ids) == [CommentStatus.NORMAL] * 3
    again = run(services, instance, "moderate_comments", moderate=undo)
    assert "没有可撤销的批次「广告」" in problem(again)
    repeated = shown(run(services, instance, "moderate_comments", moderate=real))
    assert (repeated["refused"], repeated["events"]) == (2, 0)
    assert "批次「广告」已处理过这条评论；要再处理请换一个批次名" in repeated["comments"]
    while worker.turn():
        pass
    assert statuses(services, ids) == [CommentStatus.NORMAL] * 3
    assert outcome(run(services, instance, "score_comments"))["counters_agree"]


def test_new_texts_are_indexed_with_a_sweep_and_anew_on_demand(services, instance):
    planted(services)
    trial = shown(run(services, instance, "reindex_comments", reindex={"section": 1}))
    assert (trial["dry_run"], trial["comments"], trial["not_indexed"], trial["taken"]) == (True, 3, 3, 0)
    first = metadata(run(services, instance, "score_comments"), "comment_search_index")
    assert (first["taken"], first["comments"], first["left_for_next_run"]) == (3, 3, 0)
    assert metadata(run(services, instance, "score_comments"), "comment_search_index")["taken"] == 0
    with services.engine.begin() as connection:
        connection.execute(delete(bigram))
    real = shown(run(services, instance, "reindex_comments", reindex={"section": 1, "dry_run": False}))
    assert (real["not_indexed"], real["taken"]) == (0, 3)
    with services.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(bigram)).scalar_one() == 7 + 5 + 1
    unknown = run(services, instance, "reindex_comments", reindex={"section": 7})
    assert "没有编号为 7 的评论区" in problem(unknown)


def test_an_audit_is_not_overturned_by_operators(services, instance):
    ids = planted(services)
    audit = {"comments": [ids[0]], "batch": "审核", "operator": "审", "reason": "违规", "audit": True, "dry_run": False}
    assert run(services, instance, "moderate_comments", moderate=audit).success
    while services.worker().turn():
        pass
    restore = {"action": "restore", "comments": [ids[0]], "batch": "放行", "operator": "小王"}
    planned = shown(run(services, instance, "moderate_comments", moderate=restore))
    assert planned["refused"] == 1
    assert "已由更高级别（审核）处理" in planned["comments"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": "b"}, "请写明操作人"),
        ({"operator": "o"}, "请写明批次名"),
        ({"batch": "b", "operator": "o"}, "没有写明任何评论"),
        ({"batch": "b", "operator": "o", "comments": [5]}, "没有编号为 5 的评论"),
        ({"batch": "b", "operator": "o", "comments": [5], "dry_run": False}, "请写明原因"),
    ],
)
def test_unfinished_decisions_are_refused(services, instance, given, message):
    planted(services)
    assert message in problem(run(services, instance, "moderate_comments", moderate=given))


def test_without_redis_scores_are_in_the_tables(tmp_path, instance):
    alone = open_services(given_settings(tmp_path), "test", FakeClock(NOW)).ready()
    planted(alone)
    result = run(alone, instance, "score_comments")
    assert result.success
    assert all(outcome(result).values())
    alone.close()


def test_pruning_keeps_what_is_fresh(services, instance):
    planted(services)
    assert run(services, instance, "score_comments").success
    result = run(services, instance, "prune_comments", prune_comment_runs={"dry_run": True})
    assert {name for name, count in shown(result).items() if count} == {"dry_run"}
    assert run(services, instance, "prune_comments", prune_comment_runs={"dry_run": False}).success


def statuses(services: CommentsServices, ids: list[int]) -> list[int]:
    with services.engine.connect() as connection:
        rows = connection.execute(select(comment.c.comment_id, comment.c.status)).all()
    found = {row.comment_id: row.status for row in rows}
    return [found[each] for each in ids]


def test_wrong_weights_are_refused_with_the_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("DOUBAN_PIPELINE_COMMENTS_HEAT_WEIGHTS", '{"haste": 1}')
    with pytest.raises(SettingsError, match="HEAT_WEIGHTS"):
        CommentsSettings.load(_env_file=None)
