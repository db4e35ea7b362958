"""The filter that selects the videos of a batch, and its validation."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID
from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.wording import ID_SOURCES
from douban_pipeline.matching import Code

MOST_ROWS = 5000
"""Most videos that one launch decides about."""

_MOST_NAMED = 20
_CODES = frozenset(map(str, Code))


@dataclass(frozen=True, slots=True)
class VideoFilter:
    """A filter of videos; all fields that are set must hold, empty fields do not restrict.

    Attributes:
        statuses: Any of these statuses. Without one, ignored videos are left out.
        min_score: Least score of the newest verdict; 0 for any.
        max_score: Largest score of the newest verdict; 0 for any.
        with_codes: All of these codes are among the newest verdict's reasons or its best candidate's objections.
        without_codes: None of these codes is.
        type_ids: Categories.
        min_year: First year, from the CMS row; 0 for any.
        max_year: Last year; 0 for any.
        duplicates_of: The subject whose id the videos have; 0 for any.
        id_locked: Whether the id is locked; None for either.
        intro_locked: Whether the synopsis is locked; None for either.
        sources: Source of the id: any of `wording.ID_SOURCES`.
        updated_since: Changed in the CMS at this time or later.
        updated_before: Changed in the CMS before this time.
        locked_since: The id was locked at this time or later.
        locked_before: The id was locked before this time.
        vod_ids: Only these videos.
        except_vod_ids: Videos to leave out; not sufficient as a filter by itself.
        max_rows: Most videos, the most pressing ones.
    """

    statuses: tuple[ShownStatus, ...] = ()
    min_score: float = 0.0
    max_score: float = 0.0
    with_codes: tuple[str, ...] = ()
    without_codes: tuple[str, ...] = ()
    type_ids: tuple[int, ...] = ()
    min_year: int = 0
    max_year: int = 0
    duplicates_of: int = 0
    id_locked: bool | None = None
    intro_locked: bool | None = None
    sources: tuple[str, ...] = ()
    updated_since: datetime | None = None
    updated_before: datetime | None = None
    locked_since: datetime | None = None
    locked_before: datetime | None = None
    vod_ids: tuple[int, ...] = ()
    except_vod_ids: tuple[int, ...] = ()
    max_rows: int = 100

    @property
    def restricts(self) -> bool:
        """Whether it restricts the videos by more than exclusions (``without_codes``, ``except_vod_ids``)."""
        return any(
            (
                self.statuses,
                self.scored,
                self.with_codes,
                self.type_ids,
                self.dated,
                self.duplicates_of,
                self.vod_ids,
                self.sources,
                self.timed,
                self.id_locked is not None,
                self.intro_locked is not None,
            )
        )

    @property
    def scored(self) -> bool:
        """Whether it filters by score."""
        return bool(self.min_score or self.max_score)

    @property
    def coded(self) -> bool:
        """Whether it filters by reasons and objections."""
        return bool(self.with_codes or self.without_codes)

    @property
    def dated(self) -> bool:
        """Whether it filters by year."""
        return bool(self.min_year or self.max_year)

    @property
    def timed(self) -> bool:
        """Whether it filters by the time of a change or a lock."""
        return any((self.updated_since, self.updated_before, self.locked_since, self.locked_before))

    @property
    def named(self) -> bool:
        """Whether it names the videos, so that each one that is left out is listed."""
        return bool(self.vod_ids or self.duplicates_of)

    def score_fits(self, score: float | None) -> bool:
        """Return whether a score is within the limits; a missing score is not within any limits."""
        if not self.scored:
            return True
        return score is not None and self.min_score <= score and (not self.max_score or score <= self.max_score)

    def codes_fit(self, codes: Collection[str]) -> bool:
        """Return whether the codes meet the filter."""
        wanted, unwanted = self.with_codes, self.without_codes
        return all(code in codes for code in wanted) and not any(code in codes for code in unwanted)

    def year_fits(self, year: int | None) -> bool:
        """Return whether a year is within the limits; an unknown year is not within any limits."""
        if not self.dated:
            return True
        return year is not None and self.min_year <= year and (not self.max_year or year <= self.max_year)


def problems_of(services: Services, connection: Connection, asked: VideoFilter) -> list[str]:
    """Return a sentence for each problem of a filter."""
    problems = [] if asked.restricts else [_NOTHING_SET]
    # Written so that NaN is out of range, too.
    problems += [
        f"{name}: 不能是负数，现为 {value:g}"
        for name, value in (("min_score", asked.min_score), ("max_score", asked.max_score))
        if not value >= 0
    ]
    if 0 < asked.max_score < asked.min_score:
        problems.append(f"min_score: 不得大于 max_score（{asked.max_score:g}），现为 {asked.min_score:g}")
    problems += [
        f"{name}: 应在 1880 到 2100 之间，0 表示不限，现为 {value}"
        for name, value in (("min_year", asked.min_year), ("max_year", asked.max_year))
        if value and not 1880 <= value <= 2100
    ]
    if 0 < asked.max_year < asked.min_year:
        problems.append(f"min_year: 不得大于 max_year（{asked.max_year}），现为 {asked.min_year}")
    if not 1 <= asked.max_rows <= MOST_ROWS:
        problems.append(f"max_rows: 应在 1 到 {MOST_ROWS} 之间，现为 {asked.max_rows}")
    if asked.duplicates_of and asked.duplicates_of < SMALLEST_ID:
        problems.append(f"duplicates_of: 豆瓣 ID 不小于 {SMALLEST_ID}，现为 {asked.duplicates_of}")
    problems += _wrong_codes(asked)
    known = "、".join(filter(None, ID_SOURCES))
    problems += [f"sources: 没有来源 {name[:40]!r}，可以写 {known}" for name in asked.sources if name not in ID_SOURCES]
    problems += [
        f"type_ids: 没有类别 {type_id}"
        for type_id in dict.fromkeys(asked.type_ids)
        if type_id not in services.categories
    ]
    for name, vod_ids in (("vod_ids", asked.vod_ids), ("except_vod_ids", asked.except_vod_ids)):
        unknown = list(_unknown(services.tables, connection, vod_ids))
        if unknown:
            more = f" 等 {len(unknown)} 部" if len(unknown) > _MOST_NAMED else ""
            problems.append(f"{name}: 没有影片 {'、'.join(map(str, unknown[:_MOST_NAMED]))}{more}")
    return problems


_NOTHING_SET = (
    "至少填写一项筛选：statuses、min_score、max_score、with_codes、type_ids、min_year、max_year、"
    "duplicates_of、id_locked、intro_locked、sources、updated_within_days、updated_before_days、locked_within_days、"
    "locked_before_days 或 vod_ids"
)


def _wrong_codes(asked: VideoFilter) -> Iterator[str]:
    for name, codes in (("with_codes", asked.with_codes), ("without_codes", asked.without_codes)):
        for code in dict.fromkeys(codes):
            if code not in _CODES:
                near = difflib.get_close_matches(code.strip().upper(), sorted(_CODES), n=3)
                yield f"{name}: 没有代码 {code[:40]!r}" + (f"，是不是 {'、'.join(near)}" if near else "")
    for code in sorted(set(asked.with_codes) & set(asked.without_codes)):
        yield f"with_codes: {code[:40]!r} 也在 without_codes 中，两者只能取一"


def _unknown(tables: OwnTables, connection: Connection, vod_ids: Collection[int]) -> Iterator[int]:
    video = tables.video
    for chunk in chunks(sorted(set(vod_ids))):
        known = set(connection.execute(select(video.c.vod_id).where(video.c.vod_id.in_(chunk))).scalars())
        yield from (vod_id for vod_id in chunk if vod_id not in known)
