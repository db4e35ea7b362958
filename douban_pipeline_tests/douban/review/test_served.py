"""The served sheet behind its page: claims, what is refused, launches that happen once, and posters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from douban_pipeline.cms.values import picture_address
from douban_pipeline.douban.review.served.claims import LEASE, Claims
from douban_pipeline.douban.review.served.dagster_api import TAG, DagsterApi, DagsterUnavailable, RunState
from douban_pipeline.douban.review.served.desk import ReviewDesk, SentChoice
from douban_pipeline.douban.review.served.pictures import MOST_BYTES, NoPicture, Pictures
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.browser.served import served
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
    library.clock.advance(seconds=60)
    claims.renew(ONE, "小王", {1, 2})
    assert claims.take(OTHER, "小李", [1, 2, 3], 3) == []
    library.clock.advance(seconds=LEASE.total_seconds() - 59)
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
    desk = ReviewDesk(library.services, DagsterApi("http://127.0.0.1:9/graphql"))
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
    """The service with two videos that wait, and a Dagster that does not answer."""
    library = shelved(shared_library, [Case(4), Case(5, {"vod_name": "乙"})])
    with served(library, DagsterApi("http://127.0.0.1:9/graphql")) as (service, _):
        origin = service.url.removesuffix("/review/")
        with httpx.Client(base_url=service.url, headers={"Origin": origin}, trust_env=False) as client:
            yield client


GOOD = {"request": ONE, "reviewer": "小王", "decisions": [{"vod_id": 4, "action": "rematch"}]}


UNKNOWN = {"run": "0" * 36, "vod": 4, "actions": ["rematch"]}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("decisions", GOOD, 503),
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
    page = asking.get("")
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert "img-src 'self'" in page.headers["content-security-policy"]


def test_a_page_opens_with_the_first_cards_and_their_lines(shared_library):
    library = shelved(shared_library, [Case(vod_id, {"vod_hits": 1000 - vod_id}) for vod_id in range(1, 101)])
    desk = ReviewDesk(library.services, DagsterApi("http://127.0.0.1:9/graphql"))
    whole = desk.queue(ONE)
    found = desk.open(ONE, "小王", 12)
    assert (found["waiting"], found["version"]) == (100, whole["version"])
    assert [card["vod"] for card in found["cards"]] == [line["vod"] for line in whole["items"][:12]]
    assert found["items"] == whole["items"][: len(found["items"])]
    assert 12 < len(found["items"]) < 100, "a window, not all"
    # Whoever comes next is offered what the first one does not look at, also from a list that is somewhat old.
    decided = found["items"][12]["vod"]
    library.insert(library.tables.decision, [decision_of(library, decided, DecisionAction.rematch, 0, "pending")])
    library.clock.advance(seconds=30)
    other = desk.open(OTHER, "小李", 12)
    assert other["version"] == whole["version"]
    assert [card["vod"] for card in other["cards"]] == [line["vod"] for line in whole["items"][13:25]]
    assert decided not in {line["vod"] for line in other["items"]}
    library.clock.advance(minutes=6)
    assert desk.open(OTHER, "小李", 12)["version"] != whole["version"]


def test_dagster_is_asked_once_for_all_choices_of_a_run(shared_library):
    asked: list[str] = []

    class Counted(DagsterApi):
        def state(self, run_id: str) -> RunState:
            asked.append(run_id)
            return RunState(ended=run_id != OTHER, failed=False)

    library = shelved(shared_library, [Case(vod_id) for vod_id in range(1, 11)])
    recorded = {**decision_of(library, 1, DecisionAction.rematch, 0, "pending"), "run_id": ONE}
    library.insert(library.tables.decision, [recorded])
    desk = ReviewDesk(library.services, Counted("http://127.0.0.1:9/graphql"))
    sent = [SentChoice(ONE, vod_id, ("rematch",)) for vod_id in range(1, 6)]
    sent += [SentChoice(OTHER, vod_id, ("rematch",)) for vod_id in range(6, 11)]
    found = desk.live(ONE, "", set(), sent)["states"]
    assert sorted(asked) == [ONE, OTHER]
    assert {each["vod"]: each["state"] for each in found} == {
        1: "recorded",
        2: "already",
        3: "already",
        4: "already",
        5: "already",
    }


@pytest.mark.parametrize("override", [False, True])
def test_an_undo_overrides_the_sites_lock_where_the_choice_did(shared_library, override):
    launched: list[dict[str, Any]] = []

    class Launching(DagsterApi):
        def launch(self, job: str, config: Any, request: str, tags: Any = None) -> str:
            launched.append(config["ops"]["revert_writes"]["config"])
            return OTHER

    library = shelved(shared_library, [Case(1, {"vod_lock": 1})])
    choice = decision_of(library, 1, DecisionAction.set_id, 7, "applied")
    lock = decision_of(library, 1, DecisionAction.lock_id, 7, "applied")
    library.insert(
        library.tables.decision,
        [{**choice, "run_id": ONE, "override_cms_lock": override}, {**lock, "run_id": ONE, "override_cms_lock": False}],
    )
    desk = ReviewDesk(library.services, Launching("http://127.0.0.1:9/graphql"))
    assert desk.undo("r", "小李", SentChoice(ONE, 1, ("set_id", "lock_id"))) == OTHER
    [config] = launched
    assert (len(config["decision_ids"]), config["override_cms_lock"]) == (2, override)


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


def test_a_launch_that_is_asked_for_again_finds_its_run():
    runs: dict[str, str] = {}
    launched: list[dict[str, Any]] = []

    def dagster(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = json.loads(body)
        values = asked["variables"]
        if "launchRun" in asked["query"]:
            params = values["params"]
            [tag] = params["executionMetadata"]["tags"]
            launched.append(params)
            runs[tag["value"]] = f"run-{len(launched)}"
            data = {"launchRun": {"__typename": "LaunchRunSuccess", "run": {"runId": runs[tag["value"]]}}}
        elif "runsOrError" in asked["query"]:
            [tag] = values["filter"]["tags"]
            assert tag["key"] == TAG
            found = [{"runId": runs[tag["value"]]}] if tag["value"] in runs else []
            data = {"runsOrError": {"__typename": "Runs", "results": found}}
        else:
            place = {"name": "__repository__", "location": {"name": "ours"}, "jobs": [{"name": "record_decisions"}]}
            data = {"repositoriesOrError": {"nodes": [place]}}
        return 200, {}, json.dumps({"data": data}).encode()

    with answering(dagster) as url:
        api = DagsterApi(f"{url}/graphql")
        assert api.launch("record_decisions", {"ops": {}}, ONE) == "run-1"
        assert api.launch("record_decisions", {"ops": {}}, ONE) == "run-1"
        assert api.launch("record_decisions", {"ops": {}}, OTHER) == "run-2"
        assert launched[0]["selector"]["repositoryLocationName"] == "ours"
        with pytest.raises(DagsterUnavailable, match="没有任务"):
            api.launch("no_such_job", {}, "c" * 32)
    with pytest.raises(DagsterUnavailable, match="没有应答"):
        api.launch("record_decisions", {}, "d" * 32)


def test_an_error_of_dagster_says_nothing_of_runs_and_jobs():
    def dagster(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        query = json.loads(body)["query"]
        [field] = [name for name in ("runOrError", "runsOrError", "repositoriesOrError", "launchRun") if name in query]
        asked.append(field)
        failed = {"__typename": "PythonError", "message": "OperationalError: database is locked"}
        return 200, {}, json.dumps({"data": {field: failed}}).encode()

    asked: list[str] = []
    with answering(dagster) as url:
        api = DagsterApi(f"{url}/graphql")
        for call in (api.state, api.failure, lambda run: api.launch("record_decisions", {}, run)):
            with pytest.raises(DagsterUnavailable, match="出错：OperationalError: database is locked"):
                call(ONE)
    assert asked == ["runOrError", "runOrError", "runsOrError"], "nothing is launched that may be under way"


LOST = "This run has been marked as failed from outside the execution context."


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [
                {"__typename": "EngineEvent", "message": "Started process for run (pid: 7).", "error": None},
                {
                    "__typename": "RunFailureEvent",
                    "message": "Run timed out due to taking longer than 120 seconds to start.",
                },
            ],
            "没有记录，请重新选择：运行排到了，却没能在限定的时间内启动：主机太忙，或代码服务没有应答",
        ),
        (
            [
                {
                    "__typename": "EngineEvent",
                    "message": "Caught an unrecoverable error while dequeuing the run.",
                    "error": {"message": "DagsterUserCodeUnreachableError: Could not reach user code server."},
                },
                {"__typename": "RunFailureEvent", "message": LOST},
            ],
            "没有记录，请重新选择：代码服务没有应答：正在重启或发布，或已停止",
        ),
        (
            [
                {
                    "__typename": "ExecutionStepFailureEvent",
                    "error": {"message": "dagster.Failure: 未记录任何决定"},
                    "failureMetadata": {"description": "未记录任何决定：\n- reviewer: 请填写"},
                },
                {"__typename": "RunFailureEvent", "message": 'Execution of run for "record_decisions" failed.'},
            ],
            "未记录任何决定：\n- reviewer: 请填写",
        ),
        ([{"__typename": "RunCanceledEvent"}], "没有记录，请重新选择：记录决定的运行没有成功"),
    ],
)
def test_a_reviewer_is_told_in_chinese_that_a_lost_choice_was_not_recorded(shared_library, events, reason):
    def dagster(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        query = json.loads(body)["query"]
        run = {"__typename": "Run", "status": "FAILURE", "eventConnection": {"events": events}}
        assert "runOrError" in query
        return 200, {}, json.dumps({"data": {"runOrError": run}}).encode()

    library = shelved(shared_library, [Case(1)])
    with answering(dagster) as url:
        desk = ReviewDesk(library.services, DagsterApi(f"{url}/graphql"))
        [told] = desk.live(ONE, "小王", [1], [SentChoice(ONE, 1, ("set_id",))])["states"]
    assert (told["state"], told["reason"]) == ("refused", reason)


def test_threads_that_ask_for_one_launch_make_one_run():
    runs: list[str] = []
    entered, failing = threading.Event(), threading.Event()

    class Slow(DagsterApi):
        def _tagged(self, request: str) -> str:
            return runs[0] if runs else ""

        def _launch(self, job: str, config: Any, tags: Any) -> str:
            if not entered.is_set():
                entered.set()
                failing.wait(60)
                raise DagsterUnavailable("lost")
            assert not within, "two threads launch the same request"
            within.append(tags)
            runs.append("run")
            within.pop()
            return "run"

    within: list[Any] = []
    api, found = Slow("http://127.0.0.1:9/graphql"), []

    def launch() -> None:
        with suppress(DagsterUnavailable):
            found.append(api.launch("record_decisions", {}, ONE))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    threads[0].start()
    assert entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    failing.set()
    for thread in threads:
        thread.join(60)
    assert (runs, found) == (["run"], ["run"] * 3)
    assert not api._turns


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
