"""The comments' script on the stock video page of a real CMS, in a browser: one line, and the box is taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline_tests.browser.conftest import ELSEWHERE, browser, chromium  # noqa: F401 (fixtures)
from douban_pipeline_tests.browser.test_comments import HOSTILE, picture
from douban_pipeline_tests.comments.serving import Served, served
from douban_pipeline_tests.harness.fixtures.scenario import subject
from douban_pipeline_tests.harness.rig.dagster_stack import free_port
from douban_pipeline_tests.live_cms.live_site import Film, LiveSite

pytestmark = pytest.mark.browser
WAIT_MS = 60_000
SHOWN = """new MutationObserver(() => {
    const page = document.documentElement;
    if (page && page.classList.contains("license-locked")) page.classList.remove("license-locked");
    const laid = "#mac_site_card_layer, .mac_pop_bg, .mac_pop_msg_bg, .mac_pop_msg";
    for (const each of document.querySelectorAll(laid)) each.remove();
}).observe(document, { childList: true, subtree: true, attributes: true })"""
"""The template hides its page until a server of its makers has answered, which is asked nothing here, and lays cards
over it."""
SEEK = """document.addEventListener("douban-comments-seek", event => {
    window.sought = event.detail.seconds; event.preventDefault();
})"""
Opened = Callable[..., Page]


@pytest.fixture
def service(site: LiveSite, tmp_path: Path) -> Iterator[Served]:
    """The comment service on an origin of its own, which the CMS's pages may call; guests may write."""
    TREE.upgrade(site.library.engine)
    url = site.cms.url.render_as_string(hide_password=False)
    with served(tmp_path, library_url=url, cms_login=True, guests=True, origins=site.cms.base) as service:
        yield service
        service.work()
        assert service.differences() == []


@pytest.fixture(scope="module")
def film(site: LiveSite) -> Film:
    return site.collect(subject(90_230_010, "海边的证词"))


@pytest.fixture
def opened(site: LiveSite, film: Film, browser: Browser) -> Iterator[Opened]:  # noqa: F811
    """Opens the film's page, whose template has one line more, as a visitor with the CMS's login, or as nobody."""
    template = site.cms.folder / "template" / "default" / "html" / "vod" / "detail.html"
    stock = template.read_text(encoding="utf-8")
    contexts = []

    def open_page(base: str, visitor: str = "", failed: list[str] | None = None, **options: object) -> Page:
        line = f'<script src="{base}/comments/comments.js" async></script>'
        template.write_text(stock.replace("</body>", f"{line}</body>"), encoding="utf-8")
        context = browser.new_context(locale="zh-CN", timezone_id="Asia/Shanghai", **options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.route(ELSEWHERE, lambda route: route.abort())
        context.add_init_script(SHOWN)
        if visitor:
            cookies = site.cms.visitor(visitor).cookies.items()
            context.add_cookies([{"name": name, "value": value, "url": site.cms.base} for name, value in cookies])
        page = context.new_page()
        if failed is not None:
            page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto(f"{site.cms.base}/index.php/vod/detail/id/{film.vod_id}.html", wait_until="domcontentloaded")
        return page

    yield open_page
    for context in contexts:
        context.close()
    template.write_text(stock, encoding="utf-8")


def shown(page: Page) -> None:
    page.locator(".mac_comment").evaluate("box => (box.previousElementSibling || box).scrollIntoView()")


def test_a_visitor_of_the_cms_publishes_replies_likes_and_reports_on_its_own_page(service, film, opened):
    expect.set_options(timeout=WAIT_MS)
    root = service.publish(2, film.vod_id, HOSTILE)
    service.work()
    page = opened(service.base, "heyunfan", viewport={"width": 1440, "height": 900})
    widget = page.locator("douban-comments")
    expect(widget).to_have_count(1)
    expect(page.locator("div.mac_comment")).to_be_hidden()
    expect(page.locator(".mac_total").first).to_have_text("1")
    shown(page)
    expect(widget.locator("#login")).to_have_text("heyunfan")
    expect(widget.locator(f"#c{root} > .text")).to_have_text(HOSTILE)
    assert page.title() != "run"

    widget.locator("#content").fill("第一次看，12:34 那里哭了 ||他还活着|| 👨‍👩‍👧")
    page.reload(wait_until="domcontentloaded")
    shown(page)
    expect(widget.locator("#content")).to_have_value("第一次看，12:34 那里哭了 ||他还活着|| 👨‍👩‍👧")
    expect(widget.locator("#login")).to_have_text("heyunfan")
    widget.get_by_role("button", name="预览").click()
    expect(widget.locator(".preview .spoiler")).to_have_text("他还活着")
    widget.get_by_role("button", name="发布").click()
    own = widget.locator("#list > article").first
    expect(own).to_contain_text("👨‍👩‍👧")
    page.evaluate(SEEK)
    own.get_by_role("button", name="12:34").click()
    assert page.evaluate("window.sought") == 754
    service.work()

    widget.locator(f"#c{root} > .acts button").first.click()
    expect(widget.locator(f"#c{root} > .acts button").first).to_have_text("赞 1")
    widget.locator(f"#c{root} > .acts").get_by_role("button", name="回复").click()
    widget.locator(f"#c{root} > form textarea").fill("回一楼")
    widget.locator(f"#c{root} > form button.send").click()
    expect(widget.locator(f"#c{root} article")).to_contain_text("回一楼")
    widget.locator(f"#c{root} > .acts").get_by_role("button", name="举报").click()
    widget.get_by_role("button", name="辱骂").click()
    expect(widget.locator(f"#c{root} > .acts")).to_contain_text("已举报")
    service.work()
    page.reload(wait_until="domcontentloaded")
    shown(page)
    expect(widget.locator("#count")).to_have_text("3 条评论")
    expect(page.locator(".mac_total").first).to_have_text("3")
    authors = {item["author"]["name"] for item in service.page(film.vod_id)["items"]}
    assert "heyunfan" in authors
    with service.services.engine.connect() as connection:
        reports = connection.exec_driver_sql("SELECT reason FROM cmt_report").scalars().all()
    assert reports == ["abuse"]
    picture(page, "widget-1440")


def test_guests_write_by_name_and_the_theme_is_the_page_s_on_a_phone(service, film, opened):
    expect.set_options(timeout=WAIT_MS)
    page = opened(service.base, viewport={"width": 390, "height": 844}, color_scheme="dark")
    widget = page.locator("douban-comments")
    shown(page)
    widget.locator("#write .name").fill("路过的人")
    widget.locator("#content").fill("游客也能写")
    widget.get_by_role("button", name="发布").click()
    expect(widget.locator("#list > article").first).to_contain_text("路过的人")
    for theme, back in (("dark", "rgb(33, 35, 39)"), ("light", "rgb(246, 247, 248)")):
        widget.evaluate("(host, theme) => host.setAttribute('theme', theme)", theme)
        expect(widget.locator("#content")).to_have_css("background-color", back)
        picture(page, f"widget-390-{theme}")
    widget.evaluate("host => host.style.setProperty('--comments-raised', 'rgb(1, 2, 3)')")
    expect(widget.locator("#content")).to_have_css("background-color", "rgb(1, 2, 3)")
    assert widget.evaluate("host => host.scrollWidth <= innerWidth")


def test_the_box_of_the_cms_stays_where_the_service_does_not_answer_or_does_not_list_the_site(film, opened, tmp_path):
    expect.set_options(timeout=WAIT_MS)
    page = opened(f"http://127.0.0.1:{free_port()}")
    expect(page.locator("div.mac_comment")).to_be_visible()
    with served(tmp_path, guests=True) as unlisted:
        failed: list[str] = []
        page = opened(unlisted.base, failed=failed)
        if not any(url.startswith(unlisted.base) for url in failed):
            page.wait_for_event("requestfailed", lambda request: request.url.startswith(unlisted.base))
        expect(page.locator("div.mac_comment")).to_be_visible()
        assert page.locator("douban-comments").count() == 0
