"""Differences between the CMS and what was written, as tables; of many findings only the first are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import Markdown, local_time, panel, subject_link
from douban_pipeline.douban import links
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.undo.drift import SERIOUS, Drift, DriftBatch, DriftCause, DriftKind
from douban_pipeline.douban.undo.history import shown
from douban_pipeline.douban.wording import CHANGES, DRIFT_KINDS, DRIFT_LOOKS, OPERATORS, word_for
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

SHOWN = 100
"""Findings of each kind that are shown."""


@dataclass(slots=True)
class DriftTally:
    """What was found so far.

    Attributes:
        videos: Videos that were looked at.
        unsure: Columns of which nobody knows what was written last.
        by_kind: Findings by how grave they are.
        by_looks: Findings by who it looks like.
        first: The first findings of each kind, with what became of them.
        restored: Locked values that were restored.
        not_restored: Locked values that were not, though it was tried.
    """

    videos: int = 0
    unsure: int = 0
    by_kind: Counter[DriftKind] = field(default_factory=Counter)
    by_looks: Counter[tuple[DriftKind, DriftCause]] = field(default_factory=Counter)
    first: dict[DriftKind, list[tuple[Drift, str]]] = field(default_factory=dict)
    restored: int = 0
    not_restored: int = 0

    def add(self, look: DriftBatch, outcomes: Mapping[tuple[int, str], str] | None = None) -> None:
        """Count one part; ``outcomes`` is the outcome of each value to restore, by video and column."""
        outcomes = outcomes or {}
        self.videos += look.videos
        self.unsure += look.unsure
        for drift in look.found:
            became = outcomes.get((drift.vod_id, drift.column), "")
            self.by_kind[drift.kind] += 1
            self.by_looks[drift.kind, drift.looks] += 1
            first = self.first.setdefault(drift.kind, [])
            if len(first) < SHOWN:
                first.append((drift, became))
            if became:
                done = became.startswith("已恢复")
                self.restored += done
                self.not_restored += not done

    @property
    def serious(self) -> int:
        """Findings that a person should know of."""
        return sum(self.by_kind[kind] for kind in SERIOUS)

    @property
    def left(self) -> Counter[DriftKind]:
        """Findings that still hold: what was restored is no difference any more."""
        return self.by_kind - Counter({DriftKind.LOCKED: self.restored})

    def sentence(self) -> str:
        """Return the serious findings that still hold, as a sentence; empty for none."""
        left = self.left
        return "，".join(f"{DRIFT_KINDS[kind]} {left[kind]} 处" for kind in SERIOUS if left[kind])

    def looks_table(self) -> str:
        """Return who changed how much of what, as a table."""
        rows: list[dict[str, Any]] = [
            {"类别": DRIFT_KINDS[kind], **{DRIFT_LOOKS[looks]: self.by_looks[kind, looks] for looks in DriftCause}}
            for kind in DriftKind
            if self.by_kind[kind]
        ]
        return panel(rows)

    def findings_table(self, kinds: Iterable[DriftKind], zone: ZoneInfo, location: str, *, most: int = SHOWN) -> str:
        """Return findings as a table, most severe first."""
        of_kinds = [(drift, became) for kind in kinds for drift, became in self.first.get(kind, ())]
        total = sum(self.by_kind[kind] for kind in kinds)
        rows = [_row(drift, became, zone, location) for drift, became in of_kinds[:most]]
        more = f"\n\n仅列出前 {len(rows)} 处，共 {total} 处。" if total > len(rows) else ""
        return panel(rows, most=most) + more


def _row(drift: Drift, became: str, zone: ZoneInfo, location: str) -> dict[str, Any]:
    change = drift.change
    return {
        "影片": drift.vod_id,
        "片名": drift.title,
        "列": drift.column,
        "类别": "；".join(DRIFT_KINDS[kind] for kind in dict.fromkeys(_kinds(drift))),
        "写入或锁定的值": _value(drift, drift.written, zone),
        "现值": _value(drift, drift.current, zone),
        "写入": f"变更 {change.change_id} {word_for(OPERATORS, change.operator)} {word_for(CHANGES, change.action)}"
        if change
        else "",
        "时间": local_time(drift.at, zone),
        "看来是": DRIFT_LOOKS[drift.looks],
        "处理": became or (f"不恢复：{drift.held}" if drift.held else _ADVICE.get(drift.kind, "")),
        "": Markdown(" · ".join(link for link in _links(drift, location) if link)),
    }


_ADVICE = {DriftKind.APART: "摘要若应与简介一致，在 CMS 后台清空摘要并保存，CMS 会取简介的开头"}


def _kinds(drift: Drift) -> Iterable[DriftKind]:
    return (drift.kind, DriftKind.APART) if drift.apart else (drift.kind,)


def _value(drift: Drift, value: Any, zone: ZoneInfo) -> str:
    if drift.column == "vod_douban_id":
        return subject_link(value) or "（空）"
    return shown(value, zone)


def _links(drift: Drift, location: str) -> list[Markdown]:
    """Return what a person may do about it: see what happened, and decide."""

    def decide(text: str, action: DecisionAction, **given: Any) -> Markdown:
        return launch_link(text, links.decide(drift.vod_id, action, dry_run=True, **given), location)

    ways = [launch_link("历史", links.history(drift.vod_id), location)]
    if drift.column == "vod_douban_id":
        if drift.written:
            ways.append(decide("写回", DecisionAction.set_id, douban_id=drift.written))
        if drift.current:
            replace = DecisionAction.replace_and_lock if drift.kind is DriftKind.LOCKED else DecisionAction.set_id
            ways.append(decide("采用现值", replace, douban_id=drift.current))
        if drift.kind is not DriftKind.LOCKED:
            ways.append(decide("重新匹配", DecisionAction.rematch))
    elif drift.column in SYNOPSIS_COLUMNS and drift.kind is DriftKind.LOCKED:
        ways.append(decide("锁定现值", DecisionAction.lock_intro))
        ways.append(decide("解锁简介", DecisionAction.unlock_intro))
    elif drift.state["vod_douban_id"] and drift.kind is not DriftKind.APART:
        ways.append(decide("立即同步", DecisionAction.sync_now))
    return ways
