"""Runs labelled rows through the production path: queries, candidates, points, verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from douban_pipeline.douban.chain.match.candidates import CandidateFinder
from douban_pipeline.douban.chain.match.judgement import judge_found
from douban_pipeline.douban.evidence.added_facts import TitleFacts, add_evidence
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.quality.labelled_rows import CorpusSubject, GoldRow, link_is_wrong
from douban_pipeline.douban.quality.local_sources import KnownButOne, LocalDouban, LocalSearch, SearchKind
from douban_pipeline.matching import Kind, Status, Video
from douban_pipeline.matching.profiles import Profile

TOP_N = 5
"""Maximum number of candidates whose details are fetched; the setting's default."""

_KEPT_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Result:
    """A labelled row with the matcher's result.

    Attributes:
        gold: The row.
        verdict: CONFIRMED, REVIEW or NOT_FOUND.
        douban_id: The top candidate.
        score: Its score in the profile.
        lead: Points by which it leads the best other work.
        conflicts: Codes of the top candidate's conflicts.
        reasons: Codes for which the row was not confirmed.
        explanation: The same for a reviewer.
        candidates: Ids and scores, best first.
        titles: Title and year of candidates, for people.
        strata: Strata of the top candidate.
        requests: Number of searches and detail calls.
        truth_titles: Title and year of the true subject, if the corpus has it.
        dated: Whether the corpus knows that subject's year; most rows without it cannot be linked at all.
        outcomes: Outcome of each compared field of the top candidate: agree, disagree or unknown.
    """

    gold: GoldRow
    verdict: str
    douban_id: int | None
    score: float | None
    lead: float | None
    conflicts: tuple[str, ...]
    reasons: tuple[str, ...]
    explanation: str
    candidates: tuple[tuple[int, float], ...]
    titles: Mapping[int, str]
    strata: tuple[str, ...]
    requests: int
    truth_titles: str = ""
    dated: bool = False
    outcomes: Mapping[str, str] = field(default_factory=dict)

    @property
    def confirmed(self) -> bool:
        """Whether the row was linked without a person."""
        return self.verdict == Status.CONFIRMED

    @property
    def wrong(self) -> bool:
        """Whether it was linked to a wrong subject."""
        return self.confirmed and link_is_wrong(self.gold, self.douban_id)

    def to_json(self) -> dict[str, Any]:
        """Return the row of ``predictions.jsonl``."""
        return {
            "file": self.gold.file,
            "row": self.gold.row,
            **({"gid": self.gold.gid} if self.gold.gid else {}),
            "verdict": self.verdict,
            "douban_id": None if self.douban_id is None else str(self.douban_id),
            "score": self.score,
            "lead": self.lead,
            "conflicts": list(self.conflicts),
            "reasons": list(self.reasons),
            "candidates": [{"douban_id": str(douban_id), "score": score} for douban_id, score in self.candidates],
            "requests": self.requests,
        }


def evaluate(
    corpus: Mapping[int, CorpusSubject],
    rows: Iterable[GoldRow],
    profile: Profile,
    *,
    hide_truth: bool = False,
    search_kind: SearchKind = SearchKind.SUGGESTIONS,
    known: KnownSubjects | None = None,
    facts: Mapping[tuple[str, int], TitleFacts] | None = None,
    on_progress: Callable[[], None] | None = None,
) -> list[Result]:
    """Judge every row against the corpus and return the results in their order.

    Args:
        corpus: The subjects.
        rows: Labelled rows.
        profile: The profile that decides.
        hide_truth: Whether every row's true subject is removed from the index, so that any link is wrong.
        search_kind: Kind of search for candidates.
        known: Subjects that are found without a request; None for none.
        facts: Facts that are added to rows, by file and line, as TMDB's are to videos; None for none.
        on_progress: Called after every row.
    """
    search, douban = LocalSearch(corpus, search_kind), LocalDouban(corpus)
    indexes = known.indexes if known is not None else ()
    finder = CandidateFinder(
        search,
        douban,
        top_n=TOP_N,
        search_age=timedelta(0),
        subject_age=timedelta(0),
        profile=profile,
    )
    results = []
    for row in rows:
        if hide_truth:
            search.hidden, row = row.expected, replace(row, expected=None)
        if indexes:
            finder.known = KnownButOne(indexes, hidden=search.hidden)
        results.append(_judge(row, corpus, finder, douban, profile, (facts or {}).get((row.file, row.row))))
        if on_progress is not None:
            on_progress()
    return results


def _judge(
    row: GoldRow,
    corpus: Mapping[int, CorpusSubject],
    finder: CandidateFinder,
    douban: LocalDouban,
    profile: Profile,
    facts: TitleFacts | None,
) -> Result:
    video, added = (row.video, None) if facts is None else add_evidence(row.video, facts)
    found = finder.find(video)
    records = {each.douban_id: douban.record(each.douban_id) for each in found.subjects}
    verdict = judge_found(video, found, records, profile, added=added)
    shown = verdict.candidates[:_KEPT_CANDIDATES]
    best = verdict.best
    truth = corpus.get(row.expected) if row.expected is not None else None
    return Result(
        gold=row,
        verdict=str(verdict.status),
        douban_id=best.subject.douban_id if best else None,
        score=verdict.score,
        lead=verdict.lead,
        conflicts=tuple(map(str, best.comparison.conflicts)) if best else (),
        reasons=tuple(map(str, verdict.codes)),
        explanation=verdict.explanation,
        candidates=tuple((each.subject.douban_id, each.score) for each in shown),
        titles={each.subject.douban_id: _titled(each.subject.title, each.subject.year) for each in shown},
        strata=verdict.strata,
        requests=found.requests,
        outcomes={item.name: str(item.outcome) for item in best.comparison.items} if best else {},
        dated=truth is not None and truth.record.year is not None,
        truth_titles=_titled(truth.record.title, truth.record.year) if truth else "",
    )


def _titled(title: str, year: int | None) -> str:
    return f"{title} ({year})" if year else title


Key = tuple[str, int]
"""A row's file and line."""


def facts_of_others(rows: Iterable[GoldRow]) -> dict[Key, TitleFacts]:
    """Return facts by row, for those of whose work another source has a row too: the first such row in the files."""
    of_work: dict[int, list[GoldRow]] = defaultdict(list)
    for row in rows:
        if row.expected is not None:
            of_work[row.expected].append(row)
    return {
        (row.file, row.row): _facts(other.video)
        for same in of_work.values()
        for row in same
        if (other := next((each for each in same if each.source != row.source), None)) is not None
    }


def _facts(video: Video) -> TitleFacts:
    serial = video.kind in (Kind.SERIES, Kind.VARIETY)
    return TitleFacts(
        f"{'tv' if serial else 'movie'}/{video.vod_id}",
        tuple(dict.fromkeys((video.title, *video.aliases))),
        video.year,
        directors=() if serial else video.directors,
        actors=video.actors,
    )


def changes(
    without: Sequence[Result], results: Sequence[Result], facts: Mapping[Key, TitleFacts]
) -> Counter[tuple[str, str]]:
    """Count the rows that have added facts by their verdict without and with them; wrong links count as ``WRONG``.

    Args:
        without: The rows' results by their own facts.
        results: The same rows' results with the added facts, in the same order.
        facts: The added facts.
    """
    return Counter(
        (_outcome(before), _outcome(after))
        for before, after in zip(without, results, strict=True)
        if (before.gold.file, before.gold.row) in facts
    )


def _outcome(result: Result) -> str:
    return "WRONG" if result.wrong else result.verdict
