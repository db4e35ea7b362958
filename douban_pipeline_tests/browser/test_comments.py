"""The comments' pages in a browser: reading, writing, liking, scrolling, deciding; nothing that visitors write runs."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from douban_pipeline.comments.identity import make_token
from douban_pipeline_tests.comments.serving import ADMIN, SECRET, Served, served

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=document.title='run'><script>document.title='run'</script> javascript:alert(1)"
PICTURES = "DOUBAN_TEST_PICTURES"
"""A folder that pictures of the pages are put into, for people to look at."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        yield found
        found.work()
        assert found.differences() == []


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get(PICTURES):
        page.screenshot(path=Path(folder) / f"{name}.png")


def open_comments(page: Page, place: Served, film: int, user: int | None = None, sort: str = "new") -> None:
    page.goto(f"{place.base}/demo?type=1&id={film}&sort={sort}")
    if user is not None:
        page.evaluate("token => localStorage.setItem('comments-token', token)", place.token(user))
        page.reload()


def test_a_visitor_reads_writes_likes_replies_reports_and_deletes(page, place):
    film = place.section(title="流浪地球")
    root = place.publish(2, film, HOSTILE)
    place.work()
    place.publish(3, film, "回复 @二:2 见 https://a.example/x", root)
    place.work()
    open_comments(page, place, film, user=5)
    expect(page.locator("#title")).to_have_text("流浪地球")
    expect(page.locator("#count")).to_have_text("2 条评论")
    expect(page.locator(f"#c{root} > .text")).to_have_text(HOSTILE)
    expect(page.locator("article article a")).to_have_attribute("href", "https://a.example/x")

    page.locator("#content").fill("我的评论")
    page.get_by_role("button", name="发布").click()
    expect(page.locator("#list > article").first).to_contain_text("我的评论")
    own = str(page.locator("#list > article").first.get_attribute("id"))
    place.work()
    like = page.locator(f"#c{root} > .acts button").first
    like.click()
    expect(like).to_have_text("赞 1")
    page.locator(f"#c{root} > .acts").get_by_role("button", name="回复").click()
    page.locator(f"#c{root} > form textarea").fill("我的回复")
    page.locator(f"#c{root} > form button.send").click()
    expect(page.locator(f"#c{root}")).to_contain_text("我的回复")
    acts = page.locator(f"#c{root} > .acts")
    for undone in (True, False):
        acts.get_by_role("button", name="举报").click()
        acts.get_by_role("button", name="剧透").click()
        expect(acts).to_contain_text("已举报")
        if undone:
            acts.get_by_role("button", name="撤销").click()
            expect(acts).not_to_contain_text("已举报")
    place.work()

    page.reload()
    expect(page.locator("#count")).to_have_text("4 条评论")
    expect(page.locator(f"#c{root} > .acts button").first).to_have_attribute("aria-pressed", "true")
    picture(page, "comments-desktop")
    page.locator(f"#{own}").get_by_role("button", name="删除").click()
    expect(page.locator(f"#{own}")).to_contain_text("已删除")
    place.work()
    page.reload()
    expect(page.locator("#count")).to_have_text("3 条评论")
    expect(page.locator(f"#{own}")).to_have_count(0)
    assert page.title() == "评论"


def test_emoji_are_the_cms_s_pictures_and_the_staff_has_its_mark(page, place):
    film = place.section()
    place.publish(2, film, "好[em:3]看[em:4]")
    place.call("POST", f"/sections/1/{film}/comments", ADMIN, json={"content": "说明"})
    place.work()
    asked = []
    # One of the pictures is where the CMS has it; the other is missing.
    gif = base64.b64decode("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==")
    page.route("**/static/images/face/3.gif", lambda route: route.fulfill(body=gif, content_type="image/gif"))
    page.on("request", lambda request: asked.append(request) if request.url.endswith("/impressions") else None)
    with page.expect_response(lambda answer: answer.url.endswith("/impressions")) as told:
        page.goto(f"{place.base}/demo?type=1&id={film}&sort=floor")
    texts = page.locator("#list .text")
    expect(texts.first).to_have_text("好看[表情 4]")
    expect(texts.first.locator("img")).to_have_attribute("src", "/static/images/face/3.gif")
    expect(page.locator("#list article").nth(1)).to_contain_text("本站工作人员")
    expect(page.locator("#list article").first).not_to_contain_text("本站工作人员")
    assert told.value.json() == {"counted": 2}
    assert len(asked) == 1


def test_a_comment_of_ones_own_is_deleted_before_it_is_applied_also_the_first_one(page, place):
    film = next(place.objects)  # nobody has written about it: it has no section
    open_comments(page, place, film, user=5)
    expect(page.locator("#end")).to_contain_text("还没有评论")
    page.locator("#content").fill("写错了")
    page.get_by_role("button", name="发布").click()
    own = page.locator("#list > article")
    expect(own).to_contain_text("写错了")
    own.get_by_role("button", name="删除").click()
    expect(own).to_contain_text("已删除")
    place.work()
    assert place.listed(film) == []
    own.get_by_role("button", name="撤销").click()
    expect(own).to_contain_text("写错了")
    place.work()
    assert len(place.listed(film)) == 1


def test_what_the_worker_refuses_is_never_called_published_and_can_be_mended(page, place):
    film = place.section()
    root = place.publish(5, film, "同样的话")
    place.work()
    open_comments(page, place, film, user=5)
    said, box, send = (
        page.locator("#said"),
        page.locator("#content"),
        page.get_by_role("button", name="发布", exact=True),
    )
    box.fill("同样的话")
    send.click()
    sent = page.locator("#list > article").first
    expect(sent).to_contain_text("正在发布")
    expect(send).to_be_disabled()
    picture(page, "comments-sending")
    place.work()
    expect(said).to_have_text("没有发布：重复的评论")
    expect(page.locator("#list > article")).to_have_count(1)
    expect(box).to_have_value("同样的话")
    picture(page, "comments-refused")
    box.fill("另一句话")
    send.click()
    expect(sent).to_contain_text("正在发布")
    place.work()
    expect(said).to_have_text("已发布")
    expect(sent).not_to_contain_text("正在发布")
    expect(box).to_have_value("")
    box.fill("https://a.example https://b.example")
    send.click()
    expect(sent).to_contain_text("正在发布")
    place.work()
    expect(said).to_have_text("已提交，审核通过后显示")
    expect(sent).to_contain_text("审核中")

    page.locator(f"#c{root} > .acts").get_by_role("button", name="回复").click()
    reply = page.locator(f"#c{root} > form")
    reply.locator("textarea").fill("另一句话")
    reply.locator("button.send").click()
    expect(page.locator(f"#c{root} article")).to_contain_text("正在发布")
    place.work()
    expect(reply.locator("[role=status]")).to_have_text("没有发布：重复的评论")
    expect(page.locator(f"#c{root} article")).to_have_count(0)
    reply.locator("textarea").fill("好的")
    page.route("**/comments/v1/sections/**", lambda route: route.abort())
    reply.locator("button.send").click()
    expect(reply.locator("[role=status]")).to_have_text("连接不上，请检查网络后再试")
    expect(reply.locator("textarea")).to_have_value("好的")


def test_a_like_that_fails_is_tried_again_and_never_told_of(page, place):
    film = place.section()
    first, second = place.publish(2, film, "一"), place.publish(2, film, "二")
    place.work()
    open_comments(page, place, film, user=5)
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if f"/{second}/" in asked[-1] or len(asked) == 1:
            route.fulfill(status=503, json={"detail": "服务繁忙，请稍后再试"})
        else:
            route.continue_()

    page.route("**/vote", answer)
    for number in (first, second):
        like = page.locator(f"#c{number} > .acts button").first
        like.click()
        expect(like).to_have_text("赞 1")
        expect(page.locator("#said")).not_to_have_class("bad")
    assert len(asked) == 4
    place.work()
    likes = {item["id"]: item["likes"] for item in place.page(film)["items"]}
    assert likes == {first: 1, second: 0}


def test_a_long_section_is_scrolled_to_its_end_on_a_phone_in_the_dark(page, place):
    film = place.section(title="长评")
    roots = [place.publish(user, film, f"第 {user} 条") for user in range(2, 57)]
    place.work()
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    open_comments(page, place, film)
    expect(page.locator("#list > article").first).to_have_id(f"c{roots[-1]}")
    for _ in range(6):
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(50)
    expect(page.locator("#end")).to_have_text("没有更多了")
    listed = page.locator("#list > article").evaluate_all("found => found.map(each => each.id)")
    assert listed == [f"c{root}" for root in reversed(roots)]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the phone"
    picture(page, "comments-phone-dark")
    page.get_by_role("button", name="楼层").click()
    expect(page.locator("#list > article").first).to_have_id(f"c{roots[0]}")


def log_in(page: Page, place: Served, token: str = ADMIN) -> None:
    page.goto(f"{place.base}/comments/admin")
    page.locator("#name").fill("小王")
    page.locator("#token").fill(token)
    page.get_by_role("button", name="登录").click()


def test_a_moderator_works_through_the_queue_by_keys_and_takes_back(page, place):
    film, other = place.section(title="长河落日"), place.section(title="长河落日")
    links = "https://a.example https://b.example"
    first, second = place.publish(2, film, f"{HOSTILE} {links}"), place.publish(3, film, f"好看 {links}")
    elsewhere = place.publish(4, other, f"别处 {links}")
    place.work()
    page.clock.install(time=place.clock.now())
    log_in(page, place, "wrong-token-0123456789")
    expect(page.locator("#said")).to_have_text("需要管理令牌")
    expect(page.locator("button:visible")).to_have_text(["登录"])
    picture(page, "moderators-wrong-token")
    log_in(page, place)
    rows = page.locator("#list article")
    expect(rows).to_have_count(3)
    expect(rows.first).to_have_id(f"c{elsewhere}")
    expect(page.locator(f"#c{first} .text")).to_have_text(f"{HOSTILE} {links}")
    expect(page.locator(f"#c{first} .film")).to_contain_text("长河落日")

    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("下一条、上一条")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(rows).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("3")
    page.keyboard.press("d")
    expect(rows).to_have_count(1)
    place.work()
    assert place.listed(film) == [second]
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text("已撤销")
    expect(rows.first).to_have_id(f"c{first}")
    expect(rows.first).to_contain_text("处理中")
    place.work()
    page.keyboard.press("e")
    expect(page.locator(f"#c{first} .detail")).to_contain_text("待审核 → 已删除 违法（已撤销）")
    picture(page, "moderators-desktop")

    page.keyboard.press("b")
    page.locator("#ban-reason").fill("刷广告")
    page.locator("#ban .main").click()
    expect(page.locator("#said")).to_contain_text("已执行：禁言 2")
    refused = place.call("POST", f"/sections/1/{film}/comments", 2, json={"content": "又来"})
    assert (refused.status_code, "刷广告" in refused.json()["detail"]) == (403, True)
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text("已撤销：禁言 2")
    place.publish(2, film, "放出来了")

    place.publish(6, other, f"后来的 {links}")
    place.work()
    page.clock.run_for(61_000)
    expect(page.locator("#fresh")).to_have_text("有 1 条新的")
    page.keyboard.press("c")
    expect(page.locator(f"#c{first} .film")).to_contain_text("评论区已关闭")
    place.work()
    page.reload()
    expect(rows).to_have_count(3)
    expect(page.locator(f"#c{first} .film")).to_contain_text("评论区已关闭")
    page.get_by_role("button", name="操作记录").click()
    expect(page.locator("#entries li")).to_have_count(5)
    expect(page.locator("#entries")).to_contain_text("ops:小王")
    page.get_by_role("button", name="退出").click()
    expect(page.locator("#login")).to_be_visible()
    page.reload()
    expect(page.locator("#login")).to_be_visible()
    assert page.title() == "评论管理"


def test_a_moderator_tries_a_rule_with_the_slider_and_bans_on_a_phone_in_the_dark(page, place):
    film = place.section(title="慢热")
    roots = [place.publish(number, film, "长" * number) for number in (4, 6, 8)]
    place.work()
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    log_in(page, place)
    page.locator("label:has([name=status][value='0'])").click()
    row = page.locator(f"#c{roots[0]}")
    row.get_by_role("button", name="置顶").click()
    expect(row).to_contain_text("取消置顶")
    picture(page, "moderators-phone-dark")
    row.get_by_role("button", name="排序规则").click()
    page.locator("#rule-expression").fill("length < 5")
    before = page.locator("#preview li")
    expect(before).to_have_count(3)
    expect(before.first).to_contain_text("长长长长")
    page.locator("#rule-decision").select_option("sink")
    page.locator("#rule-amount").fill("12")
    expect(before.last).to_have_text("=长长长长")
    expect(page.locator("#effect")).to_contain_text("3 条评论中 1 条符合")
    picture(page, "moderators-rule-phone-dark")
    page.locator("#rule-reason").fill("太短")
    page.get_by_role("button", name="启用").click()
    expect(page.locator("#in-force")).to_contain_text("length < 5")
    for view in ("queue", "rules", "trust", "words", "log"):
        page.locator(f"[data-view={view}]").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the phone"
    page.goto(f"{place.base}/comments/admin?lang=en")
    expect(page.get_by_role("button", name="Trust and bans")).to_be_visible()


def test_an_author_edits_a_dialog_opens_and_new_comments_are_announced(page, place):
    film = place.section()
    root = place.publish(2, film, "一楼")
    place.work()
    first = place.publish(3, film, "回一楼", root)
    place.work()
    second = place.publish(4, film, "回用户3", first)
    place.work()
    page.clock.set_fixed_time(place.clock.now())
    open_comments(page, place, film, user=5)
    expect(page.locator(f"#c{second} > .who .to")).to_have_text("回复 用户3")
    page.locator(f"#c{second} > .acts").get_by_role("button", name="对话").click()
    expect(page.locator(".dialog .text")).to_have_text(["回一楼", "回用户3"])

    page.locator("#content").fill("写错了")
    page.get_by_role("button", name="发布").click()
    own = page.locator("#list > article").first
    own.get_by_role("button", name="编辑").click()
    own.locator("textarea").fill("写对了 ||凶手是他||")
    with page.expect_response(lambda answer: answer.request.method == "PATCH"):
        own.get_by_role("button", name="保存").click()
    place.work()
    expect(own).to_contain_text("已编辑")
    hidden = own.locator(".spoiler")
    expect(hidden).to_have_css("color", "rgba(0, 0, 0, 0)")
    hidden.press("Enter")
    expect(hidden).not_to_have_css("color", "rgba(0, 0, 0, 0)")

    added = place.publish(6, film, "后来的")
    place.work()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("button", name="有 1 条新评论").click()
    expect(page.locator("#list > article").first).to_have_id(f"c{added}")


def test_a_token_of_the_page_stays_in_memory_and_is_renewed_when_it_has_expired(page, place):
    film = place.section()
    expired = make_token(5, SECRET, place.clock.now() - timedelta(hours=1), name="用户5")
    tokens = [expired, place.token(5)]
    page.route("**/token.json", lambda route: route.fulfill(json={"token": tokens.pop(0)}))
    page.goto(f"{place.base}/demo?type=1&id={film}&sort=new")
    expect(page.locator("#end")).to_have_text("没有更多了")
    page.locator("douban-comments").evaluate("host => host.setAttribute('token-url', '/token.json')")
    page.get_by_role("button", name="楼层").click()
    expect(page.locator("#login")).to_have_text("用户5")
    assert tokens == []
    assert page.evaluate("localStorage.length") == 0
