"""The unpartitioned report on values that others wrote over ours; it restores locked values if the settings say so."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import Markdown, local_time, panel, subject_link
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban import links
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.undo.drift import SERIOUS, Drift, DriftBatch, DriftCause, DriftKind, drifts, restore
from douban_pipeline.douban.undo.history import shown
from douban_pipeline.douban.wording import CHANGES, DRIFT_KINDS, DRIFT_LOOKS, OPERATORS, word_for
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_LOG_EVERY = 20
_NAMED = 20
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


KEEPS = "cms_keeps_what_was_written"


@dg.asset(
    deps=[synced_fields],
    group_name="reports",
    kinds={"mysql", "python"},
    # Its own check, not one beside it: the look goes over a month of writes, and once a night is enough.
    check_specs=[
        dg.AssetCheckSpec(
            KEEPS,
            asset="cms_drift",
            description=page_text(
                "Locked values and ids are unchanged, and nothing was reset to its value before our "
                "write. It warns and blocks nothing; ordinary later edits do not fail it."
            ),
        )
    ],
)
@page_docstring
def cms_drift(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Where the CMS no longer holds what was written: stale admin forms, collectors, other programs.

    Locked ids and synopses are compared with what was locked, whenever that was; what was written into other columns
    is followed for 30 days. What was reset to its value before our write is lost work, an ordinary later edit is
    not. With `DOUBAN_PIPELINE_RESTORE_LOCKED=true` (and not in a dry run) locked values are restored through the
    change log, once a run, as a batch that `revert_changes` reverts; rows that the site locked, videos that are
    ignored and those with a decision that waits are left alone.
    """
    services.ready()
    settings, location = services.settings, services.location
    restoring = settings.restore_locked and not settings.dry_run
    change_log = services.change_log(context.run.run_id)
    # What a killed run left half way would count as unsure.
    change_log.reconcile()
    tally = DriftTally()
    for number, look in enumerate(drifts(services), start=1):
        tally.add(look, restore(change_log, look.found) if restoring else None)
        if number % _LOG_EVERY == 0:
            context.log.info(f"{tally.videos} videos looked at, {tally.serious} serious differences so far")
    context.log.info(f"{tally.videos} videos looked at: {dict(tally.by_kind)}, {tally.restored} restored")
    counts = [{page_text("stratum"): DRIFT_KINDS[kind], page_text("places"): tally.by_kind[kind]} for kind in DriftKind]
    counts.append(
        {
            page_text("stratum"): page_text("undecided (a write is in progress, or was interrupted and changed since)"),
            page_text("places"): tally.unsure,
        }
    )
    return dg.MaterializeResult(
        check_results=[_keeps(tally, settings.zone, location)],
        metadata={
            "videos": tally.videos,
            "serious": tally.serious,
            **{kind.value: tally.by_kind[kind] for kind in DriftKind},
            "unsure": tally.unsure,
            "restored": tally.restored,
            "not_restored": tally.not_restored,
            **({"batch": change_log.batch_id} if tally.restored else {}),
            "restoring": dg.MetadataValue.md(_restoring(services, tally, change_log.batch_id)),
            "counts": shown_table(counts),
            "by_whom": dg.MetadataValue.md(tally.looks_table()),
            "differences": dg.MetadataValue.md(tally.findings_table(SERIOUS, settings.zone, location)),
            "later_edits": dg.MetadataValue.md(
                tally.findings_table([DriftKind.APART, DriftKind.EDITED], settings.zone, location, most=30)
            ),
        },
    )


def _keeps(tally: DriftTally, zone: ZoneInfo, location: str) -> dg.AssetCheckResult:
    left = tally.left
    serious = sum(left[kind] for kind in SERIOUS)
    found = {"differences": dg.MetadataValue.md(tally.findings_table(SERIOUS, zone, location, most=_NAMED))}
    return dg.AssetCheckResult(
        check_name=KEEPS,
        passed=not serious,
        severity=dg.AssetCheckSeverity.WARN,
        description=tally.sentence(),
        metadata={
            "serious": serious,
            **{kind.value: left[kind] for kind in DriftKind},
            "unsure": tally.unsure,
            **(found if serious else {}),
        },
    )


def _restoring(services: Services, tally: DriftTally, batch_id: str) -> str:
    """Return what is done about locked values, and how to change that."""
    settings, on = services.settings, variable("restore_locked")
    if settings.dry_run:
        return page_text("Dry run ({setting}=true): reports only, restores nothing.").format(
            setting=variable("dry_run")
        )
    if not settings.restore_locked:
        return page_text(
            "Changed locked values are only reported. To restore them at each check, set {setting}=true and restart."
        ).format(setting=on)
    link = launch_link(
        page_text("Undo this batch of restored values"), links.revert(batch_id=batch_id), services.location
    )
    undo = f" {link}" if tally.restored else ""
    return (
        page_text("Restoring is on ({setting}): {restored} places restored, {left} could not be. {undo}")
        .format(setting=on, restored=tally.restored, left=tally.not_restored, undo=undo)
        .rstrip()
    )


assets = [cms_drift]
