"""The unpartitioned asset that measures automatic links by people's decisions, and its check."""

from datetime import timedelta
from textwrap import indent

import dagster as dg

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.core.ui.presentation import local_time, subject_link
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.douban.quality import figures
from douban_pipeline.douban.quality.brakes import (
    LEAST_LABELS,
    PRECISION_TARGET,
    lifted_since,
    pull_where_short,
)
from douban_pipeline.douban.quality.labels import (
    LinkLabel,
    acts_of_people,
    current_links,
    labels,
    linked_since,
    settled_by_people,
)
from douban_pipeline.douban.quality.rates import (
    Audit,
    audit,
    by_band,
    by_stratum,
    decisions_to_launch,
    openings,
    overall,
    overruled_rules,
    unexplained,
)
from douban_pipeline.douban.reports.lists.assets import report_asset
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import brakes
from douban_pipeline.matching.strata import stratum_name

_MOST_WRONG = 50
LATELY = timedelta(days=30)
"""Period of the summary line, about a month."""


@report_asset
def automatic_precision(
    context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]
) -> dg.MaterializeResult:
    """Precision of automatic links, measured by people's later decisions; by stratum and by score.

    `lately` is a one-line summary of the links of the last 30 days: how many were checked, how many were wrong, and
    in which strata.
    A decision for the same subject, or a lock on it, agrees with a link; another subject, `clear_id` or a revert
    that says that the link was wrong (`wrong_links`) overrules it; the newest counts. Strata overlap, so a link that
    one brake holds back does not count against the others. A stratum whose lower bound is below
    95 % gets a brake: nothing in it is confirmed without a person until the job
    `lift_brakes` lifts the brake. Rules that people overrule most are too
    strict. `would_be_safe_to_open` counts, for matches that lacked one thing only, how often people chose the first
    candidate, and the greatest share of errors that this leaves possible with 95 % confidence; where nobody ever
    differed and it is at most 1 %, a person may open the stratum with `lift_brakes`. Decisions of more than 20 videos
    at once are not counted. `to_check` is a random sample of links that nobody has checked yet; the config beside it is
    for the job `record_decisions`. Writes nothing to the CMS.
    """
    services.ready()
    settings, tables = services.settings, services.tables
    day = f"{services.clock.now().astimezone(settings.zone):%Y-%m-%d}"
    with reading(services.engine) as connection:
        acts = acts_of_people(connection, tables)
        judged = labels(connection, tables, acts)
        settled = settled_by_people(connection, tables, acts)
        newest = brakes.newest(connection, tables)
        since = lifted_since(newest)
        rates = by_stratum(judged, since)
        checked = {label.link.verdict_id for label in judged}
        began = services.clock.now() - LATELY
        linked = linked_since(connection, tables, began)
        sample = audit(current_links(connection, tables), checked, rates, day=day)
    pulled = pull_where_short(services, judged, newest)
    for brake in pulled:
        context.log.warning(f"nothing of stratum {brake.stratum} is confirmed from now on: {brake.reason}")
    with reading(services.engine) as connection:
        newest = brakes.newest(connection, tables)
        opened = brakes.opened(connection, tables)
        rows = services.cms.rows(connection, [link.vod_id for link in sample.picks])
    titles = {vod_id: readable(row["vod_name"]) for vod_id, row in rows.items()}
    whole, bands, rules = overall(judged), by_band(judged), overruled_rules(settled)
    proofs = openings(settled)
    target, least = PRECISION_TARGET, LEAST_LABELS
    first_right = sum(item.top_right for item in settled)
    on = [brake for brake in newest.values() if brake.on]
    counted = unexplained(judged, since, {brake.stratum for brake in on})
    strata = figures.stratum_rows(rates, counted, newest, sample.by_stratum, target=target, least=least)
    return dg.MaterializeResult(
        metadata={
            "lately": figures.lately(linked, [label for label in judged if label.link.at >= began], LATELY.days),
            "links": sample.links,
            "labels": whole.total,
            "overruled": whole.misses,
            **(
                {"precision": round(whole.hits / whole.total, 4), "lower_bound": round(whole.interval.low, 4)}
                if whole.total
                else {}
            ),
            **{f"lower_bound_{name}": round(rate.interval.low, 4) for name, rate in rates.items() if rate.total},
            "settled_by_people": len(settled),
            "first_candidate_right": first_right,
            "brakes_on": len(on),
            "brakes_pulled": len(pulled),
            "target": target,
            "by_stratum": shown_table(strata, most=len(strata)),
            "by_score": shown_table(figures.band_rows(bands, sample.by_band)),
            "brakes": shown_table(figures.brake_rows(on)),
            "overruled_links": shown_table(_wrong(judged), most=_MOST_WRONG),
            "safe_to_open": sum(each.safe for each in proofs.values()),
            "would_be_safe_to_open": shown_table(figures.opening_rows(proofs.values(), opened)),
            "overruled_rules": shown_table(figures.rule_rows(rules)),
            "to_check": shown_table(_to_check(sample, titles), most=len(sample.picks)),
            "decisions_to_launch": dg.MetadataValue.md(_launchpad(sample, titles, day)),
        }
    )


def _wrong(judged: list[LinkLabel]) -> list[dict[str, object]]:
    """Return the links that people overruled, the newest first."""
    wrong = sorted((label for label in judged if not label.right), key=lambda label: label.judged_at, reverse=True)
    return [
        {
            page_text("video"): label.link.vod_id,
            page_text("automatic link"): subject_link(label.link.douban_id),
            page_text("score"): label.link.score,
            page_text("stratum"): "、".join(map(stratum_name, label.link.strata)),
            page_text("reviewer"): label.person,
            page_text("verdict"): label.link.verdict_id,
        }
        for label in wrong
    ]


def _to_check(sample: Audit, titles: dict[int, str]) -> list[dict[str, object]]:
    return [
        {
            page_text("video"): link.vod_id,
            page_text("title", "video"): titles.get(link.vod_id, ""),
            page_text("automatic link"): subject_link(link.douban_id),
            page_text("score"): link.score,
            page_text("stratum"): "、".join(map(stratum_name, link.strata)),
        }
        for link in sample.picks
    ]


def _launchpad(sample: Audit, titles: dict[int, str], day: str) -> str:
    # Indented by four: a code block in Markdown, and still a valid config when copied into a launchpad.
    return indent(decisions_to_launch(sample.picks, titles, day=day), "    ") if sample.picks else "—"


@dg.asset_check(
    asset=automatic_precision,
    description=page_text(
        "No stratum's automatic confirmation is suspended for low precision; the job `lift_brakes` resumes it."
    ),
)
def precision_holds(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Fail while a brake is on, whether this run or an earlier one applied it. It blocks nothing: brakes do."""
    services.ready()
    with reading(services.engine) as connection:
        on = [brake for brake in brakes.newest(connection, services.tables).values() if brake.on]
    zone = services.settings.zone
    rows = [
        {**row, page_text("suspended at"): local_time(brake.pulled_at, zone)}
        for row, brake in zip(figures.brake_rows(on), on, strict=True)
    ]
    names = "、".join(stratum_name(brake.stratum) for brake in on)
    return dg.AssetCheckResult(
        passed=not on,
        severity=dg.AssetCheckSeverity.ERROR,
        description=page_text(
            "Automatic confirmation is suspended for these strata, which go to review: {names}"
        ).format(names=names)
        if on
        else "",
        metadata={"brakes_on": len(on), **({"strata": shown_table(rows)} if on else {})},
    )


assets = [automatic_precision]
checks = [precision_holds]
