"""The state table knows every video of the CMS, and learns what becomes of it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.pace import PLAN_TIERS
from douban_pipeline_tests.douban.chain.due.taking import taken
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import build_library, days_ago, unix, video

AGES = (1, 60, 300, 500, 3000)
"""Days, one for each tier."""


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(7), video(8, vod_douban_id=1292052)])


def next_syncs(library):
    return {vod_id: state["douban_next_sync_at"] for vod_id, state in library.states().items()}


def wait(library, vod_id):
    return library.state(vod_id)["douban_next_sync_at"] - library.clock.now()


def later(library, **parts):
    """Let time pass, in which all known videos were visited and are to be visited again in ten days."""
    library.clock.advance(**parts)
    library.execute(
        sa.update(library.tables.video).values(douban_next_sync_at=library.clock.now() + timedelta(days=10))
    )


def counts(report):
    return report.seen, report.new, report.changed, report.gone


class TestTheFirstTime:
    """Initialisation."""

    @pytest.fixture
    def library(self, shared_library):
        """Forty videos of each age, ids and ages mixed."""
        ages = [(position, age) for position in range(40) for age in AGES]
        videos = [
            video(vod_id, vod_time=days_ago(age + position / 100))
            for vod_id, (position, age) in enumerate(sorted(ages, key=lambda item: hash(item) % 997), start=1)
        ]
        return shared_library.renewed(videos, taken_in=False)

    def test_visits_are_spread_over_each_tiers_interval_the_recent_first(self, library):
        seen = []
        report = library.intake.initialise(progress=seen.append)
        assert counts(report) == (200, 200, 0, 0)
        assert report.by_tier == {tier.name: 40 for tier in PLAN_TIERS.members}
        assert seen == [200]
        states = library.states()
        for tier, age in zip(PLAN_TIERS.members, AGES, strict=True):
            ours = [state for state in states.values() if days_ago(age + 1) < state["vod_time"] <= days_ago(age)]
            ours.sort(key=lambda state: -state["vod_time"])
            visits = [state["douban_next_sync_at"] - START for state in ours]
            step = tier.interval / 40
            assert all(abs(visit - position * step) < timedelta(seconds=1) for position, visit in enumerate(visits)), (
                tier.name
            )

    def test_repeating_it_changes_nothing(self, library):
        library.intake.initialise()
        before = library.states()
        library.clock.advance(days=2)
        assert counts(library.intake.initialise()) == (200, 0, 0, 0)
        assert library.states() == before

    def test_what_was_cut_off_goes_on_and_ends_the_same(self, library):
        library.intake.initialise()
        whole = next_syncs(library)
        library.execute(sa.delete(library.tables.video))
        cms, batches = library.cms, []

        class CutOff(Cms):
            def stream(self, engine, columns, *, first=0, last=None, size=2000):
                for rows in super().stream(engine, columns, first=first, last=last, size=size if size > 2000 else 30):
                    if size <= 2000:
                        batches.append(len(rows))
                        if len(batches) == 3:
                            raise KeyboardInterrupt
                    yield rows

        broken = Intake(
            library.engine, library.tables, CutOff(cms.vod, cms.type, cms.widths, cms.utf8mb3), library.clock
        )
        with pytest.raises(KeyboardInterrupt):
            broken.initialise()
        assert len(library.states()) == 60
        report = library.intake.initialise()
        assert (report.seen, report.new) == (200, 140)
        assert next_syncs(library) == whole

    def test_a_small_library_may_be_due_at_once(self, library):
        library.intake.initialise(spread=False)
        assert set(next_syncs(library).values()) == {START}

    def test_it_reads_the_cms_and_writes_nothing_to_it(self, library):
        before = library.all_bytes()
        library.intake.initialise()
        assert library.all_bytes() == before


def test_an_id_in_the_cms_is_confirmed_and_none_is_not_found(library):
    plain, linked = library.state(7), library.state(8)
    assert (plain["douban_review_status"], plain["vod_douban_id"], plain["douban_id_source"]) == ("NOT_FOUND", 0, "")
    assert (linked["douban_review_status"], linked["vod_douban_id"]) == ("CONFIRMED", 1292052)
    assert (linked["douban_id_source"], linked["douban_id_locked"]) == ("cms", False)
    assert (linked["type_id"], linked["vod_time"], linked["shard"]) == (6, days_ago(10), 8)


@pytest.mark.parametrize("form", ["head", "classic"])
def test_either_form_of_the_cms_is_taken_in(database_url, form):
    videos = [video(1), video(2, vod_recycle_time=unix(START))]
    with build_library(database_url, videos, form=form, prefix="x_") as library:
        binned = library.state(2)["douban_next_sync_at"]
        assert binned is (None if form == "head" else binned)
        assert (binned is None) is (form == "head")
        assert library.state(1)["douban_next_sync_at"] == START


@pytest.mark.parametrize("vod_time", [days_ago(0), days_ago(3000), 0, days_ago(-400)])
def test_a_new_video_is_found_whatever_its_update_time(library, vod_time):
    later(library, minutes=5)
    library.add(video(9, vod_time=vod_time))
    assert library.intake.waiting() == 1
    assert counts(library.intake.changes())[:2] in ((1, 1), (2, 1))
    assert wait(library, 9) == timedelta(0)
    assert library.intake.waiting() == 0
    assert counts(library.intake.changes()) == (0, 0, 0, 0)


def test_a_new_episode_brings_the_next_visit_forward_but_never_back(library):
    later(library, days=1)
    updated = unix(library.clock.now())
    library.set_cms(7, vod_time=updated)
    assert library.intake.waiting() == 1
    assert counts(library.intake.changes()) == (1, 0, 1, 0)
    assert library.state(7)["vod_time"] == updated
    assert abs(wait(library, 7) - timedelta(days=3)) <= timedelta(days=0.3)
    library.set_state(7, douban_next_sync_at=library.clock.now() + timedelta(hours=1))
    library.set_cms(7, vod_time=updated + 60)
    library.intake.changes()
    assert wait(library, 7) == timedelta(hours=1)
    assert wait(library, 8) == timedelta(days=10)


def test_a_time_ahead_of_the_clock_hides_nobody_elses_update(library):
    later(library, days=1)
    library.set_cms(8, vod_time=days_ago(-3650))
    assert library.intake.changes().changed == 1
    library.set_cms(7, vod_time=unix(library.clock.now()))
    assert library.intake.changes().changed == 1
    assert library.intake.waiting() == 0


def test_a_look_at_changes_takes_no_more_than_its_limit(library):
    later(library, days=1)
    library.add(*(video(vod_id, vod_time=days_ago(5)) for vod_id in range(100, 130)))
    new = [library.intake.changes(limit=10).new for _ in range(4)]
    assert sum(new) == 30
    assert max(new) <= 20
    assert library.intake.waiting() == 0


@pytest.mark.parametrize("column", ["vod_name", "vod_sub", "vod_year", "vod_area", "vod_director", "vod_actor"])
def test_a_silent_edit_of_what_a_verdict_uses_makes_an_unlinked_video_due(library, column):
    later(library, days=1)
    for vod_id in (7, 8):
        library.set_cms(vod_id, **{column: "改"})
    assert library.intake.changes().changed == 0
    assert counts(library.intake.sweep(0, 1)) == (2, 0, 2, 0)
    assert wait(library, 7) == timedelta(0)
    assert wait(library, 8) == timedelta(days=10), "a linked video waits its turn"
    assert counts(library.intake.sweep(0, 1)) == (2, 0, 0, 0)


def test_an_edit_of_anything_else_makes_nobody_due(library):
    later(library, days=1)
    library.set_cms(7, vod_content="<p>改</p>", vod_remarks="更新至3集", vod_hits=9)
    assert library.intake.sweep(0, 1).changed == 0
    assert wait(library, 7) == timedelta(days=10)


def test_a_moved_category_is_noticed(library):
    later(library, days=1)
    for vod_id in (7, 8):
        library.set_cms(vod_id, type_id=24)
    library.intake.sweep(0, 1)
    assert [library.state(vod_id)["type_id"] for vod_id in (7, 8)] == [24, 24]
    assert [wait(library, vod_id) for vod_id in (7, 8)] == [timedelta(0)] * 2, "a linked one is checked, too"


@pytest.mark.parametrize(
    ("vod_id", "written", "status", "source", "reason"),
    [
        (7, 26752088, "CONFIRMED", "cms", "豆瓣 ID 在 CMS 中被修改"),
        (8, 26752088, "CONFIRMED", "cms", "豆瓣 ID 在 CMS 中被修改"),
        (8, 0, "REVIEW", "", "豆瓣 ID 1292052 在 CMS 后台被清空：不再自动关联它，请另选条目，或确认没有条目"),
    ],
)
def test_an_id_that_somebody_wrote_into_the_cms_is_taken_over(library, vod_id, written, status, source, reason):
    library.set_state(vod_id, douban_id_confidence=97.0, douban_id_source="auto")
    later(library, days=1)
    library.set_cms(vod_id, vod_douban_id=written)
    assert library.intake.sweep(0, 1).changed == 1
    state = library.state(vod_id)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (written, status)
    assert (state["douban_id_source"], state["douban_id_confidence"]) == (source, None)
    assert (state["douban_review_reason"], wait(library, vod_id)) == (reason, timedelta(0))


@pytest.mark.parametrize(
    ("written", "status", "source", "reason"),
    [
        (26752088, "REVIEW", "cms", "审核员选定的豆瓣 ID 1292052 在 CMS 中被改为 26752088"),
        (0, "REVIEW", "", "审核员选定的豆瓣 ID 1292052 在 CMS 中被清空"),
    ],
)
@pytest.mark.parametrize("chosen_by", ["decision", "source"])
def test_an_id_that_a_person_chose_is_not_given_up_for_another_form(
    library, chosen_by, written, status, source, reason
):
    library.set_state(8, douban_id_source="person" if chosen_by == "source" else "auto")
    if chosen_by == "decision":
        decide(library, 8, "set_id", 1292052, state="applied")
    later(library, days=1)
    library.set_cms(8, vod_douban_id=written)
    assert library.intake.sweep(0, 1).changed == 1
    state = library.state(8)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (written, status)
    assert (state["douban_id_source"], state["douban_id_confidence"]) == (source, None)
    assert (state["douban_review_reason"], wait(library, 8)) == (reason, timedelta(0))
    assert library.intake.sweep(0, 1).changed == 0


def test_a_choice_holds_however_often_the_id_is_changed(library):
    decide(library, 8, "replace_and_lock", 1292052, state="applied")
    decide(library, 7, "set_id", 1292052, state="refused")
    for written, status, source in ((5, "REVIEW", "cms"), (6, "REVIEW", "cms"), (1292052, "CONFIRMED", "person")):
        later(library, days=1)
        library.set_cms(8, vod_douban_id=written)
        library.set_cms(7, vod_douban_id=written)
        library.intake.sweep(0, 1)
        state = library.state(8)
        assert (state["douban_review_status"], state["douban_id_source"]) == (status, source)
        assert library.state(7)["douban_review_status"] == "CONFIRMED", "nobody chose for this one"
    assert state["douban_review_reason"] == "豆瓣 ID 在 CMS 中改回审核员选定的条目"


def test_a_locked_id_that_somebody_changed_is_reported_not_taken_over(library):
    library.set_state(8, douban_id_locked=True, douban_id_source="manual")
    later(library, days=1)
    before = library.state(8)
    library.set_cms(8, vod_douban_id=26752088)
    assert library.intake.sweep(0, 1).changed == 1
    reason = "锁定的豆瓣 ID 1292052 在 CMS 中被改为 26752088"
    assert library.state(8) == before | {"douban_review_reason": reason}
    assert library.intake.sweep(0, 1).changed == 0
    assert library.row(8)["vod_douban_id"] == 26752088


def test_an_ignored_video_stays_ignored_whatever_happens_to_it(library):
    library.set_state(7, douban_review_status="IGNORED", douban_next_sync_at=None)
    library.clock.advance(days=1)
    library.set_cms(7, vod_name="改", vod_douban_id=5, vod_time=unix(library.clock.now()))
    library.intake.changes()
    state = library.state(7)
    assert (state["douban_review_status"], state["douban_next_sync_at"]) == ("IGNORED", None)
    assert state["vod_time"] == unix(library.clock.now())


def test_a_binned_video_is_not_visited_and_a_restored_one_is_due(library):
    later(library, days=1)
    library.set_cms(7, vod_recycle_time=unix(library.clock.now()))
    assert library.intake.sweep(0, 1).changed == 1
    assert library.state(7)["douban_next_sync_at"] is None
    assert library.intake.sweep(0, 1).changed == 0
    library.set_cms(7, vod_recycle_time=0)
    assert library.intake.sweep(0, 1).changed == 1
    assert wait(library, 7) == timedelta(0)


def test_a_visit_is_never_written_before_the_last_one(library):
    # A run of another machine, whose clock is ahead, or one that ended since this look began.
    last = library.clock.now() + timedelta(minutes=3)
    library.set_state(7, douban_last_sync_at=last, douban_next_sync_at=last + timedelta(days=1))
    library.set_cms(7, vod_name="改过的片名")
    library.intake.sweep(0, 1)
    assert library.state(7)["douban_next_sync_at"] > last


def test_a_binned_video_is_neither_selected_nor_asked_for_before_a_sweep(library):
    later(library, days=11)
    library.set_cms(7, vod_recycle_time=unix(library.clock.now()))
    library.set_state(7, douban_next_sync_at=library.clock.now())
    assert taken(library) == []
    assert library.state(7)["douban_next_sync_at"] is None
    library.set_cms(7, vod_recycle_time=0)
    library.intake.sweep(0, 1)
    assert taken(library) == [7]


def test_a_restored_video_that_is_ignored_for_a_while_wakes_when_that_is_over(library):
    until = START + timedelta(days=30)
    library.set_state(7, douban_review_status="IGNORED", douban_ignore_until=until, douban_next_sync_at=until)
    library.set_cms(7, vod_recycle_time=1)
    library.intake.sweep(0, 1)
    assert library.state(7)["douban_next_sync_at"] is None
    library.set_cms(7, vod_recycle_time=0)
    library.intake.sweep(0, 1)
    assert library.state(7)["douban_next_sync_at"] == until


def test_a_deleted_video_is_not_visited_and_says_why(library):
    later(library, days=1)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    assert counts(library.intake.sweep(0, 1)) == (1, 0, 0, 1)
    state = library.state(7)
    assert (state["douban_next_sync_at"], state["douban_review_reason"]) == (None, "影片已从 CMS 中删除")
    assert counts(library.intake.sweep(0, 1)) == (1, 0, 0, 0)
    assert wait(library, 8) == timedelta(days=10)


@pytest.mark.parametrize("parts", [1, 3, 7, 64, 600])
def test_the_parts_of_a_sweep_cover_every_id_once(sqlite_url, parts):
    ids = [1, 2, 3, 64, 99, 100, 500]
    with build_library(sqlite_url, [video(vod_id) for vod_id in ids], taken_in=False) as library:
        library.add_states({"vod_id": 501})
        reports = [library.intake.sweep(part, parts) for part in range(parts)]
        assert [sum(numbers) for numbers in zip(*map(counts, reports), strict=True)] == [7, 7, 0, 1]
        with pytest.raises(ValueError, match="counted from 0"):
            library.intake.sweep(parts, parts)


def test_an_unreadable_cms_is_an_error_and_not_an_empty_library(library):
    later(library, days=1)
    before = library.states()

    class Unreadable(Cms):
        def stream(self, *arguments, **options):
            raise OperationalError("SELECT", {}, Exception("server has gone away"))

    cms = library.cms
    broken = Unreadable(cms.vod, cms.type, cms.widths, cms.utf8mb3)
    with pytest.raises(OperationalError):
        Intake(library.engine, library.tables, broken, library.clock).sweep(0, 1)
    assert library.states() == before


def test_a_state_that_a_run_writes_at_the_same_time_is_not_undone(library):
    """The intake must not write back what it read before a run linked the video."""
    later(library, days=1)
    library.set_cms(7, vod_time=unix(library.clock.now()))
    cms = library.cms

    class InterferingCms(Cms):
        def rows(self, connection, vod_ids):
            found = super().rows(connection, vod_ids)
            if not library.row(7)["vod_douban_id"]:
                library.set_cms(7, vod_douban_id=5)
                library.set_state(7, vod_douban_id=5, douban_review_status="CONFIRMED", douban_id_source="auto")
            return found

    overtaken = InterferingCms(cms.vod, cms.type, cms.widths, cms.utf8mb3)
    Intake(library.engine, library.tables, overtaken, library.clock).changes()
    state = library.state(7)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (5, "CONFIRMED")
    assert state["douban_id_source"] == "auto"


@pytest.mark.mariadb
def test_a_state_is_held_while_it_is_compared(mariadb_library):
    """SQLite lets one writer in at a time by itself."""
    refused = []
    with mariadb_library.renewed([video(7)]) as library:
        library.set_cms(7, vod_time=unix(START))
        cms = library.cms

        class InterferingCms(Cms):
            def rows(self, connection, vod_ids):
                with library.engine.connect() as other:
                    other.detach()  # its setting ends with it
                    other.exec_driver_sql("SET SESSION innodb_lock_wait_timeout = 1")
                    try:
                        other.exec_driver_sql("SELECT vod_id FROM mac_douban_video WHERE vod_id = 7 FOR UPDATE")
                        refused.append(0)
                    except OperationalError as error:
                        refused.append(error.orig.args[0])
                return super().rows(connection, vod_ids)

        overtaken = InterferingCms(cms.vod, cms.type, cms.widths, cms.utf8mb3)
        Intake(library.engine, library.tables, overtaken, library.clock).changes()
        assert library.state(7)["vod_time"] == unix(START)
    assert refused == [0, 1205], "somebody else could have written the state since"


def test_two_intakes_at_once_take_every_video_in_once(shared_library):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 301)], taken_in=False)
    barrier, reports = threading.Barrier(3), []

    def take_in():
        barrier.wait(timeout=30)
        reports.append(library.intake.initialise(spread=False))

    threads = [threading.Thread(target=take_in) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [report.seen for report in reports] == [300] * 3
    assert sorted(library.states()) == list(range(1, 301))
