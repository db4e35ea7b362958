"""What the acceptance gate judges, and what its conditions ask about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.scoring import Comparison, ItemOutcome
from douban_pipeline.matching.similarity import Numbers
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import parse_title

WHOLE_CAST = 3
"""So many common actors beside the director are a work's cast; a sequel or a season has a number or another name."""

LATIN_WORD = 4
"""From this many letters on an original title in an alphabet is a word; a year has it once, if nobody else bears it."""

LATIN_LETTER = 0.35
"""What a Latin letter says, in Chinese ones: 片名 of four are about as rare as titles of eleven letters."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the gate judges.

    Attributes:
        video: The local video.
        subject: The candidate that would be confirmed.
        comparison: Their comparison.
        rivals: Comparisons of all *other* candidates, rejected ones too.
        complete: Whether no search failed that could still name the subject, and no detail call.
        crowded: Whether there may be more works of this name than were found.
        has_siblings: Whether the caller knows of other works of this name or franchise.
        reverted: Douban ids whose link to this video was reverted before.
        linked: Titles of other videos that are linked to the candidate.
        chosen: The Douban id that a person chose for this video, None if nobody did.
        same_poster: Whether the video's poster is the candidate's; that it is another says nothing.
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
        """Say whether any of these speaks against the candidate."""
        return any(code in self.comparison.conflicts for code in codes)

    @property
    def person(self) -> bool:
        """Whether the director or the actors agree; one common actor will do for two works of one name and year."""
        if self.comparison.people_agree:
            return True
        return self.exact_year and self.comparison.item("actors").points > 0

    @property
    def people_known(self) -> bool:
        """Whether people are known on both sides, whatever they say."""
        return any(self.comparison.item(name).outcome is not ItemOutcome.UNKNOWN for name in ("director", "actors"))

    @property
    def whole_cast(self) -> bool:
        """Whether the director and most of the cast agree."""
        cast = self.comparison.fields.cast
        return self.comparison.agrees("director") and cast.matched >= min(WHOLE_CAST, cast.left, cast.right) > 1

    @property
    def nobody_listed(self) -> bool:
        """Whether the video has a cast and the candidate names nobody at all."""
        return bool(self.video.actors) and not (self.subject.directors or self.subject.actors)

    @property
    def exact_year(self) -> bool:
        """Whether the work's own year is the video's."""
        return self.comparison.exact_year

    @property
    def letters(self) -> float:
        """Letters of the name the two have in common; one of an alphabet says a third of a Chinese one."""
        return letters_of(self.comparison.title.local)

    @property
    def own_latin_word(self) -> bool:
        """Whether the video's title is the candidate's original one of a word or more, of that year and nobody else's.

        Of 4,229 such titles of eight letters at most, seven pairs are of one year: Life, Chaos, The Girl. What has no
        Chinese title is known to few, and there are more of those than any search names.
        """
        title = self.comparison.title
        if title.similarity < 1 or title.via_alias or title.numbers is not Numbers.NEITHER or not self.exact_year:
            return False
        base = parse_title(title.local).base
        if len(base) < LATIN_WORD or script(title.local) != "latin" or script(self.subject.title) == "latin":
            return False
        return not any(rival.title.near_exact or rival.title.same_base for _, rival in self.rivals)

    @property
    def traits(self) -> int:
        """Facts beside title, year and people that agree; a poster is one more, and never the title or the year."""
        comparison = self.comparison
        fields = sum(comparison.agrees(name) for name in ("region", "genre", "length"))
        return fields + (comparison.kind is True) + (comparison.title.names > 1) + self.same_poster


def letters_of(name: str) -> float:
    """Return the letters of a name, without its number and marks; one of an alphabet says a third of a Chinese one."""
    return sum(LATIN_LETTER if char < "\u0250" else 1.0 for char in parse_title(name).base)
