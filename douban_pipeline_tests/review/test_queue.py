"""The review queue shows what waits for a person, the most watched first, and nothing that outside text can break."""

from __future__ import annotations

import re

import pytest

from douban_pipeline.review.queue import review_queue_of
from douban_pipeline_tests.library import video
from douban_pipeline_tests.runs import STEPS
from douban_pipeline_tests.scenario import FILMS, RIVER, WHALE, row_of, subject

HOSTILE = "<script>alert(1)</script>|表`格`*之*\n## [点我](javascript:alert(2))"
RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
POOR = {"vod_director": "", "vod_actor": "", "vod_class": ""}


@pytest.fixture
def scenario(stage):
    """Four videos wait: 4 with two candidates, 5 with a failing source, 6 and 7 with doubtful ids; 8 and 9 do not."""
    rows = [
        row_of(RIVER, 4, vod_hits=10, **POOR),
        row_of(WHALE, 5, vod_hits=500),
        video(6, vod_name="甲", vod_hits=50, vod_douban_id=90_000_103),
        video(7, vod_name="乙", vod_hits=50, vod_douban_id=90_000_104, vod_time=1),
        video(8, vod_hits=9999),
        video(9, vod_hits=9999),
    ]
    found = stage(rows, [RIVER, RIVAL, *FILMS[1:]])
    assert found.play(4, steps=STEPS[:3]).success
    later = found.clock.now()
    found.library.set_state(5, douban_sync_fail_count=5, douban_review_reason="连续失败 5 次：douban: HTTP 500")
    found.library.set_state(6, douban_review_status="REVIEW", douban_review_reason="可疑")
    found.library.set_state(7, douban_review_status="REVIEW", douban_next_sync_at=later)
    found.library.set_state(8, douban_review_status="IGNORED", douban_next_sync_at=None)
    found.library.set_state(9, douban_sync_fail_count=4)
    return found


def test_the_most_watched_and_newest_come_first(scenario):
    queue = review_queue_of(scenario.services, most=10)
    assert [entry.vod_id for entry in queue.first] == [5, 6, 7, 4]
    assert (queue.length, queue.by_status) == (4, {"NOT_FOUND": 1, "REVIEW": 3})
    short = review_queue_of(scenario.services, most=2)
    assert ([entry.vod_id for entry in short.first], short.length) == ([5, 6], 4)


def test_each_entry_shows_the_candidates_of_its_newest_verdict(scenario):
    [*_, entry] = review_queue_of(scenario.services, most=10, candidates=1).first
    assert (entry.vod_id, entry.title, entry.year, entry.hits) == (4, "长河落日记事", "2021", 10)
    assert entry.reason == scenario.verdicts(4)[0]["explanation"]
    [best] = entry.candidates
    stored = scenario.candidates(4)[0]
    assert (best.rank, best.douban_id, best.score) == (1, stored["douban_id"], stored["score"])
    assert round(sum(best.points.values()), 2) == best.score
    assert best.points["title"] == 45.0
    # A newer verdict without candidates has none to show: the older ones are history.
    scenario.library.set_cms(4, vod_name="改了名的另一部片")
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
    assert scenario.play(4, steps=STEPS[:3]).success
    scenario.library.set_state(4, douban_review_status="REVIEW")
    assert review_queue_of(scenario.services, most=10).first[-1].candidates == ()


def test_a_deleted_video_waits_for_nobody(scenario):
    scenario.library.execute("DELETE FROM mac_vod WHERE vod_id = 6")
    scenario.library.intake.sweep(0, 1)
    queue = review_queue_of(scenario.services, most=10)
    assert ([entry.vod_id for entry in queue.first], queue.length) == ([5, 7, 4], 3)


def test_what_the_report_shows(scenario):
    run = scenario.launch("nightly_reports")
    found = run.metadata("review_queue")
    assert (found["waiting"], found["status_review"], found["status_not_found"]) == (4, 3, 1)
    first = [line.split("|")[1].strip() for line in found["most_pressing"].splitlines()[2:]]
    assert first == ["5", "6", "7", "4"]
    assert "[90000103](https://movie.douban.com/subject/90000103/)" in found["most_pressing"]
    assert "连续失败 5 次：douban: HTTP 500" in found["most_pressing"]
    lines = found["candidates"].splitlines()[2:]
    assert len(lines) == 2, "both candidates of video 4"
    assert all("title 45" in line for line in lines)
    # Looking changes nothing.
    again = scenario.launch("nightly_reports").metadata("review_queue")
    assert again == found


def test_an_empty_queue_says_so(stage):
    found = stage([video(4)]).launch("nightly_reports").metadata("review_queue")
    assert (found["waiting"], found["most_pressing"], found["candidates"]) == (0, "—", "—")


def test_hostile_text_stays_text(stage):
    entry = subject(90_000_301, f"长河{HOSTILE}", 2021)
    name = f"长河{HOSTILE}"
    scenario = stage([row_of(entry, 4, vod_name=name, vod_year="2020", **POOR), row_of(RIVER, 68)], [entry, RIVER])
    runs = [scenario.run()]
    assert runs[0].success
    scenario.library.set_state(4, douban_review_status="REVIEW", douban_review_reason=HOSTILE)
    runs.append(scenario.launch("nightly_reports"))
    shown = 0
    for run in runs:
        for asset in run.materialized:
            for value in run.metadata(asset).values():
                if isinstance(value, str):
                    shown += "alert" in value
                    assert "<script" not in value
                    assert not re.search(r"(?<!\\)\]\(javascript", value)
                    for line in value.splitlines():
                        columns = len(line.replace("\\\\", "").replace("\\|", "").split("|"))
                        assert columns == len(value.splitlines()[0].split("|")), "one row a video"
    assert shown >= 3
