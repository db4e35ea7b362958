"""The comments' pages in a browser: reading, writing, liking, scrolling, deciding; nothing that visitors write runs."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from sqlalchemy import update

from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.store.tables import section
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


def test_an_operator_searches_decides_and_takes_back(page, place):
    film = place.section()
    titled = {"title": "长河落日", "title_douban_id": 90_000_101, "titled_at": place.services.clock.now()}
    with place.services.engine.begin() as connection:
        connection.execute(update(section).values(**titled))
    roots = [place.publish(user, film, text) for user, text in ((2, "买药加微信"), (3, "好看"))]
    place.work()
    page.goto(f"{place.base}/demo/admin")
    page.locator("#token").fill("wrong-token-0123456789")
    page.get_by_role("button", name="查询").click()
    expect(page.locator("#said")).to_have_text("需要管理令牌")
    page.locator("#token").fill(ADMIN)
    page.locator("#status").select_option("")
    page.locator("#text").fill("微信")
    page.get_by_role("button", name="查询").click()
    expect(page.locator("#list article")).to_have_count(1)
    page.locator(f"#c{roots[0]} input").check()
    page.locator("#reason").fill("广告")
    page.get_by_role("button", name="试运行").click()
    expect(page.locator("#said")).to_contain_text("试运行：将处理 1 条")
    place.work()
    assert place.listed(film, sort="new") == roots[::-1]
    page.get_by_role("button", name="执行", exact=True).click()
    expect(page.locator("#said")).to_contain_text("已提交 1 条")
    place.work()
    assert place.listed(film) == roots[1:]
    page.get_by_role("button", name="为什么排在这里").click()
    expect(page.locator(f"#c{roots[0]} .why")).to_contain_text("不在热度列表中")
    expect(page.locator(f"#c{roots[0]} .why")).to_contain_text("显示中 → 已删除 广告")
    expect(page.locator(f"#c{roots[0]} .place")).to_contain_text("片名：《长河落日》，来自豆瓣条目 90000101（")
    expect(page.locator(f"#c{roots[0]} .place a")).to_have_attribute(
        "href", "https://movie.douban.com/subject/90000101/"
    )
    picture(page, "comments-admin")
    page.get_by_role("button", name="撤销这一批").click()
    expect(page.locator("#said")).to_have_text("已提交撤销")
    place.work()
    assert place.listed(film, sort="new") == roots[::-1]


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
    own.get_by_role("button", name="保存").click()
    expect(own).to_contain_text("已编辑")
    place.work()
    hidden = own.locator(".spoiler")
    expect(hidden).to_have_css("color", "rgba(0, 0, 0, 0)")
    hidden.press("Enter")
    expect(hidden).not_to_have_css("color", "rgba(0, 0, 0, 0)")

    added = place.publish(6, film, "后来的")
    place.work()
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
