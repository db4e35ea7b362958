"""A reviewer at a sheet in a browser: one key a video, timed in the page, until all have been decided."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from playwright.sync_api import Page

REVIEWER = "小王"
_MOST_WAITED = 120_000.0

_WATCH = """() => {
  window.took = [];
  addEventListener("keydown", () => {
    const began = performance.now();
    // After the frame with the next card: what a person waits for.
    requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - began), 0));
  }, true);
}"""
_READY = """() => {
  const card = document.querySelector("article.current.filled:not(.done)");
  if (!card) return document.querySelector("#empty:not([hidden])")?.textContent.startsWith("没有") ? { vod: 0 } : null;
  const heads = [...card.querySelectorAll("th.candidate a.id")].map((each) => parseInt(each.textContent, 10));
  return { vod: Number(card.dataset.vod), heads, held: Boolean(card.querySelector("button.duplicate")) };
}"""


@dataclass(slots=True)
class Sitting:
    """What a reviewer did.

    Attributes:
        chosen: When each video was decided, by unix seconds.
        keys: Keys pressed.
        milliseconds: From each key to the frame that follows.
    """

    chosen: dict[int, float] = field(default_factory=dict)
    keys: int = 0
    milliseconds: list[float] = field(default_factory=list)

    @property
    def keys_each(self) -> float:
        """Keys a video."""
        return self.keys / max(len(self.chosen), 1)


def review(
    page: Page,
    truth: Mapping[int, int],
    count: int,
    *,
    pace: float,
    between: Callable[[int], None] = lambda _: None,
) -> Sitting:
    """Decide about the cards as they come: the right candidate by its number, none by `r`, conflicts by `a`.

    Args:
        page: The sheet, signed, as it opens.
        truth: The right subject of each video.
        count: About how many videos.
        pace: Least seconds from one choice to the next.
        between: Called after each choice with how many there were.
    """
    sitting = Sitting()
    page.evaluate(_WATCH)
    for number in range(1, count + 1):
        began = time.monotonic()
        card = page.wait_for_function(_READY, timeout=_MOST_WAITED).json_value()
        vod = card["vod"]
        if not vod:
            break
        right = truth.get(vod, 0)
        rank = card["heads"].index(right) + 1 if right in card["heads"] else 0
        # Of a duplicate the conflict is accepted before it is chosen: the choice goes on to the next card.
        keys = [*("a" if rank and card["held"] else ""), str(rank) if rank else "r"]
        sitting.chosen[vod] = time.time()
        for each in keys:
            page.keyboard.press(each)
        sitting.keys += len(keys)
        between(number)
        time.sleep(max(0.0, pace - (time.monotonic() - began)))
    sitting.milliseconds = list(page.evaluate("() => window.took"))
    return sitting


def shares(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the value that 95 % do not exceed (nearest rank), and the largest."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[-(-len(ordered) * 95 // 100) - 1], ordered[-1]
