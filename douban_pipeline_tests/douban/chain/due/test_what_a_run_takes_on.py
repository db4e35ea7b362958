"""A run does what it took on, however many its config asks for; what it has no time for is free for the next."""

from __future__ import annotations

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
