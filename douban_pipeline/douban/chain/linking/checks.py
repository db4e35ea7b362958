"""Guards between verdicts and writes. The write path asks the same predicate again for every row."""

from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.linking.assets import scored_matches
from douban_pipeline.douban.chain.linking.guards import breaches
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.matching import guard


def _guard(name: str, description: str, *codes: str) -> Guard:
    return Guard(name, description, breaches, lambda breach: not set(codes).isdisjoint(breach.codes))


checks = [
    guard_checks(
        scored_matches,
        (
            _guard("no_confirmed_with_hard_reject", "No confirmed verdict carries a hard reject.", guard.HARD_REJECT),
            _guard(
                "confirmed_reach_thresholds",
                "Every confirmed verdict reaches the score and the lead in force, by the profile in force.",
                guard.OTHER_PROFILE,
                guard.SCORE_UNDER_THRESHOLD,
                guard.LEAD_UNDER_THRESHOLD,
            ),
            _guard(
                "confirmed_from_healthy_sources",
                "No confirmed verdict comes from a failing source or an incomplete set of candidates.",
                guard.SOURCE_DEGRADED,
            ),
            _guard(
                "locked_and_ignored_left_alone",
                "No confirmed verdict is about a locked or ignored video.",
                guard.LOCKED,
                guard.IGNORED,
            ),
            _guard(
                "braked_strata_left_to_people",
                "No confirmed verdict belongs to a stratum whose brake is on.",
                guard.STRATUM_BRAKED,
            ),
            _guard(
                "choices_of_people_stand",
                "No confirmed verdict is for another subject than a person chose.",
                guard.PERSON_CHOSE_OTHER,
            ),
        ),
        shown=BREACHES,
    )
]
