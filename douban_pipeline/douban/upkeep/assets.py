"""The unpartitioned asset that shows the state of the outside sources; reports on sources belong here."""

import dagster as dg

from douban_pipeline.core.language import page_docstring
from douban_pipeline.core.ui.presentation import panel
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.upkeep.gates import gate_row, not_closed


@dg.asset(
    group_name="health",
    kinds={"mysql", "python"},
)
@page_docstring
def source_gates(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """How the outside sources are: breaker, pace, quotas and success of each, over all processes.

    A breaker opens by itself on a clear sign of a wall, on too many failures in five minutes, when the source asks
    to slow down, and when it wants money; after its time one call probes the source. While it is open, work is put
    back and nothing is concluded. The job `set_gate` opens or closes it by hand. Makes no calls and writes nothing.
    """
    services.ready()
    now, zone = services.clock.now(), services.settings.zone
    statuses = services.gate.status()
    rows = [gate_row(status, now, zone) for status in statuses]
    return dg.MaterializeResult(
        metadata={
            "gates_open": len(not_closed(statuses)),
            "waiting": sum(status.waiting for status in statuses),
            "requests_today": sum(status.used_today for status in statuses),
            **{f"requests_today_{status.source}": status.used_today for status in statuses},
            "gates": dg.MetadataValue.md(panel(rows, most=len(rows))),
        }
    )


assets = [source_gates]
