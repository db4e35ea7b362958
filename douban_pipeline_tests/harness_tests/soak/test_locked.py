"""What the auditor takes for a change of something locked: which value a lock protects when people write under it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from douban_pipeline_tests.harness.soak.audit.changes import no_locked_value_changed
from douban_pipeline_tests.harness.soak.audit.records import PIPELINE, Change

BEGAN = datetime(2026, 5, 1, 8, 0, tzinfo=UTC)
LOCK, UNLOCK = {"intro_locked": True}, {"intro_locked": False}
PERSON = "小王"


def write(
    minute: int, action: str, old: str, new: str, *, by: str = PIPELINE, state: dict[str, Any] | None = None
) -> Change:
    at = BEGAN + timedelta(minutes=minute)
    return Change(
        change_id=minute,
        vod_id=7,
        action=action,
        old={"vod_content": old},
        new={"vod_content": new},
        state_old={},
        state_new=state or {},
        state="applied",
        state_reason="",
        reason="",
        operator=by,
        batch_id="",
        run_id="",
        rule_version="",
        task_id=None,
        verdict_id=None,
        decision_id=None,
        snapshot_id=None,
        reverts=None,
        prepared_at=at,
        applied_at=at,
    )


INTRO = write(1, "intro", "旧", "甲", state=LOCK)


@pytest.mark.parametrize(
    ("changes", "violations"),
    [
        pytest.param([INTRO, write(5, "restore", "外", "甲")], 0, id="what the lock found is put back"),
        pytest.param([INTRO, write(5, "restore", "外", "旧")], 1, id="something else is put back"),
        pytest.param([INTRO, write(5, "sync", "甲", "乙")], 1, id="a locked value is overwritten"),
        pytest.param([INTRO, write(5, "sync", "甲", "乙", by=PERSON)], 0, id="a person writes under the lock"),
        pytest.param(
            [INTRO, write(3, "revert", "甲", "外", by=PERSON), write(5, "restore", "甲", "外")],
            0,
            id="what a person wrote under the lock is put back",
        ),
        pytest.param(
            [INTRO, write(3, "revert", "甲", "外", by=PERSON), write(5, "restore", "外", "甲")],
            1,
            id="what stood before a person wrote under the lock is put back",
        ),
        pytest.param(
            [INTRO, write(3, "revert", "甲", "旧", by=PERSON, state=UNLOCK), write(5, "sync", "旧", "乙")],
            0,
            id="the lock was taken off",
        ),
        pytest.param(
            [INTRO, write(3, "intro", "外", "丙", by=PERSON, state=LOCK), write(5, "restore", "外", "甲")],
            1,
            id="an earlier lock's value is put back under a newer lock",
        ),
    ],
)
def test_a_lock_protects_the_value_of_when_it_was_set_or_what_a_person_wrote_since(changes, violations):
    evidence: Any = SimpleNamespace(
        journal=SimpleNamespace(entries=list),
        services=SimpleNamespace(settings=SimpleNamespace(respect_vod_lock=False)),
    )
    records: Any = SimpleNamespace(by_video={7: changes}, locked_ids={})
    found = no_locked_value_changed(evidence, records)
    assert (found.violations, found.held) == (violations, not violations)


@pytest.mark.parametrize(("restored", "violations"), [("1292052", 0), ("26752088", 1)])
def test_an_id_locked_as_the_cms_had_it_is_the_one_to_put_back(restored, violations):
    """A person typed another id than was written, and locked that: the log of the lock does not repeat it."""
    linked = replace(INTRO, new={"vod_douban_id": "26752088"}, old={"vod_douban_id": "0"}, state_new={})
    lock = replace(write(3, "lock_id", "", "", by=PERSON, state={"douban_id_locked": True}), new={}, decision_id=9)
    back = replace(write(5, "restore", "", ""), old={"vod_douban_id": "1"}, new={"vod_douban_id": restored})
    evidence: Any = SimpleNamespace(
        journal=SimpleNamespace(entries=list),
        services=SimpleNamespace(settings=SimpleNamespace(respect_vod_lock=False)),
    )
    records: Any = SimpleNamespace(by_video={7: [linked, lock, back]}, locked_ids={9: 1292052})
    assert no_locked_value_changed(evidence, records).violations == violations
