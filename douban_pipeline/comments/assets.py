"""Assets of the comment system: factors, rules, scores, impressions, reports, and import from the CMS."""

from collections import Counter
from dataclasses import asdict

import dagster as dg
import numpy as np

from douban_pipeline.comments import capacity as capacity_rules
from douban_pipeline.comments import guards, moderation
from douban_pipeline.comments.cms_import import take_in
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.heat.graph import ValueKind
from douban_pipeline.comments.moderator_notices import tell_moderators
from douban_pipeline.comments.resources import SCORE_POOL
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.scoring.impressions import forget_views, roll_up
from douban_pipeline.comments.scoring.sections import ScoredSection, active_sections
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store import search_index
from douban_pipeline.comments.sweep import sweep
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.dagster_kit.metadata import counts_table, shown_table

_SHOWN = 30
INDEXED_AT_ONCE = 50_000
"""Maximum number of texts that one run adds to the search index, so that the next sweep is not delayed for long."""


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def comment_factors(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """List the factors of scores and rules, with their values in the section with the most recent activity.

    Each factor is a named function of other factors or of table columns, as listed. Texts are not read for this.
    """
    services.ready()
    now = services.clock.now()
    numbers = [name for name, each in GRAPH.factors.items() if "content" not in GRAPH.read_for([name])]
    sections = active_sections(services.engine, now)
    columns = {}
    if sections:
        with reading(services.engine) as connection:
            found = read_columns(connection, sections[0][0], GRAPH.read_for(numbers), now)
        columns = GRAPH.compute(numbers, found.read)
    rows = []
    for name, factor in GRAPH.factors.items():
        row = {
            page_text("factor"): name,
            page_text("meaning"): factor.meaning,
            page_text("derived from"): "、".join(factor.inputs) or page_text("tables"),
        }
        column = columns.get(name)
        if column is not None and len(column):
            middle, high = np.quantile(column.astype(np.float64), [0.5, 0.95])
            row |= {page_text("median"): f"{middle:.3g}", "95%": f"{high:.3g}"}
            if factor.kind is ValueKind.FLAG:
                row |= {
                    page_text("median"): page_text("{share:.1f}% true").format(share=100 * column.mean()),
                    "95%": "",
                }
        rows.append(row)
    metadata: dict[str, dg.MetadataValue] = {
        "factors": dg.MetadataValue.int(len(GRAPH.factors)),
        "meanings": shown_table(rows, most=len(rows)),
    }
    if sections:
        metadata["section"] = dg.MetadataValue.int(sections[0][0])
        metadata["comments"] = dg.MetadataValue.int(len(found))
    return dg.MaterializeResult(metadata=metadata)


@dg.asset(
    group_name="comments",
    kinds={"python"},
    deps=[comment_factors],
)
@page_docstring
def comment_rules(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """List the active rules and the running experiments; a rule that can no longer be applied fails the run.

    Rules are activated with the job `save_comment_rule`, which first shows what they would move.
    """
    services.ready()
    with reading(services.engine) as connection:
        rules = policies.rules_in_force(connection)
        try:
            policies.policies(connection, services.settings.heat_weights)
        except ProblemsError as error:
            shown = "\n".join(f"- {each}" for each in error.problems)
            raise dg.Failure(
                page_text("The rules cannot be applied:\n{shown}").format(shown=shown), allow_retries=False
            ) from error
    rows = [
        {
            page_text("rule"): rule.name,
            page_text("condition"): rule.expression,
            page_text("outcome", "rule"): rule.decision.value,
            page_text("points"): rule.amount or "",
            page_text("priority"): rule.priority,
            page_text("reason", "column"): rule.reason,
        }
        for rule in sorted(rules, key=lambda each: (-each.priority, each.name))
    ]
    return dg.MaterializeResult(
        metadata={"rules": dg.MetadataValue.int(len(rules)), "in_force": shown_table(rows, most=_SHOWN)}
    )


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def impression_rollup(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """Aggregate hourly impressions older than the windows of the like rate into one row per comment.

    Who saw which comment is forgotten then, too.
    """
    services.ready()
    now = services.clock.now()
    return dg.MaterializeResult(
        metadata={"rolled_up": roll_up(services.engine, now), "views_forgotten": forget_views(services.engine, now)}
    )


@dg.asset(
    group_name="comments",
    kinds={"python"},
    deps=[comment_rules, impression_rollup],
    pool=SCORE_POOL,
)
@page_docstring
def hot_scores(context: dg.AssetExecutionContext, services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """Compute the order by heat of every section active within 7 days, for 8 minutes at most.

    A section's list is replaced in one step; scores are written where they changed. A run that is killed leaves the
    list of its section as it was.
    """
    services.ready()
    done, left = sweep(services)
    context.log.info(f"{len(done)} sections scored, {left} left for the next run")
    return dg.MaterializeResult(metadata=sweep_metadata(done, left))


def sweep_metadata(done: list[ScoredSection], left: int) -> dict[str, dg.MetadataValue]:
    """Return the results of a sweep as metadata."""
    hits: Counter[str] = Counter()
    variants = Counter(each.variant or "—" for each in done)
    for each in done:
        hits.update(each.hits)
    slowest = sorted(done, key=lambda each: -sum(each.seconds.values()))[:_SHOWN]
    rows = [
        {
            page_text("section"): each.section_id,
            page_text("comment", "column"): each.comments,
            page_text("written", "count"): each.written,
            page_text("changes in the first ten"): each.moved,
            page_text("seconds"): f"{sum(each.seconds.values()):.2f}",
        }
        for each in slowest
    ]
    metadata: dict[str, dg.MetadataValue] = {
        "sections": dg.MetadataValue.int(len(done)),
        "left_for_next_run": dg.MetadataValue.int(left),
        "comments": dg.MetadataValue.int(sum(each.comments for each in done)),
        "scores_written": dg.MetadataValue.int(sum(each.written for each in done)),
        "moved_in_top_ten": dg.MetadataValue.int(sum(each.moved for each in done)),
        "slowest": shown_table(rows),
        "rules": counts_table(page_text("rule"), page_text("in force"), hits.most_common(), most=_SHOWN),
        "variants": counts_table(page_text("experiment's arm"), page_text("section"), variants.items()),
    }
    return metadata


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def capacity_report(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """Estimate the required processes and workers, and the threshold of a hot section, from the busiest hour of a week.

    Uses the plan's formulas: pages per second in the busiest second, divided by the measured capacity of one process.
    """
    services.ready()
    with reading(services.engine) as connection:
        events, pages = capacity_rules.busiest_hour(connection, services.clock.now())
        waits = guards.waits_of_events(connection, services.clock)
    found = capacity_rules.capacity(events, pages)
    return dg.MaterializeResult(
        metadata={
            "events_per_second": dg.MetadataValue.float(round(found.events_per_second, 3)),
            "pages_per_second": dg.MetadataValue.float(round(found.pages_per_second, 3)),
            "peak_pages_per_second": dg.MetadataValue.float(round(found.peak_pages, 2)),
            "service_processes": dg.MetadataValue.int(found.service_nodes),
            "workers": dg.MetadataValue.int(found.workers),
            "hot_from_pages_per_second": dg.MetadataValue.float(round(found.hot_pages, 1)),
            **({"lag_p95_seconds": round(waits[int(0.95 * (len(waits) - 1))], 2)} if waits else {}),
        }
    )


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def mac_comment_import(
    context: dg.AssetExecutionContext, services: dg.ResourceParam[CommentsServices]
) -> dg.MaterializeResult:
    """Import the CMS's own comments, each once, as events that workers apply; its table is only read.

    A run imports `…_IMPORT_BATCH` of them, continuing where the last one ended. Comments hidden in the CMS wait for
    review.
    """
    services.ready()
    found = take_in(services, services.settings.import_batch)
    if found is None:
        context.log.info("no table of comments: nothing is taken in")
        return dg.MaterializeResult(metadata={"taken": 0})
    return dg.MaterializeResult(metadata={name: dg.MetadataValue.int(value) for name, value in asdict(found).items()})


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def comment_review_queue(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """List the comments waiting for review, oldest first; the job `moderate_comments` restores or deletes them."""
    services.ready()
    with reading(services.engine) as connection:
        waiting = moderation.waiting_comments(connection)
    rows = [
        {
            page_text("comment", "column"): each.comment_id,
            page_text("section"): each.section_id,
            page_text("text"): each.text[:80],
            page_text("origin"): each.refusal,
        }
        for each in waiting
    ]
    return dg.MaterializeResult(
        metadata={"waiting": dg.MetadataValue.int(len(waiting)), "comments": shown_table(rows, most=200)}
    )


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def comment_search_index(services: dg.ResourceParam[CommentsServices]) -> dg.MaterializeResult:
    """Add new comments to the bigram index of texts that operators' searches use.

    Hidden comments are indexed too. Likes and status are read from the tables at search time, so the index holds only
    texts, which never change. A run adds at most `INDEXED_AT_ONCE` of them; texts not yet indexed are searched by
    reading them.
    """
    services.ready()
    taken = search_index.fill(services.engine, INDEXED_AT_ONCE)
    with reading(services.engine) as connection:
        total, waiting = search_index.count_texts(connection, 0)
    return dg.MaterializeResult(metadata={"taken": taken, "comments": total, "left_for_next_run": waiting})


@dg.asset(
    group_name="comments",
    kinds={"python"},
)
@page_docstring
def moderator_notices(
    context: dg.AssetExecutionContext, services: dg.ResourceParam[CommentsServices]
) -> dg.MaterializeResult:
    """Tell moderators of comments that began to wait, where `…_MODERATOR_CHANNELS` names channels; half-hourly at most.

    A channel that does not accept the message is a warning, and is told in the next run.
    """
    services.ready()
    found = tell_moderators(services)
    for name, problem in found.problems.items():
        context.log.warning(f"channel {name}: {problem}")
    return dg.MaterializeResult(
        metadata={
            "waiting": dg.MetadataValue.int(found.waiting),
            "told": ", ".join(found.told),
            "problems": "\n".join(f"{name}: {problem}" for name, problem in found.problems.items()),
        }
    )


assets = [
    moderator_notices,
    comment_search_index,
    mac_comment_import,
    comment_factors,
    comment_rules,
    impression_rollup,
    hot_scores,
    capacity_report,
    comment_review_queue,
]
