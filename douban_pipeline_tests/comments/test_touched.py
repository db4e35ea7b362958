"""Comments stand where a sweep would put them, from the moment that they are published, voted on or answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import select, update

from douban_pipeline.comments.heat.experiments import Experiment, Variant
from douban_pipeline.comments.heat.rules import Rule, RuleDecision
from douban_pipeline.comments.heat.what_if import WhatIf
from douban_pipeline.comments.scoring import touched
from douban_pipeline.comments.scoring.impressions import add_impressions
from douban_pipeline.comments.scoring.policies import policies, save_experiment, save_rule
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.scoring.touched import TouchedHeat
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.comment_lists import Order
from douban_pipeline.comments.types import EventKind
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.stage import OPERATOR, Stage, stage, user

RULES = [
    Rule("groups", "content =~~ '加群'", RuleDecision.SINK, 2.0),
    Rule("long", "length >= 12 and not guest", RuleDecision.BOOST, 0.5),
    Rule("links", "has_link or impressions > 0", RuleDecision.SINK, 1.0, stacks=True),
]


@contextmanager
def warm(url: str, weights: dict[str, float]) -> Iterator[Stage]:
    """Yield a section whose worker gives new comments their heat."""
    with stage(url) as place:
        place.worker._heat = TouchedHeat(place.engine, weights)
        yield place


def save(place: Stage, *rules: Rule) -> None:
    with place.engine.begin() as connection:
        for rule in rules:
            save_rule(connection, rule, WhatIf(0, {}, 0, 0, ()), "li", place.clock.now())


def stored(place: Stage) -> dict[int, Any]:
    with reading(place.engine) as connection:
        return {row.comment_id: row for row in connection.execute(select(tables.score))}


def sweep(place: Stage) -> int:
    """Score the section as a sweep does; return how many scores differed enough to be written."""
    with reading(place.engine) as connection:
        chosen = policies(connection, {"decay": 0.2})
    policy = chosen.of(place.section_id, 1)
    return score_section(place.engine, None, place.section_id, policy, place.clock.now()).written


def test_a_sweep_right_after_finds_nothing_to_change(database_url):
    with warm(database_url, {"decay": 0.2}) as place:
        save(place, *RULES)
        plain = place.publish(user(2), "好看")
        group = place.publish(user(3), "加群领取 https://a.example")
        praise = place.publish(user(4), "这一集的配乐和剪辑都非常好，值得一看再看", level=5)
        older = {"at": place.clock.now().timestamp() - 90_000, "likes": 12, "dislikes": 2, "reports": 1}
        brought = place.publish(OPERATOR, "从别处来的", imported=older)
        reply = place.publish(user(5), "回一楼", plain)
        place.work()
        before = stored(place)
        assert reply not in before, "only roots have a heat"
        order = place.roots(Order.HEAT)
        assert (order[0], order[-1]) == (praise, group)
        assert {plain, brought} == set(order[1:-1])
        assert before[group].decisions == ["groups", "links", "long"]
        assert before[praise].parts["rules"] == 0.5
        assert sweep(place) == 0
        assert stored(place) == before


def test_likes_move_a_comment_when_they_are_applied_though_nobody_sweeps(database_url):
    with warm(database_url, {}) as place:
        roots = []
        for number in range(45):
            roots.append(place.publish(user(100 + number), f"第 {number} 条"))
            place.clock.advance(minutes=20)
        place.work()
        assert place.roots(Order.HEAT).index(roots[14]) == 30, "the newest are first where all else is equal"
        for number in range(14):
            place.vote(user(200 + number), roots[14], 1)
        place.vote(user(300), roots[40], -1)
        place.publish(user(301), "回", roots[20])
        place.work()
        assert place.roots(Order.HEAT)[:2] == [roots[14], roots[20]]
        for number in range(14):
            place.vote(user(200 + number), roots[14], 0)
        place.work()
        assert place.roots(Order.HEAT).index(roots[14]) == 30, "as before"


def test_a_comment_is_not_older_than_its_neighbours_for_being_voted_on(sqlite_url):
    with warm(sqlite_url, {}) as place:
        early, late = place.publish(user(2), "一"), place.publish(user(3), "二")
        for number in range(5):
            place.vote(user(10 + number), early, 1)
        place.work()
        place.clock.advance(days=3)
        for number in range(6):
            place.vote(user(20 + number), late, 1)
        place.work()
        assert place.roots(Order.HEAT) == [late, early]


def test_what_was_touched_has_the_heat_that_a_sweep_of_that_moment_gives(any_database_url):
    with warm(any_database_url, {"decay": 0.2}) as place:
        save(place, *RULES)
        roots = [place.publish(user(number), f"加群 {number}") for number in range(2, 8)]
        place.work()
        place.clock.advance(hours=30)
        with place.engine.begin() as connection:
            add_impressions(connection, dict.fromkeys(roots, 40), place.clock.now())
        assert sweep(place) == 6
        place.vote(user(20), roots[0], 1)
        place.vote(user(21), roots[0], 1)
        place.vote(user(1), roots[1], 1)
        place.vote(user(22), roots[2], -1)
        place.publish(user(23), "回", roots[3])
        place.send(user(24), EventKind.REPORT, roots[4], reason="spam")
        place.send(OPERATOR, EventKind.FEATURE, roots[5], on=True)
        place.work()
        place.send(user(24), EventKind.WITHDRAW_REPORT, roots[4])
        place.work()
        assert sweep(place) == 0
        assert stored(place)[roots[0]].parts["rate"] > 0


def test_a_storm_of_votes_writes_one_score(sqlite_url):
    with warm(sqlite_url, {}) as place:
        root = place.publish(user(2), "好看")
        place.work()
        for number in range(400):
            place.vote(user(10 + number), root, 1)
        written = []
        listen = sqlalchemy_event.listens_for(place.engine, "before_cursor_execute")
        listen(lambda _c, _cursor, text, *_: written.append(text) if "INTO cmt_score" in text else None)
        place.work()
        assert place.comment(root).like_count == 400
        assert len(written) == 1
        assert stored(place)[root].parts["approval"] > 0.7


def test_experiments_hold_for_newcomers_too(sqlite_url):
    trial = Experiment("steep", "salt", (Variant("fast", 1.0, {"decay": 1.0}),))
    with warm(sqlite_url, {}) as place:
        with place.engine.begin() as connection:
            save_experiment(connection, trial, "li", place.clock.now())
        root = place.publish(user(2), "好看")
        place.work()
        assert stored(place)[root].variant == "steep/fast"


def test_rules_are_read_again_after_a_while_and_one_that_cannot_be_read_stops_nobody(sqlite_url):
    with warm(sqlite_url, {}) as place:
        first = place.publish(user(2), "加群一")
        place.work()
        save(place, RULES[0])
        second = place.publish(user(3), "加群二")
        place.work()
        place.clock.advance(seconds=touched._FRESH.total_seconds())
        third = place.publish(user(4), "加群三")
        place.work()
        found = stored(place)
        assert [found[each].decisions for each in (first, second, third)] == [[], [], ["groups"]]
        with place.engine.begin() as connection:
            connection.execute(update(tables.rule).values(expression="likse > 3"))
        place.clock.advance(seconds=touched._FRESH.total_seconds())
        fourth = place.publish(user(5), "加群四")
        place.work()
        assert (stored(place)[fourth].heat, stored(place)[fourth].score_at) == (0, None)
        assert place.differences() == []
