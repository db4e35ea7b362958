"""The soak's upstream tells when each request ended, also of those that it keeps hanging."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from email.message import Message

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline_tests.harness.soak.upstream import DistantReplay

SUBJECT = next(subject["id"] for subject in load_subjects() if not subject.get("fault"))


def replay(delay: tuple[float, float] = (0.0, 0.0)) -> DistantReplay:
    return DistantReplay(load_subjects(), caller_timeout=4, delay=delay)


def test_every_request_has_its_end_behind_its_beginning():
    upstream = replay((0.02, 0.03))
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(upstream.respond, "GET", f"/douban.php?id={SUBJECT}", b"", Message()) for _ in range(8)]
        assert all((answer := future.result()) is not None and answer.status == 200 for future in asked)
    about = upstream.requests.describe()["douban"]
    assert len(about["times"]) == len(about["ended"]) == about["count"] == 8
    assert all(0.02 <= ended - began < 5 for began, ended in zip(about["times"], about["ended"], strict=True))


def test_a_request_that_hangs_ends_before_its_caller_gives_up():
    with replay() as upstream:
        upstream.faults.add("douban", "timeout", times=1)
        assert upstream.respond("GET", f"/douban.php?id={SUBJECT}", b"", Message()) is None
        about = upstream.requests.describe()["douban"]
    assert about["ended"][0] - about["times"][0] < 4
