"""The table of intros: what a day cost by the site's clock, which texts are near, what was only shown."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from douban_pipeline.core.llm import ModelUsage
from douban_pipeline.douban.intros.factguard import Violation
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.ledger import IntroCosts, IntroLedger, Occasion, costs_of
from douban_pipeline_tests.harness.fixtures.clocks import START

SHEET = FactSheet("长河落日记事", 2021, genres=("剧情",))
USAGE = ModelUsage("m" * 200, "p" * 100, 0.25, 700, 300)


def ledger_of(library, zone="Asia/Shanghai"):
    return IntroLedger(library.engine, library.tables, library.clock, ZoneInfo(zone))


def record(ledger, vod_id=4, text="一段简介", **given):
    """Note an answer that passed the guard, unless it is ``refused``."""
    refused = given.pop("refused", ())
    occasion = Occasion(vod_id, 90_000_101, given.pop("run_id", "run"), given.pop("task_id", None))
    intro_id = ledger.record(occasion, SHEET, USAGE, text=text, **given)
    ledger.judge(intro_id, text, refused)
    return intro_id


def write(library, intro_id, state="written"):
    intro = library.tables.intro
    library.execute(sa.update(intro).where(intro.c.intro_id == intro_id).values(state=state))


def test_an_answer_counts_before_anybody_has_read_it(library):
    ledger = ledger_of(library)
    ledger.record(Occasion(4, 90_000_101, "run"), SHEET, USAGE, text="一段简介", snapshot_id=3)
    [row] = ledger.of_run("run")
    assert (row["state"], row["reason"], row["violations"]) == ("failed", "尚未核对", None)
    assert ledger.spent_today() == 0.25
    assert ledger.previewed(4, SHEET) is None


def test_an_answer_is_noted_once_with_its_last_judgement(library):
    ledger = ledger_of(library)
    first = record(ledger, snapshot_id=7)
    again = record(ledger, snapshot_id=7, refused=[Violation("near_copy", "太像")])
    assert again == first
    assert record(ledger, vod_id=5, snapshot_id=7) != first
    [row, _] = ledger.of_run("run")
    assert (row["state"], row["reason"], row["violations"]) == (
        "refused",
        "太像",
        [{"code": "near_copy", "text": "太像"}],
    )
    assert (len(row["model"]), len(row["provider"])) == (128, 64)
    assert FactSheet.from_payload(row["fact_sheet"]) == SHEET
    assert costs_of(ledger.of_run("run")) == IntroCosts(2, 0.5, 2000)
    assert ledger.of_run("other") == []


@pytest.mark.parametrize("refused", [(), [Violation("near_copy", "太像")]])
def test_a_text_that_was_written_since_is_not_judged_again(library, refused):
    ledger = ledger_of(library)
    intro_id = record(ledger, snapshot_id=7)
    write(library, intro_id)
    record(ledger, snapshot_id=7, refused=refused)
    ledger.refuse(intro_id, "影片已被忽略")
    [row] = ledger.of_run("run")
    assert row["state"] == "written"


def test_only_written_intros_of_other_videos_are_near(library):
    ledger = ledger_of(library)
    texts = {4: "甲", 5: "乙", 6: "丙", 7: "丁"}
    ids = {vod_id: record(ledger, vod_id, text) for vod_id, text in texts.items()}
    for intro_id in ids.values():
        write(library, intro_id)
    ledger.keep_marks({record(ledger, 8, "未写入"): (1, 2, 3)})
    marks = {4: (1, 2, 3), 5: (3, 4), 6: (1, 2, 9), 7: (50,)}
    for vod_id, kept in marks.items():
        ledger.keep_marks({ids[vod_id]: kept})
        ledger.keep_marks({ids[vod_id]: kept})
    assert sorted(ledger.texts_near((1, 2, 3), vod_id=99)) == ["丙", "乙", "甲"]
    assert sorted(ledger.texts_near((1, 2, 3), vod_id=4)) == ["丙", "乙"]
    assert ledger.texts_near((1, 2, 3), vod_id=99, before=ids[5]) == ["甲"]
    assert ledger.texts_near((-1,), vod_id=99) == []
    assert ledger.texts_near((), vod_id=99) == []
    write(library, ids[5], state="withdrawn")
    assert sorted(ledger.texts_near((3, 4), vod_id=99)) == ["甲"]


def test_what_was_shown_lately_of_the_same_facts_may_be_written(library):
    ledger = ledger_of(library)
    assert ledger.previewed(4, SHEET) is None
    shown = record(ledger)
    found = ledger.previewed(4, SHEET)
    assert found is not None
    assert found["intro_id"] == shown
    assert ledger.previewed(4, FactSheet("别的事实", genres=("剧情",))) is None
    record(ledger, task_id=9)
    assert ledger.previewed(4, SHEET) is not None, "a task's text is the task's"
    record(ledger, refused=[Violation("number", "数字不对")])
    assert ledger.previewed(4, SHEET) is None, "the newest one counts"
    library.clock.advance(days=1, seconds=1)
    record(ledger)
    assert ledger.previewed(4, SHEET) is not None
    library.clock.advance(days=1, seconds=1)
    assert ledger.previewed(4, SHEET) is None
    assert library.clock.now() > START
