"""The review sheet in a browser: what is pressed becomes a config that `record_decisions` takes; nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from douban_pipeline.douban.evidence.added_facts import Added, stored_facts
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching import Video
from douban_pipeline_tests.browser.sheets import (
    LOCKED,
    SIX,
    STANDING,
    card,
    config_of,
    current,
    go_to,
    library,
    open_sheet,
    others_of,
    part_of,
    press,
    stocked,
    verdicts,
)
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library", "verdicts"]

pytestmark = pytest.mark.browser

HOSTILE_NAME = "小王: \"x\" 'y' # {a: [b]} \\n \u202e\u2028 & <b> %s 🎬 - |"

CASES = [
    (4, "1", {"action": "choose", "douban_id": 90_000_004}),
    (4, "5", {"action": "choose", "douban_id": others_of(4)[-1]}),
    (4, "15", {"action": "choose", "douban_id": others_of(4)[-1]}),
    (4, "2la", {"action": "choose", "douban_id": others_of(4)[0], "lock": True, "accept_conflicts": True}),
    (4, "i", {"action": "ignore", "days": 30}),
    (4, "ii", {"action": "ignore", "days": 180}),
    (4, "iii", {"action": "ignore"}),
    (4, "iil", {"action": "ignore", "days": 180, "lock": True}),
    (4, "r", {"action": "rematch"}),
    (4, "rl", {"action": "rematch"}),
    (5, "0", {"action": "set_id", "douban_id": STANDING}),
    (5, "c", {"action": "clear_id"}),
    (5, "cl", {"action": "clear_id", "lock": True}),
    (5, "l", {"action": "lock_id"}),
    (6, "1", {"action": "replace_and_lock", "douban_id": 90_000_006}),
    (6, "0", {"action": "set_id", "douban_id": LOCKED}),
    (6, "c", {"action": "unlock_id"}),
    # Out of date: its candidates are asked for and compared anew, and no verdict is told.
    (7, "1", {"action": "set_id", "douban_id": 90_000_007, "verdict_id": None}),
    (8, "r", {"action": "rematch", "verdict_id": None}),
]
NO_CHOICE = [(4, "11"), (4, "iiii"), (4, "l"), (4, "a"), (4, "c0"), (8, "1"), (4, "6"), (4, "1u"), (6, "l")]


def test_every_key_comes_to_the_decision_it_says(page: Page, library: Library, verdicts: dict[int, int]):
    assert list(verdicts) == [5, 6, 4, 7, 8, 9]
    for vod_id, keys, wanted in CASES:
        go_to(page, vod_id)
        press(page, keys)
        row = {"vod_id": vod_id, "verdict_id": verdicts[vod_id], **wanted}
        row = {name: value for name, value in row.items() if value}
        config = config_of(page)
        assert config["decisions"] == [row], keys
        # Each is one that can be recorded, but for what a source has to say.
        requested = [Decision(**{**row, "action": DecisionAction(row["action"])})]
        if row["action"] not in ("set_id", "replace_and_lock"):
            recording = record(library.services, requested, reviewer="小王", note="", run_id="run", dry_run=True)
            assert [item.status for item in recording.items] == [DecisionStatus.CHECKED], recording.items[0].reason
        clear(page)


def test_the_synopsis_is_locked_beside_any_other_choice_and_alone(page: Page, library: Library, tmp_path: Path):
    with_locked = [Case(5, {"vod_name": "乙"}, {"intro_locked": True}), Case(4, {"vod_name": "甲", "vod_hits": 9_000})]
    seen = open_sheet(page, stocked(library, with_locked), tmp_path)
    expect(card(page, 5).get_by_text("简介已锁定")).to_be_visible()
    press(page, "1s")
    chosen = {"vod_id": 4, "action": "choose", "douban_id": 90_000_004, "verdict_id": seen[4]}
    assert config_of(page)["decisions"] == [chosen, {"vod_id": 4, "action": "lock_intro"}]
    expect(card(page, 4).locator(".chosen")).to_contain_text("锁定简介")
    clear_all(page)
    press(page, "js")
    assert config_of(page)["decisions"] == [{"vod_id": 5, "action": "unlock_intro"}]


def clear_all(page: Page) -> None:
    """Take everything back, whatever was chosen."""
    while page.get_by_role("button", name="撤销").is_enabled():
        press(page, "u")


def test_the_subject_of_today_stands_beside_the_candidates(page: Page, library: Library, tmp_path: Path):
    open_sheet(page, stocked(library, SIX), tmp_path)
    head = card(page, 5).locator("th.current")
    expect(head).to_contain_text("现有条目")
    expect(head).to_contain_text(str(STANDING))
    assert card(page, 5).locator("tbody tr").first.locator("td, th").count() == 7, "local, today's, five candidates"
    assert card(page, 4).locator("th.current").count() == 0


def clear(page: Page) -> None:
    """Take everything back."""
    while page.get_by_role("button", name="撤销").is_enabled():
        press(page, "u")
    expect(page.locator("#count")).to_have_text("已选 0 / 6")


def test_a_poster_that_is_the_videos_is_marked(page: Page, library: Library, tmp_path: Path):
    cases = [
        Case(4, {"vod_name": "甲", "vod_hits": 9_000}, verdict={"facts": {"posters": [90_000_004]}}),
        Case(5, {"vod_name": "乙"}),
    ]
    open_sheet(page, stocked(library, cases), tmp_path)
    for vod_id, marks in ((4, 1), (5, 0)):
        expect(card(page, vod_id).locator("th.candidate .flag.good", has_text="海报相同")).to_have_count(marks)


def test_keys_that_choose_nothing(page: Page, verdicts: dict[int, int]):
    assert verdicts
    for vod_id, keys in NO_CHOICE:
        go_to(page, vod_id)
        press(page, keys)
        expect(page.locator("#count")).to_have_text("已选 0 / 6")
        expect(page.get_by_role("button", name="生成配置")).to_be_disabled()
        clear(page)


TYPED = [
    ("1292052", 1292052),
    (" 1292052 ", 1292052),
    ("https://movie.douban.com/subject/1292052/?from=x", 1292052),
    ("https://m.douban.com/movie/subject/1292052/", 1292052),
    ("90000004", 90_000_004),
    ("9999", 0),
    ("99999999999", 0),
    ("4294967296", 0),
    ("1292052x", 0),
    ("-1292052", 0),
    ("霸王别姬", 0),
]


def test_an_id_is_typed(page: Page, verdicts: dict[int, int]):
    go_to(page, 4)
    for typed, wanted in TYPED:
        press(page, "e")
        page.keyboard.insert_text(typed)
        # What is typed is no command.
        page.keyboard.press("r")
        page.keyboard.press("Backspace")
        page.keyboard.press("Escape")
        if wanted:
            action = "choose" if wanted == 90_000_004 else "set_id"
            row = {"vod_id": 4, "action": action, "douban_id": wanted, "verdict_id": verdicts[4]}
            assert config_of(page)["decisions"] == [row], typed
        else:
            expect(page.locator("#count")).to_have_text("已选 0 / 6")
            expect(card(page, 4)).to_contain_text("请填写豆瓣 ID")
        press(page, "u")
        expect(card(page, 4).get_by_role("textbox")).to_have_value("")


def test_whatever_the_reviewer_is_called_the_config_says_so(page: Page, verdicts: dict[int, int]):
    assert verdicts
    page.get_by_label("审核员").first.fill(HOSTILE_NAME)
    page.get_by_label("备注").first.fill("true")
    page.locator("h1").click()
    press(page, "1")
    config = config_of(page)
    assert (config["reviewer"], config["note"], config["dry_run"]) == (HOSTILE_NAME, "true", False)
    assert card(page, 5).get_by_role("link", name="单独打开启动页").count() == 1
    # The dialog has the same fields.
    press(page, "g")
    page.locator("dialog").get_by_label("备注").fill("yes: [no]")
    page.keyboard.press("Escape")
    assert config_of(page)["note"] == "yes: [no]"
    [alone] = card(page, 5).get_by_role("link", name="单独打开启动页").all()
    assert part_of(str(alone.get_attribute("href"))) == {**config, "note": "yes: [no]"}


def test_choices_survive_a_reload_and_rest_on_their_verdict(page: Page, library: Library, tmp_path: Path):
    library = stocked(library, SIX)
    open_sheet(page, library, tmp_path)
    page.get_by_label("审核员").first.fill("小王")
    page.locator("h1").click()
    go_to(page, 4)
    press(page, "2l")
    go_to(page, 5)
    press(page, "i")
    before = config_of(page)
    page.reload()
    expect(page.locator("#count")).to_have_text("已选 2 / 6")
    assert config_of(page) == before
    assert before["reviewer"] == "小王"
    # The next night's sheet: 4 was judged anew, and has to be looked at again; 5 was not.
    [judged] = [row for row in library.query(sa.select(library.tables.verdict)) if row["vod_id"] == 4]
    library.execute(sa.insert(library.tables.verdict).values({**judged, "verdict_id": 777}))
    open_sheet(page, library, tmp_path)
    assert [row["vod_id"] for row in config_of(page)["decisions"]] == [5]


def test_after_a_reload_the_next_undecided_is_current_and_no_key_changes_what_is_out_of_sight(
    page: Page, library: Library, tmp_path: Path
):
    open_sheet(page, stocked(library, SIX), tmp_path)
    order = [int(str(each.get_attribute("data-vod"))) for each in page.locator("article").all()]
    go_to(page, order[2])
    press(page, "r")
    page.reload()
    expect(page.locator("article.current:not(.done)")).to_be_in_viewport()
    assert current(page) in order[3:], "not the first again"
    # Scrolled away, and a key before the page has taken note of it.
    page.evaluate(
        """() => {
          document.querySelector("main").style.paddingTop = "4000px";
          scrollTo({ top: 0, behavior: "instant" });
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
        }"""
    )
    expect(page.locator("#count")).to_have_text("已选 1 / 6")
    expect(page.locator("article.current")).to_be_in_viewport()
    press(page, "r")
    expect(page.locator("#count")).to_have_text("已选 2 / 6")


def test_a_file_says_as_of_when_it_is_and_that_it_is_old(page: Page, library: Library, tmp_path: Path):
    library.options = {**library.options, "public_url": "https://review.example"}
    page.clock.set_fixed_time(library.clock.now())
    open_sheet(page, stocked(library, SIX), tmp_path)
    expect(page.locator("#made")).to_contain_text("数据截至 2026-03-01 12:00")
    expect(page.locator("#age")).to_be_hidden()
    page.clock.set_fixed_time(library.clock.now() + timedelta(hours=5))
    page.reload()
    expect(page.locator("#age")).to_contain_text("这些数据是 5 小时前的")
    expect(page.locator("#age a")).to_have_attribute("href", "https://review.example/review/")


def test_a_browser_that_keeps_nothing_is_enough(page: Page, library: Library, tmp_path: Path):
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden'); }})")
    open_sheet(page, stocked(library, SIX), tmp_path)
    page.get_by_label("审核员").first.fill("小王")
    page.locator("h1").click()
    press(page, "1")
    assert len(config_of(page)["decisions"]) == 1


NONSENSE = ["null", "7", "[]", "{", '{"made": {"5:1": {"pick": 7, "at": 9e15}}, "sent": 3, "reviewer": 7}']


def test_what_was_kept_may_be_nonsense(page: Page, library: Library, tmp_path: Path):
    open_sheet(page, stocked(library, SIX), tmp_path)
    for kept in NONSENSE:
        page.evaluate(
            """kept => { const id = JSON.parse(document.getElementById('sheet').textContent).id;
                         for (const key of [id, 'who']) localStorage.setItem(`douban-review:${key}`, kept) }""",
            kept,
        )
        page.reload()
        press(page, "r")
        assert [row["action"] for row in config_of(page)["decisions"]] == ["rematch"], kept


def test_what_was_launched_as_a_person_says_is_not_offered_twice(page: Page, verdicts: dict[int, int]):
    assert verdicts
    page.context.route("http://127.0.0.1:9/**", lambda route: route.fulfill(body="launchpad"))
    press(page, "1j1j1")
    assert len(config_of(page)["decisions"]) == 3
    with page.context.expect_page():
        card(page, 5).get_by_role("link", name="单独打开启动页").click()
    # A page that was opened launched nothing yet: it is asked about, and offered until somebody says so.
    expect(card(page, 5)).to_contain_text("打开过启动页，在那里启动了吗？")
    assert [row["vod_id"] for row in config_of(page)["decisions"]] == [5, 6, 4]
    card(page, 5).get_by_role("button", name="没有").click()
    expect(card(page, 5)).not_to_contain_text("启动了吗")
    with page.context.expect_page():
        card(page, 5).get_by_role("link", name="单独打开启动页").click()
    card(page, 5).get_by_role("button", name="已启动").click()
    expect(card(page, 5)).to_contain_text("已启动（您确认的）")
    assert [row["vod_id"] for row in config_of(page)["decisions"]] == [6, 4]
    # Something else chosen for it is news.
    card(page, 5).get_by_role("button", name="重新匹配").click()
    assert [row["vod_id"] for row in config_of(page)["decisions"]] == [5, 6, 4]
    press(page, "g")
    with page.context.expect_page():
        page.locator("#links a").click()
    page.get_by_role("button", name="已启动，不再列出").click()
    page.keyboard.press("Escape")
    expect(page.locator("#count")).to_have_text("已选 3 / 6，3 条已启动")
    press(page, "g")
    expect(page.locator("#links a")).to_have_count(0)
    page.get_by_role("button", name="再次包括已启动的 3 条").click()
    page.keyboard.press("Escape")
    assert len(config_of(page)["decisions"]) == 3


def test_more_than_a_link_holds_is_cut_into_whole_rows(page: Page, library: Library, tmp_path: Path):
    cases = [Case(vod_id, {"vod_name": f"{vod_id}号片子"}) for vod_id in range(1, 61)]
    verdicts = open_sheet(page, stocked(library, cases), tmp_path)
    page.get_by_label("审核员").first.fill("王" * 64)
    page.get_by_label("备注").first.fill("注" * 500)
    page.locator("h1").click()
    press(page, "2lj" * 60)
    # That the links hold the same rows and none is too long is seen there.
    found = config_of(page)["decisions"]
    assert [row["vod_id"] for row in found] == list(verdicts)
    assert all(row["douban_id"] == others_of(row["vod_id"])[0] for row in found)
    assert page.locator("#links a").count() >= 3
    press(page, "g")
    expect(page.locator("#links a").nth(1)).to_contain_text("（第 2 份，共")


def test_what_tmdb_added_stands_on_the_card_with_its_logo(page: Page, library: Library, tmp_path: Path):
    added = Added("movie/7", aliases=("<b>蓝鲸</b>",), year=2022)
    facts = stored_facts(Video(4, "甲"), added)
    cases = [Case(4, {"vod_name": "甲", "vod_hits": 9_000}, verdict={"facts": facts}), Case(5, {"vod_name": "乙"})]
    open_sheet(page, stocked(library, cases), tmp_path)
    shown = card(page, 4)
    expect(shown.get_by_text("参考 TMDB movie/7 ↗：别名 <b>蓝鲸</b>；年份 2022")).to_be_visible()
    expect(shown.get_by_role("link", name="TMDB movie/7")).to_have_attribute(
        "href", "https://www.themoviedb.org/movie/7"
    )
    expect(shown.locator(".attribution")).to_contain_text("TMDB API")
    assert shown.locator(".attribution img").evaluate("logo => logo.decode().then(() => logo.naturalWidth > 0)")
    expect(card(page, 5).locator(".attribution")).to_have_count(0)
