"""The fact sheet of a video: all facts that an introduction may use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from douban_pipeline.cms.values import split_list
from douban_pipeline.douban.match_inputs import subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import Video, clean_title, normalise
from douban_pipeline.matching.people import overlap


@dataclass(frozen=True, slots=True)
class FactSheet:
    """The known facts of a video, as plain values.

    Missing values are None, 0, "" or (). The synopsis is Douban's, never a text that was written here: a model takes
    its own words for facts.

    Attributes:
        title: Douban's title, else the site's cleaned title.
        year: The year of the first release, or of this season.
        douban_id: Douban's id, 0 without a link.
        url: The subject's page, "" without a link.
        original_title: The title in the original language if it differs.
        aliases: Other titles.
        genres: Genre words.
        regions: Region words.
        directors: Names; Douban's first, then the site's.
        writers: Names.
        actors: Names, the leading ones first.
        kind: A value of `matching.Kind`, or "".
        episodes: Number of episodes, None for a single one.
        duration_minutes: Length of the film or of one episode.
        synopsis: Douban's summary.
    """

    title: str
    year: int | None = None
    douban_id: int = 0
    url: str = ""
    original_title: str = ""
    aliases: tuple[str, ...] = ()
    genres: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    directors: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    kind: str = ""
    episodes: int | None = None
    duration_minutes: int | None = None
    synopsis: str = ""

    @property
    def people(self) -> tuple[str, ...]:
        """All people, each once."""
        return tuple(dict.fromkeys((*self.directors, *self.writers, *self.actors)))

    @property
    def titles(self) -> tuple[str, ...]:
        """All titles, the main one first."""
        return tuple(filter(None, (self.title, self.original_title, *self.aliases)))

    @property
    def enough(self) -> bool:
        """Whether there is enough to write about: at least a title and a genre."""
        return bool(normalise(self.title) and self.genres)

    def to_payload(self) -> dict[str, Any]:
        """Return the facts as a JSON object; missing values are left out."""
        named = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in named if value}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> FactSheet:
        """Return the sheet that `to_payload` wrote.

        Raises:
            TypeError: The payload has no title, or a field that no fact sheet has.
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in payload.items()
        }
        return cls(**values)

    @property
    def hash(self) -> str:
        """The SHA-256 of the payload, in hexadecimal: equal for equal facts."""
        text = json.dumps(self.to_payload(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def fact_sheet(video: Video, record: SubjectRecord | None, douban_id: int) -> FactSheet:
    """Return the fact sheet of a video.

    Douban's values are used if there are any. People and titles of the site that Douban does not name come after them,
    since both are facts of the library.

    Args:
        video: The site's own facts.
        record: Douban's answer for ``douban_id``; None without one.
        douban_id: The linked subject, 0 without a link.
    """
    local_title = clean_title(video.title)
    if record is None:
        record = SubjectRecord(douban_id=douban_id, title="")
    subject = subject_facts(record)
    title = subject.title or local_title
    episodes = subject.episodes or video.episodes
    kind = subject.kind or video.kind
    return FactSheet(
        title=title,
        year=subject.year or video.year,
        douban_id=douban_id,
        url=f"https://movie.douban.com/subject/{douban_id}/" if douban_id else "",
        original_title="" if normalise(subject.original_title) == normalise(title) else subject.original_title,
        aliases=_other_titles((*subject.aliases, local_title, *video.aliases), {title, subject.original_title}),
        genres=subject.genres or video.genres,
        regions=subject.regions or split_list(",".join(video.regions)),
        directors=_together(subject.directors, video.directors),
        writers=record.writers,
        actors=_together(subject.actors, video.actors),
        kind=kind.value if kind else "",
        episodes=episodes if episodes and episodes > 1 else None,
        duration_minutes=subject.duration_minutes or video.duration_minutes,
        synopsis=record.summary,
    )


def _other_titles(titles: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Return ``titles`` without those whose normalised form is taken or occurred before."""
    seen = {normalise(title) for title in taken}
    others = []
    for title in titles:
        form = normalise(title)
        if form and form not in seen:
            seen.add(form)
            others.append(title)
    return tuple(others)


def _together(theirs: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, ...]:
    """Return Douban's people, then those of the site who are not among them under another spelling."""
    return theirs + tuple(name for name in ours if not overlap((name,), theirs).matched)
