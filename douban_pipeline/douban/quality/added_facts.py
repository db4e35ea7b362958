"""Facts of another source for labelled rows, and what they change: as TMDB's facts do for videos that are linked to it.

The facts never come from the subject itself, which would be the answer, but from another source's row of the same work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from douban_pipeline.douban.evidence.adding import TitleFacts
from douban_pipeline.douban.quality.labelled_replay import Result
from douban_pipeline.douban.quality.labelled_rows import GoldRow
from douban_pipeline.matching import Kind, Video

Key = tuple[str, int]
"""A row's file and line."""


def facts_of_others(rows: Iterable[GoldRow]) -> dict[Key, TitleFacts]:
    """Return facts by row, for those of whose work another source has a row too: the first such row in the files."""
    of_work: dict[int, list[GoldRow]] = defaultdict(list)
    for row in rows:
        if row.expected is not None:
            of_work[row.expected].append(row)
    return {
        (row.file, row.row): _facts(other.video)
        for same in of_work.values()
        for row in same
        if (other := next((each for each in same if each.source != row.source), None)) is not None
    }


def _facts(video: Video) -> TitleFacts:
    serial = video.kind in (Kind.SERIES, Kind.VARIETY)
    return TitleFacts(
        f"{'tv' if serial else 'movie'}/{video.vod_id}",
        tuple(dict.fromkeys((video.title, *video.aliases))),
        video.year,
        directors=() if serial else video.directors,
        actors=video.actors,
    )


def changes(
    without: Sequence[Result], results: Sequence[Result], facts: Mapping[Key, TitleFacts]
) -> Counter[tuple[str, str]]:
    """Count the rows that have added facts by their verdict without and with them; wrong links count as ``WRONG``.

    Args:
        without: The rows' results by their own facts.
        results: The same rows' results with the added facts, in the same order.
        facts: The added facts.
    """
    return Counter(
        (_outcome(before), _outcome(after))
        for before, after in zip(without, results, strict=True)
        if (before.gold.file, before.gold.row) in facts
    )


def _outcome(result: Result) -> str:
    return "WRONG" if result.wrong else result.verdict
