"""What is said of a comment's place is said of the place at which visitors see it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from douban_pipeline.comments.scoring.impressions import add_impressions
from douban_pipeline.comments.sweep import rebuild
from douban_pipeline_tests.comments.serving import ADMIN, Served, served
from douban_pipeline_tests.conftest import server_url


@pytest.fixture(params=["database", pytest.param("redis", marks=pytest.mark.redis)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    given = {}
    if request.param == "redis":
        client = request.getfixturevalue("redis_client")
        given = {"redis_url": server_url("redis"), "redis_prefix": f"test:{uuid.uuid4().hex[:12]}:"}
    with served(tmp_path, **given) as found:
        yield found
    if given:
        for key in client.scan_iter(f"{given['redis_prefix']}*"):
            client.delete(key)


def in_order(place: Served, film: int) -> list[str]:
    """Return the comments by heat as a visitor scrolls through them."""
    found, cursor = [], None
    while True:
        page = place.page(film, sort="heat", size=7, **({"cursor": cursor} if cursor else {}))
        found += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found


def why(place: Served, comment: str) -> dict:
    answer = place.call("GET", f"/admin/comments/{comment}", ADMIN)
    assert answer.status_code == 200
    return dict(answer.json())


def section_of(place: Served, film: int) -> int:
    return int(place.page(film)["section"]["id"])


def busy(place: Served) -> tuple[int, list[str]]:
    """Return a section of 45 comments that was swept, and in which much has happened since."""
    film, roots = place.section(), []
    for number in range(45):
        roots.append(place.publish(100 + number, film, f"第 {number} 条"))
        place.clock.advance(minutes=7)
    for number, root in enumerate(roots[::4]):
        for voter in range(number):
            place.call("PUT", f"/comments/{root}/vote", 200 + voter, json={"value": 1})
    place.work()
    rebuild(place.services, section_of(place, film))
    place.clock.advance(hours=30)
    for voter in range(30):
        place.call("PUT", f"/comments/{roots[13]}/vote", 300 + voter, json={"value": 1})
    for root in roots[20:23]:
        place.publish(400, film, "回", root)
        place.call("PUT", f"/comments/{root}/vote", 401, json={"value": -1})
    place.call("DELETE", f"/comments/{roots[40]}", ADMIN)
    place.call("PUT", f"/comments/{roots[44]}/pin", ADMIN, json={"on": True})
    place.call("PUT", f"/comments/{roots[3]}/pin", ADMIN, json={"on": True})
    roots.append(place.publish(500, film, "新来的"))
    place.work()
    return film, roots


def test_every_place_that_is_explained_is_the_place_that_is_served(place):
    film, roots = busy(place)
    order = in_order(place, film)
    assert order[0] == roots[13], "the one that was just liked thirty times"
    assert len(order) == 43
    told = {comment: why(place, comment) for comment in order}
    heads = [re.match(r"第 (\d+) 名，共 (\d+) 条；得分 (-?[\d.]+)。$", told[comment]["why"][0]) for comment in order]
    assert [(int(head[1]), int(head[2])) for head in heads] == [(at, 43) for at in range(1, 44)]
    scores = [float(head[3]) for head in heads]
    assert scores == sorted(scores, reverse=True)
    for at, comment in enumerate(order, start=1):
        assert told[comment]["place_by_heat"] == at
        parts = [float(found) for found in re.findall(r"^\S+ ([+-][\d.]+)：", "\n".join(told[comment]["why"]), re.M)]
        assert sum(parts) == pytest.approx(scores[at - 1], abs=0.003)
        assert any(each.startswith(f"低于第 {at - 1} 名 ") for each in told[comment]["why"]) == (at > 1)
        assert any(each.startswith(f"高于第 {at + 1} 名 ") for each in told[comment]["why"]) == (at < 43)
    assert any("30 赞" in each for each in told[roots[13]]["why"])


def test_what_is_in_no_place_says_why(place):
    film, roots = busy(place)
    reply = place.publish(600, film, "回", roots[5])
    place.work()
    assert why(place, roots[3])["why"] == ["已置顶，是第 1 条置顶评论，排在列表之前，不按热度排序。"]
    assert why(place, roots[44])["why"] == ["已置顶，是第 2 条置顶评论，排在列表之前，不按热度排序。"]
    assert why(place, roots[40])["why"] == ["未显示的评论不在热度列表中。"]
    assert why(place, reply)["why"] == ["回复按楼层排列，不参加热度排序。"]


def test_impressions_since_the_score_are_said_and_change_no_place(place):
    film, roots = busy(place)
    before = in_order(place, film)
    with place.services.engine.begin() as connection:
        add_impressions(connection, {int(roots[13]): 5000}, place.clock.now())
    told = why(place, roots[13])
    assert told["place_by_heat"] == 1
    assert "按现在的数据和规则应得" in told["why"][1]
    assert in_order(place, film) == before
