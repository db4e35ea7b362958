"""Values of settings: defaults, parsing of lists and pairs, and texts on what is allowed. Pure functions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from douban_pipeline.core import environment
from douban_pipeline.core.language import terminal_text, translatable
from douban_pipeline.core.settings_base import OWNERS, http_address, refuse_unknown, split_list, split_pairs
from douban_pipeline.core.shared_settings import CATEGORY_KINDS
from douban_pipeline.matching.weights import PROFILES, Weights

DEMO_SEARCH_URL = "http://127.0.0.1:8790/search"
SEARCH_PROVIDERS = {
    "searxng": DEMO_SEARCH_URL,
    "douban_suggest": "https://movie.douban.com/j/subject_suggest",
    "bocha": "https://api.bochaai.com/v1/web-search",
}
"""Every search provider with its default address."""
WEB_SEARCHES = frozenset({"searxng", "bocha"})
"""The providers that search the web; the others query Douban's own index of titles."""
CHAIN = "chain"
"""The provider that queries others, one after another."""
SOURCES = ("douban", *SEARCH_PROVIDERS, "openrouter", "posters")
"""All sources that are paced by the gate."""

FieldPolicy = Literal["never", "fill", "overwrite"]

DEFAULT_FIELD_POLICIES: dict[str, FieldPolicy] = {
    # The collector's duplicate keys (name, type, year, area, lang, actor, director, Douban id): a rewritten key
    # makes the next collection insert a second row. Empty values may be filled; others are not changed.
    "vod_name": "never",
    "vod_year": "fill",
    "vod_area": "fill",
    "vod_lang": "fill",
    "vod_actor": "fill",
    "vod_director": "fill",
    # Facts that no collector compares.
    "vod_sub": "fill",
    "vod_writer": "fill",
    "vod_class": "fill",
    "vod_tag": "fill",
    "vod_pubdate": "fill",
    "vod_duration": "fill",
    "vod_total": "fill",
    "vod_pic": "fill",
    "vod_content": "fill",
    "vod_blurb": "fill",
    "vod_douban_score": "overwrite",
    # Themes show vod_score and sort by it. The CMS fills it with random numbers; a site may choose to mirror Douban's.
    "vod_score": "never",
    # The site's own votes: with each, the CMS computes vod_score from their sum and number. Written from Douban, the
    # two must agree, and for a subject with 2 million votes the sum exceeds the column.
    "vod_score_num": "never",
    "vod_score_all": "never",
    # 正片, 预告片 or 花絮, which the site's filters match exactly: douban.php says 正片 for everything, even trailers.
    "vod_state": "never",
    # The site's editor, and where a row was collected from: the site's own account, which no sync may replace.
    "vod_author": "never",
    "vod_reurl": "never",
}

OLDER = "older"
"""Name of the tier of videos that are older than all other tiers."""

_MOST_MINUTES = 30 * 24 * 60.0
_MOST_DAYS = 3650.0

SCORE_ITEMS = tuple(item.name for item in dataclasses.fields(Weights))
"""Score items whose points may be changed."""


def _such_as(address: str) -> str:
    return terminal_text("an address such as {address}").format(address=address)


ALLOWED = {
    "database_url": terminal_text(
        "an SQLAlchemy URL: mysql+pymysql://user:password@host:3306/database?charset=utf8mb4, or sqlite:///file"
    ),
    "table_prefix": terminal_text("letters, digits and underscores, at most 20; the CMS's is usually mac_"),
    "systems": terminal_text("names separated by commas, of {systems}").format(systems=", ".join(environment.SYSTEMS)),
    "language": terminal_text("zh or en"),
    "owner": OWNERS,
    "site_timezone": terminal_text("an IANA time zone such as Asia/Shanghai"),
    "search_provider": terminal_text("{search_providers} or {chain}").format(
        search_providers=", ".join(SEARCH_PROVIDERS), chain=CHAIN
    ),
    "search_chain": terminal_text(
        "providers in the order queried, separated by commas, each optionally with its address, e.g. "
        "searxng=http://127.0.0.1:8080/search,douban_suggest,bocha; providers: "
    )
    + ", ".join(SEARCH_PROVIDERS),
    "daily_quotas": terminal_text("source=calls pairs separated by commas, calls from 1, e.g. bocha=1000; sources: ")
    + ", ".join(SOURCES),
    "llm_url": _such_as("https://openrouter.ai/api/v1/chat/completions"),
    "llm_fallback_models": terminal_text("model names separated by commas, tried in this order; empty for none"),
    "alert_webhook_url": _such_as("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…"),
    "douban_url": _such_as("http://127.0.0.1:8790/douban.php"),
    "search_url": _such_as("http://127.0.0.1:8080/search"),
    "category_kinds": CATEGORY_KINDS,
    "excluded_type_ids": terminal_text("category ids (mac_type.type_id) separated by commas, e.g. 20,31"),
    "included_type_ids": terminal_text("category ids (mac_type.type_id) separated by commas; empty means all"),
    "active_hours": terminal_text(
        "hours from 0 to 24 in the site's time zone, separated by commas, e.g. 1-7,22-24; 22-6 spans "
        "midnight, 9 is 9-10; empty means all day"
    ),
    "back_off_minutes": terminal_text(
        "minutes separated by commas, none shorter than the one before, e.g. 10,30,120,360,1440"
    ),
    "visit_tiers": terminal_text(
        "age=interval pairs in days separated by commas, the last one for {older} videos, e.g. "
        "30=3,180=7,365=30,730=60,{older}=90"
    ).format(older=OLDER),
    "bulk_unlockers": terminal_text("names as reviewers enter them, separated by commas"),
    "match_profile": terminal_text(" or ").join(PROFILES),
    "score_weights": terminal_text(
        "item=points pairs separated by commas, points from 0, e.g. director=14,actors=6; items: "
    )
    + ", ".join(SCORE_ITEMS),
    "field_policies": terminal_text(
        "column=policy pairs separated by commas; policy is never, fill or overwrite; columns: "
    )
    + ", ".join(DEFAULT_FIELD_POLICIES),
}


def systems(value: Any) -> tuple[str, ...]:
    """Return the names of systems in ``value``, each once."""
    names = tuple(dict.fromkeys(split_list(value)))
    refuse_unknown(translatable("unknown system {names}"), names, environment.SYSTEMS)
    if not names:
        raise ValueError(terminal_text("no system is named"))
    return names


def category_ids(value: Any) -> Any:
    """Return the category ids in ``value``."""
    if not isinstance(value, str):
        return value
    parts = split_list(value)
    if any(not part.isdecimal() for part in parts):
        raise ValueError(terminal_text("not a list of category ids"))
    return frozenset(int(part) for part in parts)


def score_weights(value: Any) -> dict[str, float]:
    """Return the points of score items in ``value``."""
    value = split_pairs(value)
    refuse_unknown(translatable("unknown item {names}"), value, SCORE_ITEMS)
    try:
        weights = {item: float(points) for item, points in value.items()}
    except (TypeError, ValueError):
        raise ValueError(terminal_text("points that are not numbers")) from None
    if not all(math.isfinite(points) and points >= 0 for points in weights.values()):
        raise ValueError(terminal_text("points below 0 or infinite"))
    return weights


def daily_quotas(value: Any) -> dict[str, int]:
    """Return the allowed calls a day in ``value``, by source."""
    value = split_pairs(value)
    refuse_unknown(translatable("unknown source {names}"), value, SOURCES)
    try:
        quotas = {source: int(calls) for source, calls in value.items()}
    except (TypeError, ValueError):
        raise ValueError(terminal_text("calls that are not whole numbers")) from None
    if any(calls < 1 for calls in quotas.values()):
        raise ValueError(terminal_text("calls below 1"))
    return quotas


def search_chain(value: Any) -> dict[str, str]:
    """Return the providers of a chain in ``value`` with their addresses, in order."""
    if not isinstance(value, str):
        return dict(value)
    parts = split_list(value)
    pairs = [part.partition("=") for part in parts]
    chain = {name.strip(): address.strip() or SEARCH_PROVIDERS.get(name.strip(), "") for name, _, address in pairs}
    refuse_unknown(translatable("unknown provider {names}"), chain, SEARCH_PROVIDERS)
    if len(chain) != len(parts):
        raise ValueError(terminal_text("a provider is named twice"))
    if not chain:
        raise ValueError(terminal_text("no provider is named"))
    for address in chain.values():
        http_address(address)
    return chain


def minutes(value: Any) -> Any:
    """Return the waits in minutes in ``value``, none shorter than the one before."""
    steps = _numbers(value, above=0.0, most=_MOST_MINUTES)
    if not steps:
        raise ValueError(terminal_text("no number of minutes is given"))
    if list(steps) != sorted(steps):
        raise ValueError(terminal_text("a wait shorter than the one before"))
    return steps


def _numbers(value: Any, *, above: float, most: float) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in split_list(value))
    except (TypeError, ValueError):
        raise ValueError(terminal_text("not a list of numbers")) from None
    if any(not above < number <= most for number in found):
        raise ValueError(
            terminal_text("a number that is not above {above:g} and at most {most:g}").format(above=above, most=most)
        )
    return found


def visit_tiers(value: Any) -> dict[str, float]:
    """Return the days between visits in ``value``, by age; `OLDER` stands for all older videos."""
    value = split_pairs(value)
    if OLDER not in value:
        raise ValueError(terminal_text("{older} is missing").format(older=OLDER))
    ages = [age for age in value if age != OLDER]
    _numbers(ages, above=0.0, most=_MOST_DAYS)
    days = _numbers(list(value.values()), above=0.0, most=_MOST_DAYS)
    return dict(zip(value, days, strict=True))


def hours_of_day(value: Any) -> Any:
    """Return the hours of the day in ``value``: those that begin in the given ranges."""
    if not isinstance(value, str):
        return value
    hours: set[int] = set()
    for part in split_list(value):
        first, to, last = part.partition("-")
        if not first.strip().isdecimal() or (to and not last.strip().isdecimal()):
            raise ValueError(terminal_text("not hours"))
        begin, end = int(first), int(last) if to else int(first) + 1
        if begin > 23 or end > 24 or begin == end:
            raise ValueError(terminal_text("an hour after 23 or an empty range"))
        hours.update(range(begin, end) if begin < end else (*range(begin, 24), *range(end)))
    return frozenset(hours)
