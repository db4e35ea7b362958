"""The guards on intros: each fails once and says where, and passes once mended."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.cms.values import content_html
from douban_pipeline.douban.intros import checks
from douban_pipeline_tests.douban.intros.room import linked
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE


@pytest.fixture
def house(room_everywhere):
    """Videos 4 and 69 have intros that were just written; all is well."""
    written = room_everywhere(linked(RIVER, 4), linked(WHALE, 69))
    assert written.run()["written"] == 2
    assert written.failed_guards() == {}
    return written


def change_of(house, vod_id=4):
    [change] = [change for change in house.changes() if change["vod_id"] == vod_id]
    return change


def say(house, text):
    """Put another text into the CMS and have the log agree that it was written."""
    log, change = house.library.tables.log, change_of(house)
    content = content_html(text)
    values = {**change["new_values"], "vod_content": content}
    of_change = log.c.change_id == change["change_id"]
    house.library.execute(sa.update(log).where(of_change).values(new_values=values))
    house.library.set_cms(4, vod_content=content)


def forget_intro(house):
    intro = house.library.tables.intro
    house.library.execute(sa.update(intro).where(intro.c.vod_id == 4).values(change_id=None, state="preview"))


def claim_intro(house):
    intro = house.library.tables.intro
    house.library.execute(
        sa.update(intro).where(intro.c.vod_id == 4).values(change_id=change_of(house)["change_id"], state="written")
    )


def set_change(house, **values):
    log = house.library.tables.log
    of_change = log.c.change_id == change_of(house)["change_id"]
    house.library.execute(sa.update(log).where(of_change).values(**values))


CASES = [
    pytest.param(
        {"intros_pass_guard"},
        lambda house, text: say(house, text.replace("。", "，更多内容见www.example.com。", 1)),
        say,
        "写入的简介未通过核对",
        id="a link",
    ),
    pytest.param(
        {"intros_pass_guard"}, lambda house, text: say(house, "太短。"), say, "写入的简介未通过核对", id="too short"
    ),
    pytest.param(
        {"intros_logged"},
        lambda house, text: forget_intro(house),
        lambda house, text: claim_intro(house),
        "写入的简介没有生成记录",
        id="a change without an intro",
    ),
    pytest.param(
        {"intros_logged"},
        lambda house, text: set_change(house, state="refused"),
        lambda house, text: set_change(house, state="applied"),
        "没有对应的已生效变更",
        id="an intro without a change",
    ),
    pytest.param(
        {"locked_intros_untouched", "locked_untouched"},
        lambda house, text: set_change(house, state_old={**change_of(house)["state_old"], "intro_locked": True}),
        lambda house, text: set_change(house, state_old={**change_of(house)["state_old"], "intro_locked": False}),
        "改写了已锁定的简介",
        id="a lock that stood before",
    ),
]


@pytest.mark.parametrize(("failing", "plant", "mend", "sentence"), CASES)
def test_a_bad_intro_is_shown_until_it_is_mended(house, failing, plant, mend, sentence):
    [text] = [intro["intro_text"] for intro in house.intros(4)]
    plant(house, text)
    found = house.failed_guards()
    assert set(found) == failing
    for lines in found.values():
        assert len(lines) == 1
        assert lines[0].startswith("4 ")
        assert sentence in lines[0]
    mend(house, text)
    assert house.failed_guards() == {}


def test_two_intros_that_are_alike_are_the_later_ones_fault(house):
    [text] = [intro["intro_text"] for intro in house.intros(69)]
    intro, sheet = house.library.tables.intro, house.intros(69)[0]["fact_sheet"]
    house.library.execute(sa.update(intro).where(intro.c.vod_id == 4).values(fact_sheet=sheet))
    say(house, text)
    assert house.failed_guards() == {}, "the earlier one was there first"
    house.library.execute(sa.update(intro).where(intro.c.vod_id == 4).values(intro_id=99))
    mark = house.library.tables.intro_mark
    house.library.execute(sa.delete(mark).where(mark.c.intro_id == house.intros(4)[0]["intro_id"]))
    found = house.failed_guards(checks.checks)
    assert set(found) == {"intros_pass_guard"}
    assert found["intros_pass_guard"][0].startswith("4 ")


def test_a_name_that_became_known_only_afterwards_is_nobodys_fault(house):
    [intro] = house.intros(4)
    say(house, intro["intro_text"] + "白鹭飞远了。")
    house.clock.advance(minutes=1)
    person = house.library.tables.person
    assert house.library.services.people.remember(["白鹭飞"]) == 1
    assert house.failed_guards() == {}
    house.library.execute(sa.update(person).where(person.c.name == "白鹭飞").values(seen_at=intro["created_at"]))
    assert set(house.failed_guards()) == {"intros_pass_guard"}


def test_old_intros_are_no_longer_looked_at(house):
    say(house, "太短。")
    forget_intro(house)
    assert set(house.failed_guards(checks.checks)) == {"intros_logged"}
    claim_intro(house)
    assert set(house.failed_guards(checks.checks)) == {"intros_pass_guard"}
    house.clock.advance(minutes=61)
    assert house.failed_guards(checks.checks) == {}, "read back by the runs of an hour"
    forget_intro(house)
    assert set(house.failed_guards(checks.checks)) == {"intros_logged"}
    house.clock.advance(hours=24)
    assert house.failed_guards(checks.checks) == {}


def test_a_lock_that_an_intro_set_itself_is_no_breach_but_an_earlier_one_is(house):
    # The sync wrote the synopsis, the intro came and locked it, all within the window.
    log, now = house.library.tables.log, house.clock.now()
    row = {
        **change_of(house),
        "action": "sync",
        "state_old": {},
        "state_new": {},
        "applied_at": now - timedelta(hours=1),
    }
    del row["change_id"]
    house.library.execute(sa.insert(log).values(**row))
    assert "locked_untouched" not in house.failed_guards()
    house.library.execute(sa.update(log).where(log.c.action == "sync").values(applied_at=now + timedelta(seconds=1)))
    assert "locked_untouched" in house.failed_guards()
