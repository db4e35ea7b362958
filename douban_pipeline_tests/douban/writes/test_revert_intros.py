"""An intro is written from one subject: when the link to it is reverted, so is the intro, and nothing else."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import SYNC, Change
from douban_pipeline.douban.writes.revert import (
    BACK_WITH_ITS_LINK,
    FIELDS_WITH_THEIR_LINK,
    WITH_ITS_LINK,
    ChangeSelection,
    revert,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner, video

RIGHT, WRONG = 1292052, 1291546


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id) for vod_id in (7, 8)])


def write(library, change, run_id="run", batch_id="batch", **given):
    [outcome] = library.change_log(run_id, batch_id=batch_id, **given).write([change])
    assert outcome.state is ChangeState.APPLIED, outcome.reason
    return outcome.change_id


def link(library, vod_id=7, subject=WRONG, **given):
    """Link a video; its synopsis is synced with it."""
    row = library.row(vod_id)
    new = {"vod_douban_id": subject, "vod_content": f"条目{subject}的剧情"}
    state = {"vod_douban_id": subject, "douban_review_status": ReviewStatus.CONFIRMED, "douban_id_source": "auto"}
    return write(library, Change(vod_id, "link", {name: row[name] for name in new}, new, state, **given))


def planted(library, vod_id=7, subject=WRONG):
    """Put an intro that nothing was written from yet into its table; return its id."""
    key = {"vod_id": vod_id, "shard": vod_id, "douban_id": subject, "run_id": "run"}
    row = {**key, "state": "preview", "prompt_version": "intro-1", "fact_sheet_hash": "", "created_at": START}
    library.execute(sa.insert(library.tables.intro).values(row))
    return intros(library)[-1]["intro_id"]


def tell(library, vod_id=7, subject=WRONG, text="根据条目写的简介", **given):
    """Write an intro as the room of intros does; return the change."""
    intro_id = planted(library, vod_id, subject)
    now = library.clock.now()
    state = {"intro_locked": True, "intro_lock_time": now, "intro_ai_source": "模型", "intro_ai_last_at": now}
    found = library.row(vod_id)
    new = {"vod_content": text, "vod_blurb": text}
    old = {name: found[name] for name in new}
    return write(library, Change(vod_id, "intro", old, new, state, intro_id=intro_id, **given), batch_id="intros")


def intros(library):
    return library.query(sa.select(library.tables.intro).order_by(library.tables.intro.c.intro_id))


def states(library):
    return [intro["state"] for intro in intros(library)]


def revert_writes(library, *change_ids, dry_run=False, log=None, **selection):
    log = log or library.change_log("undo", batch_id="undo")
    return revert(log, ChangeSelection(change_ids, **selection), operator="王", reason="认错了", dry_run=dry_run)


def test_an_intros_row_follows_its_change(library):
    reported = tell(library)
    [intro] = intros(library)
    assert (intro["state"], intro["change_id"], intro["reason"]) == ("written", reported, "")
    revert_writes(library, reported)
    assert states(library) == ["withdrawn"]
    revert_writes(library, batch_id="undo")
    assert states(library) == ["written"]


@pytest.mark.parametrize(("dies", "state"), [("_settle", "written"), ("_apply", "preview")])
def test_what_a_dead_run_left_of_an_intro_is_mended(library, dies, state):
    class Dying(ChangeLog):
        pass

    def die(*_):
        raise KeyboardInterrupt

    setattr(Dying, dies, die)
    with pytest.raises(KeyboardInterrupt):
        tell_with(library, Dying)
    assert states(library) == ["preview"]
    library.change_log("next").reconcile()
    assert states(library) == [state]
    assert library.state(7)["intro_locked"] is (state == "written")


def tell_with(library, kind):
    intro_id = planted(library)
    old = {"vod_content": library.row(7)["vod_content"]}
    change = Change(7, "intro", old, {"vod_content": "新"}, {"intro_locked": True}, intro_id=intro_id)
    library.change_log(kind=kind, owner=dead_owner()).write([change])


def test_what_a_run_of_another_machine_wrote_before_it_died_stays_the_intros_change(library):
    class Dying(ChangeLog):
        def _settle(self, *_):
            raise KeyboardInterrupt

    intro_id = planted(library)
    old = {"vod_content": library.row(7)["vod_content"]}
    state = {"intro_locked": True, "intro_lock_time": START}
    change = Change(7, "intro", old, {"vod_content": "新"}, state, intro_id=intro_id)
    with pytest.raises(KeyboardInterrupt):
        library.change_log(kind=Dying, owner="run@elsewhere:1").write([change])
    # Whether it is alive cannot be known yet; the run that has the task by now writes the same text from the archive.
    [outcome] = library.change_log("next").write([change])
    assert outcome.state is ChangeState.REFUSED
    library.clock.advance(hours=2)
    library.change_log("next").reconcile()
    first, second = library.log()
    assert (first["state"], second["state"]) == ("applied", "refused")
    [intro] = intros(library)
    assert (intro["state"], intro["change_id"]) == ("written", first["change_id"])


def test_of_two_changes_with_one_text_the_one_that_wrote_it_stays_noted(library):
    intro_id = planted(library)
    old = {"vod_content": library.row(7)["vod_content"]}
    change = Change(7, "intro", old, {"vod_content": "新"}, {}, intro_id=intro_id)

    class Overtaken(ChangeLog):
        def _apply(self, change, change_id):
            [outcome] = library.change_log("other").write([change])
            assert outcome.state is ChangeState.APPLIED
            return super()._apply(change, change_id)

    [late] = library.change_log(kind=Overtaken).write([change])
    assert late.state is ChangeState.REFUSED
    applied = [row["change_id"] for row in library.log() if row["state"] == "applied"]
    assert [(row["state"], row["change_id"]) for row in intros(library)] == [("written", *applied)]


@pytest.mark.parametrize("dry_run", [True, False])
def test_with_the_link_goes_the_intro(library, dry_run):
    before, state = library.all_bytes(), library.state(7)
    linked = link(library)
    library.clock.advance(hours=1)
    reported = tell(library)
    written = library.all_bytes()
    library.clock.advance(hours=1)
    undone = revert_writes(library, linked, dry_run=dry_run)
    assert [(item.change_id, sorted(item.restored), item.skipped, item.reason) for item in undone] == [
        (reported, ["vod_blurb", "vod_content"], (), WITH_ITS_LINK),
        (linked, ["vod_content", "vod_douban_id"], (), ""),
    ]
    if dry_run:
        assert (library.all_bytes(), states(library)) == (written, ["written"])
        return
    assert (library.all_bytes(), states(library)) == (before, ["withdrawn"])
    after = library.state(7)
    for name in ("intro_locked", "intro_lock_time", "intro_ai_source", "vod_douban_id"):
        assert after[name] == state[name]
    assert after["douban_review_status"] == "REVIEW"
    assert after["intro_ai_last_at"] == START.replace(hour=5), "not written anew at once"
    assert {change["batch_id"] for change in library.log() if change["action"] == "revert"} == {"undo"}
    # And back again, as it was.
    revert_writes(library, batch_id="undo")
    assert (library.all_bytes(), states(library)) == (written, ["written"])
    assert library.state(7)["intro_locked"] is True


@pytest.mark.parametrize("dry_run", [True, False])
def test_with_the_link_go_the_fields_that_were_synced_under_it(library, dry_run):
    synced_before = sync(library, vod_writer="先前")
    before = library.all_bytes()
    linked = link(library)
    library.clock.advance(days=3)
    synced = sync(library, vod_actor="别的条目的主演")
    undone = revert_writes(library, linked, dry_run=dry_run)
    assert [(item.change_id, item.reason) for item in undone] == [(synced, FIELDS_WITH_THEIR_LINK), (linked, "")]
    assert (library.all_bytes() == before) is not dry_run
    assert synced_before not in {item.change_id for item in undone}


def sync(library, **new):
    """Write fields as a later sync does."""
    row = library.row(7)
    return write(library, Change(7, SYNC, {name: row[name] for name in new}, new, {}), batch_id="sync")


def test_an_intro_that_a_person_ordered_goes_with_the_link_too(library):
    before = library.all_bytes()
    linked = link(library)
    first = tell(library)
    second = tell(library, text="重写的简介", operator="李", automatic=False)
    undone = revert_writes(library, linked)
    assert [item.change_id for item in undone] == [second, first, linked]
    assert (library.all_bytes(), states(library)) == (before, ["withdrawn", "withdrawn"])
    assert library.state(7)["intro_locked"] is False


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda library: library.set_cms(7, vod_content="站长写的"), "之后已被改动"),
        (lambda library: library.set_state(7, douban_id_locked=True), "之后已被锁定"),
    ],
)
def test_a_link_that_stays_keeps_its_intro(library, act, why):
    linked = link(library)
    reported = tell(library)
    act(library)
    undone = {item.change_id: item for item in revert_writes(library, linked)}
    if why == "之后已被锁定":
        assert set(undone) == {linked}
        assert (library.row(7)["vod_content"], states(library)) == ("根据条目写的简介", ["written"])
    else:
        assert (undone[reported].restored, undone[reported].skipped) == (("vod_blurb",), ("vod_content",))
        assert undone[reported].reason == why
        assert (library.row(7)["vod_content"], states(library)) == ("站长写的", ["written"])
        assert library.state(7)["intro_locked"] is True, "what the site wrote over it stays protected"


def test_an_intro_of_another_subject_stays(library):
    linked = link(library)
    write(
        library,
        Change(
            7,
            "set_id",
            {"vod_douban_id": WRONG},
            {"vod_douban_id": RIGHT},
            {"vod_douban_id": RIGHT},
            operator="李",
            automatic=False,
        ),
    )
    tell(library, subject=RIGHT)
    revert_writes(library, linked)
    assert (library.row(7)["vod_douban_id"], library.row(7)["vod_content"]) == (RIGHT, "根据条目写的简介")
    assert states(library) == ["written"]


def test_an_intro_that_changes_at_the_last_moment_is_left_and_listed(library):
    linked = link(library)
    reported = tell(library)

    class Overtaken(ChangeLog):
        def _apply(self, change, own_id):
            library.set_cms(7, vod_blurb="站长改的")
            return super()._apply(change, own_id)

    undone = revert_writes(library, linked, log=library.change_log("undo", kind=Overtaken))
    assert (undone[0].change_id, undone[0].restored) == (reported, ())
    assert "vod_blurb" in undone[0].reason
    assert (library.row(7)["vod_content"], states(library)) == ("根据条目写的简介", ["written"])


def clear(library, vod_id=7, batch_id="deciding"):
    """Clear the id as a decision does, in the batch in which the intro is then taken back."""
    subject = library.row(vod_id)["vod_douban_id"]
    log = library.change_log("deciding", batch_id=batch_id)
    change = Change(
        vod_id,
        "clear_id",
        {"vod_douban_id": subject},
        {"vod_douban_id": 0},
        {"vod_douban_id": 0},
        operator="李",
        automatic=False,
    )
    [outcome] = log.write([change])
    reported = [intro["change_id"] for intro in intros(library) if intro["state"] == "written"]
    if reported:
        revert(log, ChangeSelection(tuple(reported)), operator="李", reason=WITH_ITS_LINK, dry_run=False, decision_id=5)
    return outcome.change_id


@pytest.mark.parametrize("dry_run", [True, False])
def test_with_a_link_that_comes_back_comes_its_intro(library, dry_run):
    link(library)
    reported = tell(library)
    written, state = library.all_bytes(), library.state(7)
    cleared = clear(library)
    withdrawn = library.log()[-1]
    assert (states(library), withdrawn["decision_id"]) == (["withdrawn"], 5)
    undone = revert_writes(library, cleared, dry_run=dry_run)
    assert [(item.change_id, item.skipped, item.reason) for item in undone] == [
        (withdrawn["change_id"], (), BACK_WITH_ITS_LINK),
        (cleared, (), ""),
    ]
    if not dry_run:
        assert (library.all_bytes(), states(library)) == (written, ["written"])
        assert library.state(7)["intro_locked"] is True
        assert library.state(7)["vod_douban_id"] == state["vod_douban_id"]
        assert {row["change_id"]: row["state"] for row in library.log()}[reported] == "applied"


def test_an_intro_that_was_taken_back_for_itself_stays_so_when_the_link_comes_back(library):
    link(library)
    reported = tell(library)
    revert_writes(library, reported, log=library.change_log("before", batch_id="before"))
    cleared = clear(library)
    assert [item.change_id for item in revert_writes(library, cleared)] == [cleared]
    assert states(library) == ["withdrawn"]


def test_a_text_that_somebody_wrote_during_the_run_stays_when_the_link_comes_back(library):
    link(library)
    tell(library)
    cleared = clear(library)
    library.set_cms(7, vod_content="站长写的", vod_blurb="站长写的")
    undone = revert_writes(library, cleared)
    assert [(item.restored, item.reason) for item in undone] == [((), "之后已被改动"), (("vod_douban_id",), "")]
    assert (library.row(7)["vod_content"], states(library)) == ("站长写的", ["withdrawn"])
    assert library.state(7)["intro_locked"] is False


@pytest.mark.parametrize(
    ("chosen", "taken"),
    [
        ({"intro_model": "甲"}, {7}),
        ({"intro_prompt": "intro-1"}, {7, 8}),
        ({"intro_reader": "reading-4 乙"}, {8}),
        ({"intro_reader": "reading-4"}, {7, 8}),
        ({"intro_reader": "reading"}, set()),
        ({"intro_model": "甲", "intro_reader": "reading-4 乙"}, set()),
    ],
)
def test_all_intros_of_a_model_a_prompt_or_a_reader_are_taken_back_at_once(library, chosen, taken):
    intro = library.tables.intro
    for vod_id, model in ((7, "甲"), (8, "乙")):
        link(library, vod_id, RIGHT)
        tell(library, vod_id, RIGHT)
        origin = {"model": model, "reader": f"reading-4 {model}"}
        library.execute(sa.update(intro).where(intro.c.vod_id == vod_id).values(**origin))
    selection = ChangeSelection(**chosen)
    results = revert(library.change_log("undo"), selection, operator="小王", reason="模型不可信", dry_run=False)
    assert {result.vod_id for result in results} == taken
    for vod_id in (7, 8):
        written = library.row(vod_id)["vod_content"] == "根据条目写的简介"
        assert written is (vod_id not in taken)
        assert library.row(vod_id)["vod_douban_id"] == RIGHT, "the link stays"
