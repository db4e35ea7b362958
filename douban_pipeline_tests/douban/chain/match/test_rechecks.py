"""A link that is judged again: what stands stays, what is in doubt goes to a person, and nothing is unlinked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.chain.match.jobs import recheck_links
from douban_pipeline.douban.chain.match.rechecks import CurrentLink
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import ORDERED_PRIORITY, NewTask
from douban_pipeline.matching import Kind, Subject, Video, judge
from douban_pipeline.matching.profiles import PLAN
from douban_pipeline_tests.douban.review.launched import launched
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of, subject, telling
from douban_pipeline_tests.stand_ins.replay import ReplayServer

THIS = RIVER["id"]
NAMESAKE = subject(90_000_301, RIVER["title"], 2021, directors=["别人"], actors=["子", "丑", "寅"])
LINK = ("vod_douban_id", "douban_id_source", "douban_id_locked", "douban_id_lock_time", "douban_id_confidence")


def linked(entry, vod_id, **columns):
    return row_of(entry, vod_id, vod_douban_id=entry["id"], **columns)


def link_of(scenario, vod_id):
    state = scenario.library.state(vod_id)
    return {name: state[name] for name in LINK}


def status_of(scenario, vod_id):
    state = scenario.library.state(vod_id)
    return state["douban_review_status"], state["douban_review_reason"]


# --- what a verdict means for the link that is there ------------------------------------------------------------------

FACTS = {
    "directors": ("甲导",),
    "actors": ("乙", "丙"),
    "regions": ("中国大陆",),
    "genres": ("剧情",),
    "kind": Kind.FILM,
}
VIDEO = Video(4, "长河落日记事", year=2021, **FACTS)
RIGHT = Subject(THIS, "长河落日记事", year=2021, rating=8.0, **FACTS)
WRONG = Subject(THIS, "蓝鲸与灯塔守望者", year=1990, directors=("丁",), regions=("美国",))
THIN = Subject(THIS, "长河落日记事")
OTHER = Subject(90_000_301, "长河落日记事", year=2021, rating=8.0, **FACTS)


@pytest.mark.parametrize(
    ("link", "subjects", "status", "said"),
    [
        ({}, [RIGHT], "CONFIRMED", ""),
        ({"locked": True}, [RIGHT], "CONFIRMED", ""),
        ({}, [WRONG], "REVIEW", "复查：豆瓣 ID 90000101 与影片不符（"),
        ({"locked": True}, [WRONG], "REVIEW", "锁定阻止：锁定的豆瓣 ID 90000101 与影片不符（"),
        ({"chosen": True}, [WRONG], "REVIEW", "复查：豆瓣 ID 90000101 与影片不符（"),
        ({"chosen": True, "accepted": True}, [WRONG], "CONFIRMED", ""),
        ({"locked": True, "chosen": True, "accepted": True}, [WRONG], "CONFIRMED", ""),
        ({}, [THIN], "REVIEW", "复查：豆瓣 ID 90000101 按现在的规则不再确认；"),
        ({"locked": True}, [THIN], "CONFIRMED", ""),
        ({"chosen": True}, [THIN], "CONFIRMED", ""),
        ({}, [OTHER], "REVIEW", "复查：豆瓣 ID 90000101 已不存在；"),
        ({"locked": True, "title": "旧名"}, [OTHER], "REVIEW", "锁定阻止：锁定的豆瓣 ID 90000101（旧名） 已不存在；"),
        ({"locked": True, "accepted": True}, [], "REVIEW", "锁定阻止：锁定的豆瓣 ID 90000101 已不存在；"),
        ({}, [RIGHT, OTHER], "REVIEW", "复查：豆瓣 ID 90000101 按现在的规则不再确认；"),
        ({"chosen": True}, [RIGHT, OTHER], "CONFIRMED", ""),
    ],
)
def test_what_becomes_of_a_link(link, subjects, status, said):
    found = CurrentLink(THIS, **link).recheck(judge(VIDEO, subjects, profile=PLAN))
    assert found[0] == status
    assert found[1].startswith(said)
    assert bool(found[1]) is bool(said)


def test_an_unhealthy_source_says_nothing_about_a_link():
    verdict = judge(VIDEO, [], profile=PLAN, source_healthy=False)
    assert CurrentLink(THIS).recheck(verdict)[0] == "UNDECIDED"


def test_who_named_a_candidate_is_carried_to_the_write():
    found = FoundCandidates((FetchedCandidate(7, 70, "tv", "bocha"), FetchedCandidate(8, 80)), (), False, (), 1)
    again = FoundCandidates.from_payload(found.to_payload())
    assert [again.found_by(douban_id) for douban_id in (7, 8, 9)] == ["bocha", "", ""]
    # As releases before kept it.
    assert FoundCandidates.from_payload({"subjects": [[7, 70, "tv"]], "snapshots": [], "requests": 1}).found_by(7) == ""


# --- locked ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["gone", "conflict"])
def test_a_locked_id_that_is_in_doubt_gets_candidates_and_a_person(stage, trouble):
    old = {"gone": linked(RIVER, 4), "conflict": linked(RIVER, 4, vod_year="1999", vod_director="某人")}[trouble]
    scenario = stage([old], [NAMESAKE, WHALE] if trouble == "gone" else [RIVER, NAMESAKE, WHALE])
    scenario.library.set_state(4, douban_id_locked=True, douban_id_lock_time=scenario.clock.now())
    before, link = scenario.library.all_bytes(), link_of(scenario, 4)
    run = scenario.play()
    assert (run.success, run.metadata("synced_fields")["sent_to_review"]) == (True, 1)
    status, reason = status_of(scenario, 4)
    assert (status, reason.startswith(f"锁定阻止：锁定的豆瓣 ID {THIS}")) == ("REVIEW", True)
    scenario.clock.advance(minutes=2)
    run = scenario.play()
    assert (run.success, run.metadata("due_videos")["to_recheck"]) == (True, 1)
    task = scenario.task(4)
    assert (task["task_type"], task["status"]) == ("RECHECK", "SUCCESS")
    status, reason = status_of(scenario, 4)
    assert (status, reason.startswith(f"锁定阻止：锁定的豆瓣 ID {THIS}")) == ("REVIEW", True)
    assert ("已不存在" in reason) is (trouble == "gone")
    [verdict] = scenario.verdicts(4)
    assert (verdict["verdict"], verdict["state"]) == ("REVIEW", "applied")
    assert "ID_LOCKED" in verdict["reasons"]
    candidates = {row["douban_id"] for row in scenario.candidates(4)}
    assert NAMESAKE["id"] in candidates
    assert (THIS in candidates) is (trouble == "conflict"), "the old subject stands beside the others"
    # Nothing was written, not even the state of the link.
    assert (scenario.library.all_bytes(), scenario.library.log(), link_of(scenario, 4)) == (before, [], link)
    # And nobody is asked about it all the time.
    state = scenario.library.state(4)
    assert state["douban_next_sync_at"] - scenario.clock.now() > timedelta(days=2)
    asked = [scenario.upstream.requests.count(source) for source in ("search", "douban")]
    for _ in range(12):
        scenario.clock.advance(hours=1)
        assert scenario.play().success
    assert [scenario.upstream.requests.count(source) for source in ("search", "douban")] == asked
    assert len(scenario.verdicts(4)) == 1


def test_a_locked_id_whose_subject_is_back_is_synced_again(stage):
    scenario = stage([linked(RIVER, 4)], [WHALE])
    scenario.library.set_state(4, douban_id_locked=True)
    scenario.play()
    assert status_of(scenario, 4)[0] == "REVIEW"
    with ReplayServer(FILMS) as well:
        scenario = scenario.under(douban_url=well.douban_url, search_url=well.search_url)
        scenario.clock.advance(days=100)
        scenario.play()
        assert (scenario.task(4)["task_type"], scenario.library.log()) == ("RECHECK", [])
        assert status_of(scenario, 4) == ("CONFIRMED", "")
        scenario.clock.advance(minutes=1)
        assert scenario.play().metadata("synced_fields")["written"] == 1
    assert scenario.library.state(4)["douban_id_locked"]


def test_what_a_person_locked_knowing_the_conflict_is_not_questioned(stage):
    scenario = stage([video(4, vod_name="同一部片的另一个名字", vod_year="1990")], FILMS)
    decide(scenario.library, 4, "set_id", THIS, lock=True, accept_conflicts=True)
    scenario.play()
    assert status_of(scenario, 4) == ("CONFIRMED", "")
    scenario.clock.advance(days=100)
    assert scenario.play().metadata("synced_fields")["sent_to_review"] == 0
    # Without that word the conflict came since, and a person is asked.
    scenario.library.execute("UPDATE mac_douban_decision SET accept_conflicts = 0")
    scenario.clock.advance(days=100)
    assert scenario.play().metadata("synced_fields")["sent_to_review"] == 1
    assert status_of(scenario, 4)[1].startswith("锁定阻止：")


# --- what a person orders ---------------------------------------------------------------------------------------------


def recheck(scenario, **config):
    given = {"reviewer": "小王", "note": "读者说不对", "dry_run": False, **config}
    return launched(scenario, recheck_links, {"queue_rechecks": {"config": given}})


def test_links_are_judged_again_by_order_and_none_is_taken_away(stage):
    rows = [
        linked(RIVER, 4),
        linked(WHALE, 5),
        video(6, vod_name="午夜电车", vod_year="1980", vod_douban_id=TRAM["id"]),
    ]
    scenario = stage([*rows, video(7)], FILMS)
    for vod_id in (4, 5, 6):
        scenario.library.set_state(vod_id, douban_next_sync_at=scenario.clock.now() + timedelta(days=9))
    scenario.library.set_state(7, douban_next_sync_at=scenario.clock.now() + timedelta(days=9))
    before, links = scenario.library.all_bytes(), {vod_id: link_of(scenario, vod_id) for vod_id in (4, 5, 6)}
    shown = recheck(scenario, dry_run=True, sources=["cms"])
    assert (shown.success, shown.output["queued"], scenario.library.tasks()) == (True, 0, [])
    done = recheck(scenario, vod_ids=[4, 6, 7, 404])
    assert (done.success, done.output["queued"], done.output["refused"]) == (True, 2, 2)
    assert "影片没有豆瓣关联，无从复查" in done.output["links"]
    tasks = telling(scenario.library.tasks(), "vod_id", "task_type", "stage")
    assert tasks == [(4, "RECHECK", "search"), (6, "RECHECK", "search")]
    assert scenario.library.tasks()[0]["payload"] == {"reviewer": "小王", "note": "读者说不对"}
    again = recheck(scenario, vod_ids=[4])
    assert (again.output["queued"], len(scenario.library.tasks())) == (0, 2)
    assert "已有未完成的复查" in again.output["links"]
    assert scenario.play().success
    assert status_of(scenario, 4) == ("CONFIRMED", "")
    assert status_of(scenario, 5) == ("CONFIRMED", "")
    status, reason = status_of(scenario, 6)
    assert (status, reason.startswith(f"复查：豆瓣 ID {TRAM['id']} 与影片不符（")) == ("REVIEW", True)
    assert TRAM["id"] in {row["douban_id"] for row in scenario.candidates(6)}
    assert {vod_id: link_of(scenario, vod_id) for vod_id in (4, 5, 6)} == links
    assert (scenario.library.all_bytes(), scenario.library.log()) == (before, [])
    assert {(row["vod_id"], row["state"]) for row in scenario.verdicts()} == {(4, "applied"), (6, "applied")}


def test_a_recheck_waits_for_a_search_that_is_ill(stage):
    scenario = stage([linked(RIVER, 4)], FILMS)
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now() + timedelta(days=9))
    recheck(scenario, vod_ids=[4])
    scenario.upstream.faults.add("search", "forbidden")
    assert scenario.play().success
    assert (status_of(scenario, 4), scenario.task(4)["status"]) == (("CONFIRMED", ""), "PENDING")
    scenario.upstream.faults.clear()
    scenario.clock.advance(hours=2)
    scenario.play()
    assert [task["status"] for task in scenario.library.tasks() if task["task_type"] == "RECHECK"] == ["SUCCESS"]


# --- where an id comes from -------------------------------------------------------------------------------------------


def test_an_id_that_douban_cannot_have_goes_to_review_and_nobody_is_asked(stage):
    scenario = stage([row_of(RIVER, 4, vod_douban_id=1234), row_of(WHALE, 5, vod_douban_id=1234)], FILMS)
    later = scenario.clock.now() + timedelta(days=40)
    scenario.library.set_state(5, douban_next_sync_at=later)
    queue = scenario.library.queue("ordered")
    with scenario.library.engine.begin() as connection:
        task = NewTask(5, TaskType.RECHECK, TaskStage.SEARCH, ORDERED_PRIORITY)
        queue.enqueue(connection, [task], run_id="ordered")
    assert scenario.play().success
    assert status_of(scenario, 4) == ("REVIEW", "豆瓣条目 1234 已不存在")
    status, reason = status_of(scenario, 5)
    assert (status, reason.partition("；")[0]) == ("REVIEW", "复查：豆瓣 ID 1234 已不存在")
    assert [scenario.library.state(vod_id)["douban_sync_fail_count"] for vod_id in (4, 5)] == [0, 0]
    assert "1234" not in scenario.upstream.requests.keys("douban")
