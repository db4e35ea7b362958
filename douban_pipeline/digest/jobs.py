"""Jobs of the digest: its assets and checks, the watchdog, jobs that people launch with a config, and pruning."""

from datetime import date, timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.dagster_kit.run_retention import (
    RetentionConfig,
    prune_job,
    prune_runs,
    report_pruned,
)
from douban_pipeline.digest.analysis import analyse_again, articles_to_rework, drop_old
from douban_pipeline.digest.assets import ANALYSES, ARTICLES, FINDINGS, REPORT
from douban_pipeline.digest.daily_report import make_report
from douban_pipeline.digest.report_watch import alert_undelivered, ensure_reports
from douban_pipeline.digest.resources import PERSON_TAGS, SYSTEM, tags_of
from douban_pipeline.digest.services import LOCATION, DigestServices
from douban_pipeline.digest.store import items

SLOT_TAGS = tags_of("digest_slot")

slot_job = dg.define_asset_job(
    "run_digest_slot",
    selection=dg.AssetSelection.assets(ARTICLES, ANALYSES, FINDINGS, REPORT),
    owners=owners(),
    tags=SLOT_TAGS,
    description=page_text(
        "One slot of one day, from its articles to its message. Launched by the schedule `digest_slots`."
    ),
)

check_job = dg.define_asset_job(
    "check_digest",
    selection=dg.AssetSelection.all_asset_checks(),
    owners=owners(),
    tags=tags_of("digest_check"),
    description=page_text("Checks that the day's slots succeeded and its report was delivered."),
)


class WatchConfig(LaunchpadConfig):
    """Parameters of the watchdog."""

    grace_minutes: int = Field(30, ge=0, description=page_text("Minutes after the slot."))
    reason: str = Field("", description=page_text("Reason, shown in the report."))


def watch_reports(
    context: dg.OpExecutionContext, config: WatchConfig, services: dg.ResourceParam[DigestServices]
) -> None:
    """Ensure that every due report is in the outbox, and alert the operators of those that no channel accepted."""
    services.ready()
    found = ensure_reports(services, timedelta(minutes=config.grace_minutes), config.reason)
    for each in found:
        said = "is there" if each.was_there else f"was missing: {each.messages} messages made"
        context.log.info(f"the report of {each.day} {said}")
    made = [each for each in found if not each.was_there]
    rows = [
        {
            page_text("date"): each.day,
            page_text("title", "column"): each.made.title if each.made else "",
            page_text("message"): each.messages,
        }
        for each in made
    ]
    undelivered, alerts = alert_undelivered(services)
    for breach in undelivered:
        context.log.warning(f"the report of {breach.day} reached nobody; {breach.problem}")
    counts = {"watched": len(found), "undelivered": len(undelivered), "alerts": alerts}
    context.add_output_metadata({**counts, "made": run_table(rows)})


_WATCH = page_text(
    """\
Make the day's report and put it into the outbox if its slot failed to; alert if a report reached no channel.

Safe to repeat: a report that is there is left alone, and nobody is alerted twice.
"""
)

watch_digest = person_job(
    watch_reports,
    name="watch_digest",
    manual=_WATCH,
    writes=page_text(
        "The missing report with its messages, and alerts of undelivered ones; nothing where the report is there."
    ),
    when=page_text("By itself after the report's slot, and when its run failed."),
    examples={"": {"grace_minutes": 30, "reason": "22:00 时段的运行失败"}},
    nothing_done=page_text("The daily report was not checked"),
    location=LOCATION,
    tags=tags_of("digest_watch"),
)


class ReanalyseConfig(LaunchpadConfig):
    """Articles to analyse again."""

    dry_run: bool = Field(True, description=page_text("true: only list the articles; false: analyse them."))
    articles: list[int] = Field(default_factory=list, description=page_text("Ids of articles (content_item_id)."))
    days: list[str] = Field(default_factory=list, description=page_text("All analyses of these days."))
    only_other_rubric: bool = Field(False, description=page_text("true: only those analysed by another rubric."))


def reanalyse(
    context: dg.OpExecutionContext, config: ReanalyseConfig, services: dg.ResourceParam[DigestServices]
) -> None:
    """Analyse articles again; each result replaces the previous one."""
    services.ready()
    chosen = articles_to_rework(
        services, config.articles, [_day(each) for each in config.days], only_other_rubric=config.only_other_rubric
    )
    with reading(services.engine) as connection:
        rows = [
            {
                page_text("id", "article"): each.content_item_id,
                page_text("account"): each.mp_name,
                page_text("title", "column"): each.title,
            }
            for each in items.chosen(connection, chosen)
        ]
    context.add_output_metadata({"dry_run": config.dry_run, "articles": run_table(rows, most=100)})
    if config.dry_run:
        context.log.info(f"dry run: {len(rows)} articles would be analysed again")
        return
    report = analyse_again(services, chosen)
    context.log.info(f"{report.analysed} analysed anew, {report.failed} failed, {report.left} left {report.ended}")


reanalyse_articles = person_job(
    reanalyse,
    name="reanalyse_articles",
    manual=page_text("Analyse articles again, after the rubric or the model changed."),
    writes=page_text(
        "The analyses of these articles, in place of the old ones; it calls the model, which costs "
        "money. A dry run (the default) only lists the articles."
    ),
    when=page_text("After the rubric or the model changed, or when an analysis is wrong."),
    examples={
        "几篇文章": {"dry_run": False, "articles": [1, 2]},
        "一天里用旧标准分析的": {"dry_run": False, "days": ["2026-11-20"], "only_other_rubric": True},
    },
    nothing_done=page_text("Nothing was analysed again"),
    location=LOCATION,
    tags=PERSON_TAGS,
)


class ReportRebuildConfig(LaunchpadConfig):
    """Day whose report is made again."""

    dry_run: bool = Field(True, description=page_text("true: only check; false: make the report."))
    day: str = Field("", description=page_text("The day."))
    use_model: bool = Field(True, description=page_text("false: compile it without the model."))


def rebuild(
    context: dg.OpExecutionContext, config: ReportRebuildConfig, services: dg.ResourceParam[DigestServices]
) -> None:
    """Make a day's report again; nothing is pushed."""
    services.ready()
    day = _day(config.day)
    if config.dry_run:
        context.log.info(f"dry run: the report of {day} would be made again")
        return
    made = make_report(services, day, use_model=config.use_model)
    context.log.info(f"{made.title} ({made.state.value}) {made.reason}")
    shown = dg.MetadataValue.md(str(made.digest.get("digest_md", "")))
    context.add_output_metadata({"title": made.title, "report": made.state.value, "digest": shown})


rebuild_report = person_job(
    rebuild,
    name="rebuild_report",
    manual=page_text("Make a day's report again, for example after articles were analysed again. Nothing is pushed."),
    writes=page_text("The report of the day. A dry run (the default) writes nothing."),
    when=page_text("After articles of the day were analysed again."),
    examples={"": {"dry_run": False, "day": "2026-11-20"}},
    nothing_done=page_text("Nothing was generated again"),
    location=LOCATION,
    tags=PERSON_TAGS,
)

HISTORY_DAYS = 90
"""Days for which finished runs are kept; slots, analyses and reports are kept for ever."""


def prune(context: dg.OpExecutionContext, config: RetentionConfig, services: dg.ResourceParam[DigestServices]) -> None:
    """Delete raw answers and finished runs after their retention period."""
    services.ready()
    answers = drop_old(services, dry_run=config.dry_run)
    before = services.now() - timedelta(days=HISTORY_DAYS)
    runs = prune_runs(context, SYSTEM, before=before, dry_run=config.dry_run)
    report_pruned(context, {"answers": answers, "runs": runs}, dry_run=config.dry_run)


prune_digest = prune_job(
    prune,
    name="prune_digest",
    manual=page_text("Delete raw answers older than 30 days, and finished runs of the location older than 90."),
    writes=page_text("Deletes raw answers and runs. A dry run (the default) only counts them."),
    location=LOCATION,
    tags=tags_of("digest_prune"),
)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ProblemsError([page_text("“{day}” is no date; write it as 2026-11-20").format(day=text[:30])]) from None


jobs: list[Any] = [slot_job, check_job, watch_digest, reanalyse_articles, rebuild_report, prune_digest]
"""All jobs of the digest except those of its pushes."""
