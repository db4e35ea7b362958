"""An intro reaches the CMS when it holds to the facts, once, locked and logged; otherwise nothing is written."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.cms.values import content_text
from douban_pipeline.core.llm import LanguageModel
from douban_pipeline.douban.intros.ledger import IntroLedger
from douban_pipeline.douban.intros.prompt import PROMPT_VERSION
from douban_pipeline.douban.intros.writer import IntroWriter
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.intros.room import KEY, TOLD, UNTOLD, linked
from douban_pipeline_tests.douban.reports.planting import figures, rows_in
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scenario import KITE, RIVER, TRAM, WHALE, telling


def interfere(monkeypatch, act):
    """Let somebody ``act`` while the model writes."""
    real = LanguageModel.complete

    def complete(self, *given, **named):
        answer = real(self, *given, **named)
        act()
        return answer

    monkeypatch.setattr(LanguageModel, "complete", complete)


def test_an_intro_is_written_with_all_that_explains_it(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    metadata = house.run(run_id="intro-run")
    [intro], [change] = house.intros(), house.library.log()
    text = intro["intro_text"]
    assert (metadata["written"], metadata["asked"], metadata["refused_by_guard"], metadata["switched_off"]) == (
        1,
        1,
        0,
        False,
    )
    assert content_text(house.content(4)) == text
    assert 120 <= sum("一" <= sign <= "龥" for sign in text) <= 300
    assert house.library.row(4)["vod_blurb"] == text[:100]
    assert (change["action"], change["state"], change["operator"]) == ("intro", "applied", "pipeline")
    assert (change["old_values"]["vod_content"], change["old_values"]["vod_blurb"]) == ("<p>原有简介</p>", "")
    assert (change["snapshot_id"], change["batch_id"]) == (intro["snapshot_id"], metadata["batch"])
    assert all(
        part in change["reason"] for part in ("deepseek/deepseek-v3.2", PROMPT_VERSION, intro["fact_sheet_hash"])
    )
    assert (intro["state"], intro["change_id"], intro["reason"]) == ("written", change["change_id"], "")
    assert (intro["douban_id"], intro["run_id"], intro["prompt_version"]) == (90_000_101, "intro-run", PROMPT_VERSION)
    assert (intro["model"], intro["provider"], intro["violations"]) == ("deepseek/deepseek-v3.2", "Replay", [])
    assert intro["fact_sheet"]["title"] == "长河落日记事"
    assert intro["cost_usd"] == pytest.approx(metadata["cost_usd"], abs=1e-6)
    assert intro["cost_usd"] > 0
    assert metadata["tokens"] == intro["prompt_tokens"] + intro["completion_tokens"] > 0
    state = house.library.state(4)
    assert state["intro_locked"]
    assert state["intro_lock_time"] == state["intro_ai_last_at"] == house.clock.now()
    assert (state["intro_ai_source"], state["intro_ai_fail_count"]) == ("deepseek/deepseek-v3.2", 0)
    [task] = house.library.tasks()
    assert (task["task_type"], task["stage"], task["status"]) == ("AI_INTRO", "intro", "SUCCESS")
    assert text[:20] in metadata["texts"]
    assert house.failed_guards() == {}
    marked = house.library.query(sa.select(house.library.tables.intro_mark.c.intro_id).distinct())
    assert marked == [{"intro_id": intro["intro_id"]}]
    assert KEY not in str(
        [house.library.query(sa.select(table)) for table in house.library.tables.metadata.sorted_tables]
    )
    # It is locked now, and stays as it is.
    assert house.run()["asked"] == 0


@pytest.mark.parametrize(("film", "least", "length"), [(UNTOLD, 1, 0), (TOLD, 50, 49)])
def test_without_a_source_worth_retelling_the_model_is_not_asked(room, film, least, length):
    house = room(linked(film, 4, vod_content="<p>原有简介</p>"), intro_min_source_han=least)
    metadata = house.run()
    assert (metadata["asked"], metadata["written"], metadata["skipped"], metadata["without_source"]) == (0, 0, 1, 1)
    state, [task] = house.library.state(4), house.library.tasks()
    assert (house.content(4), house.library.log(), state["intro_locked"]) == ("<p>原有简介</p>", [], False)
    said = f"原简介太短，没有可改写的内容：豆瓣简介共 {length} 个汉字，至少 {least} 个"
    assert state["intro_ai_last_fail_reason"].startswith(said)
    # No failure that anybody has to look at, and not due again before the interval.
    assert (task["status"], state["intro_ai_fail_count"], house.run()["skipped"]) == ("SKIP", 0, 0)
    found = figures(house.library.services, "intros")
    assert (found.counts["without_source"], found.counts["failed"]) == (1, 0)
    [row] = rows_in(found.tables, "sourceless")
    assert row["reason"].startswith(said)
    # Nor does a person's order make a plot known.
    assert house.redo(4).success
    assert (house.calls, house.content(4)) == (0, "<p>原有简介</p>")


def test_a_source_that_is_just_long_enough_is_retold(room):
    house = room(linked(TOLD, 4), intro_min_source_han=49)
    assert (house.run()["asked"], house.calls) == (1, 1)


def test_the_facts_come_from_the_archive_when_the_sync_asked_already(room):
    house = room(linked(RIVER, 4))
    house.library.services.douban.subject(90_000_101, max_age=None)
    house.clock.advance(days=20)
    assert house.run()["written"] == 1
    assert house.upstream.requests.count("douban") == 1


def test_a_refused_text_is_written_once_more_with_its_faults_named(room):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", "invented_link")
    metadata = house.run()
    first, second = house.intros()
    assert (metadata["written"], metadata["asked"]) == (1, 2)
    assert (first["state"], second["state"]) == ("refused", "written")
    assert first["violations"]
    assert first["violations"][0]["text"] in first["reason"]
    assert first["change_id"] is None
    assert second["violations"] == []
    asked = house.upstream.requests.keys("llm")
    assert ["violations" in message for message in asked] == [False, False], "the log holds 200 characters"
    assert metadata["cost_usd"] == pytest.approx(first["cost_usd"] + second["cost_usd"], abs=1e-6)
    assert house.library.state(4)["intro_ai_fail_count"] == 0


def test_what_fails_twice_is_not_written(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    house.upstream.faults.add("llm", "invented_link", stubborn=True)
    before = house.library.all_bytes()
    metadata = house.run()
    assert (metadata["written"], metadata["refused_by_guard"], metadata["asked"]) == (0, 1, 2)
    assert (house.library.all_bytes(), house.library.log()) == (before, [])
    state = house.library.state(4)
    assert (state["intro_ai_fail_count"], state["intro_locked"]) == (1, False)
    assert START <= state["intro_ai_last_fail_at"] < START + timedelta(seconds=1)
    assert state["intro_ai_last_fail_reason"] in metadata["texts"].replace("\\", "")
    assert (state["douban_sync_fail_count"], state["douban_last_fail_at"]) == (0, None)
    [task] = house.library.tasks()
    assert (task["status"], task["last_error"]) == ("FAIL", state["intro_ai_last_fail_reason"])
    assert telling(house.intros(), "state", "change_id") == [("refused", None)] * 2
    # Its turn comes again after the interval, and another failure counts on.
    house.clock.advance(days=29)
    assert house.run()["asked"] == 0
    house.clock.advance(days=1)
    assert house.run()["asked"] == 2
    assert house.library.state(4)["intro_ai_fail_count"] == 2
    house.upstream.faults.clear()
    house.clock.advance(days=30)
    assert house.run()["written"] == 1
    assert house.library.state(4)["intro_ai_fail_count"] == 0


def test_switched_off_it_says_so_and_leaves_no_work_lying_about(room):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", "server_error")
    house.run()
    asked, before = house.calls, house.library.all_bytes()
    metadata = house.under(ai_intros=False, openrouter_api_key="").run()
    assert (metadata["switched_off"], metadata["dropped"], house.calls) == (True, 1, asked)
    assert house.library.all_bytes() == before
    [task] = house.library.tasks()
    assert (task["status"], task["last_error"], task["open_key"]) == ("SKIP", "AI 简介未开启", None)


@pytest.mark.parametrize(
    ("state", "cms", "reason"),
    [
        ({"intro_locked": True}, {}, "简介已锁定"),
        ({"douban_review_status": "REVIEW"}, {}, "影片不是已确认状态"),
        ({"vod_douban_id": 0}, {}, "影片不是已确认状态"),
        ({}, {"vod_douban_id": 90_000_102}, "CMS 中的豆瓣 ID 已变为 90000102"),
        ({}, {"vod_lock": 1}, "影片已在 CMS 中锁定（vod_lock）"),
    ],
)
def test_what_changed_while_the_task_waited_is_not_paid_for(room_everywhere, state, cms, reason):
    house = room_everywhere(linked(RIVER, 4))
    house.library.enqueue(house.library.queue(), [NewTask(4, TaskType.AI_INTRO, TaskStage.INTRO)])
    if state:
        house.library.set_state(4, **state)
    if cms:
        house.library.set_cms(4, **cms)
    before = house.library.all_bytes()
    metadata = house.run()
    assert (metadata["skipped"], house.calls, house.library.all_bytes()) == (1, 0, before)
    [task] = house.library.tasks()
    assert (task["status"], task["last_error"]) == ("SKIP", reason)


def test_a_video_that_is_gone_is_skipped(room):
    house = room(linked(RIVER, 4))
    house.library.enqueue(house.library.queue(), [NewTask(4, TaskType.AI_INTRO, TaskStage.INTRO)])
    house.library.execute("DELETE FROM mac_vod WHERE vod_id = 4")
    assert house.run()["skipped"] == 1
    assert house.library.state(4)["douban_next_sync_at"] is None


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda house: house.library.set_cms(4, vod_content="站长写的"), "读取之后 CMS 中的值已被改动：vod_content"),
        (lambda house: house.library.set_cms(4, vod_lock=1), "影片已在 CMS 中锁定（vod_lock）"),
        (lambda house: house.library.set_state(4, intro_locked=True), "简介已锁定"),
        (lambda house: house.library.set_state(4, douban_review_status="REVIEW"), "影片不是已确认状态"),
        (lambda house: house.library.set_state(4, vod_douban_id=90_000_102), "CMS 中的豆瓣 ID 已变为 90000101"),
        (
            lambda house: (
                house.library.set_state(4, vod_douban_id=90_000_102),
                house.library.set_cms(4, vod_douban_id=90_000_102),
            ),
            "豆瓣关联已变为 90000102",
        ),
    ],
)
def test_what_somebody_does_while_the_model_writes_comes_first(room, monkeypatch, act, reason):
    house = room(linked(RIVER, 4))
    interfere(monkeypatch, lambda: act(house))
    metadata = house.run()
    assert (metadata["written"], metadata["skipped"]) == (0, 1)
    assert house.content(4) in ("<p>原有简介</p>", "站长写的")
    [intro], [task] = house.intros(), house.library.tasks()
    assert (intro["state"], intro["reason"]) == ("refused", reason)
    assert (task["status"], task["last_error"]) == ("SKIP", reason)
    assert not house.library.state(4)["intro_ai_last_at"]
    assert house.failed_guards() == {}


def test_the_same_text_is_not_written_again_after_a_person_took_it_back(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    before = house.library.all_bytes()
    house.run()
    [change] = house.changes()
    undo = house.library.change_log("undo")
    revert(undo, ChangeSelection((change["change_id"],)), operator="小王", reason="不好", dry_run=False)
    assert house.library.all_bytes() == before
    state = house.library.state(4)
    assert (state["intro_locked"], state["intro_lock_time"], state["intro_ai_source"]) == (False, None, "")
    assert telling(house.intros(), "state") == [("withdrawn",)]
    assert house.run()["asked"] == 0, "not at once"
    house.clock.advance(days=30)
    metadata = house.run()
    assert (metadata["asked"], metadata["written"], metadata["skipped"]) == (1, 0, 1)
    assert house.library.all_bytes() == before
    assert telling(house.intros(), "state", "reason")[-1] == ("refused", "同样的简介曾被人工撤销")


@pytest.mark.parametrize("later", [False, True])
def test_a_text_much_like_another_intro_is_refused(room_everywhere, later):
    house = room_everywhere(linked(RIVER, 4), linked(WHALE, 68))
    house.upstream.faults.add("llm", "same_text", stubborn=True)
    if later:
        house.library.set_state(68, intro_locked=True)
        assert house.run(4)["written"] == 1
        house.library.set_state(68, intro_locked=False)
    metadata = house.run(4)
    assert (metadata["written"], metadata["refused_by_guard"]) == (0 if later else 1, 1)
    assert telling(house.intros(), "state") == [("written",), ("refused",), ("refused",)]
    assert {violation["code"] for violation in house.intros()[-1]["violations"]} == {"near_copy"}
    assert house.failed_guards() == {}


@pytest.mark.parametrize("guard", ["passes", "refuses"])
def test_an_intro_whose_lease_was_lost_is_left_to_the_run_that_has_the_task(room, monkeypatch, guard):
    house = room(linked(RIVER, 4))
    if guard == "refuses":
        house.upstream.faults.add("llm", "invented_link", stubborn=True)

    def overtake():
        house.clock.advance(minutes=16)
        house.library.queue("other").lease([4], TaskStage.INTRO, limit=10)

    interfere(monkeypatch, overtake)
    metadata = house.run(4)
    assert (metadata["written"], metadata["refused_by_guard"], metadata["skipped"], metadata["lease_lost"]) == (
        0,
        0,
        0,
        1,
    )
    assert house.changes() == []
    [task] = house.library.tasks()
    assert (task["status"], task["lease_owner"].split("@")[0]) == ("RUNNING", "other")
    assert house.library.state(4)["intro_ai_fail_count"] == 0


@pytest.mark.parametrize("fault", [None, "invented_link"])
def test_a_run_that_lost_its_lease_does_not_judge_a_text_that_another_wrote(room_everywhere, monkeypatch, fault):
    house = room_everywhere(linked(RIVER, 4))
    if fault:
        house.upstream.faults.add("llm", fault)
    judge, others = IntroLedger.judge, []

    def judge_late(*given, **named):
        if not others:
            others.append(None)
            house.clock.advance(minutes=16)
            others[0] = house.run(4)
        return judge(*given, **named)

    monkeypatch.setattr(IntroLedger, "judge", judge_late)
    metadata = house.run(4)
    assert (metadata["written"], metadata["refused_by_guard"], metadata["lease_lost"]) == (0, 0, 1)
    assert others[0]["written"] == 1
    assert telling(house.intros(), "state") == ([("refused",)] if fault else []) + [("written",)]
    assert house.intros()[-1]["reason"] == ""
    assert house.calls == (2 if fault else 1)
    assert house.failed_guards() == {}


def test_calls_under_way_at_once_do_each_video_once(room_everywhere):
    entries = ((RIVER, 4), (WHALE, 5), (TRAM, 6), (KITE, 7))
    house = room_everywhere(*(linked(entry, vod_id) for entry, vod_id in entries), llm_concurrency=4)
    metadata = house.run()
    assert (metadata["written"], metadata["asked"], house.calls) == (4, 4, 4)
    assert {change["vod_id"] for change in house.changes()} == {4, 5, 6, 7}
    assert house.failed_guards() == {}


class Killed(BaseException):
    """The process is gone: nothing that follows in it happens."""


def dies_after(owner, name):
    real = getattr(owner, name)

    def last(*given, **named):
        real(*given, **named)
        raise Killed

    return owner, name, last


def dies_before(owner, name):
    def never(*_given, **_named):
        raise Killed

    return owner, name, never


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(dies_before(IntroLedger, "record"), id="paid, not noted"),
        pytest.param(dies_after(IntroLedger, "record"), id="noted, not judged"),
        pytest.param(dies_after(IntroLedger, "judge"), id="judged"),
        pytest.param(dies_after(IntroLedger, "keep_marks"), id="marks kept"),
        pytest.param(dies_after(ChangeLog, "_prepare"), id="prepared"),
        pytest.param(dies_after(ChangeLog, "_apply"), id="written, not settled"),
        pytest.param(dies_before(IntroWriter, "_settle"), id="settled, task open"),
    ],
)
@pytest.mark.parametrize("fault", [None, "invented_link"])
def test_a_killed_run_pays_and_writes_once(room_everywhere, monkeypatch, point, fault):
    house = room_everywhere(linked(RIVER, 4))
    if fault:
        house.upstream.faults.add("llm", fault)
    with monkeypatch.context() as patch:
        patch.setattr(*point)
        with pytest.raises(Killed):
            house.run()
    house.run()
    [change] = [change for change in house.changes() if change["state"] == "applied"]
    assert house.calls == (2 if fault else 1), "no answer was paid for twice"
    intros = house.intros()
    assert telling(intros, "state") == ([("refused",)] if fault else []) + [("written",)]
    assert intros[-1]["change_id"] == change["change_id"]
    assert all(intro["cost_usd"] > 0 for intro in intros)
    assert content_text(house.content(4)) == intros[-1]["intro_text"]
    assert house.library.state(4)["intro_locked"] is True
    [task] = house.library.tasks()
    assert task["open_key"] is None
    assert house.failed_guards() == {}
    marks = house.library.query(sa.select(house.library.tables.intro_mark))
    assert {mark["intro_id"] for mark in marks} == {intros[-1]["intro_id"]}
