"""What is known of one video's candidates while they are searched for, and which hits are worth a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.evidence.known_names import KnownName, with_names
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectAnswer
from douban_pipeline.douban.sources.search import Hit, SearchAnswer
from douban_pipeline.matching import Likeness, Subject, Thresholds, Video, ends_search, likeness
from douban_pipeline.matching.similarity import match_titles

MOST_GUESSES = 1
"""Subjects asked about although they are not named like the video, since their other names may be; and as many that
are, but years off, since their people may be the video's."""

MOST_GUESSES_OF_YEAR = 3
"""The same of those that are of the video's year."""

SHOWN = 5
"""Candidates a reviewer is shown at least, if the search found as many; beyond these only those named alike."""


@dataclass(slots=True)
class SearchProgress:
    """What is known of one video's candidates so far.

    Attributes:
        video: The video.
        thresholds: Where candidates are rejected.
        names: Titles like the video's that people confirmed, with their subjects.
        hits: What the searches named, by id.
        named_by: The provider that named each of them first.
        crowded: Whether a whole page of answers was named like the video.
        snapshots: Archived search answers.
        silent: Engines behind a provider that did not answer.
        missing: Why a provider that should have been asked gave no answer, None if all did.
        first: What an index of titles named first, though its own title is another: it bears the name as an alias.
        answered: Providers that named subjects.
        failed: Providers to whom a call failed.
        requests: Calls made.
        subjects: Subjects Douban described.
        facts: Their descriptions.
        asked: Ids Douban was asked about, also those it does not have.
        namesakes: How many described subjects are named like the video.
        indexed: Whether an index of titles named one that is; it names all at once.
        tried: How many subjects were asked about, by likeness.
        settled: The described subject whose people agree with the video's.
    """

    video: Video
    thresholds: Thresholds
    names: Sequence[KnownName] = ()
    hits: dict[int, Hit] = field(default_factory=dict)
    named_by: dict[int, str] = field(default_factory=dict)
    crowded: bool = False
    snapshots: list[int] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    missing: SourceError | None = None
    first: set[int] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    requests: int = 0
    subjects: list[FetchedCandidate] = field(default_factory=list)
    facts: list[Subject] = field(default_factory=list)
    asked: set[int] = field(default_factory=set)
    namesakes: int = 0
    indexed: bool = False
    tried: Counter[Likeness] = field(default_factory=Counter)
    settled: Subject | None = None

    def likeness(self, subject: Subject) -> Likeness:
        """Return how likely a subject is the video's."""
        return likeness(self.video, subject, self.thresholds)

    def most_guesses(self, hit: Hit) -> int:
        """Return how many subjects of another name may be asked about, if this one is to be among them."""
        return MOST_GUESSES_OF_YEAR if hit.year is not None and hit.year == self.video.year else MOST_GUESSES

    def is_namesake(self, hit: Hit) -> bool:
        """Return whether a hit is named like the video, number and all, and of about its year."""
        return self.likeness(glimpsed_facts(hit)) is Likeness.NAMESAKE

    def resembles(self, hit: Hit) -> bool:
        """Return whether a hit is named at all like the video."""
        return self.likeness(glimpsed_facts(hit)) <= Likeness.ALIKE

    def add_answer(self, answer: SearchAnswer) -> bool:
        """Add a search answer; return whether any of its hits is named like the video."""
        self.snapshots.extend(answer.snapshots)
        self.requests += answer.requests
        self.silent.update(answer.silent)
        self.missing = answer.incomplete or self.missing
        self.failed.update(answer.failed)
        if answer.hits:
            self.answered.add(answer.provider)
        for hit in answer.hits:
            self.hits.setdefault(hit.douban_id, hit)
            self.named_by.setdefault(hit.douban_id, answer.provider)
        likes = [self.likeness(glimpsed_facts(hit)) is Likeness.NAMESAKE for hit in answer.hits]
        self.crowded |= answer.full and all(likes)
        self.indexed |= answer.of_titles and any(likes)
        self.first.update(hit.douban_id for hit in answer.hits[:1] if answer.of_titles)
        return any(likes)

    def worth_asking(self) -> list[tuple[Likeness, Hit]]:
        """Return the hits nobody asked about, the likeliest first; the engine's order decides among equals.

        What an index of titles names first bears the name of the question, be it among its other names: it goes before
        those that are named somewhat alike.
        """
        ranked = [
            (self.likeness(glimpsed_facts(hit)), hit) for hit in self.hits.values() if hit.douban_id not in self.asked
        ]

        def order(pair: tuple[Likeness, Hit]) -> tuple[bool, Likeness]:
            worth, hit = pair
            return worth > Likeness.NEAR and not (worth is Likeness.GUESS and hit.douban_id in self.first), worth

        return sorted((pair for pair in ranked if pair[0] is not Likeness.RULED_OUT), key=order)

    def add_subject(self, answer: SubjectAnswer, hit: Hit, worth: Likeness) -> None:
        """Add Douban's description of a hit."""
        self.requests += not answer.from_cache
        named_by = self.named_by.get(hit.douban_id, "")
        self.subjects.append(FetchedCandidate(hit.douban_id, answer.snapshot_id, hit.kind, named_by))
        facts = with_names(subject_facts(answer.record, hit.kind), self.names)
        self.facts.append(facts)
        self.namesakes += self.likeness(facts) is Likeness.NAMESAKE
        self.tried[worth] += 1
        if self.settled is None and ends_search(self.video, facts):
            self.settled = facts

    def result(self) -> FoundCandidates:
        """Return the candidates: those described, and the other hits that are worth showing."""
        shown: list[Hit] = []
        for hit in self.hits.values():
            few = len(self.subjects) + len(shown) < SHOWN
            if hit.douban_id not in self.asked and (few or self._alike(hit)):
                shown.append(hit)
        return FoundCandidates(
            tuple(self.subjects),
            tuple(shown),
            self.crowded,
            tuple(self.snapshots),
            self.requests,
            complete=self.missing is None or self.indexed or self.settled is not None,
            source_healthy=self.answered.isdisjoint(self.failed),
        )

    def _alike(self, hit: Hit) -> bool:
        return match_titles(self.video, glimpsed_facts(hit)).similarity >= self.thresholds.title_floor
