"""A run that is killed in the middle of a poll: its lease runs out, nothing doubles, and checks are counted right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import START, HandClock, Stage, given_settings, hourly

LEASE = 900
CHILD = """
import sys
from pathlib import Path
from douban_pipeline.feeds import poller
from douban_pipeline.feeds.services import open_services
from douban_pipeline_tests.feeds.stage import HandClock, given_settings
settings = given_settings(Path(sys.argv[1]), request_timeout_seconds=60.0)
poller.WORKERS = 1
poller.Poller(open_services(settings, HandClock()), seconds=60).run()
"""


@dataclass
class WaitingServer(FeedServer):
    """Tells when somebody waits for the channel that never answers."""

    waiting: threading.Event = field(default_factory=threading.Event)

    def _noted(self, name: str, headers: Message, answer: HttpAnswer | None) -> HttpAnswer | None:
        noted = super()._noted(name, headers, answer)
        if answer is None:
            self.waiting.set()
        return noted


def test_a_killed_run_leaves_nothing_half_done(tmp_path: Path) -> None:
    clock = HandClock()
    channels = {name: SourceStandIn("rss", hourly(4)) for name in ("a", "b", "c")}
    channels["hanging"] = SourceStandIn("rss", hourly(4), fault="hanging")
    services = open_services(given_settings(tmp_path), clock).ready()
    with WaitingServer(lambda: clock.at, channels) as server:
        stage = Stage(services, clock, server)
        requests = [SourceRequest(url=server.url(name)) for name in ("a", "b", "hanging", "c")]
        ids = [each.source_id for each in follow(services, requests, dry_run=False).added]
        for number, each in enumerate(ids):
            with services.engine.begin() as connection:
                connection.exec_driver_sql(f"UPDATE source_stats SET next_due_at = {number} WHERE source_id = '{each}'")
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], cwd=Path(__file__).parents[2])
        assert server.waiting.wait(60)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        checks = [stage.stats(each)["check_count"] for each in ids]
        assert checks == [1, 1, 0, 0]
        # While the lease lasts nobody else asks; afterwards everything that is left is asked once.
        assert stage.poll().polled == 0
        channels["hanging"] = SourceStandIn("rss", hourly(4))
        clock.at = START + LEASE + 61
        report = Poller(services, seconds=60).run()
        assert report.polled == 2
        assert [stage.stats(each)["check_count"] for each in ids] == [1, 1, 1, 1]
        assert [stage.stats(each)["hit_count"] for each in ids] == [1, 1, 1, 1]
        assert [len(stage.entries(each)) for each in ids] == [4, 4, 4, 4]
    services.close()
