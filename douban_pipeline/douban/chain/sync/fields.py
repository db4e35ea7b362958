"""Which columns of a video shall be written from its subject. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.cms.numbers import MEDIUMINT_MAX, score
from douban_pipeline.cms.values import (
    blurb,
    content_html,
    content_text,
    fit_text,
    is_placeholder,
    join_list,
    join_titles,
    person_name,
    split_list,
    storable,
)
from douban_pipeline.cms.vocabulary import SiteVocabulary
from douban_pipeline.douban.setting_values import FieldPolicy
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_EMPTY = (None, "", "0", 0, Decimal("0.0"))
_LISTS = frozenset({"vod_actor", "vod_director", "vod_writer", "vod_class", "vod_tag", "vod_sub"})
_UNLIMITED = 10**9


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """What to write: old and new value of each column, and characters that the columns cannot hold."""

    old: dict[str, Any]
    new: dict[str, Any]
    dropped: str = ""


def plan_fields(
    row: Mapping[Any, Any],
    record: SubjectRecord,
    *,
    cms: Cms,
    vocabulary: SiteVocabulary,
    policies: Mapping[str, FieldPolicy],
    undone: Mapping[str, Sequence[Any]],
    intro_locked: bool,
) -> FieldPlan:
    """Return what to write to ``row`` from its subject.

    An empty answer never overwrites. ``fill`` writes only over nothing, ``0`` or a placeholder;
    ``overwrite`` wherever the value differs. A value that a person reverted is not written again.

    Args:
        row: The CMS row as it was read.
        record: Douban's answer.
        cms: Widths and character sets of this site's columns.
        vocabulary: The area and language words of the video's category.
        policies: The write policy of each column.
        undone: Values that people reverted, by column.
        intro_locked: Whether the synopsis is left alone.
    """
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    dropped = ""
    for column, policy in policies.items():
        if policy == "never" or (intro_locked and column in SYNOPSIS_COLUMNS):
            continue
        if policy == "fill" and not is_empty(column, row[column]):
            continue
        charset = "utf8mb3" if column in cms.utf8mb3 else "utf8mb4"
        value, lost = _value(column, record, vocabulary, cms.widths.get(column, _UNLIMITED), charset)
        if value in _EMPTY or value == row[column] or value in undone.get(column, ()):
            continue
        old[column], new[column] = row[column], value
        dropped += lost
    return FieldPlan(old, new, "".join(dict.fromkeys(dropped)))


def is_empty(column: str, value: Any) -> bool:
    """Return whether nothing is known: empty, zero, markup without text, or placeholders such as 内详.

    其它 in area and language is no placeholder but a word of the site's filter bar.
    """
    if value in _EMPTY:
        return True
    if column in _LISTS:
        return not split_list(value)
    if not isinstance(value, str):
        return False
    text = content_text(value)
    return not text or (is_placeholder(text) and not text.startswith("其"))


def _value(column: str, record: SubjectRecord, vocabulary: SiteVocabulary, width: int, charset: str) -> tuple[Any, str]:
    """Return what ``column`` should hold, fitted to it, and the characters it cannot hold."""
    dropped: list[str] = []

    def fit(text: str) -> str:
        kept = storable(text, charset)
        dropped.append(kept.dropped)
        return kept.text

    def names(items: Sequence[str]) -> str:
        return join_list([fit(item) for item in items], width)

    match column:
        case "vod_name":
            value: Any = fit_text(fit(record.title), width)
        case "vod_sub":
            titles = [title for title in (record.original_title, *record.aliases) if title != record.title]
            value = join_titles([fit(title) for title in titles], width)
        case "vod_year":
            value = str(record.year or "")
        case "vod_area":
            value = vocabulary.area_for(record.regions) or ""
        case "vod_lang":
            value = vocabulary.language_for(record.languages) or ""
        case "vod_actor":
            value = names([person_name(each) for each in record.actors])
        case "vod_director":
            value = names([person_name(each) for each in record.directors])
        case "vod_writer":
            value = names([person_name(each) for each in record.writers])
        case "vod_class":
            value = names(record.genres)
        case "vod_tag":
            value = names(record.tags)
        case "vod_pubdate":
            value = names(record.release_dates)
        case "vod_duration":
            value = str(record.duration_minutes or "")
        case "vod_total":
            value = record.episodes or 0
        case "vod_pic":
            value = fit_text(fit(record.picture), width) if len(record.picture) <= width else ""
        case "vod_content":
            value = content_html(fit(record.summary))
        case "vod_blurb":
            value = blurb(fit(record.summary), column=min(width, 255))
        case "vod_douban_score" | "vod_score":
            value = score(record.rating)
        case "vod_score_num":
            value = _fitting(record.votes or 0)
        case "vod_score_all":
            value = _fitting(round((record.rating or 0) * (record.votes or 0)))
        case "vod_state":
            value = fit_text(fit(record.state), width)
        case "vod_author":
            value = fit_text(fit(record.author), width)
        case "vod_reurl":
            value = fit(record.url) if len(record.url) <= width else ""
        case _:
            raise ValueError(f"no rule for column {column}")
    return value, "".join(dropped)


def _fitting(count: int) -> int:
    """Return a count, 0 for unknown where the CMS's column cannot hold it: cut off it would be another number."""
    return count if count <= MEDIUMINT_MAX else 0
