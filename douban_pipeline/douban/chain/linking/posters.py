"""Posters as a further fact: looked at only where a video would otherwise wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.linking.found import FoundCandidates
from douban_pipeline.douban.chain.linking.judging import judge_found
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.matching import Status, Video

MOST_COMPARED = 3
"""Candidates whose poster is looked at: the best one, and those that may be mistaken for it."""


def with_posters(services: Services, row: Mapping[Any, Any], video: Video, found: FoundCandidates) -> FoundCandidates:
    """Return the candidates with those whose poster is the video's, where a person would have to look.

    What cannot be fetched, or is no picture, leaves the candidates as they are.

    Args:
        services: The site, the archive and who compares posters, if anybody.
        row: The video's row in the CMS.
        video: The same as the matcher sees it.
        found: Its candidates.
    """
    posters = services.posters
    if posters is None or not row["vod_pic"] or not found.subjects:
        return found
    with reading(services.engine) as connection:
        bodies = services.archive.bodies(connection, {each.snapshot_id for each in found.subjects})
    if any(each.snapshot_id not in bodies for each in found.subjects):
        return found
    records = {each.douban_id: parse_subject(bodies[each.snapshot_id], each.douban_id) for each in found.subjects}
    verdict = judge_found(video, found, records, profile_of(services.settings))
    if verdict.status is not Status.REVIEW:
        return found
    best = [each.subject.douban_id for each in verdict.candidates if each.subject.fetched][:MOST_COMPARED]
    same = posters.same(video.vod_id, row["vod_pic"], [(subject, records[subject].picture) for subject in best])
    return replace(found, posters=same)
