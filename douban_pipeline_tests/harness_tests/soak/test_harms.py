"""What goes wrong with the systems is a plan: everything happens, early enough, and what is not there is waited for."""

from __future__ import annotations

import pytest
import typer

from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.command import ALL, chosen_systems
from douban_pipeline_tests.harness.soak.harms import HUNT_SECONDS, Harms, PlannedHarm, plan
from douban_pipeline_tests.harness.soak.troubles import QUIET_SHARE

KINDS = ("run killed", "Redis killed", "graph killed")


@pytest.mark.parametrize("minutes", [1, 3, 30])
def test_each_harm_is_done_once_at_least_and_none_in_the_quiet_part(minutes: float):
    planned = plan(KINDS, minutes, 7)
    assert {each.what for each in planned} == {*KINDS}
    assert list(planned) == sorted(planned)
    assert planned == plan(KINDS, minutes, 7) != plan(KINDS, minutes, 8)
    assert all(0 < each.at <= minutes * 60 * (1 - QUIET_SHARE) for each in planned)


def test_what_is_not_there_is_waited_for_and_told_as_missed():
    now, tried, said = [0.0], [], []

    def nothing_yet() -> bool:
        tried.append(now[0])
        if now[0] < 10:
            raise RigError("the server is down")
        return len(tried) > 3

    harms = Harms(
        {"run": nothing_yet, "never": lambda: False},
        [PlannedHarm(5, "run"), PlannedHarm(6, "never")],
        said.append,
        lambda: now[0],
    )
    for moment in (1.0, 5.0, 7.0, 20.0, 30.0, 7.0 + HUNT_SECONDS, 99.0):
        now[0] = moment
        harms.step()
    assert dict(harms.done) == {"run": 1}
    assert dict(harms.missed) == {"never": 1}
    assert said == ["run", f"not done within {HUNT_SECONDS:.0f} s: never"]


def test_systems_are_named_or_all():
    assert chosen_systems("") == ALL == ("douban", "feeds", "digest", "tmdb", "comments")
    assert chosen_systems("comments, feeds") == ("feeds", "comments")
    with pytest.raises(typer.BadParameter, match="no system: feed"):
        chosen_systems("feed,douban")
