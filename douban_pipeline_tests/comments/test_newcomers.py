"""New comments stand where the next sweep would put them, from the moment that they are published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import select, update

from douban_pipeline.comments.heat.experiments import Experiment, Variant
from douban_pipeline.comments.heat.rules import Decision, Rule
from douban_pipeline.comments.heat.what_if import WhatIf
from douban_pipeline.comments.scoring import newcomers
from douban_pipeline.comments.scoring.newcomers import NewcomerHeat
from douban_pipeline.comments.scoring.policies import policies, save_experiment, save_rule
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.reading import Order
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.stage import OPERATOR, Stage, stage, user

RULES = [
    Rule("groups", "content =~~ '加群'", Decision.SINK, 2.0),
    Rule("long", "length >= 12 and not guest", Decision.BOOST, 0.5),
    Rule("links", "has_link or impressions > 0", Decision.SINK, 1.0, stacks=True),
]


@contextmanager
def warm(url: str, weights: dict[str, float]) -> Iterator[Stage]:
    """Yield a section whose worker gives new comments their heat."""
    with stage(url) as place:
        place.worker._heat = NewcomerHeat(place.engine, weights)
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
        place.clock.advance(seconds=newcomers._FRESH.total_seconds())
        third = place.publish(user(4), "加群三")
        place.work()
        found = stored(place)
        assert [found[each].decisions for each in (first, second, third)] == [[], [], ["groups"]]
        with place.engine.begin() as connection:
            connection.execute(update(tables.rule).values(expression="likse > 3"))
        place.clock.advance(seconds=newcomers._FRESH.total_seconds())
        fourth = place.publish(user(5), "加群四")
        place.work()
        assert (stored(place)[fourth].heat, stored(place)[fourth].score_at) == (0, None)
        assert place.differences() == []
