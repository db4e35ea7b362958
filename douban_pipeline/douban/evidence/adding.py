"""What TMDB's title of a video adds to what the site says of it, and the bounds of that. Pure.

The site's word stands: nothing that it says is replaced, and nothing that it says against a subject is outweighed. What
is added is stored with the verdict, so that it can be explained and judged again without TMDB's database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from douban_pipeline.matching import Comparison, Kind, Status, Verdict, Video, compare
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.conflicts import Finding
from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.text import script
from douban_pipeline.matching.titles import ParsedTitle, lone_mark, readings

MOST_ALIASES = 6
"""Names that are added to one video: every one is compared with every name of every candidate."""
MOST_ACTORS = 10
"""Leading actors that are added."""
EVIDENCE = "evidence"
"""Under this name what was added stands among a verdict's stored facts."""

POSTERS = "posters"
"""Under this name the candidates whose poster is the video's do."""

_SHORTEST = {"han": 2, "latin": 4}
"""Fewest letters of a name that is added. Names in other scripts are not: one in common speaks against numbers."""


@dataclass(frozen=True, slots=True)
class TitleFacts:
    """What TMDB says of the title that a video is linked to.

    Attributes:
        key: Which title: ``movie/603`` or ``tv/1399``.
        names: What it is called, those first that Douban is likeliest to have.
        year: Of its first release or broadcast.
        directors: Of a film; of a series TMDB names creators, who may be writers.
        actors: The leading ones first.
        imdb_id: Its key at IMDb, empty where it has none.
        seasons: The years of a series' seasons by number, None where unknown.
    """

    key: str
    names: tuple[str, ...]
    year: int | None = None
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    imdb_id: str = ""
    seasons: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def serial(self) -> bool:
        """Whether it is a series."""
        return self.key.startswith("tv/")


@dataclass(frozen=True, slots=True)
class Added:
    """What was added to a video; empty fields stayed as the site has them. See `TitleFacts`."""

    key: str
    imdb_id: str = ""
    aliases: tuple[str, ...] = ()
    year: int | None = None
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any] | None) -> Self | None:
        """Return what was added, as a verdict's facts tell; None if nothing was."""
        stored = (facts or {}).get(EVIDENCE)
        if not stored:
            return None
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        return cls(**values)

    @property
    def sentence(self) -> str:
        """What was added and whence, in Chinese, for reviewers."""
        parts = [
            f"{name} {'、'.join(map(str, values))}"
            for name, values in (
                ("别名", self.aliases[:2]),
                ("年份", [self.year] if self.year is not None else []),
                ("导演", self.directors[:2]),
                ("主演", self.actors[:2]),
            )
            if values
        ]
        imdb = f"，IMDb {self.imdb_id}" if self.imdb_id else ""
        return f"（参考 TMDB {self.key}{imdb}：{'；'.join(parts)}）"


def add_evidence(video: Video, facts: TitleFacts) -> tuple[Video, Added | None]:
    """Return a video with what TMDB adds to it, and what that is; None if nothing may be added.

    Nothing is added where no name of the site's is one of TMDB's, however the two were linked, nor where the site says
    otherwise: another year than a film has, or that it is no series. Names are those with the video's own number and
    editions, and without a year of their own; people come only where the site names nobody, a year only where it states
    none.
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
    )
    if not (added.aliases or added.year or added.directors or added.actors):
        return video, None
    return with_added(video, added), added


def with_added(video: Video, added: Added) -> Video:
    """Return a video with what was added to it before, as far as the site says nothing by now."""
    nobody = not (video.directors or video.actors)
    return replace(
        video,
        aliases=tuple(dict.fromkeys((*video.aliases, *added.aliases))),
        year=video.year if video.year is not None else added.year,
        directors=added.directors if nobody else video.directors,
        actors=added.actors if nobody else video.actors,
    )


def without_added(video: Video, added: Added) -> Video:
    """Return a video as the site alone describes it."""
    return replace(
        video,
        aliases=tuple(alias for alias in video.aliases if alias not in added.aliases),
        year=None if added.year is not None else video.year,
        directors=() if added.directors else video.directors,
        actors=() if added.actors else video.actors,
    )


def respect_site(verdict: Verdict, video: Video, added: Added | None, profile: Profile) -> Verdict:
    """Return a verdict on a video with evidence, not confirmed where the site alone speaks against the subject.

    That the site's names are too far from the subject's is no such word: to bridge that is what names are added for.

    Args:
        verdict: On the video with what was added.
        video: The video with it.
        added: What was added, None for nothing.
        profile: The profile in force.
    """
    best = verdict.best
    if added is None or best is None or verdict.status is not Status.CONFIRMED:
        return verdict
    alone = compare(without_added(video, added), best.subject, profile.weights, profile.thresholds)
    found = against(alone)
    if not found:
        return verdict
    said = "；".join(each.text for each in found)
    codes = tuple(dict.fromkeys((Code.CONFLICT, *(each.code for each in found))))
    explanation = f"借助 TMDB 的资料可以确认，但影片自身的资料有冲突：{said}。"
    return replace(verdict, status=Status.REVIEW, douban_id=None, codes=codes, explanation=explanation)


def against(comparison: Comparison) -> list[Finding]:
    """Return what speaks against a subject, but for names that are too far apart, which further names may bridge."""
    return [each for each in comparison.findings if each.code != Code.TITLE_TOO_FAR]


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
    """Yield the title's names; of a video that is one of several seasons, those of the season."""
    of_season = len(facts.seasons) > 1 and own.number_kind == "season" and own.number in facts.seasons
    for name in facts.names:
        yield f"{name} 第{own.number}季" if of_season else name


def _is_like(own: ParsedTitle, name: str) -> bool:
    """Say whether a name says of number, edition and year what the video's title says, so that it hides nothing."""
    read = readings(name)
    first = read[0]
    if lone_mark(name) is not None or any(each.year is not None or each.number_kind == "year" for each in read):
        return False
    if first.number != own.number or (first.subtitled and not own.subtitled):
        return False
    return first.distinct_editions == own.distinct_editions and len(first.base) >= _SHORTEST.get(script(name), 1000)


def _year(video: Video, facts: TitleFacts) -> int | None:
    """Return the year to add; that of a season where the video is one of several."""
    if video.year is not None or any(each.year is not None for name in _said(video) for each in readings(name)):
        return None
    if len(facts.seasons) <= 1:
        return facts.year
    number = readings(video.title)[0].number
    return None if number is None else facts.seasons.get(number)


def _said(video: Video) -> tuple[str, ...]:
    return (video.title, *video.aliases)


def stored_facts(video: Video, added: Added | None, posters: Collection[int] = ()) -> dict[str, Any]:
    """Return the facts that are stored with a verdict: the video as it was judged, what of that was added, and the
    candidates whose poster is the video's."""
    evidence = {EVIDENCE: asdict(added)} if added is not None else {}
    return {**asdict(video), **evidence, **({POSTERS: list(posters)} if posters else {})}


def posters_of(facts: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return the candidates whose poster was the video's, as a verdict's facts tell."""
    return tuple((facts or {}).get(POSTERS, ()))
