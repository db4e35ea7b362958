"""A run does what it took on, however many its config asks for; what it has no time for is free for the next."""

from __future__ import annotations

from datetime import timedelta

from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, row_of


def test_a_backfill_that_takes_on_more_than_the_settings_do_does_all_of_it(stage):
    rows = [row_of(film, 5 + 64 * number) for number, film in enumerate(FILMS[:4])]
    scenario = stage(rows, FILMS, batch_size=1)
    assert scenario.play(5).metadata("due_videos")["due"] == 1
    scenario.clock.advance(days=400)
    config = {"due_videos": {"config": {"scope": "everything", "batch_size": 4}}}
    run = scenario.launch("douban_chain", config, tags={"dagster/partition": "05"})
    assert run.success, run.failure
    assert run.metadata("due_videos")["due"] == 4
    assert run.metadata("synced_fields")["handled"] == 4
    assert not [task for task in scenario.library.tasks() if task["open_key"]]


def test_a_backfill_goes_on_after_a_locked_link_that_stays_in_doubt(stage):
    doubtful = row_of(FILMS[0], 5, vod_douban_id=FILMS[4]["id"])
    scenario = stage([doubtful, row_of(FILMS[1], 69)], FILMS, batch_size=1)
    later = scenario.clock.now() + timedelta(days=40)
    scenario.library.set_state(5, douban_id_locked=True, douban_review_status="REVIEW", douban_next_sync_at=later)
    scenario.library.set_state(69, douban_next_sync_at=later)
    for _ in range(2):
        assert scenario.run(5, scope="everything").success
        scenario.clock.advance(hours=1)
    assert [task["vod_id"] for task in scenario.library.tasks()] == [5, 69]
    assert scenario.library.state(5)["douban_review_status"] == "REVIEW"


def test_what_a_run_queued_and_did_not_do_is_work_for_the_sensor(stage):
    rows = [row_of(film, 5 + 64 * number) for number, film in enumerate(FILMS[:3])]
    scenario = stage(rows, FILMS)
    for row in rows:
        scenario.library.set_state(row["vod_id"], douban_next_sync_at=scenario.clock.now())
    scenario.play(5, steps=STEPS[:1])
    scenario.library.execute("UPDATE mac_douban_video SET douban_next_sync_at = '2999-01-01 00:00:00.000000'")
    services = scenario.services
    [shard] = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
    assert (shard.shard, shard.lately, shard.tasks) == (5, 0, 3)
    scenario.clock.advance(minutes=1)
    assert scenario.play(5).metadata("scored_matches")["judged"] == 3
    assert ShardWork(services.engine, services.tables, services.settings, services.clock).overview() == []
