"""A sweep: all active sections are scored under the policies in force, and their lists are published."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from douban_pipeline.comments.heat.explaining import explain
from douban_pipeline.comments.heat.ranking import Policy, columns_to_read, rank
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.scoring.sections import ScoredSection, active_sections, score_active, score_section
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.tables import section
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError


def sweep(services: CommentsServices) -> tuple[list[ScoredSection], int]:
    """Score the active sections for the minutes of the settings; return what was done, and how many were left.

    Raises:
        ProblemsError: A rule or an experiment cannot be applied.
    """
    now = services.clock.now()
    with reading(services.engine) as connection:
        chosen = policies.policies(connection, services.settings.heat_weights)
    total = len(active_sections(services.engine, now))
    seconds = 60 * services.settings.sweep_minutes
    done = list(score_active(services.engine, services.heat_lists, chosen, now, seconds=seconds))
    return done, max(total - len(done), 0)


def rebuild(services: CommentsServices, section_id: int) -> ScoredSection:
    """Score one section now, active or not, and put its list in place anew.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    policy = _policy_of(services, section_id)
    return score_section(services.engine, services.heat_lists, section_id, policy, services.clock.now())


def explain_places(services: CommentsServices, section_id: int, places: Sequence[int]) -> dict[int, list[str]]:
    """Return by place, counted from 1, why a comment of a section stands there now, in Chinese sentences.

    The section is ranked as it is in this moment, with the comments that are not shown left out.

    Raises:
        ProblemsError: There is no such section or place, or a rule cannot be applied.
    """
    policy = _policy_of(services, section_id)
    with reading(services.engine) as connection:
        found = read_columns(connection, section_id, columns_to_read(policy), services.clock.now())
    read = {name: column[found.shown] for name, column in found.read.items()}
    ranking = rank(found.ids[found.shown], read, policy)
    wrong = [place for place in places if not 1 <= place <= len(ranking)]
    if wrong:
        raise ProblemsError([f"评论区 {section_id} 有 {len(ranking)} 条评论，没有第 {place} 名" for place in wrong])
    return {place: [f"评论 {ranking.ids[place - 1]}。", *explain(ranking, place, read, policy)] for place in places}


def _policy_of(services: CommentsServices, section_id: int) -> Policy:
    with reading(services.engine) as connection:
        chosen = policies.policies(connection, services.settings.heat_weights)
        kind = connection.execute(select(section.c.type).where(section.c.section_id == section_id)).scalar()
    if kind is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区"])
    return chosen.of(section_id, kind)
