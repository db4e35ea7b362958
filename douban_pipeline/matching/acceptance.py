"""The acceptance gate: what has to hold beside the score before a link is made without a person.

Measured on real records the score alone is unsafe: another season with the same crew scores 90, and a parent
work scores 85 when the right subject is missing. Every condition here is one code; the gate can refuse, never
confirm. Each condition can be read, tested and counted alone.

Two kinds of evidence make a link: people (director or actors agree), which distinguish works of one name; or,
where nobody is known, the year of a work that has no rival of its name, and something more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.matching import kinds
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.forms import ASIDE, names_of
from douban_pipeline.matching.hits import may_match_too
from douban_pipeline.matching.scoring import Comparison, ItemOutcome
from douban_pipeline.matching.similarity import Numbers
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import parse_title

SHORT_TITLE = 2
"""A title of at most this many letters is shared too often for its year alone to identify a work."""

TELLING_TITLE = 3
"""From this many letters on an exact title of an exact year needs no more, if nothing else is named like it."""

OWN_TITLE = 4
"""From this many letters on a title that no relative bears identifies the work even where its year is off by one,
and an alias needs one trait beside the year."""

UNIQUE_TITLE = 5
"""The same of a series, which may have a season a year; and of names that are almost spelt alike."""

WHOLE_CAST = 3
"""So many common actors beside the director are a work's cast; a sequel or a season has a number or another name."""

LATIN_LETTER = 0.35
"""What a Latin letter says, in Chinese ones: 片名 of four are about as rare as titles of eleven letters."""

ALMOST = 0.65
"""From this likeness on two names may be spellings of one."""

SHORT_MINUTES = 20
"""Below this length an episode is shorter than most series have them."""

YEARS_OF_RELEASE = 2
"""Within this many years a festival's year and a cinema's are those of one film."""

YEARS_NEAR = 1
"""Within this many years another work of the name is a rival."""


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
        base = parse_title(self.comparison.title.local).base
        return sum(LATIN_LETTER if char < "\u0250" else 1.0 for char in base)

    @property
    def traits(self) -> int:
        """Facts beside title, year and people that agree; a poster is one more, and never the title or the year."""
        comparison = self.comparison
        fields = sum(comparison.agrees(name) for name in ("region", "genre", "length"))
        return fields + (comparison.kind is True) + (comparison.title.names > 1) + self.same_poster


def has_relatives(case: Case) -> bool:
    """Say whether another work of the same or a longer name is in sight: a rival, a sequel, a spin-off."""
    if case.has_siblings:
        return True
    base = parse_title(case.video.title).base
    return any(
        rival.title.near_exact or rival.title.same_base or _contained(base, parse_title(subject.title).base)
        for subject, rival in case.rivals
    )


def _contained(base: str, other: str) -> bool:
    """Say whether a name is part of another; one letter is part of too many."""
    return len(base) >= 2 and base in other


def is_live(rival: Comparison) -> bool:
    """Say whether a rival is named like the video and nothing known rules it out."""
    if rival.excluded or not rival.title.near_exact or rival.title.numbers is Numbers.CONFLICT:
        return False
    return rival.year is None or rival.year.gap <= YEARS_NEAR


def rules_out(best: Comparison, rival: Comparison) -> bool:
    """Say whether the original title excludes a rival: タッチ 背番号のないエース is one of the films 棒球英豪.

    So does the year, where a rival is marked as a special or a half that the video is not: 斗破苍穹特别篇 of 2019.
    """
    if best.title.same_original and rival.title.originals_differ:
        return True
    if not best.exact_year or rival.exact_year or rival.year is None:
        return False
    return Code.EDITION_CONFLICT in rival.conflicts and Code.EDITION_CONFLICT not in best.conflicts


def _contenders(case: Case) -> Iterator[tuple[Subject, Comparison]]:
    """Yield the rivals that nothing known distinguishes from the candidate."""
    return (
        (subject, rival) for subject, rival in case.rivals if is_live(rival) and not rules_out(case.comparison, rival)
    )


def _live_rivals(case: Case) -> bool:
    """Say whether another work may be the video's as well: one of about its year, or one whose year nobody asked."""
    return any(not (case.exact_year and rival.year is None and subject.fetched) for subject, rival in _contenders(case))


def _title_not_exact(case: Case) -> bool:
    """Names of one or two letters' difference are one name if year and cast say so; a piece of a name never is."""
    title = case.comparison.title
    if title.near_exact:
        return False
    if (
        title.similarity < ALMOST
        or (title.contained and not title.tail)
        or title.numbers not in (Numbers.AGREE, Numbers.NEITHER)
    ):
        return True
    director = case.comparison.item("director").outcome
    if title.tail:
        # 跳跳舞 is 杀杀人、跳跳舞: of one year and made by the same people.
        differs = director is ItemOutcome.DISAGREE or case.comparison.item("actors").outcome is ItemOutcome.DISAGREE
        return differs or not case.exact_year or not case.comparison.people_agree
    if not case.exact_year or not case.comparison.agrees("actors") or director is ItemOutcome.DISAGREE:
        return True
    # 全城热恋 and 全球热恋 have actors in common, and a year between them.
    return case.letters < UNIQUE_TITLE and director is not ItemOutcome.AGREE


def _season_one_sided(case: Case) -> bool:
    """Unknown is not 1; but the first season may go without its number, and then it has the season's own year.

    So may a sequel go by a name of its own: 美国队长2 is 美国队长：冬日战士.
    """
    if not case.found(Code.SEASON_ONE_SIDED):
        return False
    title = case.comparison.title
    if not title.near_exact or not case.exact_year:
        return True
    if title.own_name and (case.letters >= TELLING_TITLE or case.person):
        return False
    return {title.local_number, title.subject_number} != {1, None}


def _alias_unbacked(case: Case) -> bool:
    title = case.comparison.title
    if not title.near_exact or not title.via_alias or case.person:
        return False
    if title.only_alias and title.similarity < 1:
        # Memoir of a Murderer is not Memoirs of a Murderer.
        return True
    latin = title.only_alias and case.exact_year and script(title.local) == "latin"
    if case.letters < TELLING_TITLE:
        # Rashomon is a word of its own, Daisy is not.
        return not (latin and case.letters > SHORT_TITLE and case.traits >= 2)
    if title.only_alias:
        # A foreign title is nearly as good as an original one: translators' names for works meet more often.
        return case.traits < (1 if latin or case.letters >= OWN_TITLE else 2)
    # Another name of the video is the subject's own title: of its year, that is as good as the video's title. Of an
    # English one it is so only with a trait beside the kind: 我叫刘跃进 is Lost and Found, and so is 远在天边.
    english = script(title.local) == "latin" and script(case.video.title) == script(case.subject.title) == "han"
    if english and case.traits <= (case.comparison.kind is True):
        return True
    return not case.traits and (case.letters < OWN_TITLE or not case.exact_year)


def _alias_taken(case: Case) -> bool:
    """An alias that is another work's title is that work's name first."""
    if not case.comparison.title.only_alias or case.person:
        return False
    return any(rival.title.near_exact and not rival.title.only_alias for _, rival in case.rivals)


def _year_unconfirmed(case: Case) -> bool:
    year = case.comparison.year
    if case.exact_year:
        return False
    if year is None:
        return not case.person
    # Seasons come a year apart, and so do a film and the series cut from it, with one crew.
    kind = case.comparison.kind
    film = kind is True and kinds.serial(case.subject) is False
    one_work = case.whole_cast and kind is not False and (film or not has_relatives(case))
    if year.gap > 1:
        return year.gap > YEARS_OF_RELEASE or not one_work
    if case.person:
        return not (film or one_work or _one_film(case) or case.comparison.agrees("length"))
    if film and not case.people_known and (case.comparison.title.names > 1 or _numbered(case)):
        return _live_rivals(case)
    if case.people_known or has_relatives(case) or case.comparison.title.via_alias or kind is False:
        return True
    if not case.traits and case.video.kind is not Kind.FILM:
        return True
    return case.letters < (UNIQUE_TITLE if kinds.serial(case.subject) else OWN_TITLE)


def _one_film(case: Case) -> bool:
    """Say whether a film has the candidate's cast; nobody says of the candidate that it has episodes."""
    one = case.video.kind is Kind.FILM and kinds.serial(case.subject) is not True
    return one and case.whole_cast and not case.comparison.title.via_alias


def _numbered(case: Case) -> bool:
    """Say whether both state the number of a sequel, under a name of its own: a festival's year is the only doubt."""
    title = case.comparison.title
    return title.numbers is Numbers.AGREE and not title.via_alias and case.letters >= OWN_TITLE


def _sibling_nearer(case: Case) -> bool:
    """Another of the family fits the year as well or better: the video may have lost its number or subtitle."""
    year = case.comparison.year
    if year is None or case.comparison.title.numbers is Numbers.AGREE:
        return False
    base = parse_title(case.video.title).base
    for subject, rival in case.rivals:
        if rival.year is None or not rival.year.own or rival.kind is False:
            continue
        numbered = rival.title.same_base and rival.title.numbers is Numbers.ONE_SIDED
        other = parse_title(subject.title).base
        longer = _contained(base, other) and base != other
        if (numbered and rival.year.gap <= year.gap) or (longer and rival.year.gap < year.gap):
            return True
    return False


def _edition_conflict(case: Case) -> bool:
    """What translators call an OVA has a title of its own in its language: 名探偵コナン ロンドンからの秘指令."""
    if not case.found(Code.EDITION_CONFLICT):
        return False
    return not (case.comparison.title.same_subtitled and case.exact_year and kinds.serial(case.video) is not True)


def _lone_episode(case: Case) -> bool:
    """A special bears the series' name and year, often its crew; its length is an episode's, and it has no episodes."""
    minutes = case.subject.duration_minutes
    if minutes is None or kinds.serial(case.subject) is not None or kinds.serial(case.video) is not True:
        return False
    if names_of(case.video).editions & ASIDE:
        return False
    return minutes < SHORT_MINUTES or (minutes < kinds.FEATURE_MINUTES and not case.person)


def _too_few_facts(case: Case) -> bool:
    if case.person or case.traits >= 2:
        return False
    telling = case.letters >= TELLING_TITLE and not _live_rivals(case)
    return not (case.traits or telling)


def _uncorroborated(case: Case) -> bool:
    """Rivals or a short name, and nobody known who distinguishes them."""
    if case.person:
        # One actor of one, without a year, may play in both.
        return case.comparison.year is None and len(case.video.actors) == 1 and _live_rivals(case)
    if case.people_known or _live_rivals(case) or _kind_of_another(case):
        return True
    title = case.comparison.title
    if case.nobody_listed and not (title.names > 1 or title.same_original):
        # 捉迷藏 of 2005 is an American film and a Japanese one: a cast that is not there confirms nobody.
        return True
    return case.letters <= SHORT_TITLE and case.traits < 2


def _kind_of_another(case: Case) -> bool:
    """Say whether a namesake of about the year is of the video's kind, and nobody knows the candidate's.

    A web search names a series and its film alike; the film's year on a site may be the series'.
    """
    return case.comparison.kind is None and any(
        rival.kind is True
        and rival.title.near_exact
        and rival.title.numbers is not Numbers.CONFLICT
        and (rival.year is None or rival.year.gap <= YEARS_OF_RELEASE)
        for _, rival in case.rivals
    )


def _marks_differ(case: Case) -> bool:
    return case.comparison.title.marks_differ and any(rival.title.same_base for _, rival in case.rivals)


def _rivals_unseen(case: Case) -> bool:
    """Nobody asked about the candidate itself, or about one that may be it as well."""
    if not case.subject.fetched:
        return True
    unseen = (subject for subject, _ in _contenders(case) if not subject.fetched)
    return any(not case.person or may_match_too(case.video, case.subject, subject) for subject in unseen)


def _linked_elsewhere(case: Case) -> bool:
    """Two records of one subject are normal; of two numbers, one of them is wrong."""
    own = parse_title(case.video.title).number
    return any((parse_title(title).number or 1) != (own or 1) for title in case.linked)


_CONDITIONS: tuple[tuple[Code, Callable[[Case], bool]], ...] = (
    (Code.SEASON_CONFLICT, lambda case: case.found(Code.SEASON_CONFLICT)),
    (Code.SEASON_ONE_SIDED, _season_one_sided),
    (Code.EDITION_CONFLICT, _edition_conflict),
    (Code.MERGED_RECORD, lambda case: case.found(Code.MERGED_RECORD)),
    (Code.KIND_CONFLICT, lambda case: case.comparison.kind is False),
    # A remake in the other medium has people of its own.
    (Code.MEDIUM_CONFLICT, lambda case: case.found(Code.MEDIUM_CONFLICT) and not case.comparison.people_agree),
    (Code.YEAR_OF_RELEASE, lambda case: case.found(Code.YEAR_OF_RELEASE)),
    (Code.YEAR_IN_TITLE, lambda case: case.found(Code.YEAR_IN_TITLE)),
    (
        Code.ACTORS_DISJOINT,
        # Two lists cut at different places need not meet; the director settles it.
        lambda case: case.found(Code.ACTORS_DISJOINT) and not case.comparison.agrees("director"),
    ),
    (Code.LENGTH_CONFLICT, lambda case: case.found(Code.LENGTH_CONFLICT)),
    (Code.TITLE_NOT_EXACT, _title_not_exact),
    (Code.ORIGINALS_DIFFER, lambda case: case.found(Code.ORIGINALS_DIFFER)),
    (Code.ALIAS_UNBACKED, _alias_unbacked),
    (Code.ALIAS_TAKEN, _alias_taken),
    (Code.MARKS_DIFFER, _marks_differ),
    (Code.YEAR_UNCONFIRMED, _year_unconfirmed),
    (Code.SIBLING_NEARER, _sibling_nearer),
    (Code.LONE_EPISODE, _lone_episode),
    (Code.TOO_FEW_FACTS, _too_few_facts),
    (Code.UNCORROBORATED, _uncorroborated),
    (Code.RIVALS_UNSEEN, _rivals_unseen),
    (Code.FAMILY_UNSEEN, lambda case: case.crowded and not case.person),
    (Code.INCOMPLETE, lambda case: not case.complete),
    (Code.REVERTED_BEFORE, lambda case: case.subject.douban_id in case.reverted),
    (Code.LINKED_ELSEWHERE, _linked_elsewhere),
    (Code.PERSON_CHOSE_OTHER, lambda case: case.chosen not in (None, case.subject.douban_id)),
)


def refusals(case: Case) -> tuple[str, ...]:
    """Return the codes of all conditions that do not hold; empty means the link may be made."""
    return tuple(code for code, refused in _CONDITIONS if refused(case))
