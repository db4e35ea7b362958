"""The candidates that a search found for one video, as a task carries them on to the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from douban_pipeline.douban.sources.search import Hit


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
