"""Whether the outside sources may be called, and whether TMDB's terms are kept. The checks block nothing.

Calls are blocked by the gate itself, at every call.
"""

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.upkeep.assets import source_gates
from douban_pipeline.douban.upkeep.expiry import TERM, overdue
from douban_pipeline.douban.upkeep.gates import closed_reason, gate_row, not_closed


@dg.asset_check(
    asset=source_gates,
    description=page_text("No breaker of a source in use is open or half-open; the job `set_gate` closes one by hand."),
)
def gates_closed(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Warn while a source gets no calls. It is no error: work waits, nothing is lost, and a probe follows."""
    services.ready()
    now, zone = services.clock.now(), services.settings.zone
    found = not_closed(gate for gate in services.gate.status() if gate.source in services.sources_in_use)
    reasons = "；".join(closed_reason(status, now, zone) for status in found)
    rows = [gate_row(status, now, zone) for status in found]
    return dg.AssetCheckResult(
        passed=not found,
        severity=dg.AssetCheckSeverity.WARN,
        description=page_text("Calls to these sources are suspended: {reasons}").format(reasons=reasons)
        if found
        else "",
        metadata={"gates_open": len(found), **({"gates": shown_table(rows)} if found else {})},
    )


@dg.asset_check(
    asset=dg.AssetKey("review_queue"),
    description=page_text(
        "No column holds facts of TMDB that are older than {days} days; the job `prune_history` removes them."
    ).format(days=TERM.days),
)
def no_tmdb_facts_beyond_terms(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Warn about columns with facts of TMDB that its terms do not allow to be kept any more."""
    services.ready()
    with reading(services.engine) as connection:
        found = overdue(services, connection)
    places = "、".join(page_text("{column}: {rows} rows").format(column=each.column, rows=each.rows) for each in found)
    return dg.AssetCheckResult(
        passed=not found,
        severity=dg.AssetCheckSeverity.WARN,
        description=page_text(
            "Older than {days} days, which TMDB's terms forbid: {places}; launch the job prune_history"
        ).format(days=TERM.days, places=places)
        if found
        else "",
        metadata={"rows": sum(each.rows for each in found)},
    )


checks = [gates_closed, no_tmdb_facts_beyond_terms]
