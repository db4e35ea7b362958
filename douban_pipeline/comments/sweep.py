"""Sweep: scores all active sections under the current policies and publishes their lists."""

from __future__ import annotations

from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.sections import ScoredSection, active_sections, score_active, score_section
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.core.database import reading

SWEEP_MINUTES = 8.0
"""Minutes after which a sweep starts no further section: the next one is ten minutes after it."""


def sweep(services: CommentsServices) -> tuple[list[ScoredSection], int]:
    """Score active sections within the configured time; return the results and the number of sections left.

    Raises:
        ProblemsError: A rule or an experiment cannot be applied.
    """
    now = services.clock.now()
    with reading(services.engine) as connection:
        chosen = policies.policies(connection, services.settings.heat_weights)
    total = len(active_sections(services.engine, now))
    seconds = 60 * SWEEP_MINUTES
    done = list(score_active(services.engine, services.heat_lists, chosen, now, seconds=seconds))
    return done, max(total - len(done), 0)


def rebuild(services: CommentsServices, section_id: int) -> ScoredSection:
    """Score one section now, active or not, and publish its list.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    with reading(services.engine) as connection:
        policy = policies.policy_of(connection, section_id, services.settings.heat_weights)
    return score_section(services.engine, services.heat_lists, section_id, policy, services.clock.now())
