"""Every verdict is stored with all it rests on; none of them writes to the CMS."""

from __future__ import annotations

import zlib

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.match import guards, verdicts
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline.matching import RULE_VERSION
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of, subject, telling

JUDGING = STEPS[:3]
SEQUEL = subject(90_000_201, "长河落日记事 第二季", 2023, directors=["长河导"], actors=["子", "丑", "寅"])
REMAKE = subject(90_000_202, "长河落日记事", 1999, directors=["旧人"], actors=["旧甲", "旧乙", "旧丙"])


def judged(scenario, **given):
    run = scenario.play(steps=JUDGING, **given)
    assert run.success
    return run


def test_a_confirmed_verdict_holds_everything_it_was_reached_by(stage):
    scenario = stage([row_of(RIVER, 4, vod_sub="长河记")], [RIVER, SEQUEL, REMAKE, WHALE])
    run = judged(scenario)
    [verdict] = scenario.verdicts()
    assert (verdict["verdict"], verdict["douban_id"], verdict["state"]) == ("CONFIRMED", 90_000_101, "pending")
    assert (verdict["rule_version"], verdict["run_id"], verdict["shard"]) == (RULE_VERSION, run.run_id, 4)
    assert (verdict["complete"], verdict["source_healthy"]) == (True, True)
    assert (verdict["rejects"], verdict["reasons"], verdict["score"]) == ([], [], 100.0)
    assert (verdict["profile"], verdict["crowded"]) == ("calibrated", False)
    assert verdict["strata"] == ["same_title_rivals", "rich"]
    assert "长河落日记事" in verdict["explanation"]
    known = verdict["facts"]
    assert (known["title"], known["year"], known["kind"], known["regions"]) == ("长河落日记事", 2021, "film", ["大陆"])
    assert known["aliases"] == ["长河记"]
    candidates = scenario.candidates()
    assert [candidate["rank"] for candidate in candidates] == [1, 2, 3]
    assert {candidate["douban_id"] for candidate in candidates} == {90_000_101, 90_000_201, 90_000_202}
    best, *others = candidates
    assert best["douban_id"] == 90_000_101
    assert verdict["lead"] is None or verdict["lead"] >= 8
    for candidate in candidates:
        assert candidate["verdict_id"] == verdict["verdict_id"]
        points = {item["name"]: item for item in candidate["points"]}
        assert list(points) == ["title", "year", "region", "director", "actors", "genre", "length", "tie_break"]
        counted = [item for name, item in points.items() if name != "tie_break" and item["weight"]]
        share = sum(item["points"] for item in counted) / max(60, sum(item["weight"] for item in counted))
        assert candidate["score"] == pytest.approx(100 * share, abs=0.01), "it can be read off the stored points"
        assert all(0 <= item["points"] <= item["weight"] for item in points.values())
        facts = candidate["facts"]
        assert facts["fetched"] is candidate["fetched"]
        if not candidate["fetched"]:
            assert candidate["snapshot_id"] is None
            continue
        # The archived answer says what was compared: the verdict can be reached again without a request.
        answer = scenario.services.archive.get(candidate["snapshot_id"])
        record = parse_subject(answer.body, candidate["douban_id"])
        compared = (facts["title"], facts["year"], facts["directors"])
        assert compared == (record.title, record.year, list(record.directors))
        assert candidate["snapshot_id"] in verdict["snapshots"]
    # Its people speak for the first: nobody had to ask about the others, which are known by their titles.
    assert [candidate["fetched"] for candidate in candidates] == [True, False, False]
    sequel = next(candidate for candidate in others if candidate["douban_id"] == 90_000_201)
    assert "只有一方标明季数或部数：本地未标明 / 豆瓣第 2 季" in sequel["conflicts"].values()


@pytest.mark.parametrize(("name", "verdict"), [("长河落日记事 第二季", "REVIEW"), ("长河落日记事 HD中字", "CONFIRMED")])
def test_two_records_of_one_subject_are_normal_but_not_two_seasons(stage, name, verdict):
    other = row_of(RIVER, 5, vod_name=name, vod_douban_id=90_000_101)
    scenario = stage([row_of(RIVER, 4), other], FILMS)
    assert scenario.play(4, steps=JUDGING).success
    [found] = scenario.verdicts(4)
    assert found["verdict"] == verdict
    assert ("LINKED_ELSEWHERE" in found["reasons"]) is (verdict == "REVIEW")


def test_a_subject_of_many_videos_does_not_hide_whose_another_is(stage, monkeypatch):
    monkeypatch.setattr(guards, "_MOST_LINKED", 3)
    popular = subject(90_000_050, "人人都有的片子", 2011)
    copies = [row_of(popular, 40 + number, vod_douban_id=popular["id"]) for number in range(4)]
    other = row_of(RIVER, 5, vod_name="长河落日记事 第二季", vod_douban_id=RIVER["id"])
    scenario = stage([row_of(RIVER, 4), row_of(popular, 68), other, *copies], [popular, *FILMS])
    assert scenario.play(4, steps=JUDGING).success
    assert [verdict["reasons"] for verdict in scenario.verdicts(4)] == [["LINKED_ELSEWHERE"]]
    assert [verdict["verdict"] for verdict in scenario.verdicts(68)] == ["CONFIRMED"]


def test_a_row_that_cannot_be_judged_stops_no_other_video(stage, monkeypatch):
    def judge(video, *given):
        if video.vod_id == 4:
            raise KeyError("odd")
        return real(video, *given)

    real = verdicts.judge_found
    monkeypatch.setattr(verdicts, "judge_found", judge)
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 68)], FILMS)
    judged(scenario)
    assert telling(scenario.verdicts(), "vod_id", "verdict") == [(68, "CONFIRMED")]
    assert (scenario.task(4)["status"], scenario.task(4)["attempts"]) == ("PENDING", 1)
    assert scenario.task(4)["last_error"] == "内部错误 KeyError: 'odd'"
    assert scenario.library.state(4)["douban_sync_fail_count"] == 1
    monkeypatch.undo()
    scenario.clock.advance(days=1)
    assert scenario.play(4).success
    assert scenario.cms(4, "vod_douban_id") == (RIVER["id"],)


def test_an_answer_that_the_parser_refuses_by_now_stops_no_other_video(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    assert scenario.play(steps=STEPS[:2]).success
    snapshot = scenario.library.tables.snapshot
    [[_, kept, *_]] = scenario.task(4)["payload"]["subjects"]
    page = {"body": zlib.compress(b"<html>"), "sha256": "0" * 64}
    scenario.library.execute(sa.update(snapshot).where(snapshot.c.snapshot_id == kept).values(page))
    assert scenario.play(steps=["scored_matches"]).success
    assert telling(scenario.verdicts(), "vod_id", "verdict") == [(5, "CONFIRMED")]
    assert (scenario.task(4)["stage"], scenario.task(4)["status"]) == ("search", "PENDING")
    scenario.clock.advance(hours=1)
    assert scenario.play(4, steps=JUDGING).success
    assert telling(scenario.verdicts(4), "verdict") == [("CONFIRMED",)], "it was asked for anew"


def test_in_a_braked_stratum_a_person_decides(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5, vod_director="")], FILMS)
    with scenario.library.engine.begin() as connection:
        pulled = scenario.clock.now()
        brakes.pull(connection, scenario.library.tables, Brake("rich", "低于目标", 0.9, 0.99, 50, pulled))
    judged(scenario)
    for verdict in scenario.verdicts():
        assert (verdict["verdict"], verdict["reasons"]) == ("REVIEW", ["STRATUM_BRAKED"])
    assert "自动确认已暂停" in scenario.library.state(4)["douban_review_reason"]


def test_the_profile_of_the_settings_decides(stage):
    thin = row_of(RIVER, 4, vod_director="", vod_actor="", vod_class="", vod_area="")
    plan = stage([thin], FILMS, match_profile="plan")
    judged(plan)
    calibrated = stage([thin], FILMS)
    judged(calibrated)
    found = [telling(scenario.verdicts(), "verdict", "profile", "score")[0] for scenario in (plan, calibrated)]
    assert found == [("REVIEW", "plan", 77.0), ("CONFIRMED", "calibrated", 100.0)]
    [literal], [share] = plan.candidates(), calibrated.candidates()
    assert {item["name"]: item["points"] for item in literal["points"] if item["name"] != "tie_break"} == {
        "title": 45.0,
        "year": 15.0,
        "region": 5.0,
        "director": 6.0,
        "actors": 4.0,
        "genre": 2.0,
        "length": 0.0,
    }
    assert {item["name"]: item["points"] for item in share["points"] if item["weight"]} == {
        "title": 45.0,
        "year": 15.0,
        "tie_break": 2.0,
    }


def test_a_confirmed_verdict_waits_for_the_writing_step(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    before, state = scenario.library.all_bytes(), scenario.library.state(4)
    run = judged(scenario)
    assert scenario.library.all_bytes() == before
    assert scenario.library.state(4) == state
    task = scenario.task(4)
    assert (task["stage"], task["status"], task["open_key"]) == ("sync", "RUNNING", "4:MATCH_DOUBAN_ID")
    assert task["payload"]["verdict_id"] == scenario.verdicts()[0]["verdict_id"]
    assert (run.metadata("scored_matches")["confirmed"], scenario.library.log()) == (1, [])
    # The same step once more has nothing to do.
    assert judged(scenario).metadata("scored_matches")["judged"] == 0
    assert len(scenario.verdicts()) == 1


def test_doubt_settles_the_video_for_a_person(stage):
    rival = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
    scenario = stage([row_of(RIVER, 4, vod_director="", vod_actor="", vod_class="")], [RIVER, rival])
    before = scenario.library.all_bytes()
    run = judged(scenario)
    [verdict] = scenario.verdicts()
    state = scenario.library.state(4)
    assert (verdict["verdict"], verdict["state"], verdict["douban_id"]) == ("REVIEW", "applied", 0)
    assert len(scenario.candidates()) == 2
    assert state["douban_review_status"] == "REVIEW"
    assert state["douban_review_reason"] == verdict["explanation"]
    assert state["douban_last_sync_at"] <= scenario.clock.now() < state["douban_next_sync_at"]
    assert (scenario.task(4)["status"], scenario.task(4)["open_key"]) == ("SUCCESS", None)
    assert scenario.library.all_bytes() == before
    assert run.metadata("scored_matches")["review"] == 1


@pytest.mark.parametrize(
    ("columns", "subjects", "reason", "candidates"),
    [
        ({"vod_name": "查无此片之谜"}, FILMS, "NO_CANDIDATES", 0),
        ({"vod_year": "1980", "vod_director": "旧人", "vod_actor": ""}, FILMS, "ALL_REJECTED", 1),
    ],
)
def test_what_is_not_found_is_looked_for_again_later(stage, columns, subjects, reason, candidates):
    scenario = stage([row_of(RIVER, 4, **columns)], subjects)
    scenario.library.set_state(4, douban_sync_fail_count=3, douban_last_fail_reason="昨天的失败")
    judged(scenario)
    [verdict] = scenario.verdicts()
    state = scenario.library.state(4)
    assert (verdict["verdict"], verdict["state"], verdict["reasons"][0]) == ("NOT_FOUND", "applied", reason)
    assert len(scenario.candidates()) == candidates
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("NOT_FOUND", verdict["explanation"])
    assert (state["douban_sync_fail_count"], state["douban_last_fail_reason"]) == (0, "")
    assert state["douban_next_sync_at"] > scenario.clock.now()
    assert scenario.task(4)["status"] == "SUCCESS"


def test_a_new_verdict_takes_the_place_of_one_that_waits(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    judged(scenario)
    task = scenario.library.tables.task
    scenario.library.execute(
        sa.update(task).where(task.c.vod_id == 4).values(stage="search", lease_owner=None, lease_until=None)
    )
    judged(scenario)
    assert telling(scenario.verdicts(4), "state", "state_reason") == [("superseded", "有新的判定"), ("pending", "")]
    assert telling(scenario.verdicts(5), "state") == [("pending",)]
    assert scenario.play(steps=["synced_fields"]).success
    assert telling(scenario.verdicts(4), "state") == [("superseded",), ("applied",)]
    assert len(scenario.library.log()) == 2, "one write a video"


@pytest.mark.parametrize(("current_id", "status"), [(90_000_999, "REVIEW"), (90_000_101, "CONFIRMED")])
def test_an_id_in_the_cms_is_only_replaced_by_a_person(stage, current_id, status):
    scenario = stage([row_of(RIVER, 4, vod_douban_id=current_id)], FILMS)
    scenario.library.set_state(4, douban_review_status="REVIEW")
    assert scenario.play().success
    [verdict] = scenario.verdicts()
    assert verdict["verdict"] == status
    assert scenario.cms(4, "vod_douban_id") == (current_id,)
    state = scenario.library.state(4)
    assert state["douban_review_status"] == status
    if status == "REVIEW":
        assert state["douban_review_reason"] == "CMS 中已有豆瓣 ID 90000999，匹配结果为 90000101，需人工确认"
        assert scenario.library.log() == []


def test_a_link_that_was_confirmed_anew_needs_no_write(stage):
    # Everything stands already, so nothing is written; no guard may take the id for one that came without a log row.
    scenario = stage([row_of(RIVER, 4)], FILMS)
    assert scenario.play().success
    log = scenario.library.tables.log
    scenario.library.execute(sa.delete(log))
    scenario.library.set_state(
        4, douban_review_status="REVIEW", douban_id_source="cms", douban_next_sync_at=scenario.clock.now()
    )
    run = scenario.play()
    assert run.metadata("synced_fields")["unchanged"] == 1
    assert (run.success, run.failed_guards, scenario.library.log()) == (True, set(), [])
    state = scenario.library.state(4)
    assert (state["douban_review_status"], state["vod_douban_id"]) == ("CONFIRMED", 90_000_101)
    assert state["douban_id_source"] == "cms"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"douban_id_locked": True}, "豆瓣 ID 已锁定"),
        ({"douban_review_status": "IGNORED", "douban_next_sync_at": None}, "影片已被忽略"),
    ],
)
def test_what_was_locked_or_ignored_during_the_run_is_not_judged(stage, changed, reason):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    assert scenario.play(steps=STEPS[:2]).success
    scenario.library.set_state(4, **changed)
    assert scenario.play(steps=["scored_matches"]).success
    assert scenario.verdicts(4) == []
    assert (scenario.task(4)["status"], scenario.task(4)["last_error"]) == ("SKIP", reason)
    assert telling(scenario.verdicts(5), "verdict") == [("CONFIRMED",)]


def test_a_locked_video_without_a_link_does_not_stay_due(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    scenario.library.set_state(4, douban_id_locked=True)
    assert scenario.play().success
    assert scenario.library.state(4)["douban_next_sync_at"] > scenario.clock.now(), "or the sensor never stops"
    assert (scenario.verdicts(), scenario.cms(4, "vod_douban_id")) == ([], (0,))


@pytest.mark.parametrize("step", range(1, 4))
def test_a_video_that_was_deleted_during_the_run_does_not_stay_due(stage, step):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6, vod_douban_id=90_000_103)], FILMS)
    assert scenario.play(steps=STEPS[:step]).success
    vod = scenario.library.cms.vod
    scenario.library.execute(sa.delete(vod).where(vod.c.vod_id.in_([4, 6])))
    run = scenario.play(steps=STEPS[step:])
    assert (run.success, run.failed_guards) == (True, set())
    for vod_id in (4, 6):
        assert (scenario.task(vod_id)["status"], scenario.task(vod_id)["last_error"]) == ("SKIP", "影片已从 CMS 中删除")
        assert scenario.library.state(vod_id)["douban_next_sync_at"] is None
    assert scenario.cms(5, "vod_douban_id") == (90_000_102,)
    # Should it come back, the sweep takes it up again.
    scenario.library.add(row_of(RIVER, 4))
    scenario.library.intake.sweep(0, 1)
    assert scenario.library.state(4)["douban_next_sync_at"] is not None


def test_a_bad_verdict_of_an_earlier_run_is_withdrawn(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5), video(6)], FILMS)
    bad = scenario.plant_verdict(4, 90_000_102, score=60.0)
    good = scenario.plant_verdict(6, 90_000_103)
    run = scenario.play(steps=JUDGING)
    assert (run.success, run.metadata("scored_matches")["withdrawn"]) == (True, 1)
    states = {verdict["verdict_id"]: verdict for verdict in scenario.verdicts()}
    assert (states[bad]["state"], states[bad]["state_reason"]) == ("refused", "已确认的条目得分低于确认线")
    assert states[good]["state"] == "pending", "a sound one is left to the writing step"
    assert (scenario.task(4)["status"], scenario.task(4)["last_error"]) == ("SKIP", "已确认的条目得分低于确认线")
    assert scenario.library.state(4)["douban_next_sync_at"] <= scenario.clock.now(), "judged anew by the next run"
    assert scenario.play(4).success
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)
