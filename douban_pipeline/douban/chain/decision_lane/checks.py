"""A warning on `applied_decisions`: which decisions of people were refused, so that nobody takes them for done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg
from sqlalchemy import Connection, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import escaped
from douban_pipeline.douban.chain.decision_lane.assets import applied_decisions
from douban_pipeline.douban.decisions.effects import REPLACED
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.wording import ACTIONS

ACCEPTED = "decisions_accepted"
LOOKED_BACK = timedelta(days=1)

_MOST_READ = 2000
_MOST_SHOWN = 30


def refused_lately(services: Services, connection: Connection) -> tuple[int, list[Decision]]:
    """Return how many decisions were recorded within `LOOKED_BACK`, and those that were refused, the newest first.

    Left out is what a newer decision replaced, and what was decided anew about the same video and accepted.
    """
    table, since = services.tables.decision, services.clock.now() - LOOKED_BACK
    newest = select(table).order_by(table.c.decision_id.desc()).limit(_MOST_READ)
    rows = [row for row in connection.execute(newest).mappings() if row["created_at"] >= since]
    refused: list[Decision] = []
    accepted_since: set[int] = set()
    for row in rows:
        if row["state"] != DecisionState.REFUSED:
            accepted_since.add(row["vod_id"])
        elif row["vod_id"] not in accepted_since and row["state_reason"] != REPLACED:
            refused.append(Decision.from_row(row))
    return len(rows), refused


def refusal_list(sentences: Sequence[str]) -> dg.MetadataValue:
    """Return sentences as a Markdown list, at most `_MOST_SHOWN` of them."""
    lines = [f"- {escaped(sentence)}" for sentence in sentences[:_MOST_SHOWN]]
    if len(sentences) > _MOST_SHOWN:
        lines.append(page_text("- … and {count} more in tasks_and_log").format(count=len(sentences) - _MOST_SHOWN))
    return dg.MetadataValue.md("\n".join(lines))


def refused_at_recording(sentences: Sequence[str], recorded: int) -> dg.AssetCheckEvaluation:
    """Return the warning that a launch shows of which some decisions were refused and the others recorded."""
    return dg.AssetCheckEvaluation(
        asset_key=applied_decisions.key,
        check_name=ACCEPTED,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=page_text(
            "{count} recorded, {refused} refused: correct them by their reasons and decide again"
        ).format(count=recorded, refused=len(sentences)),
        metadata={"refusals": refusal_list(sentences), "refused": dg.MetadataValue.int(len(sentences))},
    )


@dg.asset_check(
    asset=applied_decisions,
    name=ACCEPTED,
    description=page_text(
        "No decision of the last day was refused, when recorded or when applied, without a new "
        "decision since. Launches with refused decisions also report them by this check."
    ),
)
def decisions_accepted(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Look for refused decisions of the last day, the newest first."""
    services.ready()
    with reading(services.engine) as connection:
        recorded, refused = refused_lately(services, connection)
    if not refused:
        said = page_text("None of the last 24 hours' {count} decisions was refused").format(count=recorded)
    else:
        said = page_text(
            "Of the last 24 hours' {count} decisions {refused} were refused: correct them by their "
            "reasons and decide again"
        ).format(count=recorded, refused=len(refused))
    sentences = [
        page_text("Video {vod_id}, {action} ({reviewer}): {reason}").format(
            vod_id=each.vod_id, action=ACTIONS[each.action], reviewer=each.reviewer, reason=each.reason
        )
        for each in refused
    ]
    return dg.AssetCheckResult(
        passed=not refused,
        severity=dg.AssetCheckSeverity.WARN,
        description=said,
        metadata={**({"refusals": refusal_list(sentences)} if refused else {}), "refused": len(refused)},
    )


checks = [decisions_accepted]
