"""The acceptance gate: the conditions beside the score that a link without a person's review must meet.

Measured on real records the score alone is unsafe: another season with the same crew scores 90, and a parent
work scores 85 when the right subject is missing. Every condition here is one code; the gate can refuse, never
confirm. Each condition can be read, tested and counted alone.

Two kinds of evidence allow a link: people (director or actors agree), which distinguish works of one name; or,
where no people are known, the year of a work without a rival of its name, and a further fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from douban_pipeline.matching import kinds
from douban_pipeline.matching.case import Case, letters_of
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.facts import Kind
from douban_pipeline.matching.forms import ASIDE, names_of
from douban_pipeline.matching.hits import may_match_too
from douban_pipeline.matching.rivals import YEARS_NEAR, contained, contenders, has_relatives, live_rivals
from douban_pipeline.matching.scoring import ItemOutcome
from douban_pipeline.matching.similarity import ALMOST, NumberMatch
from douban_pipeline.matching.subtitles import parts_differ
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import parse_title

SHORT_TITLE = 2
"""Most letters of a title that is shared too often for its year alone to identify a work."""

TELLING_TITLE = 3
"""Letters from which an exact title with the exact year suffices, if nothing else has a similar name."""

OWN_TITLE = 4
"""Letters from which a title that no related work has identifies the work even if its year differs by one, and from
which an alias needs one trait beside the year."""

UNIQUE_TITLE = 5
"""The same for a series, which may have a season a year, and for names with almost the same spelling."""

LONG_TAIL = 6
"""Letters from which the text after a franchise's name identifies one work of a year."""

SHORT_MINUTES = 20
"""Minutes below which an episode is shorter than in most series."""

YEARS_OF_RELEASE = 2
"""Years within which a festival release and a cinema release may be of one film."""


def _title_not_exact(case: Case) -> bool:
    """Return whether the names differ too much.

    Names that differ in one mistyped letter are one name if year and cast agree; a piece of a name never is, nor is a
    name of which the other has a different part: that is another work of the year.
    """
    title = case.comparison.title
    if title.similarity == 1 or (title.near_exact and title.misspelt):
        return False
    if title.numbers not in (NumberMatch.AGREE, NumberMatch.NEITHER):
        return True
    director = case.comparison.outcome("director")
    if title.tail and _is_telling_tail(case):
        return False
    if title.tail:
        # 跳跳舞 is 杀杀人、跳跳舞: same year, same people.
        differs = director is ItemOutcome.DISAGREE or case.comparison.outcome("actors") is ItemOutcome.DISAGREE
        return differs or not case.exact_year or not case.comparison.people_agree
    if not title.misspelt or _has_sibling(case):
        return True
    if not case.exact_year or not case.comparison.agrees("actors") or director is ItemOutcome.DISAGREE:
        return True
    # 全城热恋 and 全球热恋 have actors in common and are a year apart.
    return case.letters < UNIQUE_TITLE and director is not ItemOutcome.AGREE


def _has_sibling(case: Case) -> bool:
    """Return whether another work of the year has almost the video's name: the letters that differ may name parts."""
    return any(
        rival.title.similarity >= ALMOST and not rival.title.contained and rival.year is not None and not rival.year.gap
        for _, rival in case.rivals
    )


def _is_telling_tail(case: Case) -> bool:
    """Return whether the tail identifies the work: long, with the exact year and a trait, and without a rival.

    奇思妙想喜羊羊 is 喜羊羊与灰太狼之奇思妙想喜羊羊; several works may be called 反转星球 or 大冒险.
    """
    title = case.comparison.title
    if min(letters_of(title.local), letters_of(title.subject)) < LONG_TAIL or title.numbers is not NumberMatch.NEITHER:
        return False
    if not case.exact_year or not case.traits or case.people_known:
        return False
    tail, whole = sorted((parse_title(title.local).base, parse_title(title.subject).base), key=len)
    if tail.endswith(whole.removesuffix(tail)):
        # 妖刀传 戦国奇譚 妖刀伝 is one title in two scripts, not a franchise and its part.
        return False
    return not any(rival.title.tail or rival.title.near_exact for _, rival in case.rivals)


def _season_one_sided(case: Case) -> bool:
    """Return whether only one side states a number and nothing explains it.

    Unknown is not 1, but the first season may lack its number if it has the season's own year. A sequel may have a
    name of its own: 美国队长2 is 美国队长：冬日战士.
    """
    if not case.found(Code.SEASON_ONE_SIDED):
        return False
    title = case.comparison.title
    if not title.near_exact or not case.exact_year:
        return True
    if title.own_name and (case.letters >= TELLING_TITLE or case.person):
        return False
    if title.local_number == 1 and _others_are_numbered(case):
        return True
    return {title.local_number, title.subject_number} != {1, None}


def _others_are_numbered(case: Case) -> bool:
    """Return whether Douban numbers other seasons of the name: then its first has a number too, or was not found."""
    for subject, rival in case.rivals:
        parsed = parse_title(subject.title)
        if rival.title.same_base and parsed.number_kind == "season" and (parsed.number or 0) > 1:
            return True
    return False


def _alias_unbacked(case: Case) -> bool:
    title = case.comparison.title
    if not title.near_exact or not title.via_alias or case.person:
        return False
    if title.only_alias and title.similarity < 1:
        # The Colour of Money may not be The Color of Money.
        return True
    latin = title.only_alias and case.exact_year and script(title.local) == "latin"
    if case.letters < TELLING_TITLE:
        # Rashomon is a distinctive word, Daisy is not.
        return not (latin and case.letters > SHORT_TITLE and case.traits >= 2)
    if title.only_alias:
        # A foreign title is nearly as good as an original one: translated names coincide more often.
        return case.traits < (1 if latin or case.letters >= OWN_TITLE else 2)
    # Another name of the video is the subject's own title: with the exact year, it is as good as the video's title. An
    # English one also needs a trait beside the kind: 我叫刘跃进 is Lost and Found, and so is 远在天边.
    english = script(title.local) == "latin" and script(case.video.title) == script(case.subject.title) == "han"
    if english and case.traits <= (case.comparison.kind is True):
        return True
    return not case.traits and (case.letters < OWN_TITLE or not case.exact_year)


def _alias_taken(case: Case) -> bool:
    """Return whether the matched alias is another work's title, which then has the stronger claim to the name."""
    if not case.comparison.title.only_alias or case.person:
        return False
    return any(rival.title.near_exact and not rival.title.only_alias for _, rival in case.rivals)


def _year_unconfirmed(case: Case) -> bool:
    year = case.comparison.year
    if case.exact_year:
        return False
    if year is None:
        return not case.person
    # Seasons are a year apart, and so are a film and the series cut from it, with one crew.
    kind = case.comparison.kind
    film = kind is True and kinds.serial(case.subject) is False
    one_work = case.whole_cast and kind is not False and (film or not has_relatives(case))
    if year.gap > 1:
        return year.gap > YEARS_OF_RELEASE or not one_work
    if case.person:
        return not (film or one_work or _one_film(case) or case.comparison.agrees("length"))
    if film and not case.people_known and (case.comparison.title.names > 1 or _numbered(case)):
        return live_rivals(case)
    if case.people_known or has_relatives(case) or case.comparison.title.via_alias or kind is False:
        return True
    if not case.traits and case.video.kind is not Kind.FILM:
        return True
    return case.letters < (UNIQUE_TITLE if kinds.serial(case.subject) else OWN_TITLE)


def _one_film(case: Case) -> bool:
    """Return whether a film has the candidate's cast and the candidate is not known to have episodes."""
    one = case.video.kind is Kind.FILM and kinds.serial(case.subject) is not True
    return one and case.whole_cast and not case.comparison.title.via_alias


def _numbered(case: Case) -> bool:
    """Return whether both state the same sequel number under a long enough title: a year off is then a festival's."""
    title = case.comparison.title
    return title.numbers is NumberMatch.AGREE and not title.via_alias and case.letters >= OWN_TITLE


def _sibling_nearer(case: Case) -> bool:
    """Return whether a related work fits the year as well or better: the video may have lost its number or subtitle."""
    year = case.comparison.year
    if year is None or case.comparison.title.numbers is NumberMatch.AGREE:
        return False
    base = parse_title(case.video.title).base
    for subject, rival in case.rivals:
        if rival.year is None or not rival.year.own or rival.year.gap > year.gap:
            continue
        numbered = rival.title.same_base and rival.title.numbers is NumberMatch.ONE_SIDED
        other = parse_title(subject.title).base
        longer = contained(base, other) and base != other and rival.year.gap < year.gap
        # The kind last: it is rarely known without a comparison in full.
        if (numbered or longer) and rival.kind is not False:
            return True
    return False


def _season_of_film(case: Case) -> bool:
    """Return whether the video's title names a season and the candidate is known to have no episodes.

    星球大战：克隆战争 第一季 is not the film that opened the series in the same year, with the same crew.
    """
    if names_of(case.video).title.number_kind != "season" or kinds.serial(case.subject) is not False:
        return False
    return names_of(case.subject).title.number_kind != "season"  # 斗破苍穹 第四季, listed with one episode


def _part_differs(case: Case) -> bool:
    """Return whether both name a part of one work, not the same, though the whole may have a name that is common.

    Douban lists the other half of a film as an alias: 浪客剑心 最终章 追忆篇 of 浪客剑心 最终章 人诛篇, which have the
    same year, director and cast. Halves may share an original title, unless it has a subtitle that is not a season's.
    """
    title = case.comparison.title
    if title.similarity < 1:
        return not title.tail and parts_differ(parse_title(title.local), parse_title(title.subject), "")
    if not title.via_alias or title.subject == case.subject.title:
        return False
    common = parse_title(title.subject)
    of_whole = title.only_alias or not title.subtitled or common.number_kind == "season"
    return of_whole and parts_differ(names_of(case.video).title, names_of(case.subject).title, common.base)


def _medium_conflict(case: Case) -> bool:
    """Return whether the media conflict and neither people nor an original title with subtitle and year agree.

    A remake in the other medium has other people; an original title with a subtitle identifies one work of a year.
    """
    if not case.found(Code.MEDIUM_CONFLICT) or case.comparison.people_agree:
        return False
    return not (case.comparison.title.same_subtitled and case.exact_year)


def _edition_conflict(case: Case) -> bool:
    """Return whether the editions conflict, with three exceptions.

    A work that translators call an OVA has a title of its own in its language: 名探偵コナン ロンドンからの秘指令.
    A film that the site calls 剧场版 is Douban's film with that subtitle, if it is not known to have episodes. A film
    that one side calls the last of its series is the other side's film with that number or original title.
    """
    if not case.found(Code.EDITION_CONFLICT):
        return False
    title, year = case.comparison.title, case.comparison.year
    if title.editions_local | title.editions_subject == {"final"} and kinds.serial(case.video) is False:
        original = title.similarity == 1 and not title.via_alias and script(title.local) == "latin"
        return not (case.exact_year and (title.numbers is NumberMatch.AGREE or original))
    if title.same_subtitled and year is not None and year.own and year.gap <= YEARS_NEAR:
        return kinds.serial(case.video) is True
    film = title.editions_local == {"movie"} and not title.editions_subject and kinds.serial(case.video) is not True
    return not (film and title.subtitled and case.exact_year and case.comparison.kind is not False)


def _lone_episode(case: Case) -> bool:
    """Return whether the candidate may be one episode or a special of the series.

    Its title names the episode (星际旅行-原初-第2季第2集), or it has an episode's length and no episodes. Both have the
    series' name and year, and often its crew.
    """
    named = parse_title(case.subject.title)
    if named.episodes is not None and named.episodes[0] == named.episodes[1] and not named.complete:
        return parse_title(case.video.title).episodes != named.episodes
    minutes = case.subject.duration_minutes
    if minutes is None or kinds.serial(case.subject) is not None or kinds.serial(case.video) is not True:
        return False
    if names_of(case.video).editions & ASIDE:
        return False
    return minutes < SHORT_MINUTES or (minutes < kinds.FEATURE_MINUTES and not case.person)


def _too_few_facts(case: Case) -> bool:
    if case.person or case.traits >= 2:
        return False
    telling = case.letters >= TELLING_TITLE and not live_rivals(case)
    return not (case.traits or telling or case.own_latin_word)


def _uncorroborated(case: Case) -> bool:
    """Return whether there are rivals or a short name, and no known people to distinguish them."""
    if case.person:
        # If the video lists one actor and no year is known, that actor may play in both.
        return case.comparison.year is None and len(case.video.actors) == 1 and live_rivals(case)
    if case.people_known or live_rivals(case) or _kind_of_another(case):
        return True
    title = case.comparison.title
    if case.nobody_listed and not (title.names > 1 or title.same_original):
        # 捉迷藏 of 2005 is an American film and a Japanese one: a missing cast confirms neither.
        return True
    if title.numbers is NumberMatch.AGREE and case.exact_year and case.traits:
        # Many works are called 血战, but only one has a second season in that year.
        return False
    return case.letters <= SHORT_TITLE and case.traits < 2 and not case.own_latin_word


def _kind_of_another(case: Case) -> bool:
    """Return whether a namesake of about the year has the video's kind, and the candidate's kind is unknown.

    A web search gives a series and its film the same name; the film's year on a site may be the series'.
    """
    return case.comparison.kind is None and any(
        rival.kind is True
        and rival.title.near_exact
        and rival.title.numbers is not NumberMatch.CONFLICT
        and (rival.year is None or rival.year.gap <= YEARS_OF_RELEASE)
        for _, rival in case.rivals
    )


def _marks_differ(case: Case) -> bool:
    return case.comparison.title.marks_differ and any(rival.title.same_base for _, rival in case.rivals)


def _rivals_unseen(case: Case) -> bool:
    """Return whether the candidate, or a rival that may also be the video, was not fetched."""
    if not case.subject.fetched:
        return True
    unseen = (subject for subject, _ in contenders(case) if not subject.fetched)
    return any(not case.person or may_match_too(case.video, case.subject, subject) for subject in unseen)


def linked_elsewhere(title: str, linked: Iterable[str]) -> bool:
    """Return whether a title of ``linked``, the other videos of a subject, has another number than ``title``."""
    own = parse_title(title).number
    return any((parse_title(other).number or 1) != (own or 1) for other in linked)


_CONDITIONS: tuple[tuple[Code, Callable[[Case], bool]], ...] = (
    (Code.SEASON_CONFLICT, lambda case: case.found(Code.SEASON_CONFLICT)),
    (Code.SEASON_ONE_SIDED, _season_one_sided),
    (Code.EDITION_CONFLICT, _edition_conflict),
    (Code.MERGED_RECORD, lambda case: case.found(Code.MERGED_RECORD)),
    (Code.KIND_CONFLICT, lambda case: case.comparison.kind is False),
    (Code.SEASON_OF_FILM, _season_of_film),
    (Code.MEDIUM_CONFLICT, _medium_conflict),
    (Code.YEAR_OF_RELEASE, lambda case: case.found(Code.YEAR_OF_RELEASE)),
    (Code.YEAR_IN_TITLE, lambda case: case.found(Code.YEAR_IN_TITLE)),
    (
        Code.ACTORS_DISJOINT,
        # Two truncated lists may have no one in common; an agreeing director decides.
        lambda case: case.found(Code.ACTORS_DISJOINT) and not case.comparison.agrees("director"),
    ),
    (Code.LENGTH_CONFLICT, lambda case: case.found(Code.LENGTH_CONFLICT)),
    (Code.TITLE_NOT_EXACT, _title_not_exact),
    (Code.ORIGINALS_DIFFER, lambda case: case.found(Code.ORIGINALS_DIFFER)),
    (Code.ALIAS_UNBACKED, _alias_unbacked),
    (Code.ALIAS_TAKEN, _alias_taken),
    (Code.PART_DIFFERS, _part_differs),
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
    (Code.LINKED_ELSEWHERE, lambda case: linked_elsewhere(case.video.title, case.linked)),
    (Code.PERSON_CHOSE_OTHER, lambda case: case.chosen not in (None, case.subject.douban_id)),
)


def refusals(case: Case) -> tuple[str, ...]:
    """Return the codes of all conditions that do not hold; empty means the link may be made."""
    return tuple(code for code, refused in _CONDITIONS if refused(case))
