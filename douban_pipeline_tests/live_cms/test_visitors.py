"""The CMS's visitors at the comment service: their login, and what they wrote in the CMS itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from douban_pipeline.comments.cms_import import take_in
from douban_pipeline.comments.cms_moderation import CmsModeration
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline_tests.comments.serving import Served, served
from douban_pipeline_tests.harness.fixtures.scenario import subject
from douban_pipeline_tests.live_cms.live_site import Film, LiveSite


@pytest.fixture
def service(site: LiveSite, tmp_path: Path) -> Iterator[Served]:
    """The comment service, whose tables stand beside the CMS's."""
    url = site.cms.url.render_as_string(hide_password=False)
    TREE.upgrade(site.library.engine)
    with served(tmp_path, library_url=url, cms_login=True) as service:
        yield service


def shown(service: Served, object_id: int) -> dict[str, str]:
    """Return what anybody sees of a section: the authors' names by their texts."""
    return {
        "".join(piece.get("text", "") for piece in item["pieces"]): item["author"]["name"]
        for item in service.page(object_id)["items"]
    }


def write(browser: httpx.Client, film: Film, text: str) -> None:
    """Comment on the film at the CMS's own page."""
    fields = {"comment_mid": 1, "comment_rid": film.vod_id, "comment_content": text, "comment_pid": 0}
    answer = browser.post("/index.php/comment/saveData.html", data=fields).json()
    assert answer["code"] == 1, answer


def test_the_login_of_the_cms_says_who_writes(site: LiveSite, service: Served) -> None:
    section = service.section()
    cookies = dict(site.cms.visitor("linxiaoyu").cookies)

    def publish(text: str, **changed: str) -> int:
        sent = {name: value for name, value in {**cookies, **changed}.items() if value}
        cookie = "; ".join(f"{name}={value}" for name, value in sent.items())
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        answer = service.call("POST", f"/sections/1/{section}/comments", json={"content": text}, headers=headers)
        return answer.status_code

    assert publish("没有登录", user_check="") == 401
    assert publish("猜的", user_check="0" * 32) == 401
    assert publish("别人的", user_id=str(int(cookies["user_id"]) + 1)) == 401
    assert publish("我登录了") == 202
    service.work()
    assert shown(service, section) == {"我登录了": "linxiaoyu"}


def test_what_visitors_wrote_in_the_cms_is_taken_in_once_as_its_admin_has_it(site: LiveSite, service: Served) -> None:
    film = site.film(subject(90_230_000, "夜航船上的信"))
    first, second = site.cms.visitor("chenmoran"), site.cms.visitor("sunqiang")
    text = "“好看”……看了三遍 <3 & 还要看 é"
    write(first, film, text)
    write(second, film, "加群领资源")
    [hidden] = site.library.query("SELECT comment_id FROM mac_comment WHERE comment_content = '加群领资源'")
    site.cms.admin.set_comment(hidden["comment_id"], 0)
    for taken in (2, 0):
        report = take_in(service.services, 1000)
        assert report is not None
        assert report.taken == taken
        service.work()
        assert shown(service, film.vod_id) == {text: "chenmoran"}
    assert service.differences() == []


def test_what_the_admin_hides_shows_again_and_deletes_is_followed(site: LiveSite, service: Served) -> None:
    film = site.film(subject(90_230_001, "灯塔守夜人"))
    write(site.cms.visitor("zhouwen"), film, "先看再说")
    [row] = site.library.query(f"SELECT comment_id FROM mac_comment WHERE comment_rid = {film.vod_id}")
    take_in(service.services, 1000)
    moderation = CmsModeration(service.services)

    def seen_after_a_round() -> dict[str, str]:
        moderation.turn()
        service.work()
        return shown(service, film.vod_id)

    there = {"先看再说": "zhouwen"}
    assert seen_after_a_round() == there
    site.cms.admin.set_comment(row["comment_id"], 0)
    assert seen_after_a_round() == {}
    site.cms.admin.set_comment(row["comment_id"], 1)
    assert seen_after_a_round() == there
    site.cms.delete_comment(row["comment_id"])
    assert seen_after_a_round() == {}
