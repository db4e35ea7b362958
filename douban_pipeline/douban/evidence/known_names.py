"""Known names: a title that a person confirmed for a subject is another name of that subject, for videos so titled.

A name holds while the decision does: one that was reverted, released or replaced by another teaches nothing. It makes a
subject a candidate and counts as one of its aliases; all else that a link needs stays needed. Only a title that reads
the same, number and editions included, has use of it, so that no name reaches beyond what the person saw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.store.decisions import LINKING, current_choices
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.matching import Status, Subject, Verdict, Video, clean_title, readings

KNOWN_NAMES = "known_names"
"""Key of the names among a verdict's stored facts."""
MOST_SUBJECTS = 2
"""Subjects of one title that are candidates because people said so; the likeliest are those confirmed last."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """A title that a person confirmed for a subject.

    Attributes:
        douban_id: The subject.
        name: The title of the video, as the person saw it.
        vod_id: That video.
        decision_id: The decision that holds.
        reviewer: Who made it.
    """

    douban_id: int
    name: str
    vod_id: int
    decision_id: int
    reviewer: str

    @property
    def sentence(self) -> str:
        """Why the name counts, as a Chinese sentence for reviewers."""
        where = f"影片 {self.vod_id}，决定 {self.decision_id}"
        return f"片名《{self.name}》由 {self.reviewer} 确认过是条目 {self.douban_id}（{where}）。"


def stored_names(facts: Mapping[str, Any] | None) -> tuple[KnownName, ...]:
    """Return the known names among a verdict's stored facts."""
    return tuple(KnownName(**each) for each in (facts or {}).get(KNOWN_NAMES, ()))


def facts_of_names(names: Sequence[KnownName]) -> dict[str, Any]:
    """Return known names as they are stored with a verdict."""
    return {KNOWN_NAMES: [asdict(each) for each in names]} if names else {}


def with_names(subject: Subject, names: Iterable[KnownName]) -> Subject:
    """Return a subject with its known names among its aliases."""
    more = [each.name for each in names if each.douban_id == subject.douban_id]
    return replace(subject, aliases=tuple(dict.fromkeys((*subject.aliases, *more)))) if more else subject


def judge_with_names(
    subjects: Sequence[Subject], names: Sequence[KnownName], judged: Callable[[Sequence[Subject]], Verdict]
) -> Verdict:
    """Return the verdict on candidates with their known names, which may confirm more than without, and never less.

    Args:
        subjects: The candidates.
        names: The names that people confirmed for some of them, of videos titled like this one.
        judged: Returns the verdict on candidates with certain names.
    """
    alone = judged(subjects)
    if not names or alone.status in (Status.CONFIRMED, Status.UNDECIDED):
        return alone
    verdict = judged([with_names(each, names) for each in subjects])
    best = verdict.best.subject.douban_id if verdict.best is not None else 0
    told = next((each for each in names if each.douban_id == best), None)
    return alone if told is None else replace(verdict, explanation=f"{verdict.explanation}{told.sentence}")


def names_by_title(
    connection: Connection, tables: OwnTables, cms: Cms, videos: Mapping[int, Video], rows: Mapping[int, Any]
) -> dict[int, tuple[KnownName, ...]]:
    """Return the known names of videos by their titles, found by the CMS's index of names; for most there are none.

    Args:
        connection: A connection that reads.
        tables: Our tables.
        cms: The CMS's.
        videos: The videos by id.
        rows: Their rows of the CMS, by id.
    """
    vod = cms.vod
    asked = {name for vod_id, video in videos.items() for name in (rows[vod_id]["vod_name"], clean_title(video.title))}
    # The CMS's columns hold no character above U+FFFF, and comparing them with one would read the whole table.
    titles = sorted(name for name in asked if name and max(name) <= "\uffff")
    of_title: list[int] = []
    for some in chunks(titles):
        of_title += connection.execute(select(vod.c.vod_id).where(vod.c.vod_name.in_(some))).scalars()
    confirmed = list(_confirmed(connection, tables, tables.decision.c.vod_id, of_title))
    return {vod_id: found for vod_id, video in videos.items() if (found := _of_video(video, confirmed))}


def names_of_subjects(
    connection: Connection, tables: OwnTables, videos: Mapping[int, Video], subjects: Mapping[int, Collection[int]]
) -> dict[int, tuple[KnownName, ...]]:
    """Return the known names of videos' candidates, by video; for most there are none.

    Args:
        connection: A connection that reads.
        tables: Our tables.
        videos: The videos by id.
        subjects: The Douban ids of each video's candidates.
    """
    asked = {douban_id for each in subjects.values() for douban_id in each}
    confirmed = list(_confirmed(connection, tables, tables.decision.c.douban_id, asked))
    found: dict[int, tuple[KnownName, ...]] = {}
    for vod_id, video in videos.items():
        own = set(subjects.get(vod_id, ()))
        names = _of_video(video, (each for each in confirmed if each.douban_id in own))
        if names:
            found[vod_id] = names
    return found


def standing(connection: Connection, tables: OwnTables, names: Collection[KnownName]) -> frozenset[int]:
    """Return the decisions of those names that still hold."""
    vod_ids = {each.vod_id for each in names}
    confirmed = _confirmed(connection, tables, tables.decision.c.vod_id, vod_ids) if vod_ids else ()
    return frozenset(each.decision_id for each in confirmed)


def _of_video(video: Video, confirmed: Iterable[KnownName]) -> tuple[KnownName, ...]:
    """Return the names of other videos whose title reads like this one's, one a subject, the newest decision first."""
    found: dict[int, KnownName] = {}
    for each in sorted(confirmed, key=lambda name: -name.decision_id):
        if each.vod_id != video.vod_id and _reads_like(each.name, video.title):
            found.setdefault(each.douban_id, each)
    return tuple(found.values())


def _reads_like(name: str, title: str) -> bool:
    one, other = readings(name)[0], readings(title)[0]
    same_year = one.year is None or other.year is None or one.year == other.year
    return bool(one.base) and one.form == other.form and one.distinct_editions == other.distinct_editions and same_year


def _confirmed(
    connection: Connection, tables: OwnTables, column: ColumnElement[Any], values: Collection[int]
) -> Iterator[KnownName]:
    """Yield the titles that people confirmed and that hold, of the decisions whose ``column`` is one of ``values``.

    The title is that of the verdict which the person looked at: the CMS's may have been another since. A person who
    accepted conflicts knew more than the title says.
    """
    decision, verdict = tables.decision, tables.verdict
    for some in chunks(sorted(values)):
        query = (
            select(
                *(decision.c[name] for name in ("decision_id", "vod_id", "douban_id", "reviewer")),
                verdict.c.facts,
            )
            .join(verdict, verdict.c.verdict_id == decision.c.verdict_id)
            .where(
                column.in_(some),
                decision.c.state == DecisionState.APPLIED,
                decision.c.action.in_(LINKING),
                decision.c.accept_conflicts.is_(False),
            )
        )
        rows = connection.execute(query).all()
        choices = current_choices(connection, tables, {row.vod_id for row in rows})
        for row in rows:
            choice, name = choices.get(row.vod_id), (row.facts or {}).get("title", "")
            if name and choice is not None and choice.douban_id == row.douban_id:
                yield KnownName(row.douban_id, name, row.vod_id, row.decision_id, row.reviewer)
