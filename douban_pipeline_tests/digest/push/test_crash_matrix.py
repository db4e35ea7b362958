"""Killed before the insert, between insert and sending, between parts, and after sending: what arrives, how often.

The children are killed with SIGKILL at the point named; then the slot is run again and the outbox emptied, as a
restarted daemon does. The table is the promise.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from douban_pipeline_tests.digest.push.crashing import place_of
from douban_pipeline_tests.digest.push.office import TEN_PM, office
from douban_pipeline_tests.stand_ins.push_server import PushServer

MATRIX = {
    # (killed, type): (how often the first part arrives, how often the second, state at the end)
    ("before the insert", "report"): (1, 1, "sent"),
    ("before the insert", "finding"): (1, 1, "sent"),
    ("before the claim", "report"): (1, 1, "sent"),
    ("before the claim", "finding"): (1, 1, "sent"),
    ("before sending", "report"): (1, 1, "sent"),
    ("before sending", "finding"): (0, 0, "unknown"),
    ("between parts", "report"): (1, 1, "sent"),
    ("between parts", "finding"): (1, 0, "unknown"),
    # Between a part's answer and the note of it nobody can know: the report rather twice, the finding rather never.
    ("before the note", "report"): (2, 1, "sent"),
    ("before the note", "finding"): (1, 0, "unknown"),
    # What was noted as taken whole is not sent again, and is known to have arrived.
    ("before the mark", "report"): (1, 1, "sent"),
    ("before the mark", "finding"): (1, 1, "sent"),
}


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_what_arrives_after_a_kill(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue(f"{engine}_url")
    with PushServer(now=TEN_PM.timestamp) as platforms:
        channels = platforms.channel("wecom")
        cases = [f"{point}:{push_type}" for point, push_type in MATRIX]
        with office(tmp_path, channels, url):
            pass  # the tables
        module = "douban_pipeline_tests.digest.push.crashing"
        command = [sys.executable, "-m", module, str(tmp_path), url, channels, *cases]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == str(len(MATRIX))
        with office(tmp_path, channels, url) as place:
            platforms.now = lambda: place.clock.now().timestamp()
            place.clock.advance(minutes=1)
            for number, (_, push_type) in enumerate(MATRIX):
                place.enqueue(push_type, **place_of(number))
            place.push()
            states = {row.target_url: row.state.value for row in place.rows()}
    arrived = Counter((taken.url, taken.title[-5:]) for taken in platforms.taken)
    urls = [place_of(number)["target_url"] for number in range(len(MATRIX))]
    outcomes = {
        case: (arrived[url, "(1/2)"], arrived[url, "(2/2)"], states[url])
        for case, url in zip(MATRIX, urls, strict=True)
    }
    assert outcomes == MATRIX
    assert not platforms.refused
