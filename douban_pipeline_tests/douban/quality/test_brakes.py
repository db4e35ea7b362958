"""Brakes: pulled by labels, shown by a check, respected wherever links are made, and lifted by a person only."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest
import yaml

from douban_pipeline.core.database import reading
from douban_pipeline.douban.quality import rates
from douban_pipeline.douban.quality.brakes import LiftError, lift, pull_where_short
from douban_pipeline.douban.quality.labels import AutomaticLink, LinkLabel
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.runs import new_run_id
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of, subject
from douban_pipeline_tests.harness.fixtures.shelf import Shelf

LINKED = 90_000_101
PULLED = Brake("season", "原因", 0.7, 0.95, 40, START)


def active(library):
    with reading(library.engine) as connection:
        return brakes.active(connection, library.tables)


def newest(library):
    with reading(library.engine) as connection:
        return brakes.newest(connection, library.tables)


def pull(library, *pulled):
    with library.engine.begin() as connection:
        return [brakes.pull(connection, library.tables, brake) for brake in pulled]


def test_a_brake_is_on_until_it_is_lifted_and_can_be_pulled_again(library):
    assert (active(library), newest(library)) == (frozenset(), {})
    assert pull(library, PULLED) == [True]
    assert (active(library), newest(library)) == ({"season"}, {"season": PULLED})
    assert pull(library, Brake("season", "别的", 0.1, 0.9, 50, START)) == [False]
    assert newest(library)["season"] == PULLED, "it stays as it was pulled"
    library.clock.advance(days=1)
    lift(library.services, ["season"], reviewer=" 小王 ", note=" 已处理 ", dry_run=False)
    lifted = newest(library)["season"]
    assert (lifted.on, lifted.lifted_at, lifted.lifted_by, lifted.lift_note) == (
        False,
        library.clock.now(),
        "小王",
        "已处理",
    )
    assert active(library) == frozenset()
    again = Brake("season", "又一次", 0.6, 0.95, 80, library.clock.now())
    assert pull(library, again) == [True]
    assert newest(library) == {"season": again}


def labels_of(right, wrong, *strata, minutes=0):
    at = START + timedelta(minutes=minutes)
    link = AutomaticLink(1, 1, LINKED, 90.0, strata, START)
    return [LinkLabel(link, True, at, "小王")] * right + [LinkLabel(link, False, at, "小王")] * wrong


def test_labels_pull_the_brakes_of_strata_that_fall_short(library):
    judged = [*labels_of(72, 1, "season"), *labels_of(73, 0, "thin"), *labels_of(3, 2, "rich")]
    [pulled] = pull_where_short(library.services, judged, {})
    assert (pulled.stratum, pulled.labels, pulled.target) == ("season", 73, 0.95)
    assert pulled.reason == "人工核对 73 条，1 条有误；正确率 98.6%（92.6%–99.8%），目标 95.0%"
    assert pull_where_short(library.services, judged, {}) == [], "it is on already"
    assert pull_where_short(library.services, judged, newest(library)) == []
    assert active(library) == {"season"}


def test_every_mistake_of_a_lift_is_reported_at_once(library):
    pull(library, PULLED)
    with pytest.raises(LiftError) as caught:
        lift(library.services, ["season", "thin", "seasons", ""], reviewer=" ", note="", dry_run=False)
    shown = "目前暂停的有：season（带季数、部数或续集号）"
    assert caught.value.problems == (
        "reviewer: 请填写你的名字",
        "note: 请写明为什么可以恢复",
        f"strata: thin 没有处于暂停状态；{shown}",
        f"strata: 没有 seasons 这个类别；{shown}",
        f"strata: 没有 空白 这个类别；{shown}",
    )
    with pytest.raises(LiftError, match="strata: 至少填写一个类别"):
        lift(library.services, [], reviewer="小王", note="好", dry_run=True)
    assert active(library) == {"season"}


def test_lifting_makes_those_due_that_waited_for_it(library):
    shelf, later = Shelf(library), START.replace(year=2030)
    waits = {"verdict": "REVIEW", "douban_id": 0, "reasons": ["STRATUM_BRAKED"]}
    library.add_states(*({"vod_id": vod_id, "douban_next_sync_at": later} for vod_id in range(1, 8)))
    library.execute("UPDATE mac_douban_video SET douban_review_status = 'REVIEW'")
    shelf.verdict(1, strata=["season"], **waits)
    shelf.verdict(2, strata=["thin"], **waits)
    shelf.verdict(3, strata=["season", "rich"], **{**waits, "reasons": ["LEAD_TOO_SMALL"]})
    shelf.verdict(4, strata=["season"], **waits)
    shelf.verdict(4, strata=["season"], **{**waits, "reasons": ["YEAR_GAP"]})
    shelf.verdict(5, strata=["season"], **waits)
    library.set_state(5, douban_review_status="CONFIRMED")
    shelf.verdict(6, strata=["rich", "season"], **waits)
    shelf.verdict(7, strata=["season"], **waits)
    library.set_state(7, douban_next_sync_at=None)
    pull(library, PULLED)
    assert lift(library.services, ["season"], reviewer="小王", note="好", dry_run=True).waiting == 2
    assert {state["douban_next_sync_at"] for state in library.states().values()} == {later, None}
    lifted = lift(library.services, ["season"], reviewer="小王", note="好", dry_run=False)
    assert ([brake.stratum for brake in lifted.brakes], lifted.waiting) == (["season"], 2)
    now = library.clock.now()
    assert {vod_id for vod_id, state in library.states().items() if state["douban_next_sync_at"] == now} == {1, 6}


@pytest.fixture
def scenario(stage):
    return stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)


def judged_links(scenario, right, wrong, *strata):
    """Store links with labels; ids well apart from those of the scenario's videos."""
    shelf = Shelf(scenario.library)
    scenario.library.add_states(*({"vod_id": 1000 + number} for number in range(right + wrong)))
    for number in range(right + wrong):
        shelf.verdict(1000 + number, douban_id=LINKED, strata=list(strata), score=86.0)
    scenario.clock.advance(minutes=1)
    for number in range(right + wrong):
        shelf.decided(1000 + number, "set_id" if number < right else "clear_id", LINKED if number < right else 0)


def test_precision_is_reported_with_everything_a_person_needs(scenario):
    shelf = Shelf(scenario.library)
    shelf.linked(5, 90_000_102, "rich")
    judged_links(scenario, 24, 6, "season")
    shelf.candidate(shelf.verdict(2000, verdict="REVIEW", reasons=["LEAD_TOO_SMALL"]), 2000, 1, _subject())
    shelf.decided(2000, "confirm_top1", LINKED)
    before = scenario.library.all_bytes()
    run = scenario.launch("nightly_reports")
    assert run.success, "the check says it; nothing else is stopped by it"
    metadata = run.metadata("automatic_precision")
    assert (metadata["links"], metadata["labels"], metadata["overruled"], metadata["precision"]) == (1, 30, 6, 0.8)
    assert metadata["lower_bound"] == metadata["lower_bound_season"] == pytest.approx(0.627, abs=0.001)
    assert metadata["lately"] == (
        "最近 30 天自动关联 31 部，人工核对 30 部，有误 6 部（错误率 20.0%，95% 区间 9.5%–37.3%）；"
        "错在：带季数、部数或续集号 6"
    )
    assert (metadata["brakes_on"], metadata["brakes_pulled"]) == (1, 1)
    assert (metadata["settled_by_people"], metadata["first_candidate_right"]) == (1, 1)
    assert "带季数、部数或续集号（season）" in metadata["by_stratum"].replace("\\", "")
    assert "自动确认已暂停" in metadata["by_stratum"]
    assert "样本不足（全对也还差 73 条）" in metadata["by_stratum"]
    assert "85–88" in metadata["by_score"]
    assert "与次优候选差距不足" in metadata["overruled_rules"]
    assert metadata["overruled_links"].count("小王") == 6
    assert "蓝鲸与灯塔守望者" in metadata["to_check"]
    assert active(scenario.library) == {"season"}
    assert scenario.library.all_bytes() == before
    [check] = [found for name, found in run.guards.items() if name == "precision_holds"]
    assert (check.passed, check.severity, check.blocking) == (False, dg.AssetCheckSeverity.ERROR, False)
    assert check.description == "以下类别的自动确认已暂停，转人工审核：带季数、部数或续集号"
    assert "人工核对 30 条，6 条有误" in run.guard("precision_holds")["strata"]
    config = yaml.safe_load(metadata["decisions_to_launch"])["ops"]
    config["store_decisions"]["config"] |= {"reviewer": "小李", "dry_run": False}
    assert scenario.launch("record_decisions", config).success
    assert scenario.launch("nightly_reports").metadata("automatic_precision")["labels"] == 31


def _subject():
    from douban_pipeline.matching import Subject

    return Subject(LINKED, "片名")


def release(scenario, **config):
    given = {"reviewer": "小王", "note": "已处理", "dry_run": False, "strata": ["season"], **config}
    return scenario.launch("lift_brakes", {"release": {"config": given}})


def test_a_person_lifts_a_brake_and_the_stratum_is_judged_afresh(scenario):
    judged_links(scenario, 24, 6, "season")
    assert "precision_holds" in scenario.launch("nightly_reports").failed_guards
    scenario.clock.advance(days=1)
    assert "precision_holds" in scenario.launch("nightly_reports").failed_guards, "it does not heal by itself"
    shown = release(scenario, dry_run=True)
    assert (shown.output["dry_run"], shown.output["lifted"]) == (True, 1)
    assert active(scenario.library) == {"season"}
    assert release(scenario).success
    run = scenario.launch("nightly_reports")
    assert run.guards["precision_holds"].passed, "what was known before the lift does not pull it again"
    assert run.metadata("automatic_precision")["labels"] == 30, "but is not forgotten"
    assert release(scenario, reviewer="").failure == "未恢复任何类别：\n- reviewer: 不能为空，请填写你的名字"
    refused = release(scenario)
    assert "未恢复任何类别" in refused.failure
    assert "season 没有处于暂停状态；目前暂停的有：无" in refused.failure


def test_a_person_opens_what_people_always_agreed_on_and_closes_it_again(stage, monkeypatch):
    monkeypatch.setattr(rates, "OPENING_ERROR", 0.5)
    remake = subject(90_000_202, RIVER["title"], 1999)
    scenario = stage([row_of(RIVER, 4, vod_director="", vod_actor="", vod_year="2020")], [RIVER, remake])
    shelf, name = Shelf(scenario.library), "only:YEAR_UNCONFIRMED"
    assert scenario.play().success
    assert [(row["verdict"], row["strata"][-1]) for row in scenario.verdicts()] == [("REVIEW", name)]
    assert "还不能开放" in release(scenario, strata=[name]).failure
    for vod_id in range(1000, 1005):
        verdict = shelf.verdict(vod_id, verdict="REVIEW", reasons=["YEAR_UNCONFIRMED"])
        shelf.candidate(verdict, vod_id, 1, _subject())
        scenario.clock.advance(minutes=1)
        shelf.decided(vod_id, "confirm_top1", LINKED)
    shown = scenario.launch("nightly_reports").metadata("automatic_precision")
    assert shown["safe_to_open"] == 1
    assert "可以放心开放" in shown["would_be_safe_to_open"]
    assert release(scenario, strata=[name], dry_run=True).output["videos_waiting"] == 1
    assert release(scenario, strata=[name]).success
    assert newest(scenario.library)[name].reason.startswith("审核员 1 人逐条核对 5 条，全部同意首选")
    assert scenario.play().success
    [_, linked, *_] = scenario.verdicts(4)
    assert (linked["verdict"], linked["strata"][-1]) == ("CONFIRMED", name)
    assert linked["explanation"].endswith("只差一项：年份未知或有出入，其他佐证不足，人工已放行。")
    assert scenario.cms(4, "vod_douban_id") == (RIVER["id"],)
    assert release(scenario, strata=[name], close=True).output["closed"] == 1
    assert active(scenario.library) == {name}
    assert "没有开放" in release(scenario, strata=[name], close=True).failure


def test_the_writing_step_refuses_what_a_brake_holds_back(scenario):
    pull(scenario.library, PULLED)
    scenario.plant_verdict(4, LINKED, strata=["rich", "season"])
    before = scenario.library.all_bytes()
    run = scenario.write_alone()
    assert run.success
    assert (run.total("synced_fields", "refused"), scenario.library.all_bytes()) == (1, before)
    [refused] = scenario.verdicts()
    assert (refused["state"], refused["state_reason"]) == ("refused", "这一类匹配的准确率低于目标，自动确认已暂停")


def test_a_check_shows_it_before(scenario):
    run_id = new_run_id()
    pull(scenario.library, PULLED)
    scenario.plant_verdict(4, LINKED, strata=["season"], run_id=run_id)
    scenario.plant_verdict(5, 90_000_102, strata=["rich"], run_id=run_id)
    run = scenario.check()
    assert run.failed_guards == {"braked_strata_left_to_people", "precision_holds"}
    assert run.guard("braked_strata_left_to_people")["violations"] == 1
    with scenario.library.engine.begin() as connection:
        brakes.lift(connection, scenario.library.tables, ["season"], reviewer="小王", note="好", at=START)
    assert scenario.check().failed_guards == set()


def test_a_score_of_another_profile_means_nothing(scenario):
    scenario.plant_verdict(4, LINKED, profile="plan")
    before = scenario.library.all_bytes()
    assert scenario.check().failed_guards == {"confirmed_reach_thresholds"}
    assert scenario.write_alone().success
    assert scenario.verdicts()[0]["state_reason"] == "判定所用的评分方案已不是现行方案"
    assert scenario.library.all_bytes() == before
    assert scenario.under(match_profile="plan").check().failed_guards == set()


def test_the_chain_leaves_a_braked_stratum_to_people_until_it_is_lifted(scenario):
    pull(scenario.library, Brake("rich", "原因", 0.7, 0.95, 40, START))
    before = scenario.library.all_bytes()
    assert scenario.play().success
    [verdict] = scenario.verdicts(4)
    assert (verdict["verdict"], verdict["reasons"], "rich" in verdict["strata"]) == ("REVIEW", ["STRATUM_BRAKED"], True)
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    assert "自动确认已暂停" in scenario.library.state(4)["douban_review_reason"]
    assert scenario.library.all_bytes() == before
    scenario.clock.advance(minutes=1)
    assert release(scenario, strata=["rich"]).output["videos_waiting"] == 2
    assert scenario.play().success
    assert (scenario.cms(4, "vod_douban_id"), scenario.cms(5, "vod_douban_id")) == ((LINKED,), (90_000_102,))


def test_a_verdict_that_waits_when_a_brake_is_pulled_is_withdrawn_and_judged_anew(scenario):
    scenario.plant_verdict(4, LINKED, strata=["rich"])
    pull(scenario.library, Brake("rich", "原因", 0.7, 0.95, 40, START))
    run = scenario.play(4)
    assert (run.success, run.metadata("scored_matches")["withdrawn"]) == (True, 1)
    assert scenario.verdicts(4)[0]["state"] == "refused"
    assert scenario.play(4).success
    assert scenario.verdicts(4)[-1]["reasons"] == ["STRATUM_BRAKED"]
    assert scenario.cms(4, "vod_douban_id") == (0,)
