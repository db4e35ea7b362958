"""Finding the subjects a video might be, with as few requests as the verdict allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Protocol

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.search_progress import SearchProgress
from douban_pipeline.douban.evidence.known_names import MOST_SUBJECTS, KnownName
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.match_inputs import glimpsed_facts
from douban_pipeline.douban.sources.douban_php import SubjectAnswer
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.known_titles import questions_about
from douban_pipeline.douban.sources.search import Hit, SearchIncomplete, SearchProvider, VideoQuery
from douban_pipeline.matching import Likeness, Status, Verdict, Video, judge, may_match_too
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline.matching.similarity import NumberMatch

NAMESAKES_BY_PEOPLE = 3
"""Times as many namesakes are asked about where only their people can tell which of them is the video's."""


class SubjectSource(Protocol):
    """Who describes subjects: douban.php, or a corpus."""

    def subject(self, douban_id: int, *, max_age: timedelta | None) -> SubjectAnswer:
        """Return one subject; raises a `SourceError`."""
        ...


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

    def find(
        self, video: Video, *, patience: int = 0, current: int = 0, names: Sequence[KnownName] = ()
    ) -> FoundCandidates:
        """Search for ``video`` and fetch what is needed to judge it.

        Args:
            video: The video. One without a title is not searched for.
            current: The subject that it is linked to, which is asked about whether it was named or not; 0 for none.
            patience: While above 0, finding nothing although an engine behind the provider kept silent counts as a
                failed call. An engine that is always silent must not keep a verdict off for ever.
            names: Titles like the video's that people confirmed: their subjects are asked about first.

        Raises:
            SearchIncomplete: Nothing that was found fits, and not every provider could be asked.
            SourceError: A call failed. Nothing may be concluded from the other answers.
        """
        progress = SearchProgress(video, self.profile.thresholds, names)
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

    def _verdict(self, progress: SearchProgress, found: FoundCandidates, *, complete: bool = True) -> Verdict:
        subjects = [*progress.facts, *map(glimpsed_facts, found.hits)]
        return judge(progress.video, subjects, profile=self.profile, complete=complete, crowded=found.crowded)

    def _is_known(self, progress: SearchProgress) -> bool:
        """Look among the known names and subjects; return whether one is so surely the video's that nobody need search.

        Its name, its own year and its people have to agree; a video that lacks one of them is not looked up. Who else
        bears the name, a search would tell only by chance; what the known subjects do not have goes on to the search
        like a video they know nothing of. What people said of a title is a candidate in any case.
        """
        video = progress.video
        for name in progress.names[:MOST_SUBJECTS]:
            self._fetch(progress, Hit(name.douban_id, "", ""), Likeness.NAMESAKE)
        if video.year is None or not (video.directors or video.actors):
            return False
        if self.known is not None and progress.settled is None:
            answer = self.known.search(video)
            progress.add_answer(replace(answer, hits=tuple(filter(progress.is_namesake, answer.hits))))
            self._ask(progress)
        return progress.settled is not None and progress.settled.year == video.year

    def _search(self, progress: SearchProgress, question: VideoQuery) -> bool:
        return progress.add_answer(self.search.search(question, max_age=self.search_age))

    def _ask(self, progress: SearchProgress) -> None:
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

    def _most(self, progress: SearchProgress, worth: Likeness) -> int:
        """Return how many subjects may be asked about, if one of this likeness is to be among them."""
        video = progress.video
        unsettled = worth is Likeness.NAMESAKE and progress.settled is None and video.year is None
        return self.top_n * (NAMESAKES_BY_PEOPLE if unsettled and (video.directors or video.actors) else 1)

    def _fetch(self, progress: SearchProgress, hit: Hit, worth: Likeness) -> None:
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
    return title is not None and title.near_exact and title.numbers in (NumberMatch.AGREE, NumberMatch.NEITHER)
