"""Experiments through Dagster: drawn, tried, started, evaluated, ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import insert, select

from douban_pipeline.comments.definitions import build_defs
from douban_pipeline.comments.experiments.jobs import USUAL, evaluate
from douban_pipeline.comments.heat.experiments import Experiment, Variant
from douban_pipeline.comments.scoring.policies import find_experiment, policies
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.tables import experiment, impression
from douban_pipeline_tests.comments.sections import NOW, plant_section
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

SECTIONS = 40
START = {
    "action": "start",
    "name": "slow_decay",
    "salt": "a",
    "variants": [{"name": "slower", "share": 0.5, "weights": {"decay": 0.06}}],
    "operator": "ann",
}


@pytest.fixture
def services(tmp_path) -> Iterator[CommentsServices]:
    opened = open_services(CommentsSettings(_env_file=None, home=tmp_path), "test", FakeClock(NOW)).ready()
    for number in range(1, SECTIONS + 1):
        plant_section(opened.engine, number, object_id=number)
    yield opened
    opened.close()


def run(
    services: CommentsServices, job: str = "comment_experiment", op: str = "change_experiment", **config: Any
) -> tuple[dict[str, Any], str]:
    """Run a job; return its metadata, and why it failed."""
    defs = build_defs(settings=services.settings, resource_overrides={"services": services})
    with dg.DagsterInstance.ephemeral() as instance:
        result = (
            defs.get_repository_def()
            .get_job(job)
            .execute_in_process(
                instance=instance,
                raise_on_error=False,
                run_config={"ops": {op: {"config": config}}},
            )
        )
    for event in result.all_node_events:
        if event.is_step_failure:
            return {}, event.step_failure_data.error.message
        if event.is_successful_output:
            return {name: value.value for name, value in event.step_output_data.metadata.items()}, ""
    raise AssertionError("neither failed nor succeeded")


def test_an_experiment_is_tried_started_evaluated_and_ended(services):
    tried, _ = run(services, **START)
    assert (tried["dry_run"], tried["sections"]) == (True, SECTIONS)
    with services.engine.connect() as connection:
        assert connection.execute(select(experiment)).all() == [], "a dry run starts nothing"
    run(services, **START, dry_run=False)
    with services.engine.connect() as connection:
        chosen = policies(connection, {})
        drawn = [number for number in range(1, SECTIONS + 1) if chosen.of(number, 1).variant]
        found = find_experiment(connection, "slow_decay")
    assert found is not None
    assert found[1:] == (NOW, "running")
    assert 10 < len(drawn) < 30
    rows = [
        {"comment_id": number, "hour": NOW.replace(minute=0), "section_id": number, "shown": 10, "liked": liked}
        for number in range(1, SECTIONS + 1)
        for liked in [4 if number in drawn else 1]
    ]
    with services.engine.begin() as connection:
        connection.execute(insert(impression), rows)
    shown, _ = run(services, action="evaluate", name="slow_decay")
    assert "40.00%" in shown["variants"]
    assert "10.00%" in shown["variants"]
    run(services, action="end", name="slow_decay", dry_run=False, operator="ann")
    with services.engine.connect() as connection:
        assert not any(policies(connection, {}).of(number, 1).variant for number in drawn)
    assert "已经结束" in run(services, action="end", name="slow_decay")[1]
    assert run(services, action="evaluate", name="slow_decay")[0]["sections"] == SECTIONS, "it can still be looked at"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**START, "salt": ""}, "缺少 salt"),
        ({**START, "variants": [{"name": "x", "share": 0.5, "weights": {"dekay": 1.0}}]}, "dekay"),
        ({**START, "dry_run": False, "operator": " "}, "需要写明操作人"),
        ({"action": "end", "name": "none"}, "没有名为「none」的实验"),
    ],
)
def test_what_makes_no_experiment_is_refused(services, config, message):
    assert message in json.dumps(run(services, **config), ensure_ascii=False)


def test_rules_that_a_running_experiment_needs_are_not_taken_from_it(services):
    def save(**config: Any) -> str:
        given = {"expression": "likes > 3", "try_on": 1, "operator": "ann", "dry_run": False, **config}
        return run(services, "save_comment_rule", "save_rule", **given)[1]

    assert save(name="liked", decision="boost", amount=1.0) == ""
    assert run(services, **{**START, "variants": [{"name": "none", "share": 0.5, "without": ["liked"]}]}, dry_run=False)
    given = {"name": "liked", "dry_run": False}
    assert "slow_decay" in run(services, "retire_comment_rule", "retire_rule", **given)[1]
    assert "slow_decay" in save(name="spared", decision="exempt", exempts=["liked"])
    with services.engine.connect() as connection:
        assert policies(connection, {}).of(1, 1), "sections can still be scored"


def test_results_are_of_the_sections_it_is_for_and_since_it_began(services):
    given = Experiment("e", "salt", (Variant("all", 1.0),))
    old = {"hour": NOW.replace(year=2025), "shown": 90, "liked": 90}
    new = {"hour": NOW.replace(minute=0), "shown": 10, "liked": 1}
    with services.engine.begin() as connection:
        connection.execute(insert(impression), [{"comment_id": 1, "section_id": 1, **each} for each in (old, new)])
        usual, everything = evaluate(connection, given, NOW)
    assert (usual.name, usual.sections, usual.rate, usual.bound) == (USUAL, 0, 0.0, 0.0)
    assert (everything.sections, everything.shown, everything.liked) == (SECTIONS, 10, 1)
    assert 0 < everything.bound < everything.rate == 0.1
