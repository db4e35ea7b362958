"""Every list by its name, and its page as the service shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from urllib.parse import urlencode

from sqlalchemy import Integer

from douban_pipeline.core.clock import midnight
from douban_pipeline.core.database import reading
from douban_pipeline.core.system import SystemPart
from douban_pipeline.core.ui.lists.list_page import FormField, ListView, Table
from douban_pipeline.core.ui.lists.shown_cells import PageFrame
from douban_pipeline.core.ui.lists.table_page import table_page
from douban_pipeline.douban.reports.lists.keyset import MOST_COUNTED, ListFilter, RowPlace
from douban_pipeline.douban.reports.lists.spec import TITLES, ListOrder, ListSpec, csv_file, list_path, page_of_rows
from douban_pipeline.douban.reports.lists.videos import category_names
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services

SIZE = 50
"""Rows of a page."""

_SORTS = {"id": "编号", "updated": "CMS 更新", "time": "时间", "size": "组内部数", "subject": "共同的 ID"}
"""Texts of orders that are no column's."""


def _list(place: str) -> Callable[[Services], ListSpec]:
    """Return what makes a list; its module is imported when the list is made."""
    part = SystemPart[Callable[[Services], ListSpec]](f"douban_pipeline.douban.reports.lists.{place}")
    return lambda services: part()(services)


LISTS: Mapping[str, Callable[[Services], ListSpec]] = {
    "review": _list("videos:review_list"),
    "missing": _list("videos:missing_list"),
    "duplicates": _list("duplicates:duplicates_list"),
    "locked": _list("locked:locked_list"),
    "intros": _list("intros:intros_list"),
    "tasks": _list("records:tasks_list"),
    "verdicts": _list("verdict_list:verdicts_list"),
    "decisions": _list("records:decisions_list"),
    "log": _list("change_list:log_list"),
}
"""What makes each list."""


def page_frame(services: Services, root: str) -> PageFrame:
    """Return what the pages of this site have in common; ``root`` leads from a page to the front page."""
    site = VideoSite.of(services.settings)
    return PageFrame(
        services.settings.zone,
        services.settings.ui_url,
        [("首页", "./"), *((title, list_path(name)) for name, title in TITLES.items())],
        site.page_pattern,
        site.image_sources,
        root,
    )


def list_page(services: Services, name: str, asked: Mapping[str, str]) -> tuple[str, str]:
    """Return the page of a list as HTML, and its content security policy; ``asked`` are the fields of its form.

    What is not understood of them restricts nothing.
    """
    spec = LISTS[name](services)
    form = list(_form(services, spec, asked))
    values = {field.name: field.value for field in form if field.value}
    restricted, order = _filter(services, spec, values), _order(values.get("sort", ""))
    rows, last = page_of_rows(
        services, spec, restricted, order, after=_place(spec, order, asked.get("after", "")), size=SIZE
    )
    with reading(services.engine) as connection:
        count = spec.rows.count(connection, restricted)
    table = Table("rows", spec.title, spec.columns, rows, video="vod_id", links=spec.links)
    view = ListView(
        table,
        form,
        f"超过 {MOST_COUNTED:,}" if count > MOST_COUNTED else f"{count:,}",
        spec.key,
        spec.batch,
        first=f"?{urlencode(values)}" if "after" in asked else "",
        following=f"?{urlencode({**values, 'after': _written(last)})}" if last else "",
        csv=f"{list_path(name)}.csv" if (services.reports.path / csv_file(name)).is_file() else "",
    )
    return table_page(
        spec.title, spec.about, spec.figures(), page_frame(services, "../"), services.clock.now(), view=view
    )


def _form(services: Services, spec: ListSpec, asked: Mapping[str, str]) -> Iterator[FormField]:
    heads = {column.key: column.head for column in spec.columns}

    def select(name: str, label: str, options: Mapping[str, str], nothing: str = "全部") -> FormField:
        value = asked.get(name, "")
        return FormField(name, label, value if value in options else "", [("", nothing), *options.items()])

    yield FormField("q", "文字（片名、ID、原因……）", asked.get("q", "").strip()[:100])
    for name, choice in spec.rows.choices.items():
        yield select(name, heads.get(name, "来源"), choice.words)
    yield select("category", "分类", {str(key): word for key, word in category_names(services).items()})
    for name, label in (("since", "起"), ("until", "止")):
        yield FormField(name, label, value if _day(value := asked.get(name, "")) else "", kind="date")
    first, *others = ((name, heads.get(name) or _SORTS[name]) for name in spec.rows.sorts)
    down = {name: f"{word} ▼" for name, word in others}
    up = {f"{name} up": f"{word} ▲" for name, word in (first, *others)}
    yield select("sort", "排序", {**down, **up}, f"{first[1]} ▼")


def _filter(services: Services, spec: ListSpec, values: Mapping[str, str]) -> ListFilter:
    zone = services.settings.zone
    since, until = (_day(values.get(name, "")) for name in ("since", "until"))
    return ListFilter(
        [int(values["category"])] if "category" in values else (),
        midnight(since, zone) if since else None,
        midnight(until + timedelta(days=1), zone) if until else None,
        {name: [values[name]] for name in spec.rows.choices if name in values},
        values.get("q", ""),
    )


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 1970 < day.year < 9999 else None


def _order(text: str) -> ListOrder:
    sort, _, up = text.partition(" ")
    return ListOrder(sort, bool(up))


def _written(place: RowPlace) -> str:
    value = place.value
    text = "" if value is None else value.isoformat() if isinstance(value, datetime) else str(int(value))
    return f"{place.key}~{text}"


def _place(spec: ListSpec, order: ListOrder, text: str) -> RowPlace | None:
    """Return the place that `_written` wrote; None for any other text, as on the first page."""
    key, _, value = text.partition("~")
    by = spec.rows.sorts[order.sort or next(iter(spec.rows.sorts))]
    read = _number if isinstance(by.type, Integer) else datetime.fromisoformat
    try:
        return RowPlace(read(value) if value else None, _number(key))
    except ValueError:
        return None


def _number(text: str) -> int:
    if len(text) > 18:
        raise ValueError(text)
    return int(text)
