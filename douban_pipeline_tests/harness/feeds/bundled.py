"""Push times that are generated, for who has no recording: habits of hours, weekends, bursts and silence, seeded."""

from __future__ import annotations

import numpy as np

from douban_pipeline.feeds.intensity import DAY, Floats
from douban_pipeline_tests.harness.feeds.push_times import OFFSET

_START = 1_622_505_600 - OFFSET
_DAYS = 20


def bundled_feeds(feeds: int = 600, seed: int = 7) -> dict[str, Floats]:
    """Return the push times of ``feeds`` made-up accounts over twenty days, the same for the same seed."""
    random = np.random.default_rng(seed)
    found: dict[str, Floats] = {}
    for number in range(feeds):
        hour, spread = random.normal(16.5, 4.0) % 24, random.choice([0.1, 0.5, 2.0], p=[0.3, 0.4, 0.3])
        daily, weekend = random.choice([0.15, 0.5, 0.9, 2.5], p=[0.25, 0.3, 0.35, 0.1]), random.random()
        times: list[float] = []
        for day in range(_DAYS):
            rate = daily * (weekend if day % 7 >= 5 else 1.0)
            pushes = random.poisson(rate) if rate > 1 else int(random.random() < rate)
            for _ in range(pushes):
                moment = _START + day * DAY + random.normal(hour, spread) * 3600
                times += [float(int(moment))] * int(random.choice([1, 1, 3]))
        if times:
            found[f"account-{number}"] = np.sort(np.array(times))
    return found
