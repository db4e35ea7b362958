"""A sender that is killed at a chosen point. One process forks a child a case, and the child kills itself with SIGKILL.

``python -m douban_pipeline_tests.digest.push.crashing HOME URL CHANNELS POINT:TYPE…`` prints how many were killed.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Part
from douban_pipeline.digest.push import outbox
from douban_pipeline_tests.digest.push.office import DAY, Office, office

LONG = "字" * 2000
"""Text of a message that WeCom gets in two parts."""


def place_of(number: int) -> dict[str, Any]:
    """The day of a case: each has its own, so that one does not see the others' messages."""
    url = f"https://example.com/daily/{number}"
    return {"report_date": DAY + timedelta(days=number), "target_url": url, "body": LONG}


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def crash(place: Office, number: int, point: str, push_type: str) -> None:
    """Write a message and send it, up to a point."""
    if point == "before the insert":
        die()
    place.enqueue(push_type, **place_of(number))
    if point == "before the claim":
        die()
    due, send = outbox.due, RobotChannel.send
    sent = 0
    # What earlier children left behind is for the pass after all of them.
    outbox.release_abandoned = lambda *_: []
    outbox.due = lambda *given: [row for row in due(*given) if row.report_date == place_of(number)["report_date"]]

    def sending(channel: RobotChannel, part: Part, **fields: Any) -> str:
        nonlocal sent
        if point == "before sending" or (point == "between parts" and sent):
            die()
        said = send(channel, part, **fields)
        if point == "before the note":
            die()
        sent += 1
        return said

    RobotChannel.send = sending  # type: ignore[method-assign]
    if point == "before the mark":
        outbox.finish = die
    place.push()


def main() -> None:
    home, url, channels, *cases = sys.argv[1:]
    killed = 0
    for number, case in enumerate(cases):
        child = os.fork()
        if child == 0:
            point, _, push_type = case.partition(":")
            with office(Path(home), channels, url) as place:
                crash(place, number, point, push_type)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    sys.stdout.write(str(killed))


if __name__ == "__main__":
    main()
