"""Trials of the acceptance gate: a video and its candidate, judged so that nothing but the gate can refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from douban_pipeline.matching import Subject, Thresholds, Verdict, Video, judge, make_profile
from douban_pipeline_tests.matching.cases import SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT

LAX = make_profile("plan", thresholds=Thresholds(confirm=40.0, review=30.0, lead=-99.0))
"""Points and lead stay out of the way: what is refused here, the gate alone refuses."""


class Trial(NamedTuple):
    """A video, its candidate, the other candidates, and what else `judge` is told."""

    video: Video
    subject: Subject
    rivals: tuple[Subject, ...]
    options: Mapping[str, Any]

    def verdict(self) -> Verdict:
        """What becomes of it."""
        return judge(self.video, [self.subject, *self.rivals], profile=LAX, **self.options)


def full(
    video: Mapping[str, Any] | None = None, subject: Mapping[str, Any] | None = None, *rivals: Subject, **options: Any
) -> Trial:
    """Return the series of which everything is known."""
    return Trial(replace(SERIES, **video or {}), replace(SERIES_SUBJECT, **subject or {}), rivals, options)


def thin(
    video: Mapping[str, Any] | None = None, subject: Mapping[str, Any] | None = None, *rivals: Subject, **options: Any
) -> Trial:
    """Return a title and a year, nothing else."""
    return Trial(replace(THIN, **video or {}), replace(THIN_SUBJECT, **subject or {}), rivals, options)


def both(**fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return fields that a video and its subject have alike."""
    return fields, fields


def other(title: str, year: int | None = None, **known: Any) -> Subject:
    """Return another candidate."""
    return Subject(7, title, year=year, **known)
