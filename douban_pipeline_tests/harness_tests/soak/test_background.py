"""What goes on beside the soak: an outage is counted, an error of its own makes the soak prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from douban_pipeline_tests.harness.soak.background import Acting
from douban_pipeline_tests.harness.soak.evidence import of_the_soak


def edits() -> str:
    return "edited"


def is_cut_off() -> str:
    raise ConnectionError("refused")


def breaks() -> str:
    raise KeyError("vod_name")


class Outsider(Acting):
    """Takes the given steps, and ends."""

    def __init__(self, steps: list[Callable[[], str]]) -> None:
        super().__init__(
            "outsider", Random(1), rhythm=(0, 0), outages=(ConnectionError,), outage="cut off", patience=1, source="A: "
        )
        self.steps = steps

    def step(self) -> str:
        step = self.steps.pop(0)
        if not self.steps:
            self.ended.set()
        return step()


@pytest.mark.parametrize(
    ("steps", "acts", "errors"),
    [
        ([edits, edits], {"edited": 2}, ()),
        ([edits, is_cut_off, edits], {"edited": 2, "cut off": 1}, ()),
        ([edits, breaks, edits], {"edited": 2}, ("A: KeyError: 'vod_name'",)),
    ],
)
def test_an_error_of_its_own_is_found(steps, acts, errors) -> None:
    outsider = Outsider([*steps])
    outsider.go_on()
    found = of_the_soak(outsider.errors, outsider.acts.total())
    assert (outsider.acts, found.held, found.violations, found.examples) == (acts, not errors, len(errors), errors)
