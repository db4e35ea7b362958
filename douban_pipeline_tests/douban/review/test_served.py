"""The served sheet behind its page: claims, what is refused, and posters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.pictures import MOST_BYTES, NoPicture
from douban_pipeline.douban.review.served.claims import HIDDEN_LEASE, LEASE, Claims
from douban_pipeline.douban.review.served.desk import ReviewDesk
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.browser.served import HeldBatches, served
from douban_pipeline_tests.douban.review.shelves import Case, decision_of, shelved

ONE, OTHER = "a" * 32, "b" * 32
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


def test_a_video_is_claimed_by_one_until_it_is_given_up_or_forgotten(shared_library):
    library = shelved(shared_library, [])
    claims = Claims(library.services)
    assert claims.take(ONE, "小王", [3, 1, 2, 4], 3) == [3, 1, 2]
    assert claims.take(OTHER, "小李", [1, 2, 3, 4, 5], 3) == [4, 5]
    assert claims.take(ONE, "小王", [1, 2, 3], 3) == [1, 2, 3], "one's own stay"
    assert claims.of_others(ONE) == {4: "小李", 5: "小李"}
    # Held for longer: what is named. The others run out by themselves: their cards may be on their way.
    library.clock.advance(seconds=20)
    claims.renew(ONE, "小王", {1, 2})
    assert claims.take(OTHER, "小李", [1, 2, 3], 3) == []
    library.clock.advance(seconds=LEASE.total_seconds() - 19)
    assert claims.take(OTHER, "小李", [1, 2, 3], 3) == [3]
    claims.renew(ONE, "小王", {1, 2, 3})
    assert claims.of_others(OTHER) == {1: "小王", 2: "小王"}, "what somebody else took is theirs"
    # Run out, and taken by nobody: still the page's, also where somebody tidied up.
    library.clock.advance(seconds=LEASE.total_seconds() + 1)
    assert claims.of_others(OTHER) == {}
    assert claims.take(OTHER, "小李", [1], 5) == [1]
    claims.renew(ONE, "小王", {1, 2})
    assert claims.of_others(OTHER) == {2: "小王"}
    # Given up: what is named, by who holds it.
    claims.release(OTHER, {1, 2})
    assert claims.of_others("") == {2: "小王"}


def test_who_asks_for_cards_is_told_to_each_holder_once(shared_library):
    library = shelved(shared_library, [])
    claims = Claims(library.services)
    claims.take(ONE, "小王", [1, 2], 2)
    claims.take(OTHER, "小李", [3], 1)
    assert claims.ask(OTHER, "小李") == 2
    claims.renew(ONE, "小王", {1, 2})
    assert (claims.asked_by(OTHER), claims.asked_by(ONE), claims.asked_by(ONE)) == ("", "小李", "")
    # Who asks again is heard again; a claim that has ended is not asked for.
    assert claims.ask(OTHER, "小李") == 2
    assert claims.asked_by(ONE) == "小李"
    library.clock.advance(seconds=LEASE.total_seconds() + 1)
    assert claims.ask(OTHER, "小李") == 0


def test_a_page_that_nobody_sees_keeps_its_claims_longer(shared_library):
    library = shelved(shared_library, [])
    claims = Claims(library.services)
    claims.take(ONE, "小王", [1], 1)
    claims.renew(ONE, "小王", {1}, hidden=True)
    library.clock.advance(seconds=HIDDEN_LEASE.total_seconds() - 1)
    assert claims.of_others(OTHER) == {1: "小王"}
    claims.renew(ONE, "小王", {1})
    library.clock.advance(seconds=LEASE.total_seconds() + 1)
    assert claims.of_others(OTHER) == {}


def test_a_page_that_is_loaded_again_goes_on_with_its_claims(shared_library):
    claims = Claims(shelved(shared_library, []).services)
    assert claims.take(ONE, "小王", [1, 2], 2) == [1, 2]
    claims.hand_over(ONE, f"{ONE}-2")
    # What the page gives up under its former name comes late.
    claims.release(ONE, {1, 2})
    assert claims.take(OTHER, "小李", [1, 2, 3], 3) == [3]
    assert claims.take(f"{ONE}-2", "小王", [1, 2], 2) == [1, 2]


def test_cards_that_are_on_their_way_stay_a_pages_when_it_asks_what_changed(shared_library):
    library = shelved(shared_library, [Case(vod_id) for vod_id in range(1, 7)])
    desk = ReviewDesk(library.services, HeldBatches(library))
    first = {card["vod"] for card in desk.cards(ONE, "小王", [1, 2], 2)["cards"]}
    on_their_way = [card["vod"] for card in desk.cards(ONE, "小王", [3, 4], 2)["cards"]]
    assert on_their_way == [3, 4]
    assert desk.live(ONE, "小王", first, [])["gone"] == []
    assert [card["vod"] for card in desk.cards(OTHER, "小李", [3, 4, 5], 3)["cards"]] == [5]
    desk.release(ONE, first)
    assert [card["vod"] for card in desk.cards(OTHER, "小李", [1, 2, 3, 4], 4)["cards"]] == [1, 2]


def test_of_many_that_claim_at_once_each_video_goes_to_one(shared_library):
    library = shelved(shared_library, [])
    services = library.services
    taken: list[list[int]] = []
    begin = threading.Barrier(4)

    def claim(holder: str) -> None:
        begin.wait()
        taken.append(Claims(services).take(holder, "", list(range(1, 41)), 10))

    threads = [threading.Thread(target=claim, args=(letter * 32,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [vod_id for each in taken for vod_id in each]
    assert len(every) == len(set(every))


@pytest.fixture
def asking(shared_library) -> Iterator[httpx.Client]:
    """The service with two videos that wait; what is recorded is not applied."""
    library = shelved(shared_library, [Case(4), Case(5, {"vod_name": "乙"})])
    with served(library) as (service, _):
        origin = service.url.removesuffix("/review/")
        with httpx.Client(base_url=service.url, headers={"Origin": origin}, trust_env=False) as client:
            yield client


GOOD = {"request": ONE, "reviewer": "小王", "decisions": [{"vod_id": 4, "action": "rematch"}]}


UNKNOWN = {"run": "0" * 36, "vod": 4, "actions": ["rematch"]}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("decisions", GOOD, 200),
        ("decisions", {**GOOD, "reviewer": "pipeline"}, 422),
        ("decisions", {**GOOD, "reviewer": " "}, 422),
        ("decisions", {**GOOD, "request": "x"}, 422),
        ("decisions", {**GOOD, "decisions": []}, 422),
        ("decisions", {**GOOD, "decisions": [{"vod_id": 4, "action": "drop_table"}]}, 422),
        ("decisions", {**GOOD, "decisions": [{"vod_id": {"env": "HOME"}, "action": "rematch"}]}, 422),
        ("decisions", {**GOOD, "decisions": [{"vod_id": 4, "action": "rematch", "note": {"env": "HOME"}}]}, 422),
        ("decisions", {**GOOD, "reviewer": {"env": "HOME"}}, 422),
        ("cards", {"page": ONE, "wanted": [4], "most": 1000}, 422),
        (
            "undo",
            {"request": ONE, "reviewer": "小王", "sent": {"run": "0" * 36, "vod": 4, "actions": ["rematch"]}},
            409,
        ),
    ],
)
def test_what_is_no_decision_is_refused(asking: httpx.Client, path: str, body: dict[str, Any], status: int):
    assert asking.post(path, json=body).status_code == status


def test_the_queue_has_a_line_a_video_and_a_card_for_who_claims_it(asking: httpx.Client):
    lines = asking.get("queue", params={"page": ONE}).json()["items"]
    assert {line["vod"] for line in lines} == {4, 5}
    found = asking.post("cards", json={"page": ONE, "wanted": [4, 5], "most": 1}).json()
    [card] = found["cards"]
    line = next(line for line in lines if line["vod"] == card["vod"])
    assert {name: card[name] for name in line if name != "group"} == {
        name: line[name] for name in line if name != "group"
    }
    other = asking.post("cards", json={"page": OTHER, "wanted": [4, 5], "most": 5}).json()
    assert [each["vod"] for each in other["cards"]] == [5]
    assert other["gone"] == [4]
    asking.post("cards", json={"page": "c" * 32, "reviewer": "小李", "wanted": [4, 5], "most": 5})
    assert asking.get("queue", params={"page": "d" * 32}).json()["others"] == [["", 2]]
    page = asking.get("")
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert "img-src 'self'" in page.headers["content-security-policy"]


@pytest.mark.parametrize("number", ["0", "-1", "4294967296", "9" * 30])
def test_a_number_that_no_video_has_is_no_picture(asking: httpx.Client, number: str):
    for kind in ("video", "subject", "frame"):
        assert asking.get(f"picture/{kind}/{number}").status_code == 404


def test_a_page_opens_with_the_first_cards_and_their_lines(shared_library):
    library = shelved(shared_library, [Case(vod_id, {"vod_hits": 1000 - vod_id}) for vod_id in range(1, 101)])
    desk = ReviewDesk(library.services, HeldBatches(library))
    whole = desk.queue(ONE)
    found = desk.open(ONE, "小王", 12)
    assert (found["waiting"], found["version"]) == (100, whole["version"])
    assert [card["vod"] for card in found["cards"]] == [line["vod"] for line in whole["items"][:12]]
    assert found["items"] == whole["items"][: len(found["items"])]
    assert 12 < len(found["items"]) < 100, "a window, not all"
    # Whoever comes next is offered what the first one does not look at, also from a list that is somewhat old.
    decided = found["items"][12]["vod"]
    library.insert(library.tables.decision, [decision_of(library, decided, DecisionAction.rematch, 0, "pending")])
    library.clock.advance(seconds=20)
    other = desk.open(OTHER, "小李", 12)
    assert other["version"] == whole["version"]
    assert [card["vod"] for card in other["cards"]] == [line["vod"] for line in whole["items"][13:25]]
    assert decided not in {line["vod"] for line in other["items"]}
    library.clock.advance(minutes=6)
    assert desk.open(OTHER, "小李", 12)["version"] != whole["version"]


@contextmanager
def answering(answer: Any) -> Iterator[str]:
    """Yield the address of a server whose ``answer`` takes method, path and body, and returns status, headers, body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer("GET", self.path, b"")
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            status, _, body = answer("POST", self.path, content)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_picture_is_shown_where_none_can_be_kept(shared_library, tmp_path):
    library = shelved(shared_library, [Case(4, {"vod_pic": "upload/a.png"})])
    (tmp_path / "cache").write_bytes(b"a file where the folder should be")
    with answering(lambda method, path, body: (200, {"Content-Type": "image/png"}, PNG)) as url:
        library.options = {"site_url": url, "home": tmp_path}
        assert Pictures(library.services).of("video", 4).body == PNG


def test_posters_are_fetched_once_and_only_if_they_are_small_pictures_of_the_site_or_of_the_public(
    shared_library, tmp_path
):
    asked: list[str] = []

    def site(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked.append(path)
        if path == "/moved.png":
            return 302, {"Location": "http://127.0.0.1:9/inside.png"}, b""
        if path == "/huge.png":
            return 200, {}, PNG + b"0" * MOST_BYTES
        return 200, {"Content-Type": "image/png"}, PNG if path == "/upload/a.png" else b"<svg onload=alert(1)>"

    shots = {7: "开头$upload/a.png#结尾$upload/b.png"}
    paths = {4: "upload/a.png", 5: "/page.png", 6: "/huge.png", 7: "/moved.png", 8: "http://127.0.0.1:9/x.png", 9: ""}
    library = shelved(
        shared_library,
        [Case(vod_id, {"vod_pic": path, "vod_pic_screenshot": shots.get(vod_id)}) for vod_id, path in paths.items()],
    )
    with answering(site) as url:
        library.options = {"site_url": url, "home": tmp_path}
        pictures = Pictures(library.services)
        found = pictures.of("video", 4)
        assert (found.body, found.media_type) == (PNG, "image/png")
        assert pictures.of("video", 4).body == PNG
        assert pictures.of("frame", 7).body == PNG
        assert asked == ["/upload/a.png"]
        for vod_id in (5, 6, 7, 8, 9, 10):
            with pytest.raises(NoPicture):
                pictures.of("video", vod_id)
        for kind, number in (("subject", 4), ("file", 4), ("frame", 4)):
            with pytest.raises(NoPicture):
                pictures.of(kind, number)


@pytest.mark.parametrize(
    ("stored", "address"),
    [
        ("upload/vod/1.jpg", "https://site.example/upload/vod/1.jpg"),
        ("/upload/vod/1.jpg", "https://site.example/upload/vod/1.jpg"),
        ("mac://img.example/1.jpg", "http://img.example/1.jpg"),
        ("//img.example/1.jpg", "https://img.example/1.jpg"),
        ("https://img.example/1.jpg#err", "https://img.example/1.jpg"),
        ("javascript:alert(1)", "https://site.example/javascript:alert(1)"),
        ("ftp://img.example/1.jpg", ""),
        ("", ""),
    ],
)
def test_where_a_poster_is(stored: str, address: str):
    assert picture_address(stored, "https://site.example/") == address
