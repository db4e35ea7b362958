"""Finding the subjects a video might be, with as few requests as the verdict allows, and judging them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Protocol

from douban_pipeline.core.errors import SourceError, SourceUnavailable
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectAnswer, SubjectRecord
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.known_titles import questions_about
from douban_pipeline.douban.sources.search import (
    Hit,
    SearchAnswer,
    SearchIncomplete,
    SearchProvider,
    VideoQuery,
)
from douban_pipeline.matching import (
    Likeness,
    Status,
    Subject,
    Thresholds,
    Verdict,
    Video,
    ends_search,
    judge,
    likeness,
    may_match_too,
)
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline.matching.similarity import Numbers, match_titles

MOST_GUESSES = 1
"""Subjects asked about although they are not named like the video, since their other names may be; and as many that
are, but years off, since their people may be the video's."""

MOST_GUESSES_OF_YEAR = 3
"""The same of those that are of the video's year."""

NAMESAKES_BY_PEOPLE = 3
"""Times as many namesakes are asked about where only their people can tell which of them is the video's."""

SHOWN = 5
"""Candidates a reviewer is shown at least, if the search found as many; beyond these only those named alike."""


class SubjectSource(Protocol):
    """Who describes subjects: douban.php, or a corpus."""

    def subject(self, douban_id: int, *, max_age: timedelta | None) -> SubjectAnswer:
        """Return one subject; raises a `SourceError`."""
        ...


@dataclass(frozen=True, slots=True)
class FetchedCandidate:
    """A candidate Douban was asked about: its archived answer, its kind as the search names it, and who named it."""

    douban_id: int
    snapshot_id: int
    kind: str = ""
    found_by: str = ""


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """The candidates of one video.

    Attributes:
        subjects: Candidates with their archived answers, in the order asked.
        hits: Candidates that nobody asked about, because what the search says of them rules them out or leaves
            them behind.
        crowded: Whether a whole page of answers was named like the video, so that there may be more of them.
        snapshots: The search answers that named them.
        requests: Calls made; answers from the archive cost none.
        complete: Whether every search provider answered that could still have named the video's subject. One that
            failed, was closed or had no quota left did not; it makes no difference once an index of titles named the
            video (it names all subjects of a title at once) or a fetched subject agrees in its people, because the
            search ends there with every provider well, too.
        source_healthy: Whether no call failed to a provider that named some of them.
        posters: Candidates whose poster is the video's.
    """

    subjects: tuple[FetchedCandidate, ...]
    hits: tuple[Hit, ...]
    crowded: bool
    snapshots: tuple[int, ...]
    requests: int
    complete: bool = True
    source_healthy: bool = True
    posters: tuple[int, ...] = ()

    def found_by(self, douban_id: int) -> str:
        """Return the provider that named a fetched candidate first; empty where that is not known."""
        return next((each.found_by for each in self.subjects if each.douban_id == douban_id), "")

    def to_payload(self) -> dict[str, Any]:
        """Return what the task carries on to the verdict."""
        return {
            "subjects": [[each.douban_id, each.snapshot_id, each.kind, each.found_by] for each in self.subjects],
            # No verdict uses an excerpt.
            "hits": [
                {name: value for name, value in asdict(replace(hit, snippet="")).items() if value} for hit in self.hits
            ],
            "crowded": self.crowded,
            "snapshots": list(self.snapshots),
            "requests": self.requests,
            "complete": self.complete,
            "source_healthy": self.source_healthy,
            "posters": list(self.posters),
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> FoundCandidates:
        """Read what `to_payload` wrote, or an earlier release, which kept less."""
        return cls(
            tuple(FetchedCandidate(*each) for each in payload["subjects"]),
            tuple(
                Hit(**{"title": "", "url": "", **hit, "aliases": tuple(hit.get("aliases", ()))})
                for hit in payload.get("hits", ())
            ),
            payload.get("crowded", False),
            tuple(payload["snapshots"]),
            payload["requests"],
            payload.get("complete", True),
            payload.get("source_healthy", True),
            tuple(payload.get("posters", ())),
        )


@dataclass(slots=True)
class _Progress:
    """What is known of one video's candidates so far.

    Attributes:
        video: The video.
        thresholds: Where candidates are rejected.
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
        facts = subject_facts(answer.record, hit.kind)
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


class CandidateFinder:
    """Finds and fetches candidates through one search provider and one source of subjects.

    Args:
        search: Who finds them.
        douban: Who describes them.
        top_n: How many are asked about at most.
        search_age: Age at which a search is made anew.
        subject_age: Age at which a subject is asked for anew.
        profile: How candidates are judged: what is out anyway is not asked about.
        known: Subjects that are found without a request, None for nobody's.
    """

    def __init__(
        self,
        search: SearchProvider,
        douban: SubjectSource,
        *,
        top_n: int,
        search_age: timedelta,
        subject_age: timedelta,
        profile: Profile = PLAN,
        known: KnownSubjects | None = None,
    ) -> None:
        self.search = search
        self.douban = douban
        self.top_n = top_n
        self.search_age = search_age
        self.subject_age = subject_age
        self.profile = profile
        self.known = known

    def find(self, video: Video, *, patience: int = 0, current: int = 0) -> FoundCandidates:
        """Search for ``video`` and fetch what is needed to judge it.

        Args:
            video: The video. One without a title is not searched for.
            current: The subject that it is linked to, which is asked about whether it was named or not; 0 for none.
            patience: While above 0, finding nothing although an engine behind the provider kept silent counts as a
                failed call. An engine that is always silent must not keep a verdict off for ever.

        Raises:
            SearchIncomplete: Nothing that was found fits, and not every provider could be asked.
            SourceError: A call failed. Nothing may be concluded from the other answers.
        """
        progress = _Progress(video, self.profile.thresholds)
        if self._is_known(progress) and not current:
            return progress.result()
        questions = (
            replace(question, fits=progress.resembles)
            for question in questions_about(video, titles_only=self.search.titles_only)
        )
        for question in questions:
            if self._search(progress, question):
                break
        if patience > 0 and progress.silent and not progress.hits:
            silent = ", ".join(sorted(progress.silent))
            raise SourceUnavailable(self.search.name, f"nothing found, but silent engines: {silent}"[:300])
        if current:
            self._fetch(progress, progress.hits.get(current, Hit(current, "", "")), Likeness.NAMESAKE)
        self._ask(progress)
        if progress.namesakes and progress.settled is None and not progress.indexed:
            # A web search names few subjects: it is asked once more before the name is believed to be nobody else's.
            for question in islice(questions, 1):
                self._search(progress, question)
                self._ask(progress)
        for question in questions:
            # What goes to a person has had all its questions: another may name a candidate that settles it.
            found = progress.result()
            verdict = self._verdict(progress, found, complete=found.complete)
            if verdict.status is not Status.REVIEW or (progress.indexed and _is_named(verdict)):
                break
            self._search(progress, question)
            self._ask(progress)
        found = progress.result()
        if progress.missing is not None and self._verdict(progress, found).status is Status.NOT_FOUND:
            raise SearchIncomplete(self.search.name, progress.missing)
        return found

    def _verdict(self, progress: _Progress, found: FoundCandidates, *, complete: bool = True) -> Verdict:
        subjects = [*progress.facts, *map(glimpsed_facts, found.hits)]
        return judge(progress.video, subjects, profile=self.profile, complete=complete, crowded=found.crowded)

    def _is_known(self, progress: _Progress) -> bool:
        """Look among the known subjects; return whether one of them is so surely the video's that nobody need search.

        Its name, its own year and its people have to agree; a video that lacks one of them is not looked up. Who else
        bears the name, a search would tell only by chance; what the known subjects do not have goes on to the search
        like a video they know nothing of.
        """
        video = progress.video
        if self.known is None or video.year is None or not (video.directors or video.actors):
            return False
        answer = self.known.search(video)
        progress.add_answer(replace(answer, hits=tuple(filter(progress.is_namesake, answer.hits))))
        self._ask(progress)
        return progress.settled is not None and progress.settled.year == video.year

    def _search(self, progress: _Progress, question: VideoQuery) -> bool:
        return progress.add_answer(self.search.search(question, max_age=self.search_age))

    def _ask(self, progress: _Progress) -> None:
        """Ask Douban about the hits, as long as an answer can change the verdict."""
        for worth, hit in progress.worth_asking():
            if len(progress.subjects) >= self._most(progress, worth):
                return
            if progress.namesakes and worth > Likeness.FIRST_SEASON:
                # 我是江小白 of 2018 does not keep 我是江小白 第一季 of the video's year from being asked about.
                return
            if worth >= Likeness.GUESS and progress.tried[worth] >= progress.most_guesses(hit):
                continue
            settled = progress.settled
            if settled is not None and not may_match_too(progress.video, settled, glimpsed_facts(hit)):
                continue
            self._fetch(progress, hit, worth)

    def _most(self, progress: _Progress, worth: Likeness) -> int:
        """Return how many subjects may be asked about, if one of this likeness is to be among them."""
        video = progress.video
        unsettled = worth is Likeness.NAMESAKE and progress.settled is None and video.year is None
        return self.top_n * (NAMESAKES_BY_PEOPLE if unsettled and (video.directors or video.actors) else 1)

    def _fetch(self, progress: _Progress, hit: Hit, worth: Likeness) -> None:
        """Ask Douban about a hit."""
        progress.asked.add(hit.douban_id)
        try:
            answer = self.douban.subject(hit.douban_id, max_age=self.subject_age)
        except SubjectMissing:
            # The engine's index is older than Douban; the source itself is well.
            progress.requests += 1
        else:
            progress.add_subject(answer, hit, worth)


def _is_named(verdict: Verdict) -> bool:
    """Say whether the best candidate bears the video's name, number and all, so that other names find no better."""
    title = verdict.best.comparison.title if verdict.best is not None else None
    return title is not None and title.near_exact and title.numbers in (Numbers.AGREE, Numbers.NEITHER)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else a verdict depends on, beside the video and its candidates.

    Attributes:
        reverted: Douban ids whose link to this video was reverted before.
        linked: Titles of the other videos that are linked to a subject, by its id.
        chosen: The Douban id that a person chose for the video, None if nobody did.
        braked: Strata in which nothing is confirmed for now.
    """

    reverted: frozenset[int] = frozenset()
    linked: Mapping[int, Sequence[str]] = field(default_factory=dict)
    chosen: int | None = None
    braked: frozenset[str] = frozenset()


NO_CIRCUMSTANCES = Circumstances()
"""Nothing is reverted, linked, chosen or braked."""


def judge_found(
    video: Video,
    found: FoundCandidates,
    records: Mapping[int, SubjectRecord],
    profile: Profile,
    circumstances: Circumstances = NO_CIRCUMSTANCES,
) -> Verdict:
    """Judge ``video`` against its candidates.

    Args:
        video: The local video.
        found: Its candidates.
        records: Douban's answers about those that were asked about, by id.
        profile: The profile in force.
        circumstances: What else is known.
    """
    subjects = [subject_facts(records[each.douban_id], each.kind) for each in found.subjects]
    subjects += [glimpsed_facts(hit) for hit in found.hits]
    return judge(
        video,
        subjects,
        profile=profile,
        complete=found.complete,
        source_healthy=found.source_healthy,
        crowded=found.crowded,
        reverted=circumstances.reverted,
        linked=circumstances.linked,
        chosen=circumstances.chosen,
        braked=circumstances.braked,
        posters=found.posters,
    )
