"""The job that lifts brakes: every default is safe."""

import dagster as dg
from pydantic import Field

from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.reports.precision.braking import lift
from douban_pipeline.douban.reports.precision.report import brake_rows
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.services import Services


class LiftConfig(LaunchpadConfig):
    """Which brakes are lifted, by whom and why."""

    reviewer: str = Field("", description="你的名字 · Your name; it is recorded with the brake.")
    note: str = Field(
        "", description="为什么可以恢复，一句话 · Why automatic confirmation may resume, in one sentence."
    )
    dry_run: bool = Field(True, description="true 只检查 · true: only check; false: lift the brakes.")
    strata: list[str] = Field(
        default_factory=list, description="类别的代码 · Codes of the strata, as shown by `automatic_precision`."
    )


def release(context: dg.OpExecutionContext, config: LiftConfig, services: dg.ResourceParam[Services]) -> None:
    """Lift the brakes, or only show what would be lifted."""
    services.ready()
    lifted = lift(services, config.strata, reviewer=config.reviewer, note=config.note, dry_run=config.dry_run)
    names = ", ".join(brake.stratum for brake in lifted.brakes)
    context.log.info(f"{'would lift' if config.dry_run else 'lifted'}: {names}; {lifted.waiting} videos waited for it")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "lifted": len(lifted.brakes),
            "videos_waiting": lifted.waiting,
            "brakes": run_table(brake_rows(lifted.brakes)),
        }
    )


_LIFT_BRAKES = """\
恢复自动确认 · Resume automatic confirmation in strata where `automatic_precision` suspended it.

某一类自动关联的正确率（按人工决定计算）低于目标时，该类转人工审核，检查 `precision_holds` 报错，直到有人在此恢复。
先看 `automatic_precision` 的 `overruled_links`，找出原因并处理（调整设置、撤销有误的关联），再恢复。

{examples}

**字段** · Fields

{fields}

`dry_run: true`（默认）只检查。恢复之后，该类只按此后的人工决定重新计算；因暂停而待审核的影片立即到期，
由下次运行重新判定。
"""

lift_brakes = person_job(
    release,
    name="lift_brakes",
    manual=_LIFT_BRAKES,
    examples={
        "": {
            "reviewer": "小王",
            "note": "已撤销有误的 3 条，并把 lead_score 提高到 12",
            "dry_run": False,
            "strata": ["short_title", "season"],
        }
    },
    nothing_done="未恢复任何类别",
    tags=PERSON_TAGS,
)


jobs = [lift_brakes]
