"""Whether the outside sources may be called. The check blocks nothing: the gate itself does, at every call."""

import dagster as dg

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.upkeep.assets import source_gates
from douban_pipeline.douban.upkeep.gates import closed_reason, gate_row, not_closed


@dg.asset_check(
    asset=source_gates,
    description=described(
        "在用的数据源没有断开或试探中的；可用作业 `set_gate` 手动恢复。",
        "No breaker of a source in use is open or half-open; the job `set_gate` closes one by hand.",
    ),
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
        description=f"以下来源暂停调用：{reasons}" if found else "",
        metadata={"gates_open": len(found), **({"gates": shown_table(rows)} if found else {})},
    )


checks = [gates_closed]
