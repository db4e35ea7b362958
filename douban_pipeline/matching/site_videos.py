"""Converts the site's videos to the matcher's input: from CMS rows, and from records with the CMS's columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from douban_pipeline.cms.numbers import episodes_of, minutes_of, year_of
from douban_pipeline.cms.values import aliases_of, people_of, readable, split_list
from douban_pipeline.matching.facts import Kind, Video

if TYPE_CHECKING:
    from douban_pipeline.cms.maccms import Category, Cms

# Words in category names, the most specific first: 纪录片 under 电影 is a documentary, 动画片 an animation.
_KIND_WORDS: tuple[tuple[str, Kind], ...] = (
    ("纪录", Kind.DOCUMENTARY),
    ("记录片", Kind.DOCUMENTARY),
    ("短剧", Kind.SHORT),
    ("动漫", Kind.ANIMATION),
    ("动画", Kind.ANIMATION),
    ("番剧", Kind.ANIMATION),
    ("综艺", Kind.VARIETY),
    ("真人秀", Kind.VARIETY),
    ("剧情片", Kind.FILM),
    ("喜剧片", Kind.FILM),
    ("连续剧", Kind.SERIES),
    ("电视剧", Kind.SERIES),
    ("剧集", Kind.SERIES),
    ("电影", Kind.FILM),
    ("片", Kind.FILM),
    ("剧", Kind.SERIES),
)
_MAX_DEPTH = 5


def kind_of_category(categories: Mapping[int, Category], type_id: int) -> Kind | None:
    """Return the kind that a site's category implies: what its owner says, else its own name, then its ancestors'.

    Sites number their categories differently, so names decide, never ids.
    """
    for _ in range(_MAX_DEPTH):
        category = categories.get(type_id)
        if category is None:
            return None
        if category.kind:
            return Kind(category.kind)
        name = category.name
        found = next((kind for word, kind in _KIND_WORDS if word in name), None)
        if found is not None:
            return found
        type_id = category.parent_id
    return None


def video_facts(row: Mapping[Any, Any], cms: Cms, categories: Mapping[int, Category]) -> Video:
    """Return a CMS row as the matcher's `Video`: unescaped, split, without placeholders."""
    return facts_of_values(
        row, vod_id=row["vod_id"], kind=kind_of_category(categories, row["type_id"]), widths=cms.widths
    )


def facts_of_values(
    values: Mapping[Any, Any], *, vod_id: int, kind: Kind | None, widths: Mapping[str, int] | None = None
) -> Video:
    """Return a local record as the matcher's `Video`.

    Args:
        values: Stored values by the CMS's column names; a missing one is unknown, but ``vod_name`` must be there.
        vod_id: The record's key.
        kind: The kind that its category implies.
        widths: The columns' widths: a list that fills its column was truncated.
    """
    widths = widths or {}

    def text(column: str) -> str:
        return readable(values.get(column) or "")

    def people(column: str) -> tuple[str, ...]:
        return people_of(values.get(column), width=widths.get(column))

    return Video(
        vod_id=vod_id,
        title=readable(values["vod_name"]),
        aliases=aliases_of(values.get("vod_sub"), width=widths.get("vod_sub")),
        year=year_of(values.get("vod_year")),
        kind=kind,
        # Unsplit: 其它 must not be dropped as a placeholder, since it means that any region fits.
        regions=(text("vod_area"),) if values.get("vod_area") else (),
        languages=split_list(values.get("vod_lang")),
        directors=people("vod_director"),
        actors=people("vod_actor"),
        genres=split_list(values.get("vod_class"), width=widths.get("vod_class")),
        duration_minutes=minutes_of(text("vod_duration")),
        episodes=episodes_of(values.get("vod_total") or 0, text("vod_remarks")),
        remarks=text("vod_remarks"),
    )
