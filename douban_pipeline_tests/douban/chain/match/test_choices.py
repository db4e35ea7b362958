"""What a person chose binds every automatic run: no other subject is linked, whoever changed the id in the CMS."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from douban_pipeline.douban.chain.match.rechecks import respect_choice
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.runs import STEPS, new_run_id
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of, telling

GUARD = "choices_of_people_stand"
SENTENCE = "审核员为这部影片选定了另一条目"


def chose(scenario, vod_id, douban_id, action="set_id"):
    """Note that a person chose a subject for a video, some time ago."""
    decide(scenario.library, vod_id, action, douban_id, state=DecisionState.APPLIED, pending_key=None)


@pytest.fixture
def blanked(stage):
    """A person chose another film for a video than its facts say; then the CMS's own form blanked the id."""
    scenario = stage([row_of(RIVER, 4)], FILMS, videos_at_once=1)
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now() + timedelta(days=1))
    chose(scenario, 4, TRAM["id"])
    scenario.library.set_state(4, vod_douban_id=TRAM["id"], douban_id_source="person", douban_review_status="CONFIRMED")
    scenario.library.intake.sweep(0, 1)
    return scenario


def test_an_id_that_was_blanked_is_not_filled_with_another(blanked):
    state = blanked.library.state(4)
    why = f"审核员选定的豆瓣 ID {TRAM['id']} 在 CMS 中被清空"
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("REVIEW", why)
    for _ in range(3):
        run = blanked.play()
        assert (run.success, run.failed_guards) == (True, set())
        blanked.clock.advance(days=100)
    assert blanked.cms(4, "vod_douban_id") == (0,)
    assert blanked.library.log() == []
    verdict = blanked.verdicts()[-1]
    assert (verdict["verdict"], verdict["reasons"]) == ("REVIEW", ["PERSON_CHOSE_OTHER"])
    reported = blanked.library.state(4)["douban_review_reason"]
    assert reported.startswith(f"审核员选定的是 {TRAM['id']}，CMS 中现为 空；《长河落日记事》")
    assert reported.endswith("审核员选定的是另一条目。")


@pytest.mark.parametrize("release", ["clear_id", "rematch", "unlock_id", "taken back"])
def test_a_choice_that_was_released_binds_nobody(blanked, release):
    if release == "taken back":
        blanked.library.execute("UPDATE mac_douban_decision SET state = 'reverted'")
    else:
        chose(blanked, 4, 0, release)
    assert blanked.play().success
    assert blanked.cms(4, "vod_douban_id") == (RIVER["id"],)


@pytest.mark.parametrize("subjects", [FILMS, ()])
def test_a_person_is_asked_even_where_nothing_is_found(stage, subjects):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_douban_id=WHALE["id"])], subjects)
    scenario.library.set_state(4, douban_review_status="REVIEW")
    chose(scenario, 4, TRAM["id"])
    assert scenario.play().success
    state = scenario.library.state(4)
    assert state["douban_review_status"] == "REVIEW"
    assert state["douban_review_reason"].startswith(f"审核员选定的是 {TRAM['id']}，CMS 中现为 {WHALE['id']}；")


@pytest.mark.parametrize(
    ("status", "chosen", "current_id", "expected"),
    [
        ("NOT_FOUND", None, 0, ("NOT_FOUND", "原因")),
        ("REVIEW", None, 7, ("REVIEW", "原因")),
        ("UNDECIDED", 9, 0, ("UNDECIDED", "原因")),
        ("CONFIRMED", 9, 0, ("CONFIRMED", "原因")),
        ("NOT_FOUND", 9, 0, ("REVIEW", "审核员选定的是 9，CMS 中现为 空；原因")),
        ("REVIEW", 9, 7, ("REVIEW", "审核员选定的是 9，CMS 中现为 7；原因")),
        ("NOT_FOUND", 9, 9, ("REVIEW", "原因")),
    ],
)
def test_what_a_verdict_says_in_view_of_a_choice(status, chosen, current_id, expected):
    assert respect_choice(status, "原因", chosen, current_id) == expected


def test_the_guard_stops_a_verdict_for_another_subject(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    run_id = new_run_id()
    chose(scenario, 4, TRAM["id"])
    chose(scenario, 5, WHALE["id"])
    scenario.plant_verdict(4, RIVER["id"], run_id=run_id)
    scenario.plant_verdict(5, WHALE["id"], run_id=run_id)
    before = scenario.library.all_bytes()
    run = scenario.run(4, 5, steps=STEPS[2:], run_id=run_id)
    assert (run.success, run.failed_guards) == (False, {GUARD})
    evaluation = run.guards[GUARD]
    assert (evaluation.severity, evaluation.blocking) == (dg.AssetCheckSeverity.ERROR, True)
    said = run.guard(GUARD)
    assert (said["violations"], said["shards"]) == (1, "04")
    assert SENTENCE in said["videos"]
    assert (scenario.library.all_bytes(), scenario.library.log()) == (before, [])
    # The next run takes it out of the way and judges anew.
    assert scenario.play().success
    assert telling(scenario.verdicts(4), "state")[0] == ("refused",)
    assert scenario.cms(4, "vod_douban_id") == (0,)


def test_the_writing_step_alone_refuses_it_too(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    chose(scenario, 4, TRAM["id"])
    scenario.plant_verdict(4, RIVER["id"])
    before = scenario.library.all_bytes()
    run = scenario.write_alone()
    assert run.success
    assert GUARD not in run.guards
    assert run.metadata("synced_fields")["refused"] == 1
    assert (scenario.library.all_bytes(), scenario.library.log()) == (before, [])
    assert telling(scenario.verdicts(), "state", "state_reason") == [("refused", SENTENCE)]


def test_a_decision_between_verdict_and_write_is_obeyed(stage):
    """The verdict was sound when it was reached; by the time it would be written a person had spoken."""
    scenario = stage([row_of(RIVER, 4)], FILMS)
    assert scenario.play(steps=STEPS[:3]).success
    chose(scenario, 4, TRAM["id"])
    run = scenario.play(steps=["synced_fields"])
    assert run.success
    assert scenario.cms(4, "vod_douban_id") == (0,)
    assert telling(scenario.verdicts(), "state", "state_reason") == [("refused", SENTENCE)]


@pytest.mark.parametrize("locked", [False, True])
def test_no_fields_are_synced_from_another_subject_than_the_one_chosen(stage, locked):
    """However the state came to say so: what a person locked afterwards is a person's word too."""
    scenario = stage([row_of(WHALE, 4, vod_douban_id=WHALE["id"])], FILMS)
    chose(scenario, 4, TRAM["id"])
    scenario.library.set_state(4, douban_id_locked=locked)
    before = scenario.library.all_bytes()
    metadata = scenario.play().metadata("synced_fields")
    assert (metadata["sent_to_review"], metadata["written"]) == ((0, 1) if locked else (1, 0))
    assert (scenario.library.all_bytes() == before) is not locked
    state = scenario.library.state(4)
    reason = "" if locked else f"审核员选定的是 {TRAM['id']}，现关联的却是 {WHALE['id']}"
    assert (state["douban_review_status"], state["douban_review_reason"]) == (
        "CONFIRMED" if locked else "REVIEW",
        reason,
    )
