"""What others wrote over our writes is found, and sorted by who it looks like; locks are kept watch over for good."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.undo.drift import WINDOW, DriftCause, DriftKind, drifts
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.harness.fixtures.library import unix, video


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id, vod_content="旧简介") for vod_id in (7, 8, 9)])


def write(library, vod_id=7, state=None, *, action="sync", **new):
    """Write columns as automation or, by the action of a decision, a person does; return the change."""
    row = library.row(vod_id)
    old = {name: row[name] for name in new}
    by = {} if action in ("sync", "link", "intro", "restore") else {"operator": "李", "automatic": False}
    [outcome] = library.change_log("run").write([Change(vod_id, action, old, new, state or {}, **by)])
    assert outcome.state is ChangeState.APPLIED, outcome.reason
    return outcome.change_id


def link(library, vod_id=7, douban_id=1292052, **state):
    return write(library, vod_id, {"vod_douban_id": douban_id, **state}, action="link", vod_douban_id=douban_id)


def lock_id(library, vod_id=7):
    state = {"douban_id_locked": True, "douban_id_lock_time": library.clock.now()}
    return write(library, vod_id, state, action="lock_id")


def lock_intro(library, vod_id=7):
    row = library.row(vod_id)
    state = {"intro_locked": True, "intro_lock_time": library.clock.now()}
    noted = {name: row[name] for name in ("vod_content", "vod_blurb")}
    return write(library, vod_id, state, action="lock_intro", **noted)


def save(library, vod_id=7, **values):
    """Change a row as the CMS does: it bumps ``vod_time``."""
    library.clock.advance(minutes=1)
    library.set_cms(vod_id, vod_time=unix(library.clock.now()), **values)


def found(library):
    return [drift for look in drifts(library.services) for drift in look.found]


def reported(library):
    return [(drift.vod_id, drift.column, drift.kind, drift.looks) for drift in found(library)]


def test_nothing_differs_before_anybody_edits(library):
    link(library, douban_review_status="CONFIRMED")
    lock_id(library)
    write(library, 8, vod_year="1999")
    lock_intro(library, 9)
    looks = list(drifts(library.services))
    assert [(look.videos, look.unsure, look.found) for look in looks] == [(3, 0, ())]


@pytest.mark.parametrize(
    ("change", "kind", "looks"),
    [
        pytest.param(
            lambda lib: save(lib, vod_year="2024"), DriftKind.PUT_BACK, DriftCause.STALE_FORM, id="a stale form"
        ),
        pytest.param(lambda lib: save(lib, vod_year="2001"), DriftKind.EDITED, DriftCause.SAVED, id="a collector"),
        pytest.param(
            lambda lib: lib.set_cms(7, vod_year="2001"), DriftKind.EDITED, DriftCause.PROGRAM, id="another program"
        ),
        pytest.param(
            lambda lib: lib.set_cms(7, vod_year="2024"),
            DriftKind.PUT_BACK,
            DriftCause.PROGRAM,
            id="a program puts it back",
        ),
    ],
)
def test_who_it_looks_like(library, change, kind, looks):
    change_id = write(library, vod_year="1994")
    at = library.clock.now()
    change(library)
    [drift] = found(library)
    assert (drift.vod_id, drift.title, drift.column, drift.kind, drift.looks) == (7, "影片7", "vod_year", kind, looks)
    assert (drift.written, drift.current) == ("1994", library.row(7)["vod_year"])
    assert drift.change is not None
    assert (drift.change.change_id, drift.change.action, drift.change.operator) == (change_id, "sync", "pipeline")
    assert (drift.at, drift.held) == (at, "")


class TestAnnotations:
    """What the CMS's AI annotations write when they are adopted: tags and blurb, and no `vod_time`."""

    TEXT = "老人与少年沿河而下。他们相依为命。"

    @pytest.mark.parametrize("state", [{}, {"intro_locked": True}])
    def test_a_blurb_of_others_over_ours_is_said_with_the_synopsis(self, library, state):
        write(library, state=state, vod_content=self.TEXT, vod_blurb=self.TEXT[:10], vod_tag="河流,少年")
        assert reported(library) == []
        library.set_cms(7, vod_blurb="机器写的摘要", vod_tag="机器")
        blurb, tag = found(library)
        assert blurb.kind is (DriftKind.LOCKED if state else DriftKind.APART)
        assert (blurb.column, blurb.looks, blurb.apart) == ("vod_blurb", DriftCause.ANNOTATED, True)
        assert (blurb.written, blurb.current) == (self.TEXT[:10], "机器写的摘要")
        assert (tag.column, tag.kind, tag.looks) == ("vod_tag", DriftKind.EDITED, DriftCause.ANNOTATED)
        library.set_cms(7, vod_content="站长写的", vod_blurb="站长写的")
        assert not any(drift.apart for drift in found(library)), "the synopsis is not ours any more"

    def test_a_blurb_that_was_never_ours_is_said_with_the_synopsis_that_is(self, library):
        library.set_cms(7, vod_blurb="机器写的摘要")
        change_id = write(library, vod_content=self.TEXT)
        [drift] = found(library)
        assert (drift.column, drift.kind, drift.looks) == ("vod_blurb", DriftKind.APART, DriftCause.UNKNOWN)
        assert (drift.written, drift.current, drift.change.change_id) == (self.TEXT, "机器写的摘要", change_id)

    @pytest.mark.parametrize(
        "blurb",
        [
            "",
            "老人与少年沿河而下。",
            "老人与少年沿河而下。 他们相依…",
            "<p>老人与少年",
            "老人与少年沿河而下。他们&nbsp;相依",
        ],
    )
    def test_a_beginning_is_one_whoever_cut_it(self, library, blurb):
        write(library, vod_content="<p>老人与少年沿河而下。</p><p>他们相依为命。</p>")
        library.set_cms(7, vod_blurb=blurb)
        assert reported(library) == []

    def test_a_synopsis_that_was_put_back_or_locked_is_the_sites_own(self, library):
        library.set_cms(8, vod_blurb="别的摘要")
        lock_intro(library, 8)
        library.set_cms(7, vod_blurb="别的摘要")
        change_id = write(library, vod_content=self.TEXT)
        undo = Change(
            7,
            "revert",
            {"vod_content": self.TEXT},
            {"vod_content": "旧简介"},
            operator="王",
            reverts_change_id=change_id,
        )
        [outcome] = library.change_log("undo").write([undo])
        assert outcome.state is ChangeState.APPLIED
        assert reported(library) == []


def test_an_older_form_restores_the_value_before_an_earlier_write(library):
    write(library, vod_year="1994")
    write(library, vod_year="1995")
    save(library, vod_year="2024")
    assert reported(library) == [(7, "vod_year", DriftKind.PUT_BACK, DriftCause.STALE_FORM)]


def test_an_id_is_always_grave(library):
    link(library)
    save(library, vod_douban_id=26752088)
    assert reported(library) == [(7, "vod_douban_id", DriftKind.ID, DriftCause.SAVED)]
    library.set_state(7, vod_douban_id=26752088, douban_id_source="cms")
    assert reported(library) == [(7, "vod_douban_id", DriftKind.ID, DriftCause.SAVED)], "taken in is not agreed to"
    library.set_state(7, douban_id_source="person")
    assert reported(library) == [], "a person chose what is there now"


def test_the_newest_write_of_each_column_counts_whatever_became_of_it(library):
    first = write(library, vod_year="1994", vod_lang="国语")
    library.set_cms(7, vod_lang="英语")
    log = library.change_log("undo")
    old = {"vod_year": "1994"}
    [undone] = log.write(
        [Change(7, "revert", old, {"vod_year": "2024"}, operator="王", automatic=False, reverts_change_id=first)]
    )
    # Taken back in part: of the year the revert is the last word, of the language still the first change.
    [drift] = found(library)
    assert (drift.column, drift.change.change_id) == ("vod_lang", first)
    library.set_cms(7, vod_year="1994")
    year = {drift.column: drift for drift in found(library)}["vod_year"]
    assert (year.kind, year.written, year.change.change_id) == (DriftKind.PUT_BACK, "2024", undone.change_id)


@pytest.mark.parametrize("state", ["refused", "abandoned"])
def test_what_was_never_written_is_no_measure(library, state):
    write(library, vod_year="1994")
    change_id = write(library, vod_year="1995")
    log = library.tables.log
    library.execute(log.update().where(log.c.change_id == change_id).values(state=state))
    library.set_cms(7, vod_year="1994")
    assert reported(library) == []


@pytest.mark.parametrize("state", ["prepared", "conflict"])
def test_what_nobody_is_sure_of_is_counted_and_not_reported(library, state):
    change_id = write(library, vod_year="1994", vod_lang="国语")
    log = library.tables.log
    library.execute(log.update().where(log.c.change_id == change_id).values(state=state))
    write(library, vod_area="美国")
    library.set_cms(7, vod_year="2001", vod_lang="英语", vod_area="法国")
    [look] = drifts(library.services)
    assert (look.unsure, [drift.column for drift in look.found]) == (2, ["vod_area"])
    write(library, vod_year="1996")
    [look] = drifts(library.services)
    assert look.unsure == 1, "a later write that is applied is sure again"


@pytest.mark.parametrize("locked", [False, True])
def test_columns_that_are_not_locked_are_followed_for_a_time(library, locked):
    state = {"intro_locked": locked, "intro_lock_time": library.clock.now() if locked else None}
    write(library, state=state, action="intro", vod_year="1994", vod_content="新")
    library.clock.advance(seconds=WINDOW.total_seconds() - 1)
    library.set_cms(7, vod_year="2001")
    assert len(reported(library)) == 1
    library.clock.advance(seconds=2)
    assert reported(library) == []


def test_locks_are_kept_watch_over_however_old_they_are(library):
    link(library)
    lock_id(library)
    lock_intro(library)
    library.clock.advance(days=400)
    assert reported(library) == []
    library.set_cms(7, vod_douban_id=0, vod_content="别的")
    assert reported(library) == [
        (7, "vod_content", DriftKind.LOCKED, DriftCause.PROGRAM),
        (7, "vod_douban_id", DriftKind.LOCKED, DriftCause.PROGRAM),
    ]
    content, douban_id = found(library)
    assert (content.written, content.current, content.change.action) == ("旧简介", "别的", "lock_intro")
    assert (douban_id.written, douban_id.current, douban_id.change.action) == (1292052, 0, "link")
    save(library)
    assert [drift.looks for drift in found(library)] == [DriftCause.SAVED, DriftCause.STALE_FORM]


@pytest.mark.parametrize(
    ("back", "looks"),
    [({}, DriftCause.SAVED), ({"vod_year": "2024"}, DriftCause.STALE_FORM)],
    ids=["the id alone", "all that was written"],
)
@pytest.mark.parametrize("lock", [link, lambda lib: (link(lib), lock_id(lib))], ids=["free", "locked"])
def test_an_id_cleared_alone_is_no_stale_form(library, lock, back, looks):
    lock(library)
    write(library, vod_year="2001")
    save(library, vod_douban_id=0, **back)
    assert [drift.looks for drift in found(library) if drift.column == "vod_douban_id"] == [looks]


def test_an_id_that_came_with_the_row_and_was_locked(library):
    library.set_cms(7, vod_douban_id=5)
    library.set_state(7, vod_douban_id=5, douban_id_source="cms")
    lock_id(library)
    locked_at = library.clock.now()
    save(library, vod_douban_id=6)
    [drift] = found(library)
    assert (drift.kind, drift.written, drift.current, drift.change, drift.at) == (
        DriftKind.LOCKED,
        5,
        6,
        None,
        locked_at,
    )
    assert drift.looks is DriftCause.SAVED


def test_a_text_that_was_locked_without_being_noted_is_not_judged(library):
    write(library, vod_content="我们写的")
    library.set_cms(7, vod_content="站长改的")
    library.clock.advance(hours=1)
    library.set_state(7, intro_locked=True, intro_lock_time=library.clock.now())
    assert reported(library) == []


def test_a_lock_that_was_taken_off_binds_no_more(library):
    lock_intro(library)
    write(library, state={"intro_locked": False, "intro_lock_time": None}, action="unlock_intro")
    library.set_cms(7, vod_content="站长改的")
    assert reported(library) == []


def test_an_intro_is_locked_by_its_writing(library):
    state = {"intro_locked": True, "intro_lock_time": library.clock.now()}
    change_id = write(library, state=state, action="intro", vod_content="机器写的", vod_blurb="机器")
    library.clock.advance(days=100)
    save(library, vod_content="旧简介")
    [drift] = found(library)
    assert (drift.column, drift.kind, drift.looks) == ("vod_content", DriftKind.LOCKED, DriftCause.STALE_FORM)
    assert drift.change.change_id == change_id


def test_deleted_and_recycled_videos_are_left_out(library):
    for vod_id in (7, 8):
        write(library, vod_id, vod_year="1994")
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    library.set_cms(8, vod_year="2001", vod_recycle_time=1)
    [look] = drifts(library.services)
    assert (look.videos, look.found) == (0, ())


@pytest.mark.parametrize(
    ("hold", "why"),
    [
        (lambda lib: lib.set_cms(7, vod_lock=1), "影片已在 CMS 中锁定（vod_lock）"),
        (lambda lib: lib.set_state(7, douban_review_status="IGNORED"), "影片已被忽略"),
        (lambda lib: None, ""),
    ],
)
def test_why_a_locked_value_is_not_to_be_restored(library, hold, why):
    link(library)
    lock_id(library)
    library.set_cms(7, vod_douban_id=0)
    hold(library)
    assert [drift.held for drift in found(library)] == [why]


def test_many_videos_are_looked_at_in_pieces(shared_library, monkeypatch):
    monkeypatch.setattr("douban_pipeline.douban.undo.drift._CHUNK", 2)
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 12)])
    for vod_id in range(1, 10):
        write(library, vod_id, vod_year="1994")
    lock_id(library, 3)
    lock_id(library, 11)
    library.set_cms(5, vod_year="2001")
    library.set_cms(9, vod_year="2001")
    looks = list(drifts(library.services))
    assert [look.videos for look in looks] == [2, 2, 2, 2, 2]
    assert [drift.vod_id for look in looks for drift in look.found] == [5, 9]


def test_a_window_begins_with_its_first_change(library):
    write(library, 7, vod_year="1994")
    library.clock.advance(seconds=(WINDOW + timedelta(days=1)).total_seconds())
    write(library, 8, vod_year="1994")
    library.set_cms(7, vod_year="2001")
    library.set_cms(8, vod_year="2001")
    assert [drift.vod_id for drift in found(library)] == [8]
