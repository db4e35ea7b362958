"""Choices of the served sheet in the service itself: recorded once, applied within seconds, undone, told to Dagster."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster_webserver.app import create_app_from_workspace_process_context
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.dagster_kit.labels import TABLES_VERSION
from douban_pipeline.douban.chain.decision_lane.open_orders import SERVICE_TIME, open_orders
from douban_pipeline.douban.review.records.record import DecisionError
from douban_pipeline.douban.review.served import batches as batches_module
from douban_pipeline.douban.review.served.batches import KEPT, Batches, batch_of, run_of
from douban_pipeline.douban.review.served.dagster_api import DATA_VERSION, DagsterApi
from douban_pipeline.douban.review.served.desk import NotUndone, NotYet, ReviewDesk, SentChoice
from douban_pipeline_tests.browser.served import HeldBatches
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of, subject

ONE, OTHER = "a" * 32, "b" * 32
RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
AWAY = "http://127.0.0.1:9/graphql"


def chosen(scenario: Any, vod_id: int = 4, **more: Any) -> dict[str, Any]:
    """Return the choice of a video's best candidate, as a page sends it."""
    [best, *_] = scenario.candidates(vod_id)
    return {"vod_id": vod_id, "action": "choose", "douban_id": best["douban_id"], "accept_conflicts": True, **more}


def outbox(library: Library) -> list[dict[str, Any]]:
    return library.query(library.tables.outbox.select())


def state(scenario: Any, desk: ReviewDesk, run_id: str, vod_id: int, *actions: str) -> list[tuple[str, str]]:
    found = desk.live("page", "小王", [vod_id], [SentChoice(run_id, vod_id, actions)])["states"]
    return [(each["action"], each["state"]) for each in found]


@pytest.fixture
def scenario(stage):
    """Video 4 waits for a person, videos 5 and 68 were never judged."""
    poor = {"vod_director": "", "vod_actor": "", "vod_class": ""}
    found = stage([row_of(RIVER, 4, **poor), row_of(WHALE, 5), row_of(TRAM, 68)], [RIVER, RIVAL, *FILMS[1:]])
    assert found.play(4).success
    found.clock.advance(minutes=1)
    return found


@pytest.fixture
def desk(scenario) -> ReviewDesk:
    return ReviewDesk(scenario.services, HeldBatches(scenario.library))


def held_of(desk: ReviewDesk) -> HeldBatches:
    assert isinstance(desk._batches, HeldBatches)
    return desk._batches


def test_what_is_chosen_is_recorded_when_the_page_is_answered_and_applied_after(scenario, desk):
    rows = [chosen(scenario), {"vod_id": 5, "action": "ignore", "days": 30}]
    run_id = desk.decide(ONE, "小王", "海报一致", rows)
    assert run_id == run_of(batch_of(ONE))
    assert {row["vod_id"]: row["state"] for row in scenario.decisions()} == {4: "pending", 5: "pending"}
    assert state(scenario, desk, run_id, 4, "choose") == [("choose", "recorded")]
    held_of(desk).apply_and_report()
    assert {row["vod_id"]: row["state"] for row in scenario.decisions()} == {4: "applied", 5: "applied"}
    assert scenario.library.row(4)["vod_douban_id"] == rows[0]["douban_id"]
    assert {change["run_id"] for change in scenario.library.log() if change["vod_id"] == 4} == {run_id}
    assert {row["batch_id"] for row in scenario.decisions()} == {batch_of(ONE)}
    assert state(scenario, desk, run_id, 4, "choose") == [("choose", "applied")]


def test_a_batch_that_is_sent_again_is_recorded_once_also_after_it_was_applied(scenario, desk):
    rows = [{"vod_id": 4, "action": "rematch"}, {"vod_id": 5, "action": "lock_intro"}]
    assert desk.decide(ONE, "小王", "", rows[:1]) == desk.decide(ONE, "小王", "", rows)
    held_of(desk).apply_and_report()
    desk.decide(ONE, "小王", "", rows)
    assert [(row["vod_id"], row["action"]) for row in scenario.decisions()] == [(4, "rematch"), (5, "lock_intro")]
    # Another name is another batch: the same is wanted a second time.
    desk.decide(OTHER, "小王", "", rows[:1])
    assert len(scenario.decisions()) == 3


def test_threads_that_send_one_batch_record_it_once(scenario, desk, monkeypatch):
    recording, within = batches_module.record, []

    def watched(*args: Any, **given: Any) -> Any:
        within.append(threading.current_thread())
        return recording(*args, **given)

    monkeypatch.setattr(batches_module, "record", watched)
    rows = [{"vod_id": 4, "action": "rematch"}]
    threads = [threading.Thread(target=desk.decide, args=(ONE, "小王", "", rows)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(within) == 1
    assert len(scenario.decisions()) == 1
    assert not held_of(desk)._turns


def test_a_batch_that_is_being_recorded_is_not_crossed_off(scenario, desk, monkeypatch):
    recording = batches_module.record

    def interrupted(*args: Any, **given: Any) -> Any:
        held_of(desk).apply_and_report()  # another reviewer's batch woke the thread meanwhile
        return recording(*args, **given)

    monkeypatch.setattr(batches_module, "record", interrupted)
    desk.decide(ONE, "小王", "", [chosen(scenario)])
    held_of(desk).apply_and_report()
    assert [row["state"] for row in scenario.decisions()] == ["applied"]


def test_what_others_decided_is_not_logged_under_the_name_of_a_batch(scenario, desk):
    decide(scenario.library, 68, "ignore")  # of the same shard
    desk.decide(ONE, "小王", "", [chosen(scenario)])
    held_of(desk).apply_and_report()
    assert {row["vod_id"]: row["state"] for row in scenario.decisions()} == {4: "applied", 68: "pending"}


def test_what_is_no_batch_is_refused_and_leaves_nothing(scenario, desk):
    with pytest.raises(DecisionError, match="代表自动写入"):
        desk.decide(ONE, "pipeline", "", [{"vod_id": 4, "action": "rematch"}])
    held_of(desk).apply_and_report()
    assert scenario.decisions() == []


def test_what_needs_no_record_and_what_nobody_knows_are_told_apart(scenario, desk):
    desk.decide(ONE, "小王", "", [{"vod_id": 4, "action": "ignore", "days": 30}])
    again = desk.decide(OTHER, "小李", "", [{"vod_id": 4, "action": "ignore", "days": 30}])
    assert state(scenario, desk, again, 4, "ignore") == [("ignore", "already")]
    [unknown] = desk.live("page", "", [], [SentChoice("0" * 36, 4, ("rematch",))])["states"]
    assert (unknown["state"], unknown["reason"]) == ("refused", "没有找到它的记录，请重新选择")


# --- undoing ----------------------------------------------------------------------------------------------------------


def test_a_choice_is_undone_to_the_byte_and_again_without_effect(scenario, desk):
    before = scenario.library.row(4)
    row = chosen(scenario, lock=True)
    run_id = desk.decide(ONE, "小王", "", [row])
    held_of(desk).apply_and_report()
    assert scenario.library.row(4) != before
    choice = SentChoice(run_id, 4, ("choose",))
    desk.undo(OTHER, "小李", choice)
    assert scenario.library.row(4) == before
    assert scenario.library.state(4)["douban_id_locked"] is False
    assert state(scenario, desk, run_id, 4, "choose") == [("choose", "reverted")]
    desk.undo(OTHER, "小李", choice)  # the answer was lost
    [undoing] = [change for change in scenario.library.log() if change["run_id"] == run_of(batch_of(OTHER))]
    assert (undoing["operator"], undoing["reason"]) == ("小李", "在审核单上撤销")


def test_a_choice_that_still_waits_is_withdrawn(scenario, desk):
    run_id = desk.decide(ONE, "小王", "", [chosen(scenario)])
    desk.undo(OTHER, "小王", SentChoice(run_id, 4, ("choose",)))
    [row] = scenario.decisions()
    assert (row["state"], row["state_reason"]) == ("refused", "尚未执行即由 小王 撤回：在审核单上撤销")
    held_of(desk).apply_and_report()
    assert scenario.library.row(4)["vod_douban_id"] == 0
    with pytest.raises(NotYet, match="没有可撤销的内容"):
        desk.undo("c" * 32, "小王", SentChoice(run_id, 4, ("choose",)))


@pytest.mark.parametrize("override", [False, True])
def test_an_undo_overrides_the_sites_lock_where_the_choice_did(scenario, desk, override):
    if override:
        scenario.library.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 4")
    run_id = desk.decide(ONE, "小王", "", [chosen(scenario, override_cms_lock=override)])
    held_of(desk).apply_and_report()
    assert scenario.library.row(4)["vod_douban_id"] != 0
    scenario.library.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 4")
    choice = SentChoice(run_id, 4, ("choose",))
    if override:
        desk.undo(OTHER, "小王", choice)
        assert scenario.library.row(4)["vod_douban_id"] == 0
        return
    with pytest.raises(NotUndone, match="锁定"):
        desk.undo(OTHER, "小王", choice)
    assert scenario.library.row(4)["vod_douban_id"] != 0


# --- the thread, and who else applies ---------------------------------------------------------------------------------


def until(found: Callable[[], bool]) -> None:
    """Wait until something holds, at most a minute."""
    waited = threading.Event()
    for _ in range(1200):
        if found():
            return
        waited.wait(0.05)
    raise AssertionError("it did not come to hold")


def test_the_thread_applies_by_itself_and_goes_on_after_the_database_was_away(scenario, monkeypatch):
    monkeypatch.setattr(batches_module, "_PAUSE", 0.001)
    batches = Batches(scenario.services, DagsterApi(AWAY))
    failures = [DatabaseError("away"), OperationalError("", {}, Exception("gone")), ValueError("what nobody foresaw")]
    apply_and_report, tried = batches.apply_and_report, []

    def failing() -> float | None:
        tried.append(1)
        if failures:
            raise failures.pop()
        return apply_and_report()

    monkeypatch.setattr(batches, "apply_and_report", failing)
    try:
        ReviewDesk(scenario.services, batches).decide(ONE, "小王", "", [chosen(scenario)])
        until(lambda: {row["state"] for row in scenario.decisions()} == {"applied"})
        assert len(tried) >= 4
    finally:
        batches.close()
    assert len(outbox(scenario.library)) == 1, "Dagster was away: it is told another time"


def test_in_a_dry_run_choices_are_recorded_and_wait(scenario):
    dry = scenario.under(dry_run=True)
    desk = ReviewDesk(dry.services, HeldBatches(dry.library))
    desk.decide(ONE, "小王", "", [chosen(scenario)])
    assert held_of(desk).apply_and_report() is None
    assert [row["state"] for row in scenario.decisions()] == ["pending"]


def test_the_lane_leaves_a_choice_to_the_service_for_a_moment(scenario, desk):
    desk.decide(ONE, "小王", "", [chosen(scenario)])
    assert open_orders(scenario.services).decisions == 0
    # The service was killed before it applied it.
    scenario.clock.advance(seconds=SERVICE_TIME.total_seconds())
    assert open_orders(scenario.services).decisions == 1
    assert scenario.launch("apply_decisions").success
    assert [row["state"] for row in scenario.decisions()] == ["applied"]
    assert held_of(desk).apply_and_report() == pytest.approx(60), "nothing is left but to tell Dagster, which is away"


# --- what Dagster is told ---------------------------------------------------------------------------------------------


@contextmanager
def webserver(instance: dg.DagsterInstance) -> Iterator[str]:
    """Yield the GraphQL address of Dagster's own webserver, without any code location."""
    with WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as workspace:
        config = uvicorn.Config(
            create_app_from_workspace_process_context(workspace), log_level="error", lifespan="off", access_log=False
        )
        server, listener = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/graphql"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)
            listener.close()


def test_dagster_shows_each_batch_once_it_is_applied_and_after_it_was_away(scenario, desk, tmp_path):
    library = scenario.library
    desk.decide(ONE, "小王", "", [chosen(scenario), {"vod_id": 5, "action": "sync_now"}])
    assert held_of(desk).apply_and_report() == pytest.approx(60)
    run_id = desk.decide("c" * 32, "小李", "", [{"vod_id": 5, "action": "ignore", "days": 9}])
    held_of(desk).apply_and_report()
    desk.undo(OTHER, "小李", SentChoice(run_id, 5, ("ignore",)))
    assert len(outbox(library)) == 3
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, webserver(instance) as url:
        held_of(desk)._dagster = DagsterApi(url)
        assert held_of(desk).apply_and_report() is None
        assert outbox(library) == []
        found = instance.fetch_materializations(dg.AssetKey("applied_decisions"), limit=9).records
        told = [record.asset_materialization for record in reversed(found)]
        seen = instance.fetch_observations(dg.AssetKey("review_queue"), limit=9).records
    assert len(seen) == 3
    first, second, third = ({name: value.value for name, value in each.metadata.items()} for each in told)
    assert (first["batch"], first["run"], first["reviewer"]) == (
        batch_of(ONE),
        run_of(batch_of(ONE)),
        "小王",
    )
    assert (first["decisions_recorded"], first["decisions_applied"], first["decisions_refused"]) == (1, 1, 1)
    assert first["refused_decisions"].startswith("影片 5，")
    assert second["decisions_reverted"] == 1, "as it stands when Dagster is told"
    assert third["changes_reverted"] == 1
    assert [each.description for each in told] == [
        "小王 在审核单上决定了 2 条",
        "小李 在审核单上决定了 1 条",
        "小李 在审核单上撤销了选择",
    ]
    assert {(each.tags or {})["dagster/data_version"] for each in told} == {TABLES_VERSION} == {DATA_VERSION}


def test_what_dagster_does_not_take_within_a_week_is_crossed_off(scenario, desk):
    desk.decide(ONE, "小王", "", [{"vod_id": 5, "action": "ignore", "days": 9}])
    assert held_of(desk).apply_and_report() == pytest.approx(60)
    scenario.clock.advance(seconds=(KEPT + timedelta(seconds=1)).total_seconds())
    assert held_of(desk).apply_and_report() is None
    assert outbox(scenario.library) == []
