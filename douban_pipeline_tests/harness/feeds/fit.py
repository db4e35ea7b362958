"""Fits the coefficients of `feeds.intensity` to push times: ``python -m douban_pipeline_tests.harness.feeds.fit FILE``.

Every feed counts alike and by nothing but its times; what is printed besides is how well the coefficients fitted to one
half of the feeds foretell the other half.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from douban_pipeline.feeds import intensity as model
from douban_pipeline_tests.harness.feeds.push_times import OFFSET, read_push_times

_BIN = 900
_RENEWED = 6 * 3600
_DAYS = 4
_RIDGE, _CLASS_RIDGE = 1.0, 8.0

Rows = tuple[model.Floats, model.Integers, model.Integers, model.Floats]


def rows_of(feeds: Sequence[model.Floats], start: int, end: int) -> Rows:
    """Return what the model sees of each feed in each quarter of an hour, and how often it then published."""
    feeds = [np.unique(feed) for feed in feeds]
    knowledge = model.Knowledge.of([feed[feed < start] for feed in feeds], OFFSET)
    rows = np.arange(len(feeds))
    found: list[Rows] = []
    for now in range(start, end, _BIN):
        if (now - start) % _RENEWED == 0:
            everyone = model.everyone_of(knowledge.slots)
            weekend = knowledge.weekend.sum(axis=0)
            profiles = model.profiles_of(knowledge, everyone, weekend[1] / weekend.sum())
        columns, age, today = model.design(knowledge, profiles, rows, np.full(len(feeds), now + _BIN / 2))
        fresh = [feed[(feed >= now) & (feed < now + _BIN)] for feed in feeds]
        found.append((columns, age, today, np.array([float(len(each)) for each in fresh])))
        for row in np.flatnonzero(found[-1][3]):
            knowledge.add(int(row), fresh[row])
    columns, age, today, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    return columns, age, today, counts


def fit(rows: Rows, steps: int = 12) -> model.IntensityModel:
    """Return the coefficients that make what was seen likeliest (Poisson, ridge), by Newton's method."""
    columns, age, today, counts = rows
    width, ages, todays = columns.shape[1], model.CLASSES * model.AGES, model.CLASSES * 2
    total = width + ages + todays
    beta = np.zeros(total)
    beta[0] = np.log(counts.mean() + 1e-9)
    ridge = np.full(total, _CLASS_RIDGE)
    ridge[:width], ridge[0] = _RIDGE, 0.01
    for _ in range(steps):
        expected = np.exp(model.intensity_log(columns, age, today, _model(beta, width, ages)))
        left = counts - expected
        gradient = np.concatenate([columns.T @ left, np.bincount(age, left, ages), np.bincount(today, left, todays)])
        weighted = columns * expected[:, None]
        hessian = np.zeros((total, total))
        hessian[:width, :width] = columns.T @ weighted
        for column in range(width):
            hessian[column, width : width + ages] = np.bincount(age, weighted[:, column], ages)
            hessian[column, width + ages :] = np.bincount(today, weighted[:, column], todays)
        both = np.bincount(age * todays + today, expected, ages * todays).reshape(ages, todays)
        hessian[width : width + ages, width + ages :] = both
        hessian = np.triu(hessian) + np.triu(hessian, 1).T
        diagonal = np.concatenate([np.zeros(width), both.sum(axis=1), both.sum(axis=0)])
        hessian[np.arange(total), np.arange(total)] += diagonal + ridge
        step = np.linalg.solve(hessian, gradient - ridge * beta)
        beta = beta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-3:
            break
    return _model(beta, width, ages)


def _model(beta: model.Floats, width: int, ages: int) -> model.IntensityModel:
    return model.IntensityModel(
        beta[:width],
        beta[width : width + ages].reshape(model.CLASSES, model.AGES),
        beta[width + ages :].reshape(model.CLASSES, 2),
    )


def likelihood(rows: Rows, fitted: model.IntensityModel) -> float:
    """Return the logarithm of the likelihood a publication."""
    columns, age, today, counts = rows
    logs = model.intensity_log(columns, age, today, fitted)
    return float((counts * logs - np.exp(logs)).sum() / counts.sum())


def main() -> None:
    """Fit, say how well, and write the coefficients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="CSV of feed,epoch, perhaps gzipped")
    parser.add_argument("--out", type=Path, default=Path(model.__file__).with_name("intensity.json"))
    given = parser.parse_args()
    feeds = list(read_push_times(given.data).values())
    end = int(max(feed.max() for feed in feeds)) + 1
    halves = [rows_of(feeds[first::2], end - _DAYS * model.DAY, end) for first in (0, 1)]
    for train, test in ((0, 1), (1, 0)):
        fitted = fit(halves[train])
        scores = likelihood(halves[train], fitted), likelihood(halves[test], fitted)
        print(f"log likelihood a publication: fitted {scores[0]:.4f}, other half {scores[1]:.4f}")  # noqa: T201
    fitted = fit(tuple(np.concatenate(part) for part in zip(*halves, strict=True)))  # type: ignore[arg-type]
    stored = {name: np.round(getattr(fitted, name), 4).tolist() for name in ("columns", "ages", "today")}
    given.out.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
