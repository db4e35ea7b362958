"""Facts as they are stored with a verdict, read back for the matcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from douban_pipeline.matching import Kind, Subject, Video

_VIDEO_FIELDS = frozenset(item.name for item in fields(Video))
_SUBJECT_FIELDS = frozenset(item.name for item in fields(Subject))


def video_of(facts: Mapping[str, Any]) -> Video:
    """Return a video from its stored facts; facts that an earlier release did not store are unknown."""
    return Video(**_values(facts, _VIDEO_FIELDS))


def subject_of(facts: Mapping[str, Any]) -> Subject:
    """Return a subject from its stored facts, see `video_of`."""
    return Subject(**_values(facts, _SUBJECT_FIELDS))


def _values(facts: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts.items() if name in known
    }
    if values.get("kind") is not None:
        values["kind"] = Kind(values["kind"])
    return values
