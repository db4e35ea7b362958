"""The check on measured precision. It blocks nothing: brakes do, where links are judged and written."""

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.quality.assets import automatic_precision
from douban_pipeline.douban.quality.brakes import name_of
from douban_pipeline.douban.quality.figures import brake_rows
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes


@dg.asset_check(
    asset=automatic_precision,
    description=page_text(
        "No stratum's automatic confirmation is suspended for low precision; the job `lift_brakes` resumes it."
    ),
)
def precision_holds(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Fail while a brake is on, whether this run or an earlier one applied it."""
    services.ready()
    with reading(services.engine) as connection:
        on = [brake for brake in brakes.newest(connection, services.tables).values() if brake.on]
    zone = services.settings.zone
    rows = [{**row, "暂停于": local_time(brake.pulled_at, zone)} for row, brake in zip(brake_rows(on), on, strict=True)]
    names = "、".join(name_of(brake.stratum) for brake in on)
    return dg.AssetCheckResult(
        passed=not on,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"以下类别的自动确认已暂停，转人工审核：{names}" if on else "",
        metadata={"brakes_on": len(on), **({"strata": shown_table(rows)} if on else {})},
    )


checks = [precision_holds]
