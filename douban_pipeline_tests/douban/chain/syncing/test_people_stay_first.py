"""Whatever automation has in hand when a person decides, in whichever run: what the person set stays set."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.linking import verdicts
from douban_pipeline.douban.chain.syncing.decisions import carry_out
from douban_pipeline.douban.chain.syncing.writer import Writer
from douban_pipeline.douban.review.recording.decisions import Wish, record
from douban_pipeline.douban.store.states import DecisionAction, TaskStage
from douban_pipeline_tests.douban.chain.syncing.conftest import RIVAL
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, KITE, TRAM, WHALE, row_of

IDENTITY = ("vod_douban_id", "douban_review_status", "douban_id_source", "douban_ignore_until")


def carry_out_elsewhere(scenario, vod_id):
    """Carry decisions out in another run, the one under way going on."""
    services = scenario.services
    deadline = scenario.clock.now() + timedelta(hours=1)
    carry_out(services, services.queue("other"), services.change_log("other"), [vod_id], deadline=deadline)


def standing(scenario, vod_id):
    state = scenario.library.state(vod_id)
    return tuple(state[name] for name in IDENTITY)


@pytest.mark.parametrize(
    ("action", "douban_id"), [("ignore", 0), ("set_id", RIVAL["id"]), ("clear_id", 0), ("replace_and_lock", TRAM["id"])]
)
def test_a_verdict_that_comes_after_a_decision_settles_nothing(doubtful, monkeypatch, action, douban_id):
    doubtful.clock.advance(days=40)
    decided = []

    def meanwhile(*given):
        if not decided:
            decide(doubtful.library, 4, action, douban_id)
            carry_out_elsewhere(doubtful, 4)
            decided.append(standing(doubtful, 4))
        return real(*given)

    real = verdicts.judge_found
    monkeypatch.setattr(verdicts, "judge_found", meanwhile)
    before = len(doubtful.verdicts(4))
    doubtful.play(4, steps=STEPS[:3])
    assert decided == [standing(doubtful, 4)]
    assert len(doubtful.verdicts(4)) == before
    assert doubtful.library.state(4)["douban_review_reason"] != doubtful.verdicts(4)[-1]["explanation"]
    assert doubtful.task(4)["status"] in ("SKIP", "PENDING")


@pytest.fixture
def linked(stage):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, search_concurrency=1, douban_concurrency=1)
    assert scenario.play(steps=STEPS[:1]).success
    return scenario


@pytest.mark.parametrize("missing", [False, True], ids=["answer", "no-subject"])
@pytest.mark.parametrize(("action", "douban_id"), [("set_id", TRAM["id"]), ("clear_id", 0), ("ignore", 0)])
def test_a_sync_that_comes_after_a_decision_writes_nothing(linked, monkeypatch, action, douban_id, missing):
    if missing:
        linked.upstream._subjects.pop(WHALE["id"])
    real, seen = Attempts.run, []

    def run(self, tasks, call, *, workers):
        for task, answer in real(self, tasks, call, workers=workers):
            decide(linked.library, 5, action, douban_id)
            carry_out_elsewhere(linked, 5)
            seen.append((standing(linked, 5), linked.library.all_bytes()))
            yield task, answer

    services = linked.services
    queue, log = services.queue("this"), services.change_log("this")
    tasks = queue.lease([5], TaskStage.SYNC, limit=5)
    monkeypatch.setattr(Attempts, "run", run)
    attempts = Attempts(services, queue, linked.clock.now() + timedelta(hours=1))
    [result] = Writer(services, queue, log, attempts).sync(tasks)
    assert (result.result, result.change_id) == (("review", None) if missing else ("refused", result.change_id))
    assert seen == [(standing(linked, 5), linked.library.all_bytes())]


def test_work_that_a_decision_closed_does_not_come_back(linked):
    services = linked.services
    queue = services.queue("this")
    [task] = queue.lease([5], TaskStage.SYNC, limit=5)
    decide(linked.library, 5, "ignore")
    carry_out_elsewhere(linked, 5)
    with linked.library.engine.begin() as connection:
        queue.put_back(connection, task.task_id, linked.clock.now(), "429", failed=True)
    assert linked.task(5)["status"] == "SKIP"
    assert services.queue("next").lease([5], TaskStage.SYNC, limit=5) == []


def test_an_id_that_a_person_cleared_is_not_synced_when_it_comes_back(stage):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, search_concurrency=1, douban_concurrency=1)
    decide(scenario.library, 5, "clear_id")
    assert scenario.play().success
    # The source that the site collects from hands the same id in again.
    scenario.library.set_cms(5, vod_douban_id=WHALE["id"], vod_writer="")
    scenario.library.intake.sweep(0, 1)
    scenario.clock.advance(minutes=5)
    before = scenario.library.all_bytes()
    assert scenario.play().failed_guards == {"writes_take_hold"}, "that it came back is told"
    assert scenario.library.all_bytes() == before
    state = scenario.library.state(5)
    assert (state["douban_review_status"], state["douban_review_reason"]) == (
        "REVIEW",
        f"关联 {WHALE['id']} 曾被人工撤销，却又出现在 CMS 中",
    )
    # A person may say that it was right after all.
    decide(scenario.library, 5, "set_id", WHALE["id"])
    scenario.play()
    assert standing(scenario, 5)[:3] == (WHALE["id"], "CONFIRMED", "person")
    assert scenario.cms(5, "vod_writer") != ("",)


@pytest.mark.parametrize("action", ["lock_id", "clear_id", "sync_now"])
def test_a_decision_about_the_id_that_stood_is_about_no_other(stage, action):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, search_concurrency=1, douban_concurrency=1)
    assert scenario.play().success
    scenario.clock.advance(minutes=5)
    signed = {"reviewer": "小王", "note": "", "run_id": "launch", "dry_run": False}
    [item] = record(scenario.services, [Wish(5, DecisionAction(action))], **signed).items
    assert item.outcome == "recorded"
    scenario.library.set_cms(5, vod_douban_id=KITE["id"])
    # Our state knows of it by the time the run comes.
    scenario.library.intake.sweep(0, 1)
    scenario.play(steps=STEPS[3:4])
    told = f"记录决定之后豆瓣 ID 已由 {WHALE['id']} 变为 {KITE['id']}，请核对后重新决定"
    assert decisions(scenario.library, "state", "state_reason") == [("refused", told)]
    assert scenario.cms(5, "vod_douban_id") == (KITE["id"],)
    assert scenario.library.state(5)["douban_id_locked"] is False


def test_an_intro_that_was_ordered_gives_way_to_a_later_unlocking(stage):
    scenario = stage(
        [row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, ai_intros=True, openrouter_api_key="sk-only-for-tests"
    )
    scenario.library.set_state(5, intro_locked=True, intro_lock_time=scenario.clock.now())
    assert scenario.play(steps=STEPS[:4]).success
    decide(scenario.library, 5, "redo_intro")
    scenario.play(steps=STEPS[3:4])
    decide(scenario.library, 5, "unlock_intro")
    scenario.play(steps=STEPS[3:4])
    assert decisions(scenario.library, "state", "state_reason") == [("refused", "被更新的决定取代"), ("applied", "")]
    assert (
        scenario.library.query(
            sa.text("SELECT 1 FROM mac_douban_task WHERE task_type = 'AI_INTRO' AND open_key IS NOT NULL")
        )
        == []
    )
