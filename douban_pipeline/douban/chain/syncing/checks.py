"""Guards on what was written. Add one here when it compares the CMS with what the log says."""

from sqlalchemy import Connection

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import Found, Guard, guard_checks
from douban_pipeline.douban.chain.syncing import guards
from douban_pipeline.douban.chain.syncing.assets import synced_fields
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.douban.services import Services


def _overwritten(services: Services, connection: Connection) -> Found:
    over = guards.overwritten(services, connection)
    return Found(over.found, stops=over.widespread)


checks = [
    guard_checks(
        synced_fields,
        (
            Guard(
                "nothing_blanked",
                described(
                    "近 24 小时没有自动写入清空过任何字段。",
                    "No automatic write of the last 24 hours emptied a column.",
                ),
                guards.blanked,
            ),
            Guard(
                "locked_untouched",
                described(
                    "近 24 小时没有自动写入动过锁定的豆瓣 ID 或简介。",
                    "No automatic write of the last 24 hours changed a locked id or a locked synopsis.",
                ),
                guards.locked_touched,
            ),
            Guard(
                "log_agrees_with_cms",
                described(
                    "每个自动写入的 ID 在变更日志里都有已写入的记录。",
                    "Every automatic id has an applied row in the log.",
                ),
                guards.log_disagrees,
            ),
            Guard(
                "no_change_interrupted",
                described(
                    "没有运行中断后留下未核对的变更；留下的由下一次写入核对。",
                    "No interrupted run left a change that is not settled; the next run that writes settles it.",
                ),
                guards.interrupted,
                warns=True,
            ),
            Guard(
                "next_sync_in_future",
                described(
                    "处理过的影片都排好了下次检查的时间；没有排好的会改正。",
                    "Every processed video has its next visit scheduled; one that has not gets it.",
                ),
                guards.visit_not_ahead,
                mend=guards.put_visits_ahead,
            ),
            Guard(
                "writes_take_hold",
                described(
                    "近 24 小时写入的内容仍在 CMS 里。个别不同是别人的编辑，只提醒，`cms_drift` 里可看是谁的；一"
                    "下子很多则停止运行：有程序在改写。",
                    "Values written in the last 24 hours are still in the CMS. Single differences are edits by "
                    "others: they warn, and `cms_drift` shows by whom. Many at once stop the run: a program "
                    "overwrites the values.",
                ),
                _overwritten,
            ),
        ),
        shown=BREACHES,
    )
]
