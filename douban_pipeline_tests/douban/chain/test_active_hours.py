"""Outside the active hours a run that nobody launched does what people ordered, and nothing else."""

from __future__ import annotations

from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of

SENSOR = {"dagster/sensor_name": "due_videos_sensor"}
SCHEDULE = {"dagster/schedule_name": "weekly_backfill"}


def test_only_what_people_ordered_is_done(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    hour = scenario.clock.now().astimezone(scenario.services.settings.zone).hour
    asleep = scenario.under(active_hours=frozenset({(hour + 2) % 24}))
    for tags in (SENSOR, SCHEDULE):
        run = asleep.play(tags=tags)
        assert run.metadata("due_videos")["outside_active_hours"] is True
    assert (asleep.library.tasks(), asleep.upstream.requests.count("search")) == ([], 0)
    decide(asleep.library, 4, "set_id", RIVER["id"])
    run = asleep.play(tags=SENSOR)
    assert (run.metadata("synced_fields")["decisions_applied"], run.metadata("synced_fields")["written"]) == (1, 1)
    assert (asleep.cms(4, "vod_douban_id"), asleep.cms(5, "vod_douban_id")) == ((RIVER["id"],), (0,))
    assert [task["vod_id"] for task in asleep.library.tasks()] == [4]
    # What was begun before waits; a person may do anything at any time.
    assert asleep.play(steps=["due_videos"]).metadata("due_videos")["new_tasks"] == 1
    assert asleep.play(tags=SENSOR).metadata("search_candidates")["searched"] == 0
    asleep.clock.advance(hours=2)
    asleep.play(tags=SENSOR)
    assert asleep.cms(5, "vod_douban_id") == (WHALE["id"],)
