"""Repeated analysis of articles on request, and deletion of old raw answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.digest.analysing import Analyser, AnalysisReport
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.store.tables import analysis_result, content_item, slot_run

MOST_AT_ONCE = 500
_ANSWER_DAYS = 30


def articles_to_rework(
    services: DigestServices, ids: Sequence[int], days: Sequence[date], *, only_other_rubric: bool
) -> list[int]:
    """Return the ids of the requested articles: listed one by one, or all those analysed in the slots of given days.

    Raises:
        ProblemsError: One does not exist, none is requested, or there are too many.
    """
    query = select(analysis_result.c.content_item_id).join(slot_run, slot_run.c.run_id == analysis_result.c.run_id)
    query = query.where(slot_run.c.run_date.in_(days))
    if only_other_rubric:
        query = query.where(analysis_result.c.rubric_hash != services.rubric.hash)
    with reading(services.engine) as connection:
        known = select(content_item.c.content_item_id).where(content_item.c.content_item_id.in_(ids))
        there = set(connection.execute(known).scalars()) if ids else set()
        found = there | (set(connection.execute(query).scalars()) if days else set())
    problems = [f"没有文章 {each}" for each in sorted(set(ids) - there)]
    if not ids and not days:
        problems.append("没有给出文章（articles）或日期（days）")
    if len(found) > MOST_AT_ONCE:
        problems.append(f"一次最多 {MOST_AT_ONCE} 篇，这里有 {len(found)} 篇：请分几天做")
    if problems:
        raise ProblemsError(problems)
    return sorted(found)


def analyse_again(services: DigestServices, ids: Sequence[int]) -> AnalysisReport:
    """Analyse articles again; each result replaces the previous one, and nothing is pushed."""
    deadline = services.now() + timedelta(minutes=services.settings.slot_minutes)
    return Analyser(services, 0, "again", deadline).again(ids)


def drop_old(services: DigestServices, *, dry_run: bool = False) -> int:
    """Delete raw answers after their retention period; return how many, or how many a dry run would delete."""
    return services.archive.prune(services.now() - timedelta(days=_ANSWER_DAYS), dry_run=dry_run)
