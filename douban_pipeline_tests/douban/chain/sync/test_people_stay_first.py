"""Whatever automation has in hand when a person decides, in whichever run: what the person set stays set."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.core.errors import GateClosed
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.match import verdicts
from douban_pipeline.douban.chain.sync.writer import FieldWriter
from douban_pipeline.douban.decisions.application import apply_decisions
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction, TaskStage
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline_tests.douban.chain.sync.conftest import RIVAL
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, KITE, TRAM, WHALE, row_of

IDENTITY = ("vod_douban_id", "douban_review_status", "douban_id_source", "douban_ignore_until")


def apply_elsewhere(scenario, vod_id):
    """Carry decisions out in another run, the one under way going on."""
    services = scenario.services
    deadline = scenario.clock.now() + timedelta(hours=1)
    apply_decisions(services, services.queue("other"), services.change_log("other"), [vod_id], deadline=deadline)


def current_state(scenario, vod_id):
    state = scenario.library.state(vod_id)
    return tuple(state[name] for name in IDENTITY)


@pytest.mark.parametrize(
    ("action", "douban_id"), [("ignore", 0), ("set_id", RIVAL["id"]), ("clear_id", 0), ("replace_and_lock", TRAM["id"])]
)
def test_a_verdict_that_comes_after_a_decision_settles_nothing(doubtful, monkeypatch, action, douban_id):
    doubtful.clock.advance(days=40)
    decided = []

    def decide_before_judging(*given, **more):
        if not decided:
            decide(doubtful.library, 4, action, douban_id)
            apply_elsewhere(doubtful, 4)
            decided.append(current_state(doubtful, 4))
        return real(*given, **more)

    real = verdicts.judge_found
    monkeypatch.setattr(verdicts, "judge_found", decide_before_judging)
    before = len(doubtful.verdicts(4))
    doubtful.play(4, steps=STEPS[:3])
    assert decided == [current_state(doubtful, 4)]
    assert len(doubtful.verdicts(4)) == before
    assert doubtful.library.state(4)["douban_review_reason"] != doubtful.verdicts(4)[-1]["explanation"]
    assert doubtful.task(4)["status"] in ("SKIP", "PENDING")


@pytest.fixture
def linked(stage):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, videos_at_once=1)
    assert scenario.play(steps=STEPS[:1]).success
    return scenario


@pytest.mark.parametrize("moment", ["answer", "no-subject", "write"])
@pytest.mark.parametrize(("action", "douban_id"), [("set_id", TRAM["id"]), ("clear_id", 0), ("ignore", 0)])
def test_a_sync_that_comes_after_a_decision_writes_nothing(linked, monkeypatch, action, douban_id, moment):
    if moment == "no-subject":
        linked.upstream.subjects.pop(WHALE["id"])
    run, held, seen = Attempts.run, TaskQueue.held, []

    def decide_elsewhere():
        decide(linked.library, 5, action, douban_id)
        apply_elsewhere(linked, 5)
        seen.append((current_state(linked, 5), linked.library.all_bytes()))

    def run_and_decide(self, tasks, call, *, workers):
        for task, answer in run(self, tasks, call, workers=workers):
            decide_elsewhere()
            yield task, answer

    def look_and_decide(self, connection, task_ids):
        ours = held(self, connection, task_ids)
        connection.close()
        decide_elsewhere()
        return ours

    services = linked.services
    queue, log = services.queue("this"), services.change_log("this")
    tasks = queue.lease([5], TaskStage.SYNC, limit=5)
    if moment == "write":
        monkeypatch.setattr(TaskQueue, "held", look_and_decide)
    else:
        monkeypatch.setattr(Attempts, "run", run_and_decide)
    attempts = Attempts(services, queue, linked.clock.now() + timedelta(hours=1))
    assert list(FieldWriter(services, queue, log, attempts).sync(tasks)) == []
    assert attempts.lost == 1, "the decision closed the task"
    assert seen == [(current_state(linked, 5), linked.library.all_bytes())]
    of_this_run = [change["state"] for change in linked.library.log() if change["run_id"] == "this"]
    assert of_this_run == (["refused"] if moment == "write" else [])


@pytest.fixture
def ordered(linked):
    """A sync that a person ordered, the run that held it for too long, and the tasks as that run has them."""
    decide(linked.library, 5, "sync_now", WHALE["id"])
    apply_elsewhere(linked, 5)
    queue = linked.services.queue("silent")
    tasks = queue.lease([5], TaskStage.SYNC, limit=5)
    linked.clock.advance(seconds=linked.services.settings.lease.total_seconds() + 1)
    return linked, queue, tasks


def writer_of(scenario, queue):
    attempts = Attempts(scenario.services, queue, scenario.clock.now() + timedelta(hours=1))
    return FieldWriter(scenario.services, queue, scenario.services.change_log("writing"), attempts)


@pytest.mark.parametrize("trouble", [None, "no-subject", "source"])
def test_a_run_that_lost_its_lease_leaves_a_persons_order_to_the_run_that_has_it(ordered, monkeypatch, trouble):
    scenario, silent, tasks = ordered
    other = scenario.services.queue("next")
    assert [task.vod_id for task in other.lease([5], TaskStage.SYNC, limit=5)] == [5]
    before = scenario.library.tasks(), scenario.library.states(), scenario.library.all_bytes()
    with monkeypatch.context() as patch:
        if trouble == "no-subject":
            patch.delitem(scenario.upstream.subjects, WHALE["id"])
        elif trouble == "source":
            refuse = GateClosed("douban", "断路", scenario.clock.now() + timedelta(hours=1))
            patch.setattr(FieldWriter, "_answer_for", lambda *_: lambda _task: (_ for _ in ()).throw(refuse))
        late = writer_of(scenario, silent)
        assert list(late.sync(tasks)) == []
    assert (late.attempts.lost, late.attempts.deferred, late.attempts.failed) == (1, [], [])
    assert (scenario.library.tasks(), scenario.library.states(), scenario.library.all_bytes()) == before
    assert decisions(scenario.library, "state") == ["queued"]
    [done] = writer_of(scenario, other).sync(other.lease([5], TaskStage.SYNC, limit=5))
    assert done.result == "written"
    assert decisions(scenario.library, "state") == ["applied"]


def test_work_that_a_decision_closed_does_not_come_back(linked):
    services = linked.services
    queue = services.queue("this")
    [task] = queue.lease([5], TaskStage.SYNC, limit=5)
    decide(linked.library, 5, "ignore")
    apply_elsewhere(linked, 5)
    with linked.library.engine.begin() as connection:
        assert not queue.requeue(connection, task.task_id, linked.clock.now(), "429", failed=True)
    assert linked.task(5)["status"] == "SKIP"
    assert services.queue("next").lease([5], TaskStage.SYNC, limit=5) == []


def test_an_id_that_a_person_cleared_is_not_synced_when_it_comes_back(stage):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, videos_at_once=1)
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
    assert current_state(scenario, 5)[:3] == (WHALE["id"], "CONFIRMED", "person")
    assert scenario.cms(5, "vod_writer") != ("",)


@pytest.mark.parametrize("action", ["lock_id", "clear_id", "sync_now"])
def test_a_decision_about_the_id_of_then_is_about_no_other(stage, action):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, videos_at_once=1)
    assert scenario.play().success
    scenario.clock.advance(minutes=5)
    signed = {"reviewer": "小王", "note": "", "run_id": "launch", "dry_run": False}
    [item] = record(scenario.services, [Decision(5, DecisionAction(action))], **signed).items
    assert item.status == "recorded"
    scenario.library.set_cms(5, vod_douban_id=KITE["id"])
    # Our state knows of it by the time the run comes.
    scenario.library.intake.sweep(0, 1)
    scenario.play(steps=STEPS[3:4])
    reported = f"记录决定之后豆瓣 ID 已由 {WHALE['id']} 变为 {KITE['id']}，请核对后重新决定"
    assert decisions(scenario.library, "state", "state_reason") == [("refused", reported)]
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
