"""Answers that never end, come too late, are far too many, or lead into a private network: each over a real socket."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from douban_pipeline.core import addresses
from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds import subscriptions
from douban_pipeline.feeds.subscriptions import SourceRequest
from douban_pipeline.feeds.types import PollOutcome
from douban_pipeline_tests.feeds.stage import START, Stage, hourly, stage

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nTransfer-Encoding: chunked\r\n\r\n"
ITEM = b"<item><guid isPermaLink='false'>%d</guid><title>t</title></item>"


class RawServer(socketserver.ThreadingTCPServer):
    """Answers each path by a function that writes to the socket as it likes, until the other side hangs up."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answers: dict[str, Callable[[Callable[[bytes], object]], None]]) -> None:
        self.asked: list[str] = []
        self.stopped = threading.Event()
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                path = self.rfile.readline().split()[1].decode()
                while self.rfile.readline().strip():
                    pass
                server.asked.append(path)
                with suppress(OSError):  # hung up, as it should
                    answers[path](self.request.sendall)

        super().__init__(("127.0.0.1", 0), Handler)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_address[1]}{path}"


@pytest.fixture
def raw() -> Iterator[RawServer]:
    def endless(send: Callable[[bytes], object]) -> None:
        send(CHUNKED)
        block = b" " * 65_536
        while not server.stopped.is_set():
            send(b"%x\r\n%b\r\n" % (len(block), block))

    def trickling(send: Callable[[bytes], object]) -> None:
        send(CHUNKED)
        while not server.stopped.wait(0.02):  # often enough that no single read ever times out
            send(b"1\r\n \r\n")

    def late(send: Callable[[bytes], object]) -> None:
        server.stopped.wait(60)
        send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def many(send: Callable[[bytes], object]) -> None:
        items = b"".join(ITEM % number for number in range(100_000))
        body = b"<?xml version='1.0'?><rss version='2.0'><channel><title>many</title>" + items + b"</channel></rss>"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nContent-Length: %d\r\n\r\n"
        send(head % len(body) + body)

    def inwards(send: Callable[[bytes], object]) -> None:
        target = server.url("/many", "127.0.0.2").encode()
        send(b"HTTP/1.1 302 Found\r\nLocation: " + target + b"\r\nContent-Length: 0\r\n\r\n")

    answers = {"/endless": endless, "/trickling": trickling, "/late": late, "/many": many, "/inwards": inwards}
    with RawServer(answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.stopped.set()
        server.shutdown()
        thread.join()


def follow(at: Stage, *urls: str) -> list[str]:
    report = subscriptions.follow(at.services, [SourceRequest(url=url) for url in urls], dry_run=False)
    at.make_due()
    return [each.source_id for each in report.added]


def test_answers_without_an_end_are_cut_by_size_or_time_and_stop_nobody(
    tmp_path: Path, raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.services.MAX_BODY_BYTES", 1_000_000)
    well = {"well": SourceStandIn("rss", hourly(3))}
    with stage(tmp_path, well, request_timeout_seconds=0.5) as at:
        endless, trickling, late = follow(at, raw.url("/endless"), raw.url("/trickling"), raw.url("/late"))
        [good] = at.follow("well")
        report = at.poll()
        assert report.outcomes == {PollOutcome.FAILED.value: 3, PollOutcome.HIT.value: 1}
        kinds = {each: at.stats(each)["error_kind"] for each in (endless, trickling, late)}
        assert kinds == {endless: "answer too large", trickling: "no answer in time", late: "no answer in time"}
        for each in kinds:
            row = at.stats(each)
            assert (row["check_count"], row["fail_count"], row["lease_token"]) == (1, 1, "")
            assert row["next_due_at"] >= START + 15 * 60
        assert len(at.entries(good)) == 3


def test_a_feed_of_a_hundred_thousand_items_gives_its_newest_once(
    tmp_path: Path, raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.services.MAX_ENTRIES", 200)
    with stage(tmp_path, {}, request_timeout_seconds=30.0) as at:
        [many] = follow(at, raw.url("/many"))
        assert at.poll().new == 200
        assert {each["guid"] for each in at.entries(many)} == {str(number) for number in range(200)}
        at.make_due()
        again = at.poll()
        assert (again.new, again.edited, again.outcomes) == (0, 0, {PollOutcome.UNCHANGED.value: 1})


def test_a_redirect_into_a_private_network_is_not_followed(
    tmp_path: Path, raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Here 127.0.0.1 stands for the public internet: nothing else can be reached in a test.
    monkeypatch.setattr(addresses, "is_private", lambda address: address != "127.0.0.1")
    with stage(tmp_path, {}, allow_private=False) as at:
        [inwards] = follow(at, raw.url("/inwards"))
        assert at.poll().problems == {"private address refused": 1}
        assert raw.asked == ["/inwards"]
        assert at.stats(inwards)["error_kind"] == "private address refused"
        assert at.source(inwards)["url"] == raw.url("/inwards")
