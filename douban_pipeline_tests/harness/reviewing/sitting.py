"""A reviewer at a sheet in a browser: one key a video, timed in the page, until all have been decided."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

REVIEWER = "小王"
_MOST_WAITED = 120_000.0
_MOST_KEYS_EACH = 4

_WATCH = """() => {
  window.took = [];
  window.scripts = [];
  let began = 0;
  addEventListener("keydown", () => {
    const at = (began = performance.now());
    // After the frame with the next card: what a person waits for.
    requestAnimationFrame(() => setTimeout(() => window.took.push(performance.now() - at), 0));
  }, true);
  // Behind the page's own: what of it was the page's work.
  addEventListener("keydown", () => window.scripts.push(performance.now() - began));
}"""
_FIRST = "() => document.querySelector('article.current.filled')"
_READY = """() => {
  // What would be refused stays the current card, also while it waits to be sent.
  const card = document.querySelector("article.current.filled:not(.done), article.current.filled:has(.warnings li)");
  if (!card) return document.querySelector("#empty:not([hidden])")?.textContent.startsWith("没有") ? { vod: 0 } : null;
  const heads = [...card.querySelectorAll("th.candidate")];
  const held = (head) => [...head.querySelectorAll(".flag.bad")].some((flag) => flag.textContent.startsWith("已关联"));
  return {
    vod: Number(card.dataset.vod),
    heads: heads.map((head) => parseInt(head.querySelector("a.id").textContent, 10)),
    held: heads.map(held),
    chosen: Boolean(card.querySelector(".warnings li")) && Boolean(card.querySelector("th.picked")),
    locked: card.querySelector("button.override")?.getAttribute("aria-pressed") === "false",
  };
}"""


@dataclass(slots=True)
class Sitting:
    """What a reviewer did."""

    chosen: dict[int, float] = field(default_factory=dict)
    keys: int = 0
    milliseconds: list[float] = field(default_factory=list)
    scripts: list[float] = field(default_factory=list)

    @property
    def keys_each(self) -> float:
        """Keys a video."""
        return self.keys / max(len(self.chosen), 1)


@dataclass(frozen=True, slots=True)
class Openings:
    """A long queue, opened some times in a browser: the first time of a service that was just started."""

    waiting: int
    sitting: Sitting
    seconds: list[float]
    cpu: list[float]
    sent: list[int]


def review(
    page: Page,
    truth: Mapping[int, int],
    count: int,
    *,
    pace: float,
    between: Callable[[int], None] = lambda _: None,
) -> Sitting:
    """Decide about the cards as they come: the right candidate by its number, with Shift if it is linked; none by `r`.

    A card that stays and warns is meant nevertheless: `w` where the site's lock refuses it, else `d`.
    """
    sitting = Sitting()
    page.wait_for_function(_FIRST, timeout=_MOST_WAITED)
    page.evaluate(_WATCH)
    while len(sitting.chosen) < count and sitting.keys < _MOST_KEYS_EACH * count:
        began = time.monotonic()
        card = page.wait_for_function(_READY, timeout=_MOST_WAITED).json_value()
        vod = card["vod"]
        if not vod:
            break
        right = truth.get(vod, 0)
        rank = card["heads"].index(right) + 1 if right in card["heads"] else 0
        shifted = "Shift+Digit" if rank and card["held"][rank - 1] else ""
        meant = "w" if card["locked"] else "d"
        key = meant if card["chosen"] else f"{shifted}{rank}" if rank else "r"
        sitting.chosen[vod] = time.time()
        page.keyboard.press(key)
        sitting.keys += 1
        if not card["chosen"]:
            between(len(sitting.chosen))
        time.sleep(max(0.0, pace - (time.monotonic() - began)))
    sitting.milliseconds, sitting.scripts = page.evaluate("() => [window.took, window.scripts]")
    return sitting


def shares(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the value that 95 % do not exceed (nearest rank), and the largest; zeros of nothing."""
    if not values:
        return 0.0, 0.0, 0.0
    ordered = sorted(values)
    return statistics.median(ordered), ordered[-(-len(ordered) * 95 // 100) - 1], ordered[-1]
