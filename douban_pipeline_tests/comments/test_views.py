"""Impressions count only of what a page showed, once a visitor; the mark of the staff is the service's to give."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from douban_pipeline.comments.identity import ViewTokens, make_token
from douban_pipeline.comments.scoring import impressions
from douban_pipeline.comments.scoring.impressions import add_views, forget_views
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.sweep import rebuild
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline_tests.comments.sections import NOW, comment_tables, plant_comments, plant_section
from douban_pipeline_tests.comments.serving import ADMIN, AUDIT, KEY, SECRET, Served, served
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


def apart() -> GuessGuard:
    """Return a guard whose minutes pass apart from the service's, so that no token ends by waiting for a limit."""
    return GuessGuard(Counters(FakeClock()))


def liked(place: Served) -> tuple[int, list[str]]:
    """Return a section with three comments that ten, nine and eight people like, in that order of heat."""
    film = place.section()
    roots = [place.publish(user, film, f"第 {user} 条") for user in (2, 3, 4)]
    place.work()
    for root, likes in zip(roots, (10, 9, 8), strict=True):
        for user in range(likes):
            place.call("PUT", f"/comments/{root}/vote", 100 + user, json={"value": 1})
    place.work()
    return film, roots


def report(place: Served, ids: list[str], view: str | None, **headers: str) -> int:
    """Report impressions as nobody; return the status."""
    place.context._guard.counters.clock.advance(minutes=1)  # whoever has time waits for the next minute
    body = {"ids": ids, **({"view": view} if view is not None else {})}
    return place.call("POST", "/impressions", json=body, headers=headers).status_code


def order_of(place: Served, film: int) -> list[str]:
    rebuild(place.services, int(place.page(film)["section"]["id"]))
    return place.listed(film, sort="heat")


def test_impressions_of_one_visitor_sink_no_rival(tmp_path: Path):
    with served(tmp_path, apart(), guests=True) as place:
        film, roots = liked(place)
        assert order_of(place, film) == roots
        view = place.page(film).get("view")
        statuses = {report(place, roots[:1], view, **{"User-Agent": f"browser {number}"}) for number in range(260)}
        assert statuses == {202}
        assert order_of(place, film) == roots


def test_what_no_page_showed_is_not_counted(tmp_path: Path):
    with served(tmp_path, apart()) as place:
        film, roots = liked(place)
        other, _ = liked(place)
        view, foreign = place.page(film)["view"], place.page(other)["view"]
        assert report(place, roots, None) == 400
        assert report(place, roots, "x.y.z") == 403
        assert report(place, roots, view[:-4] + "AAAA") == 403
        expires = place.clock.now() + timedelta(hours=1)
        assert report(place, roots, make_token(7, SECRET, expires, section=1, ids=roots)) == 403, "another key"
        assert report(place, roots, foreign) == 202
        assert place.call("GET", f"/sections/1/{film}/page", view).status_code == 401, "it identifies nobody"
        with place.services.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT SUM(shown) FROM cmt_impression").scalar() == 0
        place.clock.advance(seconds=2 * 600 + 1)
        assert report(place, roots, view) == 403, "expired"
        assert report(place, roots, place.page(film)["view"]) == 202
        with place.services.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT SUM(shown) FROM cmt_impression").scalar() == 3


def test_a_token_is_the_same_for_a_while_so_that_pages_are_not_sent_again(tmp_path: Path):
    with served(tmp_path, apart()) as place:
        film, _ = liked(place)
        path = f"/sections/1/{film}/page"
        first = place.call("GET", path)
        assert place.call("GET", path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
        place.clock.advance(seconds=601)
        again = place.call("GET", path, headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 200
        assert again.json()["view"] != first.json()["view"]
        assert report(place, [], first.json()["view"]) == 202


def test_processes_of_a_site_read_each_other_s_tokens(tmp_path: Path):
    def tokens(**values: str) -> ViewTokens:
        return ViewTokens(CommentsSettings(_env_file=None, home=tmp_path, **values))

    for shared in ({"token_secret": SECRET}, {"admin_token": ADMIN}, {"audit_token": AUDIT}):
        assert tokens(**shared).read(tokens(**shared).issue(1, [7, 8], NOW), NOW) == {7, 8}
    with pytest.raises(ValueError, match="签名不正确"):
        tokens().read(tokens().issue(1, [7], NOW), NOW)


def test_who_saw_what_is_forgotten_after_the_windows(database_url, monkeypatch):
    monkeypatch.setattr(impressions, "_BATCH", 2)
    with comment_tables(database_url) as engine:
        plant_section(engine, 1)
        ids = plant_comments(engine, 1, [{}, {}, {}])

        def see(viewer: str, at) -> int:
            return run_transaction(engine, lambda connection: add_views(connection, ids, viewer, at))

        assert [see("u:1", NOW), see("u:1", NOW), see("u:2", NOW + timedelta(days=3))] == [3, 0, 3]
        assert forget_views(engine, NOW + impressions.KEPT) == 0
        assert forget_views(engine, NOW + impressions.KEPT + timedelta(days=1)) == 3
        assert [see("u:1", NOW + timedelta(days=9)), see("u:2", NOW + timedelta(days=9))] == [3, 0]


@pytest.mark.mariadb
def test_a_report_that_arrives_many_times_at_once_counts_once(mariadb_url, tmp_path: Path):
    with comment_tables(mariadb_url), served(tmp_path, apart(), database_url=mariadb_url) as place:
        film, roots = liked(place)
        body = {"ids": roots, "view": place.page(film)["view"]}
        counted: list[int] = []

        def send() -> None:
            counted.append(place.call("POST", "/impressions", json=body).json()["counted"])

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(counted) == 3
        with place.services.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT SUM(shown) FROM cmt_impression").scalar() == 3


def test_the_staff_has_a_mark_that_nobody_else_gets(tmp_path: Path):
    with served(tmp_path, apart(), guests=True) as place:
        film = place.section()
        path = f"/sections/1/{film}/comments"
        staff = [place.call("POST", path, token, json={"content": f"说明 {token}"}).json() for token in (ADMIN, AUDIT)]
        others = [
            place.call("POST", path, user, json={"content": f"第 {user} 条", **name}).json()
            for user, name in ((None, {"name": "小明"}), (1, {}), (5, {}))
        ]
        assert [each["labels"] for each in (*staff, *others)] == [["staff"]] * 2 + [[]] * 3
        place.work()
        place.publish(6, film, "回", staff[0]["id"])
        place.work()
        marked = {item["id"]: "staff" in item["labels"] for item in place.page(film)["items"]}
        assert marked == {each["id"]: each in staff for each in (*staff, *others)}
        ids = ",".join(marked)
        served_to = place.call("GET", "/server/comments", KEY, params={"ids": ids}).json()["comments"]
        assert {item["id"]: "staff" in item["labels"] for item in served_to} == marked
        for given in ({"labels": ["staff"]}, {"attributes": 256}, {"rank": 4}):
            assert place.call("POST", path, 5, json={"content": "我是站长", **given}).status_code == 400


def test_a_name_of_the_site_s_own_is_cleaned_too(tmp_path: Path):
    with served(tmp_path, apart()) as place:
        film, expires = place.section(), place.clock.now() + timedelta(hours=1)
        token = make_token(5, SECRET, expires, name="小\u202e明\u200b")
        answer = place.call("POST", f"/sections/1/{film}/comments", token, json={"content": "你好"})
        assert answer.json()["author"]["name"] == "小明"
