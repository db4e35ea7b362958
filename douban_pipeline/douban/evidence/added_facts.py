"""Adds facts of TMDB's title to a video's own facts, within limits. Pure functions.

The site's facts take precedence: none is replaced, and a conflict of the site's facts with a subject is never
outweighed. Added facts are stored with the verdict, so that it can be explained and judged again without TMDB's
database, until they expire (`upkeep.expiry`). They are stored there only: texts say which facts of TMDB's title
were used, never what they are, so that nothing else has to expire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from douban_pipeline.core.ui.tmdb_attribution import MENTION
from douban_pipeline.matching import Comparison, Kind, Status, Verdict, Video, compare
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.conflicts import Conflict
from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import ParsedTitle, lone_mark, readings

MOST_ALIASES = 6
"""Most names that are added to one video: each is compared with every name of every candidate."""
MOST_ACTORS = 10
"""Most leading actors that are added."""
EVIDENCE = "evidence"
"""Key of the added facts among a verdict's stored facts."""
EXPIRED_EVIDENCE = "tmdb_agreed"
"""Key of what is left of them when TMDB's facts expired: which title it was, and which kinds of facts it added."""

POSTERS = "posters"
"""Key of the candidates that have the video's poster, among a verdict's stored facts."""

_KINDS = {"aliases": "别名", "year": "年份", "directors": "导演", "actors": "主演"}
"""Fields of `Added` with facts of TMDB, with their names for reviewers."""
_COMPARED_PEOPLE = 3
"""People of a video that the texts of a comparison name at most, see `matching.conflicts.versus`."""

_SHORTEST = {"han": 2, "latin": 4}
"""Least number of characters of an added name, by script. Names in other scripts are not added: one in common would
count against numbers."""


@dataclass(frozen=True, slots=True)
class TitleFacts:
    """TMDB's facts about the title that a video is linked to.

    Attributes:
        key: The title: ``movie/603`` or ``tv/1399``.
        names: Its names, those first that Douban is most likely to have.
        year: Year of its first release or broadcast.
        directors: Directors of a film. Empty for a series: TMDB names its creators, who may be writers.
        actors: Its actors, the leading ones first.
        imdb_id: Its id at IMDb, empty if it has none.
        seasons: The years of a series' seasons by number, None where unknown.
        said_at: When TMDB said the oldest of it (UTC); None where that is not known.
    """

    key: str
    names: tuple[str, ...]
    year: int | None = None
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    imdb_id: str = ""
    seasons: Mapping[int, int | None] = field(default_factory=dict)
    said_at: datetime | None = field(default=None, compare=False)

    @property
    def serial(self) -> bool:
        """Whether it is a series."""
        return self.key.startswith("tv/")


@dataclass(frozen=True, slots=True)
class Added:
    """Facts that were added to a video; empty fields add nothing. See `TitleFacts`.

    Attributes:
        said_at: When TMDB said the oldest of it, in ISO's form; empty where that is not known.
        expired: Names of the fields that were added and have expired since; then they are empty.
    """

    key: str
    imdb_id: str = ""
    aliases: tuple[str, ...] = ()
    year: int | None = None
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    said_at: str = ""
    expired: tuple[str, ...] = ()

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any] | None) -> Self | None:
        """Return the added facts among a verdict's stored facts, or what is left of them; None if there are none."""
        stored = (facts or {}).get(EVIDENCE) or (facts or {}).get(EXPIRED_EVIDENCE)
        if not stored:
            return None
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        return cls(**values)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the fields that were added, expired or not."""
        return self.expired or tuple(name for name in _KINDS if getattr(self, name))

    @property
    def sentence(self) -> str:
        """Which facts were added, and from which title, as a Chinese sentence for reviewers; it holds none of them."""
        imdb = f"，IMDb {self.imdb_id}" if self.imdb_id else ""
        return f"{MENTION}{self.key}{imdb}：{'、'.join(_KINDS[name] for name in self.kinds)}）"

    @property
    def shown(self) -> dict[str, list[str]]:
        """The added facts by the names of their kinds, for reviewers; those that expired are left out."""
        values = {name: getattr(self, name) for name in self.kinds}
        lists = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items() if value}
        return {_KINDS[name]: list(map(str, each)) for name, each in lists.items()}

    def without_values(self, text: str) -> str:
        """Return a comparison's text with TMDB named instead of what it says, which is not the site's own either."""
        for values in (self.directors, self.actors, (self.year,) if self.year is not None else ()):
            if values:
                text = text.replace(f"本地 {'、'.join(map(str, values[:_COMPARED_PEOPLE]))} / ", "TMDB 的资料 / ")
        for alias in self.aliases:
            text = text.replace(f"本地《{alias}》", "TMDB 的别名")
        return text

    def left(self) -> Added:
        """Return what is left when the facts expire: ids, and which kinds of facts there were."""
        return Added(self.key, self.imdb_id, expired=self.kinds)


def add_evidence(video: Video, facts: TitleFacts) -> tuple[Video, Added | None]:
    """Return a video with the facts that TMDB adds, and these facts; None if nothing may be added.

    Nothing is added if the site and TMDB share no name, however the two were linked, or if they conflict: in the year
    of a film, or in whether it is a series. Only names with the video's own number and editions and without a year are
    added; people only if the site names nobody, a year only if the site has none.
    """
    if _contradicts(video, facts) or not _share_a_name(video, facts):
        return video, None
    nobody = not (video.directors or video.actors)
    added = Added(
        key=facts.key,
        imdb_id=facts.imdb_id,
        aliases=tuple(_new_names(video, facts)),
        year=_year(video, facts),
        directors=facts.directors if nobody else (),
        actors=facts.actors[:MOST_ACTORS] if nobody else (),
        said_at=facts.said_at.isoformat() if facts.said_at is not None else "",
    )
    if not (added.aliases or added.year or added.directors or added.actors):
        return video, None
    return with_added(video, added), added


def with_added(video: Video, added: Added) -> Video:
    """Return a video with facts that were added to it before, where the site still has none."""
    nobody = not (video.directors or video.actors)
    return replace(
        video,
        aliases=tuple(dict.fromkeys((*video.aliases, *added.aliases))),
        year=video.year if video.year is not None else added.year,
        directors=added.directors if nobody else video.directors,
        actors=added.actors if nobody else video.actors,
    )


def without_added(video: Video, added: Added) -> Video:
    """Return a video with the site's facts only."""
    return replace(
        video,
        aliases=tuple(alias for alias in video.aliases if alias not in added.aliases),
        year=None if added.year is not None else video.year,
        directors=() if added.directors else video.directors,
        actors=() if added.actors else video.actors,
    )


def judge_with_evidence(
    video: Video, added: Added | None, judged: Callable[[Video], Verdict], profile: Profile
) -> Verdict:
    """Return the verdict on a video with added facts, which may confirm more than the site's facts, and never less.

    Its explanation says nothing of what TMDB says, which is not kept as long as a verdict.

    What the site's own facts confirm stays confirmed, unless the added facts name another subject: then a person
    chooses. A subject that only the added facts confirm is not confirmed where the site's own facts conflict with it.

    Args:
        video: The video with the added facts.
        added: The added facts, None for none.
        judged: Returns the verdict on a video with certain facts; the candidates are the same for all.
        profile: The current profile.
    """
    verdict = judged(video)
    if added is None:
        return verdict
    verdict = replace(verdict, explanation=added.without_values(verdict.explanation))
    site = without_added(video, added)
    alone = judged(site)
    if alone.status is Status.CONFIRMED:
        return _of_two(alone, verdict)
    best = verdict.best
    if best is None or verdict.status is not Status.CONFIRMED:
        return verdict
    found = against(compare(site, best.subject, profile.weights, profile.thresholds))
    if not found:
        return verdict
    said = "；".join(each.text for each in found)
    codes = tuple(dict.fromkeys((Code.CONFLICT, *(each.code for each in found))))
    return _to_review(verdict, codes, f"借助 TMDB 的资料可以确认，但影片自身的资料有冲突：{said}。")


def _of_two(alone: Verdict, verdict: Verdict) -> Verdict:
    """Return which verdict holds of the site's own, which confirms, and the one with the added facts."""
    assert alone.best is not None
    own, named = alone.best.subject, verdict.best.subject if verdict.best is not None else None
    if named is None or named.douban_id == own.douban_id:
        return verdict if verdict.status is Status.CONFIRMED else alone
    ours, theirs = (f"{each.title}（{each.douban_id}）" for each in (own, named))
    explanation = f"影片自身的资料指向 {ours}，加上 TMDB 的资料则更像 {theirs}。"
    return _to_review(verdict, (Code.CONFLICT,), explanation)


def _to_review(verdict: Verdict, codes: tuple[str, ...], explanation: str) -> Verdict:
    return replace(verdict, status=Status.REVIEW, douban_id=None, codes=codes, explanation=explanation)


_NOT_AGAINST = frozenset({Code.TITLE_TOO_FAR, Code.SEASON_ONE_SIDED, Code.YEAR_OF_RELEASE})
"""Findings that do not speak against a subject: names that are too far, which further names may bridge, and what the
acceptance gate tolerates where enough else agrees."""


def against(comparison: Comparison) -> list[Conflict]:
    """Return the findings that speak against a subject, whatever else is known of the video."""
    return [each for each in comparison.findings if each.code not in _NOT_AGAINST]


def _contradicts(video: Video, facts: TitleFacts) -> bool:
    if facts.serial:
        return video.kind is Kind.FILM
    if video.kind in (Kind.SERIES, Kind.VARIETY):
        return True
    return video.year is not None and facts.year is not None and abs(video.year - facts.year) > 1


def _share_a_name(video: Video, facts: TitleFacts) -> bool:
    theirs = {each.base for name in facts.names for each in readings(name)}
    return any(each.base in theirs for name in _said(video) for each in readings(name))


def _new_names(video: Video, facts: TitleFacts) -> list[str]:
    own = readings(video.title)[0]
    seen = {readings(name)[0].form for name in (video.title, *video.aliases)}
    found: list[str] = []
    for name in _names(own, facts):
        form = readings(name)[0].form
        if form not in seen and _is_like(own, name):
            seen.add(form)
            found.append(name)
    return found[:MOST_ALIASES]


def _names(own: ParsedTitle, facts: TitleFacts) -> Iterator[str]:
    """Yield the title's names; for a video that is one of several seasons, those of the season."""
    of_season = len(facts.seasons) > 1 and own.number_kind == "season" and own.number in facts.seasons
    for name in facts.names:
        yield f"{name} 第{own.number}季" if of_season else name


def _is_like(own: ParsedTitle, name: str) -> bool:
    """Return whether a name agrees with the video's title in number, edition and year, so that it hides no conflict."""
    read = readings(name)
    first = read[0]
    if lone_mark(name) is not None or any(each.year is not None or each.number_kind == "year" for each in read):
        return False
    if first.number != own.number or (first.subtitled and not own.subtitled):
        return False
    return first.distinct_editions == own.distinct_editions and len(first.base) >= _SHORTEST.get(script(name), 1000)


def _year(video: Video, facts: TitleFacts) -> int | None:
    """Return the year to add; the season's year if the video is one of several seasons."""
    if video.year is not None or any(each.year is not None for name in _said(video) for each in readings(name)):
        return None
    if len(facts.seasons) <= 1:
        return facts.year
    number = readings(video.title)[0].number
    return None if number is None else facts.seasons.get(number)


def _said(video: Video) -> tuple[str, ...]:
    return (video.title, *video.aliases)


def stored_facts(video: Video, added: Added | None, posters: Collection[int] = ()) -> dict[str, Any]:
    """Return the facts that are stored with a verdict: the video as it was judged, the added facts, and the candidates
    that have the video's poster."""
    evidence = {}
    if added is not None:
        key = EXPIRED_EVIDENCE if added.expired else EVIDENCE
        evidence = {key: {name: value for name, value in asdict(added).items() if value}}
    return {**asdict(video), **evidence, **({POSTERS: list(posters)} if posters else {})}


def posters_of(facts: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the candidates that had the video's poster, from a verdict's stored facts."""
    return tuple((facts or {}).get(POSTERS, ()))
