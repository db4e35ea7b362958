"""Parses archived answers again with the parsers of this release.

An answer that is read from the archive, for a verdict or instead of a call, is always parsed with the current parser.
This module does not affect that: it reports in advance which answers a changed parser refuses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from douban_pipeline.core.archive import Snapshot
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources import douban_php as douban
from douban_pipeline.douban.sources.errors import RULES, SubjectMissing
from douban_pipeline.douban.sources.search_providers import (
    BochaProvider,
    DoubanSuggestProvider,
    SearxngProvider,
    parse_bocha,
    parse_searxng,
    parse_suggestions,
)

READ = "读出"
MISSING = "条目不存在"

_KEPT_EXAMPLES = 5
_ANSWERS_PER_REPORT = 10_000
_SUBJECT_KEY = "subject:"


@dataclass(frozen=True, slots=True)
class Parser:
    """The parser of a source's answers in this release; `parse` raises a `SourceError` for what it refuses."""

    version: str
    parse: Callable[[Snapshot], object]


def _subject(answer: Snapshot) -> douban.SubjectRecord:
    return douban.parse_subject(answer.body, int(answer.request_key.removeprefix(_SUBJECT_KEY)))


PARSERS: dict[str, Parser] = {
    douban.SOURCE: Parser(douban.PARSER_VERSION, _subject),
    SearxngProvider.name: Parser(SearxngProvider.parser_version, lambda answer: parse_searxng(answer.body)),
    DoubanSuggestProvider.name: Parser(
        DoubanSuggestProvider.parser_version, lambda answer: parse_suggestions(answer.body)
    ),
    BochaProvider.name: Parser(BochaProvider.parser_version, lambda answer: parse_bocha(answer.body)),
}
"""Every parser by its source."""


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """An answer that the parser refuses, and why."""

    snapshot_id: int
    request_key: str
    why: str


@dataclass(slots=True)
class Reparsed:
    """Result of parsing the answers of a source again.

    Attributes:
        version: The parser's version.
        outcomes: Number of answers by outcome and by the parser version recorded with them: `READ`, `MISSING` (the
            answer says so), ``HTTP 403`` and others (the body is not parsed), or the name of the parser's error.
        refused: The first few answers of each outcome other than `READ` and `MISSING`.
        noted: Number of answers recorded as read by this version.
    """

    version: str
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: dict[str, list[RefusedAnswer]] = field(default_factory=dict)
    noted: int = 0

    @property
    def looked_at(self) -> int:
        """Number of answers parsed."""
        return self.outcomes.total()

    @property
    def by_outcome(self) -> Mapping[str, int]:
        """Number of answers by outcome, the most frequent first."""
        found: Counter[str] = Counter()
        for (_, outcome), count in self.outcomes.items():
            found[outcome] += count
        return dict(found.most_common())

    @property
    def good(self) -> int:
        """How many answers the parser reads."""
        return self.by_outcome.get(READ, 0) + self.by_outcome.get(MISSING, 0)


def reparse(
    services: Services,
    source: str,
    *,
    only_older_versions: bool,
    limit: int,
    dry_run: bool,
    progress: Callable[[int], None],
) -> Reparsed:
    """Read the archived answers of a source again, the oldest first.

    May be interrupted at any time: recorded answers stay recorded, and with ``only_older_versions`` the next run
    continues where this one ended.

    Args:
        services: The ground floor.
        source: One of `PARSERS`.
        only_older_versions: Leave out answers recorded as read by the current version.
        limit: Maximum number of answers; 0 for all.
        dry_run: Record nothing.
        progress: Called from time to time with the number of answers looked at.
    """
    parser = PARSERS[source]
    found = Reparsed(parser.version)
    reported = 0
    for batch in services.archive.read(source, other_than=parser.version if only_older_versions else None):
        answers = batch[: limit - found.looked_at] if limit else batch
        read = []
        for answer in answers:
            outcome, why = _outcome(parser, answer)
            found.outcomes[answer.parser_version, outcome] += 1
            if outcome in (READ, MISSING):
                read.append(answer.snapshot_id)
                continue
            examples = found.refused.setdefault(outcome, [])
            if len(examples) < _KEPT_EXAMPLES:
                examples.append(RefusedAnswer(answer.snapshot_id, answer.request_key, why))
        if read and not dry_run:
            services.archive.note_parser(read, parser.version)
            found.noted += len(read)
        if found.looked_at // _ANSWERS_PER_REPORT > reported:
            reported = found.looked_at // _ANSWERS_PER_REPORT
            progress(found.looked_at)
        if limit and found.looked_at >= limit:
            break
    return found


def _outcome(parser: Parser, answer: Snapshot) -> tuple[str, str]:
    """Return how an answer comes out, and why if it is refused."""
    if not RULES.is_read(answer.status):
        return f"HTTP {answer.status}", ""
    try:
        parser.parse(answer)
    except SubjectMissing:
        return MISSING, ""
    except SourceError as error:
        return type(error).__name__, error.reason
    except Exception as error:  # noqa: BLE001
        # A mistake of the parser's own: to find it is what this is for, so the other answers are read all the same.
        return type(error).__name__, str(error)
    return READ, ""
