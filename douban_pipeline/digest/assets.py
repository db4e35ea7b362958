"""The assets of the digest: a slot's articles, their analyses, its findings, and the day's report."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.dagster_kit.metadata import counts_table, shown_table
from douban_pipeline.dagster_kit.runs import BACKFILL_ID_TAG
from douban_pipeline.digest import wording
from douban_pipeline.digest.resources import SLOT_POOL
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slot_run import EndedSlot, SlotWork, TooEarly
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.store.slots import SlotClaim
from douban_pipeline.digest.types import SlotRow, SlotStatus

_COUNTED = ("articles_new", "analysed", "failed", "findings", "best_score", "throttled", "calls")


def slot_numbers(services: DigestServices, key: SlotKey) -> dict[str, int]:
    """Return the numbers of a slot, for metadata."""
    with reading(services.engine) as connection:
        row = slots.find(connection, key.run_date, key.slot)
    return {} if row is None else _numbers([row])


def day_numbers(services: DigestServices, day: date) -> dict[str, int]:
    """Return the numbers of a day so far, for metadata: slots done, articles, analyses, failures, findings, best."""
    with reading(services.engine) as connection:
        rows = slots.of_day(connection, day)
    done = sum(row.status is SlotStatus.SUCCESS for row in rows)
    return {"slots_done": done, **{f"day_{name}": value for name, value in _numbers(rows).items()}}


def _numbers(rows: Sequence[SlotRow]) -> dict[str, int]:
    totals = {name: sum(int(row.counters.get(name) or 0) for row in rows) for name in _COUNTED}
    scores = [row.counters["best_score"] for row in rows if row.counters.get("best_score") is not None]
    return {**totals, "best_score": max(scores, default=0)}


GROUP = "digest"
ARTICLES, ANALYSES, FINDINGS, REPORT = "slot_articles", "article_analyses", "slot_findings", "daily_report"


def _begun(context: dg.AssetExecutionContext, services: DigestServices) -> tuple[SlotWork, dict[str, Any] | None]:
    """Return a run's slot, and the metadata if there is nothing to do.

    Raises:
        Failure: The slot is not due yet.
    """
    services.ready()
    key = SlotKey.parse(str(context.partition_key))
    work = SlotWork(services, key, context.run.run_id, BACKFILL_ID_TAG in context.run.tags)
    try:
        claimed = work.begin()
    except TooEarly as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    if refusal := work.push_refusal:
        context.log.warning(refusal)
    if claimed.claim is SlotClaim.TAKEN:
        if claimed.died:
            context.log.warning("took over the slot from a dead run")
        return work, None
    said = wording.CLAIMS[claimed.claim]
    context.log.info(said)
    return work, {"nothing_to_do": said, **slot_numbers(services, key)}


def _ended(ended: EndedSlot) -> dict[str, Any]:
    return {
        "status": ended.status.value,
        "problems": ended.error or "—",
        "findings": len(ended.findings),
        "doubtful": sum(bool(each.suspicions) for each in ended.findings),
        "messages": ended.messages,
        "not_pushed_because": ended.push_refusal or "—",
        "best": shown_table(wording.finding_rows(ended.findings)),
    }


def assets_for(partitions: dg.MultiPartitionsDefinition) -> list[dg.AssetsDefinition]:
    """Return the four assets, over ``partitions``."""
    options: dict[str, Any] = {"group_name": GROUP, "kinds": {"python"}, "partitions_def": partitions}

    @dg.asset(
        name=ARTICLES,
        pool=SLOT_POOL,
        **options,
    )
    @page_docstring
    def slot_articles(
        context: dg.AssetExecutionContext, services: dg.ResourceParam[DigestServices]
    ) -> dg.MaterializeResult:
        """Stores the articles of the followed accounts, each once, with their bodies.

        Reads back 72 hours, or to an account's last successful read if that is longer ago (at most 14 days). A failing
        source is recorded and does not stop the others. A slot that succeeded is not run again; the slot of a dead run
        is taken over.
        """
        work, nothing = _begun(context, services)
        if nothing is not None:
            return dg.MaterializeResult(metadata=nothing)
        report = work.ingest()
        for problem in report.problems:
            context.log.warning(problem)
        return dg.MaterializeResult(
            metadata={
                **{name: value for name, value in report.counters().items() if value is not None},
                "extended_windows": ", ".join(report.extended) or "—",
                "problems": dg.MetadataValue.md("\n".join(f"- {each}" for each in report.problems) or "—"),
            }
        )

    @dg.asset(
        name=ANALYSES,
        deps=[slot_articles],
        pool=SLOT_POOL,
        **options,
    )
    @page_docstring
    def article_analyses(
        context: dg.AssetExecutionContext, services: dg.ResourceParam[DigestServices]
    ) -> dg.MaterializeResult:
        """Analyses every article once, several concurrently, for 20 minutes at most.

        Failed articles are retried in the next slots; those not yet sent to the model wait for them.
        """
        work, nothing = _begun(context, services)
        if nothing is not None:
            return dg.MaterializeResult(metadata=nothing)
        report = work.analyse()
        if report.ended:
            context.log.warning(report.ended)
        return dg.MaterializeResult(
            metadata={
                **{name: value for name, value in report.counters().items() if isinstance(value, int)},
                "calls_ended": report.ended or "—",
                "problems": counts_table(
                    page_text("reason", "column"), page_text("articles"), report.problems.most_common()
                ),
                "model": services.settings.deepseek_model,
                "wire_model": services.wire_model,
                "rubric": f"{services.rubric.hash[:12]} ({services.rubric.origin})",
            }
        )

    @dg.asset(
        name=FINDINGS,
        deps=[article_analyses],
        **options,
    )
    @page_docstring
    def slot_findings(
        context: dg.AssetExecutionContext, services: dg.ResourceParam[DigestServices]
    ) -> dg.MaterializeResult:
        """The analyses of the slot whose score reaches the threshold. Ends the slot, except the last one of the day.

        Status and outbox message are stored in one transaction. An article whose text contains instructions to the
        model is not pushed automatically.
        """
        work, nothing = _begun(context, services)
        if nothing is not None:
            return dg.MaterializeResult(metadata=nothing)
        if work.is_report:
            found = work.found()
            shown = shown_table(wording.finding_rows(found))
            return dg.MaterializeResult(metadata={"findings": len(found), "best": shown})
        ended = work.end()
        return dg.MaterializeResult(metadata=_ended(ended))

    @dg.asset(
        name=REPORT,
        deps=[slot_findings],
        **options,
    )
    @page_docstring
    def daily_report(
        context: dg.AssetExecutionContext, services: dg.ResourceParam[DigestServices]
    ) -> dg.MaterializeResult:
        """The day's report, made by the day's last slot even if earlier steps failed, and put into the outbox.

        Written by the model, or compiled without it if it gives no answer. Ends the slot. In earlier slots it shows
        the day so far.
        """
        key = SlotKey.parse(str(context.partition_key))
        numbers = day_numbers(services, key.run_date)
        if key.slot != services.settings.report_slot:
            return dg.MaterializeResult(metadata={**numbers})
        work, nothing = _begun(context, services)
        if nothing is not None:
            return dg.MaterializeResult(metadata={**nothing, **numbers})
        made, ended = work.report()
        if made.reason:
            context.log.warning(made.reason)
        return dg.MaterializeResult(
            metadata={
                **day_numbers(services, key.run_date),
                **_ended(ended),
                "title": made.title,
                "report": made.state.value,
                "written_without_model_because": made.reason or "—",
                "digest": dg.MetadataValue.md(str(made.digest.get("digest_md", ""))),
            }
        )

    return [slot_articles, article_analyses, slot_findings, daily_report]
