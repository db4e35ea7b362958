"""A reviewer's day in a real browser: from the review queue, by two ways, to the library, and back again.

`make dev SYSTEMS=douban` runs as people run it, but for what would take half an hour: some shards of the sample come
due at once, the others not while we look. Everything that a reviewer does is clicked and typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from douban_pipeline.core.ui.launchpad_links import job_path
from douban_pipeline.douban.jobs import CHAIN, SYNC_TAGS, shard_range_tags
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.store.states import ChangeState, DecisionState, ReviewStatus
from douban_pipeline_tests.browser import clicks
from douban_pipeline_tests.browser.dagster_ui import DagsterUi, until

pytestmark = pytest.mark.browser

FIRST, LAST = 18, 21
"""Shards of the sample with videos to review, among them these two, whose best candidates no other video has."""
IN_THE_UI, IN_THE_UI_TITLE = 1045, "三傻大闹宝莱坞"

JUDGED_SECONDS = 120
APPLIED_SECONDS = 120
REVIEWER = "审核员小王"


@dataclass(frozen=True)
class Decided:
    """What a reviewer launched: the run that recorded it, and the decision as it stands."""

    run_id: str
    row: dict[str, Any]


@pytest.mark.long
def test_what_a_reviewer_clicks_reaches_the_library_and_is_taken_back(dev_ui: DagsterUi, page: Page):
    judge_some(dev_ui)
    clicks.materialize(page, dev_ui.url, "review_queue")

    from_table = decide_in_the_ui(dev_ui, page)
    expect_applied(dev_ui, from_table)
    decide_on_the_served_sheet(dev_ui, page)
    revert_writes(dev_ui, page, from_table)


def judge_some(ui: DagsterUi) -> None:
    """Let the videos of some shards come due and be judged, long before their time, and no others."""
    video, now = ui.library.tables.video, ui.library.clock.now()
    due = sa.case((video.c.shard.between(FIRST, LAST), now - timedelta(minutes=1)), else_=now + timedelta(hours=1))
    ui.library.execute(sa.update(video).where(video.c.douban_next_sync_at.is_not(None)).values(douban_next_sync_at=due))
    ui.succeeds(ui.launch(CHAIN, {**SYNC_TAGS, **shard_range_tags(FIRST, LAST)}), JUDGED_SECONDS)


def decide_in_the_ui(ui: DagsterUi, page: Page) -> Decided:
    """Follow a link of the table in Dagster's UI that confirms the best candidate, put in a name, and launch."""
    clicks.open_asset(page, ui.url, "review_queue")
    shown = clicks.show_markdown(page, "most_pressing")
    clicks.link_called(shown.get_by_role("row").filter(has_text=IN_THE_UI_TITLE), "确认首选").click()
    clicks.expect_valid(page)
    clicks.fill_in(page, "reviewer", REVIEWER)
    return decided_by(ui, clicks.launch(page), IN_THE_UI)


def decide_on_the_served_sheet(ui: DagsterUi, page: Page) -> None:
    """Press a key on the sheet that the service offers: recorded and applied through Dagster, and said so there."""
    [address] = re.findall(r"^ *review +(http\S+)$", ui.log.read_text(encoding="utf-8"), re.MULTILINE)
    page.goto(address)
    page.get_by_label("审核员").first.fill(REVIEWER)
    page.locator("h1").click()
    expect(page.locator("article.current .actions")).to_be_visible()
    vod_id = int(page.locator("article.current").get_attribute("data-vod") or 0)
    # Of any video, whatever is known of its subject.
    page.keyboard.press("s")
    page.get_by_role("button", name="最近选择").click()
    expect(page.locator("#recent-list")).to_contain_text("已执行", timeout=APPLIED_SECONDS * 1000)
    table = ui.library.tables.decision
    [row] = ui.library.query(sa.select(table).where(table.c.vod_id == vod_id))
    assert (row["state"], row["reviewer"]) == (DecisionState.APPLIED, REVIEWER)
    assert row["action"] in ("lock_intro", "unlock_intro")


def decided_by(ui: DagsterUi, run_id: str, vod_id: int) -> Decided:
    """Return the one decision that a run recorded, and see that it is about ``vod_id``."""
    [row] = ui.library.query(sa.select(ui.library.tables.decision).where(ui.library.tables.decision.c.run_id == run_id))
    assert (row["vod_id"], row["reviewer"], row["state"] != DecisionState.REFUSED) == (vod_id, REVIEWER, True), row
    return Decided(run_id, row)


def expect_applied(ui: DagsterUi, decided: Decided) -> None:
    """Wait until a later run has applied a decision, and see that library and log say so."""
    decision, vod_id = decided.row["decision_id"], decided.row["vod_id"]
    until(
        lambda: state_of(ui, decision) == DecisionState.APPLIED,
        APPLIED_SECONDS,
        lambda: f"decision {decision} is {state_of(ui, decision)}\n{ui.tail()}",
    )
    changes = changes_of(ui, decision)
    linked = next(change for change in changes if "vod_douban_id" in change["new_values"])
    assert linked["operator"] == REVIEWER
    assert linked["state"] == ChangeState.APPLIED
    assert linked["run_id"] != decided.run_id
    assert ui.library.row(vod_id)["vod_douban_id"] == decided.row["douban_id"]
    # What the same run writes after it would otherwise be on its way while somebody takes it back.
    ui.succeeds(linked["run_id"], APPLIED_SECONDS)


def revert_writes(ui: DagsterUi, page: Page, decided: Decided) -> None:
    """Take back what came of a launch, by the batch that its run names."""
    batch, vod_id = decided.row["batch_id"], decided.row["vod_id"]
    page.goto(f"{ui.url}/runs/{decided.run_id}", wait_until="domcontentloaded")
    expect(page.get_by_text(batch).first).to_be_visible()
    page.goto(ui.url + job_path("revert_changes", LOCATION), wait_until="domcontentloaded")
    clicks.expect_valid(page)
    for name, value in (("reviewer", REVIEWER), ("reason", "点错了"), ("batch_id", batch)):
        clicks.fill_in(page, name, value)
    clicks.replace_line(page, "dry_run: true", "dry_run: false")
    clicks.launch(page)
    assert state_of(ui, decided.row["decision_id"]) == DecisionState.REVERTED
    assert ui.library.row(vod_id)["vod_douban_id"] == 0
    assert ui.library.state(vod_id)["douban_review_status"] == ReviewStatus.REVIEW


def state_of(ui: DagsterUi, decision_id: int) -> str:
    """Return what became of a decision."""
    decision = ui.library.tables.decision
    [row] = ui.library.query(sa.select(decision.c.state).where(decision.c.decision_id == decision_id))
    return str(row["state"])


def changes_of(ui: DagsterUi, decision_id: int) -> list[dict[str, Any]]:
    """Return the writes that came of a decision, the oldest first."""
    return [change for change in ui.library.log() if change["decision_id"] == decision_id]
