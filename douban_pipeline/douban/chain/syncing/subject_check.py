"""What speaks against a subject that a person names: it is asked for and compared before anything is recorded or
written. Whoever records a decision and whoever carries it out ask the same question here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from douban_pipeline.douban.chain.linking.facts import subject_facts, video_facts
from douban_pipeline.douban.chain.linking.guards import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.matching import HARD_REJECTS, compare


def conflicts_of(services: Services, row: Mapping[Any, Any], douban_id: int) -> str:
    """Return what rules a subject out for a video, in Chinese; empty if nothing does.

    Args:
        services: Source and settings; an answer not older than `Settings.subject_cache_age` costs no call.
        row: The video's CMS row.
        douban_id: The subject.

    Raises:
        SubjectMissing: The source says that there is no such subject.
        SourceError: The source cannot be asked now; nothing may be concluded.
    """
    answer = services.douban.subject(douban_id, max_age=services.settings.subject_cache_age)
    profile = profile_of(services.settings)
    video = video_facts(row, services.cms, services.categories)
    comparison = compare(video, subject_facts(answer.record), profile.weights, profile.thresholds)
    told = "；".join(finding.text for finding in comparison.findings if finding.code in HARD_REJECTS)
    return f"与《{answer.record.title}》（{answer.record.year or '年份未知'}）对不上：{told}" if told else ""
