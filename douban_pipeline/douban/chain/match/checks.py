"""Guards between verdicts and writes. The write path asks the same predicate again for every row."""

from datetime import timedelta

import dagster as dg
from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.match.assets import due_rechecks, scored_matches
from douban_pipeline.douban.chain.match.guards import breaches
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskType
from douban_pipeline.matching import guard


def _guard(name: str, description: str, *codes: str) -> Guard:
    return Guard(name, description, breaches, lambda breach: not set(codes).isdisjoint(breach.codes))


LOOKED_BACK = timedelta(days=7)
LEAST_RECHECKED = 20
"""Links that were judged again, from which on their share in doubt says something."""
MOST_IN_DOUBT = 0.1


@dg.asset_check(
    asset=due_rechecks,
    description=page_text(
        "At most {most_in_doubt:.0%} of the links judged again in the last seven days are now doubtful."
    ).format(most_in_doubt=MOST_IN_DOUBT),
)
def rechecked_links_hold(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
    """Warn when much would not be confirmed any more: the rules, or the sources, are not what they were."""
    services.ready()
    verdict, task = services.tables.verdict, services.tables.task
    query = (
        select(verdict.c.verdict, func.count())
        .join(task, task.c.task_id == verdict.c.task_id)
        .where(verdict.c.created_at >= services.clock.now() - LOOKED_BACK, task.c.task_type == TaskType.RECHECK)
        .group_by(verdict.c.verdict)
    )
    with reading(services.engine) as connection:
        found = dict(connection.execute(query).tuples().all())
    judged, doubtful = sum(found.values()), found.get(ReviewStatus.REVIEW, 0)
    passed = judged < LEAST_RECHECKED or doubtful <= MOST_IN_DOUBT * judged
    said = page_text(
        "Of the {judged} links rechecked in the last seven days {doubtful} are no longer "
        "confirmed and went to review: see whether rules or sources changed"
    ).format(judged=judged, doubtful=doubtful)
    return dg.AssetCheckResult(
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description="" if passed else said,
        metadata={"rechecked": judged, "in_doubt": doubtful},
    )


checks = [
    rechecked_links_hold,
    guard_checks(
        scored_matches,
        (
            _guard(
                "no_confirmed_with_hard_reject",
                page_text("No confirmed verdict has a conflict that rejects it."),
                guard.HARD_REJECT,
            ),
            _guard(
                "confirmed_reach_thresholds",
                page_text("Every confirmed verdict reaches the current score and lead, by the current profile."),
                guard.OTHER_PROFILE,
                guard.SCORE_UNDER_THRESHOLD,
                guard.LEAD_UNDER_THRESHOLD,
            ),
            _guard(
                "confirmed_from_healthy_sources",
                page_text("No confirmed verdict comes from a failing source or an incomplete set of candidates."),
                guard.SOURCE_DEGRADED,
            ),
            _guard(
                "locked_and_ignored_left_alone",
                page_text("No confirmed verdict is about a locked or ignored video."),
                guard.LOCKED,
                guard.IGNORED,
            ),
            _guard(
                "braked_strata_left_to_people",
                page_text("No confirmed verdict belongs to a stratum with suspended confirmation."),
                guard.STRATUM_BRAKED,
            ),
            _guard(
                "choices_of_people_stand",
                page_text("No confirmed verdict differs from the subject that a person chose."),
                guard.PERSON_CHOSE_OTHER,
            ),
        ),
        shown=BREACHES,
    ),
]
