"""However large the library is, what a list reads of its rows and what stands around it goes by an index.

Which rows it has is read by keyset pagination, in the order of an index; `keyset` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.reports.lists import duplicate_groups
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.duplicates import store_same_titles
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import page_of_rows
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline_tests.douban.reports.planting import figures
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import (
    Library,
    build_library,
    days_ago,
    fresh_mariadb,
    video,
)

SIZE = 4000


@pytest.fixture(scope="module")
def crowd() -> Iterator[Library]:
    """A library of which one in forty is linked, locked, missing, failed or refused; the servers know how many."""
    options = {"ai_intros": True, "openrouter_api_key": "key"}
    with fresh_mariadb() as url, build_library(url, **options) as library:
        _fill(library)
        yield library


def _fill(library: Library) -> None:
    every = range(1, SIZE + 1)
    library.add(*(video(n, vod_name=f"影片{n % 900}号", vod_year=str(1990 + n % 30)) for n in every))
    at = START - timedelta(days=20)
    library.add_states(
        *(
            {
                "vod_id": n,
                "vod_time": days_ago(10),
                "vod_douban_id": 90_000_000 + n // 80 if n % 40 == 0 else 0,
                "douban_review_status": ("CONFIRMED" if n % 40 == 0 else "NOT_FOUND" if n % 40 == 1 else "IGNORED"),
                "douban_id_locked": n % 40 == 2,
                "intro_locked": n % 40 == 3,
            }
            for n in every
        )
    )
    tables = library.tables
    log = {"action": "sync", "old_values": {}, "new_values": {}, "state_old": {}, "state_new": {}, "batch_id": "b"}
    log |= {"operator": "pipeline", "run_id": "r", "state": "applied"}
    task = {"task_type": "AI_INTRO", "stage": "intro", "status": "SUCCESS", "run_after": at, "created_at": at}
    decision = {"action": "lock_id", "reviewer": "小王", "run_id": "r", "state": "applied"}
    verdict = {"task_id": 1, "verdict": "NOT_FOUND", "complete": True, "source_healthy": True, "rule_version": "t"}
    verdict |= {"state": "applied", "run_id": "r", "created_at": at}
    candidate = {"rank": 1, "douban_id": 90_000_001, "score": 50.0, "created_at": at}
    hours = {n: at - timedelta(hours=n) for n in every}
    for planted, rows in (
        (tables.log, [{**log, "prepared_at": hours[n], "applied_at": hours[n]} for n in every]),
        (tables.task, [{**task, "finished_at": hours[n]} for n in every]),
        (tables.decision, [{**decision, "created_at": hours[n]} for n in every]),
        (tables.verdict, [verdict for _ in every]),
        (tables.candidate, [{**candidate, "verdict_id": n} for n in every]),
    ):
        numbered = [{**row, "vod_id": n} for n, row in enumerate(rows, start=1)]
        if "shard" in planted.c:
            numbered = [{**row, "shard": shard_of(row["vod_id"])} for row in numbered]
        with library.engine.begin() as connection:
            connection.execute(sa.insert(planted), numbered)
    with library.engine.connect() as connection:
        for name in (library.cms.vod.name, *(table.name for table in tables.metadata.sorted_tables)):
            connection.exec_driver_sql(f"ANALYZE TABLE {name}")


@pytest.mark.mariadb
@pytest.mark.parametrize("name", LISTS)
def test_no_table_is_read_from_end_to_end(name: str, crowd: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    # As small a part of this library as it is of a real one.
    monkeypatch.setattr(duplicate_groups, "_READ", 50)
    asked: dict[str, object] = {}

    def note(_connection, _cursor, statement, parameters, _context, _many):
        if statement.startswith("SELECT"):
            asked.setdefault(statement, parameters)

    services = crowd.services
    services.ready()
    _ = services.cms, services.categories
    sa.event.listen(crowd.engine, "before_cursor_execute", note)
    try:
        if name == "duplicates":
            store_same_titles(services)
        page_of_rows(services, LISTS[name](services), ListFilter())
        figures(services, name)
    finally:
        sa.event.remove(crowd.engine, "before_cursor_execute", note)
    assert asked
    for statement, parameters in asked.items():
        if "place_value" in statement:
            continue
        for step in crowd.plan(statement, parameters):
            # Tables made up on the way are as small as what was asked for.
            if step["table"] is None or step["table"].startswith("<"):
                continue
            few = step["table"].endswith("review_candidate") and step["possible_keys"]  # fifty keys of 4,000 rows
            assert step["type"] != "ALL" or few, (statement, step)
            assert step["type"] != "index" or int(step["rows"]) <= 500, (statement, step)
