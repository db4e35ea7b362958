"""What a source of Douban's entries can say of the entry asked for, in addition to what any source can say."""

# ruff: noqa: N818 (the names say what happened; all of them are a SourceError)

from __future__ import annotations

from douban_pipeline.core.errors import NotFound, SourceError


class SubjectMismatch(SourceError):
    """The answer is about another subject than the one asked."""


class SubjectMissing(NotFound):
    """The source says explicitly that this subject does not exist. The source itself is well."""
