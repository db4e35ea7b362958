"""What is due in a large library is found by index."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline_tests.douban.chain.due.taking import due_of, take, work_of
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements

HOUR = timedelta(hours=1)


@pytest.fixture(params=[50, 2], ids=["few are due", "half are due"])
def large(request, shared_library):
    """Five thousand videos of which some are due, and a queue with a history."""
    every = request.param
    library = shared_library.renewed(excluded_type_ids={24})
    library.add_states(
        *(
            {
                "vod_id": vod_id,
                "type_id": 24 if vod_id % 10 == 0 else 6,
                "douban_next_sync_at": START + (-HOUR if vod_id % every == 0 or vod_id % 50 == 7 else vod_id * HOUR),
                "douban_review_status": "CONFIRMED" if vod_id % 3 else "NOT_FOUND",
            }
            for vod_id in range(1, 5001)
        )
    )
    if library.mysql:
        library.query("ANALYZE TABLE mac_douban_video")
    return library


def test_nothing_is_found_by_reading_the_whole_library(large):
    due = due_of(large)
    with sent_statements(large.engine) as sent:
        assert len(work_of(large).overview()) > 20
        found = [take(large, shards=[shard]).taken for shard in (1, 7, 14)]
        assert any(found)
        due.drop_out_of_scope(large.queue())
    seen = 0
    for statement, parameters in sent:
        if statement.split()[0] not in ("SELECT", "UPDATE") or "mac_douban_video" not in statement:
            continue
        plan = large.plan(statement, parameters)
        if large.mysql:
            steps = [row for row in plan if row["table"] == "mac_douban_video"]
            for step in steps:
                assert step["key"], (statement, step)
                assert step["type"] not in ("ALL", "index"), (statement, step)
                # "4 (2%)" where MariaDB filters rows by a second index first.
                assert int(str(step["rows"]).split()[0]) < 1000, (statement, step)
        else:
            steps = [row["detail"] for row in plan if "mac_douban_video" in row["detail"]]
            assert all(" USING " in step for step in steps), (statement, steps)
        seen += len(steps)
    assert seen >= 8
