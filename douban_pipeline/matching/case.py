"""The input of the acceptance gate, and the facts its conditions derive from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.people import none_heard
from douban_pipeline.matching.scoring import Comparison, ItemOutcome
from douban_pipeline.matching.similarity import NumberMatch
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import parse_title

WHOLE_CAST = 3
"""Common actors that, with the director, identify a work; sequels and seasons differ in number or name."""

LATIN_WORD = 4
"""Letters from which an original title in an alphabet identifies one work of a year, if no rival has the same name."""

LATIN_LETTER = 0.35
"""Weight of a Latin letter in Chinese ones: Chinese titles of four characters are as rare as titles of 11 letters."""


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate and its context, as the acceptance gate evaluates it.

    Attributes:
        video: The local video.
        subject: The candidate that would be confirmed.
        comparison: Their comparison.
        rivals: Comparisons of all *other* candidates, rejected ones too.
        complete: Whether no detail call failed, and no search that could still have found the subject.
        crowded: Whether there may be more works of this name than were found.
        has_siblings: Whether the caller knows of other works of this name or franchise.
        reverted: Douban ids whose link to this video was reverted before.
        linked: Titles of other videos that are linked to the candidate.
        chosen: The Douban id that a person chose for this video, None if nobody did.
        same_poster: Whether the video's poster is the candidate's; a different poster is no evidence.
    """

    video: Video
    subject: Subject
    comparison: Comparison
    rivals: Sequence[tuple[Subject, Comparison]] = ()
    complete: bool = True
    crowded: bool = False
    has_siblings: bool = False
    reverted: frozenset[int] = frozenset()
    linked: Sequence[str] = ()
    chosen: int | None = None
    same_poster: bool = False

    def found(self, *codes: Code) -> bool:
        """Return whether the comparison has any of these conflicts."""
        return any(code in self.comparison.conflicts for code in codes)

    @property
    def person(self) -> bool:
        """Whether the director or the actors agree; with the exact year one common actor suffices."""
        if self.comparison.people_agree:
            return True
        return self.exact_year and self.comparison.points_of("actors") > 0

    @property
    def people_known(self) -> bool:
        """Whether directors or actors are known on both sides, whether they agree or not.

        Of a video with a Chinese title, Chinese and Latin names are different people's unless somebody sounds alike:
        索菲亚·科波拉 is not Francis Leclerc. A foreign title comes with foreign names, which may sound otherwise:
        Shôhei Imamura is 今村昌平.
        """
        if any(self.comparison.outcome(name) is not ItemOutcome.UNKNOWN for name in ("director", "actors")):
            return True
        video, subject = self.video, self.subject
        lists = (video.directors, subject.directors), (video.actors, subject.actors)
        return script(video.title) == "han" and any(none_heard(*each) for each in lists)

    @property
    def whole_cast(self) -> bool:
        """Whether the director and most of the cast agree."""
        cast = self.comparison.fields.cast
        return self.comparison.agrees("director") and cast.matched >= min(WHOLE_CAST, cast.left, cast.right) > 1

    @property
    def nobody_listed(self) -> bool:
        """Whether the video has actors and the candidate has neither directors nor actors."""
        return bool(self.video.actors) and not (self.subject.directors or self.subject.actors)

    @property
    def exact_year(self) -> bool:
        """Whether the work's own year is the video's."""
        return self.comparison.exact_year

    @property
    def letters(self) -> float:
        """Letters of the matched name; a Latin letter counts as about a third of a Chinese character."""
        return letters_of(self.comparison.title.local)

    @property
    def own_latin_word(self) -> bool:
        """Whether the video's title is the candidate's Latin original title: long enough, of its year, without a rival.

        Of 4,229 such titles of at most eight letters, seven pairs share a year: Life, Chaos, The Girl. The candidate
        must have a Chinese title: works without one are obscure, and a search finds only a part of them.
        """
        title = self.comparison.title
        if title.similarity < 1 or title.via_alias or title.numbers is not NumberMatch.NEITHER or not self.exact_year:
            return False
        base = parse_title(title.local).base
        if len(base) < LATIN_WORD or script(title.local) != "latin" or script(self.subject.title) == "latin":
            return False
        return not any(rival.title.near_exact or rival.title.same_base for _, rival in self.rivals)

    @property
    def traits(self) -> int:
        """Number of agreeing facts beside title, year and people; the same poster counts as one."""
        comparison = self.comparison
        fields = sum(comparison.agrees(name) for name in ("region", "genre", "length"))
        return fields + (comparison.kind is True) + (comparison.title.names > 1) + self.same_poster


def letters_of(name: str) -> float:
    """Return the letters of a name without number and marks; a Latin letter counts as a third of a Chinese one."""
    return sum(LATIN_LETTER if char < "\u0250" else 1.0 for char in parse_title(name).base)
