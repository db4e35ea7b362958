"""An intro goes when its video gets another subject, whoever changed the link and whenever."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.intros.ledger import IntroLedger
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline_tests.douban.intros.room import linked, mark_synced
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE, telling

BEFORE = "<p>原有简介</p>"


@pytest.fixture
def house(room_everywhere):
    """Video 4 has an intro written from RIVER."""
    written = room_everywhere(linked(RIVER, 4))
    assert written.run()["written"] == 1
    return written


def change_in_cms(house, douban_id, **columns):
    """Change an id as the CMS's form does, and have it noticed."""
    house.clock.advance(minutes=5)
    house.library.set_cms(4, vod_douban_id=douban_id, vod_time=int(house.clock.now().timestamp()), **columns)
    assert house.library.intake.changes().changed == 1


@pytest.mark.parametrize("douban_id", [WHALE["id"], 0])
@pytest.mark.parametrize("switched_on", [True, False])
def test_an_id_that_was_changed_in_the_cms_takes_the_intro_along(house, douban_id, switched_on):
    change_in_cms(house, douban_id)
    assert house.under(ai_intros=switched_on).run()["withdrawn"] == 1
    assert house.content(4) == BEFORE
    assert telling(house.intros(), "state") == [("withdrawn",)]
    assert house.library.state(4)["intro_locked"] is False
    assert house.library.log()[-1]["operator"] == "cms"
    assert house.failed_guards() == {}
    assert house.run()["withdrawn"] == 0


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"vod_content": "站长写的", "vod_blurb": "站长写的"}, {}),
        ({"vod_lock": 1}, {}),
        ({}, {"douban_review_status": "REVIEW"}),
        ({}, {"intro_locked": False}),
    ],
    ids=["rewritten", "locked in the CMS", "a person is asked", "unlocked"],
)
def test_what_is_not_ours_to_take_back_stays(house, columns, state):
    change_in_cms(house, WHALE["id"], **columns)
    house.library.set_state(4, intro_ai_last_fail_at=house.clock.now(), **state)
    content = house.content(4)
    assert house.run()["withdrawn"] == 0
    assert house.content(4) == content != BEFORE


def test_a_dry_run_takes_nothing_back(house):
    change_in_cms(house, WHALE["id"])
    for switched_on in (True, False):
        house.under(dry_run=True, ai_intros=switched_on).run()
    assert telling(house.intros(), "state") == [("written",)]


def test_a_link_that_changes_in_the_very_moment_of_the_write_takes_the_intro_along(room_everywhere, monkeypatch):
    house = room_everywhere(linked(RIVER, 4))
    prepare = ChangeLog._prepare

    def overtaken(self, changes):
        if changes[0].action == "intro":
            house.library.set_cms(4, vod_douban_id=WHALE["id"])
            house.library.set_state(4, vod_douban_id=WHALE["id"])
        return prepare(self, changes)

    monkeypatch.setattr(ChangeLog, "_prepare", overtaken)
    metadata = house.run()
    assert (metadata["written"], metadata["withdrawn"]) == (1, 1)
    assert house.content(4) == BEFORE
    mark_synced(house.library, 4)
    assert house.failed_guards() == {}


@pytest.mark.parametrize(
    ("owner", "name"),
    [pytest.param(IntroLedger, "keep_marks", id="unprepared"), pytest.param(ChangeLog, "_prepare", id="prepared")],
)
def test_a_run_that_comes_too_late_with_the_text_of_another_leaves_the_intro_to_its_change(
    room_everywhere, monkeypatch, owner, name
):
    house = room_everywhere(linked(RIVER, 4))
    real, others = getattr(owner, name), []

    def overtaken(*given, **named):
        result = real(*given, **named)
        if not others:
            others.append(None)
            # It was silent for longer than a lease lasts, and another run did the work.
            house.clock.advance(minutes=16)
            others[0] = house.run(4)
        return result

    monkeypatch.setattr(owner, name, overtaken)
    metadata = house.run(4)
    assert (metadata["written"], others[0]["written"]) == (0, 1)
    [change] = [change for change in house.changes() if change["state"] == "applied"]
    assert telling(house.intros(), "state", "change_id") == [("written", change["change_id"])]
    assert house.failed_guards() == {}
    # So it goes with its link.
    change_in_cms(house, WHALE["id"])
    assert house.run()["withdrawn"] == 1
    assert house.content(4) == BEFORE
