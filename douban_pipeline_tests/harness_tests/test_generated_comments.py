"""Generated sections have the shape of real ones."""

from __future__ import annotations

import numpy as np
import pytest

from douban_pipeline.demo.comment_sample import generate


def test_most_comments_have_no_like_and_a_few_have_thousands():
    made = generate(50_000)
    assert np.mean(made.likes == 0) == pytest.approx(0.5645, abs=0.01)
    assert np.quantile(made.likes, [0.5, 0.7, 0.9]).tolist() == [0, 1, 4]
    assert 100 < np.quantile(made.likes, 0.99) < 400
    assert 2000 < made.likes.max() <= 6000
    assert 11 <= np.median(made.length) <= 14
    assert np.mean(made.replies == 0) == pytest.approx(0.87, abs=0.02)
    assert np.mean(made.replies[made.likes > 1000]) > np.mean(made.replies[made.likes == 0])


def test_the_same_seed_gives_the_same_section():
    assert np.array_equal(generate(100, 3).likes, generate(100, 3).likes)
    assert not np.array_equal(generate(100, 3).likes, generate(100, 4).likes)
