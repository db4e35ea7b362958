"""Our tables as the auditor reads them (plain SQL, rows as dictionaries), and gathering what breaks an invariant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, text

from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding
from douban_pipeline_tests.harness.soak.journal import canonical_row

_MOST_EXAMPLES = 12


@dataclass(slots=True)
class Case:
    """One invariant under examination: what was looked at, and what breaks it."""

    invariant: str
    checked: int = 0
    violations: int = 0
    waiting: int = 0
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def breaks(self, example: str) -> None:
        """Note a violation."""
        self.violations += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(example)

    def undone(self, example: str, drained: bool) -> None:
        """Note work that was not done: a violation if all that waited was ``drained``, else it may only have waited."""
        if drained:
            self.breaks(example)
            return
        self.waiting += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(f"waits: {example}")

    def finding(self) -> Finding:
        """Return what became of it."""
        note = "; ".join(self.notes)
        return Finding(
            self.invariant, not self.violations, self.checked, self.violations, tuple(self.examples), note, self.waiting
        )


PIPELINE = "pipeline"
"""The operator of everything automatic."""

HAPPENED = ("applied", "reverted")
"""States of a change that was written; the second was taken back since, by a change of its own."""

_AFTER_A_DEATH = "运行中断后"
"""How the reason begins of a change whose fate was told from the CMS, for its run died."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the change log."""

    change_id: int
    vod_id: int
    action: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    state_old: Mapping[str, Any]
    state_new: Mapping[str, Any]
    state: str
    state_reason: str
    reason: str
    operator: str
    batch_id: str
    run_id: str
    rule_version: str
    task_id: int | None
    verdict_id: int | None
    decision_id: int | None
    snapshot_id: int | None
    reverts: int | None
    prepared_at: datetime
    applied_at: datetime | None

    @property
    def happened(self) -> bool:
        """Whether the log says that it was written."""
        return self.state in HAPPENED

    @property
    def doubtful(self) -> bool:
        """Whether its run died, so that the log tells its fate by looking, not by knowing."""
        return self.state in ("conflict", "abandoned", "prepared") or self.state_reason.startswith(_AFTER_A_DEATH)

    @property
    def seen_only(self) -> bool:
        """Whether it tells what somebody did in the CMS itself, which stands in the outsiders' journal as well."""
        return self.batch_id == "cms"

    @property
    def automatic(self) -> bool:
        """Whether no person stands behind it."""
        return self.operator == PIPELINE

    @property
    def written(self) -> dict[str, tuple[str, str]]:
        """The columns that it changes, old and new; what a lock only noted is none, nor what others did."""
        if self.seen_only:
            return {}
        return {
            name: (self.old.get(name, "?"), value) for name, value in self.new.items() if self.old.get(name) != value
        }

    @property
    def named(self) -> str:
        """How examples call it."""
        return f"change {self.change_id} ({self.action} by {self.operator}, {self.state})"


@dataclass(slots=True)
class Records:
    """What the tables hold at the end."""

    engine: Engine
    prefix: str
    changes: list[Change] = field(default_factory=list)
    by_video: dict[int, list[Change]] = field(default_factory=dict)
    states: dict[int, Row] = field(default_factory=dict)
    locked_ids: dict[int, int] = field(default_factory=dict)

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Return the rows of a query; ``{own}`` in it is what our tables' names begin with, ``{cms}`` the CMS's."""
        statement = query.replace("{own}", f"{self.prefix}douban_").replace("{cms}", self.prefix)
        with self.engine.connect() as connection:
            return [{**row} for row in connection.execute(text(statement), values).mappings()]


def read(evidence: Evidence) -> Records:
    """Read the log and the states."""
    services = evidence.services
    records = Records(services.engine, services.settings.table_prefix)
    last = 0
    query = "SELECT * FROM {own}log WHERE change_id > :last ORDER BY change_id LIMIT 500"
    while page := records.rows(query, last=last):
        records.changes += map(_change, page)
        last = page[-1]["change_id"]
    for change in records.changes:
        records.by_video.setdefault(change.vod_id, []).append(change)
    records.states = {row["vod_id"]: row for row in records.rows("SELECT * FROM {own}video")}
    locks = records.rows("SELECT decision_id, douban_id FROM {own}decision WHERE action = 'lock_id'")
    records.locked_ids = {row["decision_id"]: row["douban_id"] for row in locks}
    return records


def moment(value: Any) -> datetime | None:
    """Return a stored time, whatever form the database gives it."""
    if value is None:
        return None
    naive: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
    return naive.replace(tzinfo=UTC)


def known_moment(value: Any) -> datetime:
    """Return a stored time that is never NULL."""
    found = moment(value)
    assert found is not None
    return found


def _change(row: Row) -> Change:
    return Change(
        row["change_id"],
        row["vod_id"],
        row["action"],
        canonical_row(json.loads(row["old_values"])),
        canonical_row(json.loads(row["new_values"])),
        json.loads(row["state_old"]),
        json.loads(row["state_new"]),
        row["state"],
        row["state_reason"],
        row["reason"],
        row["operator"],
        row["batch_id"],
        row["run_id"],
        row["rule_version"],
        row["task_id"],
        row["verdict_id"],
        row["decision_id"],
        row["snapshot_id"],
        row["reverts_change_id"],
        known_moment(row["prepared_at"]),
        moment(row["applied_at"]),
    )
