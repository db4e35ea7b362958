"""Opening and closing a source's breaker: the job's text is the manual, and its default is safe."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.ui.presentation import local_time, table
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, problems_failure, refuse_environment
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.upkeep.gates import GateAction, GateChangeError, gate_row, set_by_hand


class GateConfig(dg.Config):
    """Which source's breaker is changed, how, by whom and why."""

    reviewer: str = Field("", description="Your name; it is shown with the breaker.")
    note: str = Field("", description="Why, in a sentence; with open it is shown to whoever waits.")
    dry_run: bool = Field(True, description="true only checks and shows; set false to change.")
    source: str = Field("", description="Name of the source, as `source_gates` shows it.")
    action: GateAction = Field(
        GateAction.close, description="open stops all calls for `minutes`; close lets them pass."
    )
    minutes: int = Field(60, description="For open: after so many minutes one call probes the source.")


@dg.op
def change_gate(context: dg.OpExecutionContext, config: GateConfig, services: dg.ResourceParam[Services]) -> None:
    """Change the breaker, or show what would happen."""
    refuse_environment(context)
    services.ready()
    try:
        change = set_by_hand(
            services,
            config.source,
            config.action,
            minutes=config.minutes,
            reviewer=config.reviewer,
            note=config.note,
            dry_run=config.dry_run,
        )
    except GateChangeError as error:
        raise problems_failure("未改动任何来源", error.problems) from error
    source, zone = change.before.source, services.settings.zone
    what = f"opened until {local_time(change.until, zone)}" if change.until else "closed"
    context.log.info(f"the breaker of {source} {'would be ' if config.dry_run else 'was '}{what}")
    now = services.clock.now()
    shown = [gate_row(status, now, zone) for status in services.gate.status() if status.source == source]
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "source": source,
            "action": config.action.value,
            "until": local_time(change.until, zone),
            "before": dg.MetadataValue.md(table([gate_row(change.before, now, zone)])),
            "now": dg.MetadataValue.md(table(shown)),
        }
    )


@dg.job(
    config=dg.RunConfig(
        ops={
            "change_gate": GateConfig(
                reviewer="", note="", dry_run=True, source="", action=GateAction.close, minutes=60
            )
        }
    ),
    tags=PERSON_TAGS,
)
def set_gate() -> None:
    """暂停或恢复一个来源 · Open or close a source's breaker by hand.

    | action | 含义 |
    |--|--|
    | `open` | 断开：`minutes` 分钟（1 到 10080）内不再请求该来源，到期后先放行一次试探；可以延长，也可以缩短 |
    | `close` | 闭合：立即恢复请求，此前的失败不再计入 |

    来源的名字和现状见资产 `source_gates`。断路器自动断开时（验证码、登录页、五分钟内失败过多、请求过快、余额不足），
    先排除原因（换出口地址、充值、等对方恢复），再 `close`；也可以不管它，到期会自动试探。

    示例 · Example:

    ```yaml
    ops:
      change_gate:
        config:
          reviewer: 小王
          note: 豆瓣出现验证码，今晚先停两小时
          dry_run: false
          source: douban
          action: open
          minutes: 120
    ```

    `dry_run: true`（默认）只检查。任何一项有误则不改动，并一次列出所有问题。`close` 不用 `minutes`。每日配额不受影响：
    配额用完的来源次日零点（网站时区）恢复。已推迟的任务仍在原定时间继续。
    """
    change_gate()


jobs = [set_gate]
