"""A generated library is like one of a site: the same each time, with what such rows have, lack and get wrong."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

import pytest

from douban_pipeline.demo.cms_schema import VOD_COLUMNS
from douban_pipeline.demo.library import escape_as_cms
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import Kind, make_profile
from douban_pipeline.matching.site_videos import facts_of_values
from douban_pipeline_tests.harness.fixtures.sample_rules import validate
from douban_pipeline_tests.harness.generated.stored import COLUMNS, stored_of
from douban_pipeline_tests.harness.generated.videos import CONSTANT_WRONG_ID, video_of
from douban_pipeline_tests.harness.generated.works import (
    known,
    subject_id_of,
    work_id_of,
    work_of,
    work_of_subject,
)
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject, GoldRow

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEED = 7
IDS = range(1, 2001)
KINDS = {1: Kind.FILM, 2: Kind.SERIES, 3: Kind.VARIETY, 4: Kind.ANIMATION}
PINNED = ("浅烟", "等待浊河倒影", "埃莉诺与醉城风筝")
SECONDS = {"vod_time", "vod_time_add", "vod_time_hits", "vod_time_make", "vod_recycle_time"}


@pytest.fixture(scope="module")
def videos():
    return [video_of(vod_id, SEED, NOW) for vod_id in IDS]


@pytest.fixture(scope="module")
def works():
    return [work_of(work_id, SEED) for work_id in IDS]


def share(rows, condition):
    return sum(map(condition, rows)) / len(rows)


def root(video):
    return video["type_id_1"] or video["type_id"]


def test_every_row_follows_from_seed_and_id_alone(videos, works):
    for vod_id in (2000, 1, 1777):
        assert video_of(vod_id, SEED, NOW) == videos[vod_id - 1]
        assert work_of(vod_id, SEED) == works[vod_id - 1]
    assert video_of(5, SEED + 1, NOW) != videos[4]
    # What was generated once stays: figures of two releases can be compared.
    assert (works[0]["title"], works[24]["title"], videos[2]["vod_name"]) == PINNED


def test_subjects_are_sound(works):
    assert validate(works, []) == []
    assert [work_of_subject(work["id"]) for work in works] == list(IDS)
    assert work_of_subject(subject_id_of(4) + 1) is work_of_subject(1_292_052) is None
    with pytest.raises(ValueError, match="there is no work 0"):
        work_of(0, SEED)


@pytest.mark.parametrize(
    ("what", "low", "high", "condition"),
    [
        ("films", 0.5, 0.6, lambda v: root(v) == 1),
        ("series", 0.25, 0.35, lambda v: root(v) == 2),
        ("variety", 0.03, 0.07, lambda v: root(v) == 3),
        ("animation", 0.07, 0.13, lambda v: root(v) == 4),
        ("no year", 0.12, 0.24, lambda v: v["vod_year"] in ("", "0")),
        ("of the last 25 years", 0.65, 0.85, lambda v: v["vod_year"] > "2001"),
        ("no actors", 0.15, 0.3, lambda v: not v["vod_actor"]),
        ("no director", 0.18, 0.35, lambda v: not v["vod_director"]),
        ("no area", 0.04, 0.13, lambda v: not v["vod_area"]),
        ("no alias", 0.3, 0.7, lambda v: not v["vod_sub"]),
        ("no synopsis", 0.04, 0.13, lambda v: not v["vod_content"]),
        ("told an id", 0.06, 0.1, lambda v: v["vod_douban_id"]),
        ("locked", 0.003, 0.015, lambda v: v["vod_lock"]),
        ("in the recycle bin", 0.003, 0.02, lambda v: v["vod_recycle_time"]),
        ("updated this week", 0.06, 0.15, lambda v: v["vod_time"] > NOW.timestamp() - 7 * 86_400),
        ("not updated for a year", 0.4, 0.65, lambda v: v["vod_time"] < NOW.timestamp() - 365 * 86_400),
        ("of a work the site has", 0.025, 0.055, lambda v: work_id_of(v["vod_id"], SEED) != v["vod_id"]),
        ("known to Douban", 0.86, 0.94, lambda v: known(work_id_of(v["vod_id"], SEED), SEED)),
        ("numbered", 0.05, 0.25, lambda v: re.search(r"第.[季部]|[2-5]$|[Ⅱ-Ⅴ]$", v["vod_name"])),
    ],
)
def test_shares_are_those_of_sites(videos, what, low, high, condition):
    assert low < share(videos, lambda video: bool(condition(video))) < high, what


def test_ids_that_collectors_brought_are_mostly_right(videos):
    reported = Counter(
        video["vod_douban_id"] == subject_id_of(work_id_of(video["vod_id"], SEED))
        for video in videos
        if video["vod_douban_id"]
    )
    assert reported[True] > 8 * reported[False] > 0
    assert any(video["vod_douban_id"] == CONSTANT_WRONG_ID for video in videos)


def test_rows_are_stored_as_the_cms_stores_them():
    widths = {column.name: column.width for column in VOD_COLUMNS}
    escaped = 0
    for vod_id in range(1, 400):
        plain, stored = video_of(vod_id, SEED, NOW), stored_of(vod_id, SEED, NOW)
        assert tuple(stored) == COLUMNS
        for name, value in plain.items():
            expected = escape_as_cms(value, widths[name]) if isinstance(value, str) and widths[name] else value
            assert stored[name] == expected
            escaped += value != stored[name]
        assert not re.search("[\x1e\x1f]", "".join(map(str, stored.values())))
    assert escaped > 10


def test_the_matcher_links_most_of_them_and_none_wrongly(videos, works):
    corpus = {
        work["id"]: CorpusSubject(
            work["kind"],
            SubjectRecord(
                douban_id=work["id"],
                title=work["title"],
                original_title=work["original_title"],
                aliases=tuple(work["aka"]),
                year=work["year"],
                release_dates=tuple(work["pubdates"]),
                regions=tuple(work["regions"]),
                languages=tuple(work["languages"]),
                genres=tuple(work["genres"]),
                directors=tuple(work["directors"]),
                actors=tuple(work["actors"]),
                duration_minutes=work["duration_min"],
                episodes=work["episodes"],
                rating=work["rating"],
                id_confirmed=True,
            ),
        )
        for number, work in enumerate(works, start=1)
        if known(number, SEED)
    }

    def gold(video):
        work_id = work_id_of(video["vod_id"], SEED)
        facts = facts_of_values(video, vod_id=video["vod_id"], kind=KINDS[root(video)])
        expected = subject_id_of(work_id) if known(work_id, SEED) else None
        return GoldRow("generated", video["vod_id"], None, "generated", "gold", (), expected, None, facts, True)

    results = CorpusJudge(corpus).judge([gold(video) for video in videos[::12]], make_profile("calibrated"))
    linkable = [result for result in results if result.gold.expected]
    assert [result.gold.row for result in results if result.wrong] == []
    assert 0.7 < share(linkable, lambda result: result.confirmed) < 0.95
    assert share(linkable, lambda result: result.verdict == "NOT_FOUND") < 0.05
