"""Requested changes and their outcomes, and the form of values in the change log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from douban_pipeline.cms.maccms import DECIMAL_COLUMNS
from douban_pipeline.douban.store.states import ChangeState

PIPELINE = "pipeline"
"""The operator of everything automatic."""

BY_CMS = "cms"
"""The operator of what follows from a change in the CMS itself."""

SEEN_IN_CMS = "cms"
"""The batch of rows that tell what was done in the CMS itself. We only saw it: no run and no rules stand behind it."""

EDITED = "edited"
"""Action of a row that tells that others changed in the CMS what was written."""

REVERT = "revert"
"""Action of a change that reverts another one."""

SYNC = "sync"
"""Action of a change that wrote fields from the subject that the video is linked to."""

WRONG_LINK = "关联错误："
"""Begins the reason of a revert that says that the link was wrong; any other says nothing about it."""

RESTORE = "restore"
"""Action of a change that restores what a lock protects, after somebody changed it in the CMS."""


@dataclass(frozen=True, slots=True)
class Change:
    """A requested write to one video.

    Attributes:
        vod_id: The video.
        action: Kind of write: ``link``, ``sync``, ``intro``, `REVERT`, `RESTORE`, or a decision's action.
        old: CMS columns as they were read.
        new: Their new values.
        state: New values of columns of our state row, set when the write is applied.
        operator: `PIPELINE`, or the person who decided.
        reason: One sentence for people, in Chinese.
        automatic: Whether our locks forbid it; a person's decision is not automatic. A restore needs the lock.
        override_cms_lock: Whether a person confirmed it although the site locked the row.
        given: CMS columns on which the write depends without changing them, as they were read.
        seen: Columns of our state row on which it depends, as they were read: nothing is written once they differ.
        intro_id: The row of the intro that it writes, whose state follows the change's.
    """

    vod_id: int
    action: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    state: Mapping[str, Any] = field(default_factory=dict)
    operator: str = PIPELINE
    reason: str = ""
    automatic: bool = True
    override_cms_lock: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    task_id: int | None = None
    verdict_id: int | None = None
    decision_id: int | None = None
    snapshot_id: int | None = None
    reverts_change_id: int | None = None
    intro_id: int | None = None


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """Outcome of a requested change: its row in the log, its state, and the reason if it was refused."""

    change: Change
    change_id: int
    state: ChangeState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReconciledChange:
    """Outcome of a dead run's prepared change."""

    change_id: int
    vod_id: int
    state: ChangeState


def encode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as the log stores them in JSON; see `decode`."""
    encoded: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Decimal):
            encoded[name] = str(value)
        elif isinstance(value, datetime):
            encoded[name] = {"time": value.isoformat()}
        else:
            encoded[name] = value
    return encoded


def decode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return logged values as they are written: scores as `Decimal`, times as `datetime`."""
    decoded: dict[str, Any] = {}
    for name, value in values.items():
        if name in DECIMAL_COLUMNS and value is not None:
            decoded[name] = Decimal(value)
        elif isinstance(value, dict) and "time" in value:
            decoded[name] = datetime.fromisoformat(value["time"])
        else:
            decoded[name] = value
    return decoded
