"""Runs labelled rows through the production path: queries, candidates, points, verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from douban_pipeline.douban.chain.match.candidates import CandidateFinder
from douban_pipeline.douban.chain.match.judgement import judge_found
from douban_pipeline.douban.evidence.added_facts import TitleFacts, add_evidence
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.matching import Kind, Status, Video
from douban_pipeline.matching.profiles import Profile
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject, GoldRow, Key, titled
from douban_pipeline_tests.tools.evaluate.local_sources import KnownButOne, LocalDouban, LocalSearch, SearchKind

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
    def reviewed(self) -> bool:
        """Whether it went to a person."""
        return self.verdict == Status.REVIEW

    @property
    def wrong(self) -> bool:
        """Whether it was linked to a wrong subject."""
        return self.confirmed and self.gold.wrong_with(self.douban_id)

    @property
    def place_of_truth(self) -> int | None:
        """The place of the true subject among the candidates, from 1; None if it was not found."""
        places = (place for place, (found, _) in enumerate(self.candidates, 1) if found == self.gold.expected)
        return next(places, None)

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


class CorpusJudge:
    """Judges labelled rows against a corpus, whose titles are indexed once.

    Attributes:
        corpus: The subjects.
    """

    def __init__(
        self,
        corpus: Mapping[int, CorpusSubject],
        search_kind: SearchKind = SearchKind.SUGGESTIONS,
        known: KnownSubjects | None = None,
    ) -> None:
        """Search for candidates with ``search_kind``, after the subjects that are ``known`` without a request."""
        self.corpus = corpus
        self._search, self._douban = LocalSearch(corpus, search_kind), LocalDouban(corpus)
        self._indexes = known.indexes if known is not None else ()

    def judge(
        self,
        rows: Iterable[GoldRow],
        profile: Profile,
        *,
        hide_truth: bool = False,
        facts: Mapping[Key, TitleFacts] | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> list[Result]:
        """Judge every row and return the results in their order.

        Args:
            rows: Labelled rows.
            profile: The profile that decides.
            hide_truth: Whether every row's true subject is removed from the index, so that any link is wrong.
            facts: Facts that are added to rows, by their keys, as TMDB's are to videos; None for none.
            on_progress: Called after every row.
        """
        finder = CandidateFinder(
            self._search,
            self._douban,
            top_n=TOP_N,
            search_age=timedelta(0),
            subject_age=timedelta(0),
            profile=profile,
        )
        results = []
        for row in rows:
            self._search.hidden = row.expected if hide_truth else None
            if self._indexes:
                finder.known = KnownButOne(self._indexes, hidden=self._search.hidden)
            judged = replace(row, expected=None) if hide_truth else row
            results.append(self._judge(judged, finder, profile, (facts or {}).get(row.key)))
            on_progress()
        return results

    def _judge(self, row: GoldRow, finder: CandidateFinder, profile: Profile, facts: TitleFacts | None) -> Result:
        video, added = (row.video, None) if facts is None else add_evidence(row.video, facts)
        found = finder.find(video)
        records = {each.douban_id: self._douban.record(each.douban_id) for each in found.subjects}
        verdict = judge_found(video, found, records, profile, added=added)
        shown = verdict.candidates[:_KEPT_CANDIDATES]
        best = verdict.best
        truth = self.corpus.get(row.expected) if row.expected is not None else None
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
            titles={each.subject.douban_id: titled(each.subject.title, each.subject.year) for each in shown},
            strata=verdict.strata,
            requests=found.requests,
            outcomes={item.name: str(item.outcome) for item in best.comparison.items} if best else {},
            dated=truth is not None and truth.record.year is not None,
            truth_titles=titled(truth.record.title, truth.record.year) if truth else "",
        )


def facts_of_others(rows: Iterable[GoldRow]) -> dict[Key, TitleFacts]:
    """Return facts by row, for those of whose work another source has a row too: the first such row in the files."""
    of_work: dict[int, list[GoldRow]] = defaultdict(list)
    for row in rows:
        if row.expected is not None:
            of_work[row.expected].append(row)
    return {
        row.key: _facts(other.video)
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
