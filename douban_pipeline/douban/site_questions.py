"""What only the site's owner knows: what its categories hold, what its collector compares, where its sources are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from douban_pipeline.cms.maccms import Category
from douban_pipeline.cms.values import readable
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import SiteQuestion
from douban_pipeline.core.settings_base import http_address, split_list, split_pairs
from douban_pipeline.core.shared_settings import CATEGORY_KINDS
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline.matching.facts import Kind
from douban_pipeline.matching.site_videos import kind_of_category

COLLECTOR_KEYS: Mapping[str, tuple[str, str]] = {
    "name": ("a", "vod_name"),
    "type": ("b", ""),
    "year": ("c", "vod_year"),
    "area": ("d", "vod_area"),
    "lang": ("e", "vod_lang"),
    "actor": ("f", "vod_actor"),
    "director": ("g", "vod_director"),
    "douban_id": ("h", "vod_douban_id"),
}
"""What the CMS's collector can compare: its letter in the CMS's setting `inrule`, and the column of ours, if any."""
SHIPPED_KEYS = "actor,director"
"""What it compares in an installation that nobody changed."""
PLACEHOLDERS = {1: Kind.FILM, 2: Kind.SERIES, 3: Kind.VARIETY, 4: Kind.ANIMATION}
"""What the categories 分类1 to 分类4 were before the CMS shipped placeholders: proposed, never taken for granted."""

_PLACEHOLDER = re.compile(r"分类\d+|子类\d+")
_NOTHING = "none"
_FILLED = ("vod_year", "vod_area", "vod_lang", "vod_actor", "vod_director")
"""Columns that may be filled and that a collector may compare."""


def site_questions(services: Services) -> Iterator[SiteQuestion]:
    """Yield the questions; the answers so far are those in the settings."""
    settings = services.settings
    yield _categories(settings, services.categories)
    yield _collector(settings)
    douban = terminal_text(
        "Subjects come from a douban.php that you run or trust; for trying, from `douban-pipeline replay`."
    )
    yield _address("douban-url", "douban_url", settings.douban_url, douban, terminal_text("Address of douban.php"))
    search = terminal_text("Candidates come from a search: SearXNG, or what DOUBAN_PIPELINE_SEARCH_PROVIDER names.")
    yield _address("search-url", "search_url", settings.search_url, search, terminal_text("Address of the search"))


def _address(option: str, name: str, given: str, about: str, prompt: str) -> SiteQuestion:
    return SiteQuestion(option, variable(name), [about], prompt, given, given, given, http_address)


def _categories(settings: Settings, categories: Mapping[int, Category]) -> SiteQuestion:
    given = settings.category_kinds
    lines, unknown = [], []
    for type_id in _as_tree(categories):
        category = categories[type_id]
        kind = kind_of_category(categories, type_id)
        shown = str(kind) if kind else terminal_text("not known")
        inset = "  " if category.parent_id else ""
        said = terminal_text(" (as you said)") if type_id in given else ""
        lines.append(f"{type_id:>5}  {inset}{readable(category.name)} → {shown}{said}")
        if kind is None:
            unknown.append(type_id)
    about = [terminal_text("Each category is taken for:"), *lines]
    if unknown:
        about.append(
            terminal_text(
                "Of {count} it is not known: there a film and a series of one name are hard to tell apart."
            ).format(count=len(unknown))
        )
    proposed = {
        type_id: kind
        for type_id, kind in PLACEHOLDERS.items()
        if type_id in unknown and _PLACEHOLDER.fullmatch(readable(categories[type_id].name))
    }
    return SiteQuestion(
        option="category-kinds",
        variable=variable("category_kinds"),
        about=about,
        prompt=terminal_text("What other categories hold (such as 1=film,2=series; none)"),
        given=_pairs(given) or _NOTHING,
        proposed=_pairs(proposed) or _NOTHING,
        unasked=_NOTHING,
        setting=lambda answer: _kinds(answer, categories),
    )


def _as_tree(categories: Mapping[int, Category]) -> Iterator[int]:
    """Yield the categories, each followed by its children."""
    top = [each.type_id for each in categories.values() if each.parent_id not in categories]
    for type_id in sorted(top):
        yield type_id
        yield from sorted(each.type_id for each in categories.values() if each.parent_id == type_id != each.type_id)


def _kinds(answer: str, categories: Mapping[int, Category]) -> str:
    """Return the setting for what a person said of categories."""
    pairs = {} if answer.strip() in ("", _NOTHING) else split_pairs(answer)
    for type_id, kind in pairs.items():
        if not type_id.isdecimal() or kind not in tuple(Kind):
            raise ValueError(terminal_text("expected ") + CATEGORY_KINDS)
        if int(type_id) not in categories:
            raise ValueError(terminal_text("there is no category {type_id}").format(type_id=type_id))
    return _pairs(pairs)


def _collector(settings: Settings) -> SiteQuestion:
    never = [name for name, (_, column) in COLLECTOR_KEYS.items() if settings.policies.get(column) == "never"]
    chosen = {name for name in never if COLLECTOR_KEYS[name][1] in settings.field_policies}
    given = ",".join(name for name in COLLECTOR_KEYS if name in chosen)
    return SiteQuestion(
        option="collector-compares",
        variable=variable("field_policies"),
        about=[
            terminal_text(
                "By which columns does the CMS's collector know a video again? Its admin has them among the collection "
                "settings; it ships with actor and director."
            ),
            terminal_text(
                "A column that it compares is never filled: otherwise its next visit would insert the video a second "
                "time, or merge another film into it."
            ),
            terminal_text(
                "If it compares douban_id, take that tick away in the CMS: a source that names another id would insert "
                "the video again."
            ),
            terminal_text("To choose from: {keys}").format(keys=", ".join(COLLECTOR_KEYS)),
        ],
        prompt=terminal_text("What the collector compares (none if the site collects nothing)"),
        given=given or _NOTHING,
        proposed=SHIPPED_KEYS,
        unasked=SHIPPED_KEYS,
        setting=lambda answer: _policies(answer, settings),
    )


def _policies(answer: str, settings: Settings) -> str:
    """Return the setting of the columns' policies under which nothing is filled that the collector compares."""
    letters = {letter: name for name, (letter, _) in COLLECTOR_KEYS.items()}
    names = [letters.get(name, name) for name in split_list(answer) if name != _NOTHING]
    unknown = [name for name in names if name not in COLLECTOR_KEYS]
    if unknown:
        keys = ", ".join(COLLECTOR_KEYS)
        raise ValueError(
            terminal_text("unknown: {names}; to choose from: {keys}").format(names=", ".join(unknown), keys=keys)
        )
    compared = {COLLECTOR_KEYS[name][1] for name in names}
    kept = {
        column: policy
        for column, policy in settings.field_policies.items()
        if column not in compared and (column not in _FILLED or policy != "never")
    }
    return _pairs({**kept, **{column: "never" for column in _FILLED if column in compared}})


def _pairs(values: Mapping[int, str] | Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())
