"""What users are told: replies, mentions, likes, decisions; nothing of what is not shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline_tests.comments.serving import ADMIN, Served, served


@pytest.fixture
def place(tmp_path) -> Iterator[Served]:
    with served(tmp_path) as opened:
        yield opened


def kinds(place: Served, user: int, **given: object) -> list[tuple[str, bool]]:
    answer = place.call("GET", "/notices", user, params=given)
    assert answer.status_code == 200, answer.text
    return [(item["kind"], item["seen"]) for item in answer.json()["items"]]


def unread(place: Served, user: int) -> int:
    return int(place.call("GET", "/notices/count", user).json()["unread"])


def test_replies_mentions_and_likes_are_told_once_counted_and_marked_as_read(place):
    film = place.section(title="某片")
    root = place.publish(2, film, "根")
    place.work()
    place.publish(3, film, "@某人:4 你看 <b>", parent=root)
    for user in (3, 5):
        place.call("PUT", f"/comments/{root}/vote", user, json={"value": 1})
    place.call("PUT", f"/comments/{root}/vote", 2, json={"value": 1})
    place.work()
    assert kinds(place, 2) == [("like", False), ("reply", False)]
    found = place.call("GET", "/notices", 2).json()["items"]
    assert found[0]["by"]["id"] == "5", "who liked it last, and not its author"
    assert found[0]["comment"]["likes"] == 3
    assert found[1]["by"] == {"id": "3", "name": "用户3"}
    assert found[1]["section"] == {"type": 1, "object_id": film, "title": "某片"}
    assert kinds(place, 4) == [("mention", False)]
    assert (unread(place, 2), unread(place, 4), unread(place, 9)) == (2, 1, 0)
    marked = place.call("POST", "/notices/read", 2, json={"upto": found[0]["id"]}).json()
    assert marked == {"marked": 2}
    assert (unread(place, 2), unread(place, 4)) == (0, 1), "only one's own"
    assert kinds(place, 2) == [("like", True), ("reply", True)]
    assert kinds(place, 2, unread=True) == []
    other = place.call(
        "POST", "/notices/read", 2, json={"ids": [place.call("GET", "/notices", 4).json()["items"][0]["id"]]}
    )
    assert other.json() == {"marked": 0}
    assert unread(place, 4) == 1


def test_what_is_gone_is_told_to_its_author_alone(place):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()
    reply = place.publish(3, film, "删掉的回复", parent=root)
    place.call("PUT", f"/comments/{root}/vote", 3, json={"value": 1})
    place.work()
    place.call("PUT", f"/comments/{root}/vote", 3, json={"value": 0})
    gone = {"ids": [reply], "status": 2, "reason": "违规", "dry_run": False}
    place.call("POST", "/admin/moderate", ADMIN, json=gone)
    place.work()
    assert kinds(place, 2) == [], "neither the reply nor the like are there any more"
    assert unread(place, 2) == 0
    [told] = place.call("GET", "/notices", 3).json()["items"]
    assert (told["kind"], told["by"], told["comment"]["status"]) == ("status", None, "deleted")
    assert told["comment"]["pieces"] == [{"text": "删掉的回复"}]


def test_pages_of_notices_follow_each_other_and_strangers_have_none(place):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()
    for user in range(10, 17):
        place.publish(user, film, f"回复 {user}", parent=root)
    place.work()
    found, before = [], None
    while True:
        page = place.call("GET", "/notices", 2, params={"size": 3, **({"before": before} if before else {})}).json()
        found += [item["by"]["id"] for item in page["items"]]
        before = page["next"]
        if before is None:
            break
    assert found == [str(user) for user in range(16, 9, -1)]
    for who in (None, ADMIN):
        assert place.call("GET", "/notices", who).status_code == 401
    assert place.call("GET", "/notices", 2, params={"before": "x"}).status_code == 400
