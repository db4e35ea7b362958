"""The acceptance gate: what has to hold beside the score before a link is made without a person.

Measured on real records the score alone is unsafe: another season with the same crew scores 90, and a parent
work scores 85 when the right subject is missing. Every condition here is one code; the gate can refuse, never
confirm. Its conditions are independent of each other, so that each can be read, tested and counted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.scoring import Comparison
from douban_pipeline.matching.titles import parse_title

SHORT_TITLE = 3
"""Titles of at most this many letters share their name with other works one time in fourteen."""

MIN_FACTS = 2
"""Independent facts beside the title that have to agree."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the gate judges.

    Attributes:
        video: The local video.
        subject: The candidate that would be confirmed.
        comparison: Their comparison.
        rivals: Comparisons of all *other* candidates, rejected ones too.
        complete: Whether no search and no detail call failed.
        has_siblings: Whether the caller knows of other works of this name or franchise.
        reverted: Douban ids whose link to this video was reverted before.
    """

    video: Video
    subject: Subject
    comparison: Comparison
    rivals: Sequence[tuple[Subject, Comparison]] = ()
    complete: bool = True
    has_siblings: bool = False
    reverted: frozenset[int] = frozenset()


def has_relatives(case: Case) -> bool:
    """Say whether another work of the same or a longer name is in sight: a rival, a sequel, a spin-off."""
    if case.has_siblings:
        return True
    base = parse_title(case.video.title).base
    return any(
        rival.title.near_exact or rival.title.same_base or (len(base) >= 2 and base in parse_title(subject.title).base)
        for subject, rival in case.rivals
    )


def _has(case: Case, *codes: Code) -> bool:
    conflicts = case.comparison.conflicts
    return any(code in conflicts for code in codes)


def _title_not_exact(case: Case) -> bool:
    return not case.comparison.title.near_exact


def _alias_unbacked(case: Case) -> bool:
    title = case.comparison.title
    return title.near_exact and title.via_alias and not case.comparison.agrees("director")


def _year_unconfirmed(case: Case) -> bool:
    return not case.comparison.agrees("year") and not case.comparison.agrees("director")


def _too_few_facts(case: Case) -> bool:
    return len(case.comparison.facts) < MIN_FACTS


def _uncorroborated(case: Case) -> bool:
    short = len(parse_title(case.video.title).base) <= SHORT_TITLE
    if not short and not has_relatives(case):
        return False
    return not any(name in case.comparison.facts for name in ("director", "actors", "length"))


def _marks_differ(case: Case) -> bool:
    return case.comparison.title.marks_differ and any(rival.title.same_base for _, rival in case.rivals)


_CONDITIONS: tuple[tuple[Code, Callable[[Case], bool]], ...] = (
    (Code.SEASON_CONFLICT, lambda case: _has(case, Code.SEASON_CONFLICT)),
    (Code.SEASON_ONE_SIDED, lambda case: _has(case, Code.SEASON_ONE_SIDED)),
    (Code.EDITION_CONFLICT, lambda case: _has(case, Code.EDITION_CONFLICT)),
    (Code.KIND_CONFLICT, lambda case: case.comparison.kind is False),
    (Code.MEDIUM_CONFLICT, lambda case: _has(case, Code.MEDIUM_CONFLICT)),
    (Code.YEAR_OF_RELEASE, lambda case: _has(case, Code.YEAR_OF_RELEASE)),
    (Code.YEAR_IN_TITLE, lambda case: _has(case, Code.YEAR_IN_TITLE)),
    (
        Code.ACTORS_DISJOINT,
        # Two lists cut at different places need not meet; the director settles it.
        lambda case: _has(case, Code.ACTORS_DISJOINT) and not case.comparison.agrees("director"),
    ),
    (Code.LENGTH_CONFLICT, lambda case: _has(case, Code.LENGTH_CONFLICT)),
    (Code.TITLE_NOT_EXACT, _title_not_exact),
    (Code.ALIAS_UNBACKED, _alias_unbacked),
    (Code.MARKS_DIFFER, _marks_differ),
    (Code.YEAR_UNCONFIRMED, _year_unconfirmed),
    (Code.TOO_FEW_FACTS, _too_few_facts),
    (Code.UNCORROBORATED, _uncorroborated),
    (Code.INCOMPLETE, lambda case: not case.complete),
    (Code.REVERTED_BEFORE, lambda case: case.subject.douban_id in case.reverted),
)


def refusals(case: Case) -> tuple[str, ...]:
    """Return the codes of all conditions that do not hold; empty means the link may be made."""
    return tuple(code for code, refused in _CONDITIONS if refused(case))
