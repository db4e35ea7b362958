"""What the values of settings may be: defaults, how lists and pairs are read, words for what is allowed. Pure."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from douban_pipeline.core.settings_base import http_address, refuse_unknown, split_list, split_pairs
from douban_pipeline.matching.profiles import PROFILES
from douban_pipeline.matching.scoring import Weights

DEMO_SEARCH_URL = "http://127.0.0.1:8790/search"
SEARCH_PROVIDERS = {
    "searxng": DEMO_SEARCH_URL,
    "douban_suggest": "https://movie.douban.com/j/subject_suggest",
    "bocha": "https://api.bochaai.com/v1/web-search",
}
"""Every search provider, and its address where none is given."""
CHAIN = "chain"
"""The provider that asks others, one after another."""
SOURCES = ("douban", *SEARCH_PROVIDERS, "openrouter")
"""Everything that is paced by the gate."""

FieldPolicy = Literal["never", "fill", "overwrite"]

DEFAULT_FIELD_POLICIES: dict[str, FieldPolicy] = {
    # The collector's duplicate keys (name, type, year, area, lang, actor, director, Douban id): a rewritten key
    # makes the next collection insert a second row. Gaps may be filled; what has a value is left alone.
    "vod_name": "never",
    "vod_year": "fill",
    "vod_area": "fill",
    "vod_lang": "fill",
    "vod_actor": "fill",
    "vod_director": "fill",
    # Facts no collector compares.
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
    # Themes show and sort by vod_score, which the CMS fills with random numbers; a site may choose to mirror.
    "vod_score": "never",
}

SCORE_ITEMS = tuple(item.name for item in dataclasses.fields(Weights))
"""Items of the score whose points may be changed."""

ALLOWED = {
    "database_url": "an SQLAlchemy URL: mysql+pymysql://user:password@host:3306/database?charset=utf8mb4, or sqlite:///file",
    "table_prefix": "letters, digits and underscores, at most 20; the CMS's is usually mac_",
    "site_timezone": "an IANA time zone such as Asia/Shanghai",
    "search_provider": f"{', '.join(SEARCH_PROVIDERS)} or {CHAIN}",
    "search_chain": "providers in the order asked, separated by commas, each perhaps with its address, e.g. "
    "searxng=http://127.0.0.1:8080/search,douban_suggest,bocha; providers: " + ", ".join(SEARCH_PROVIDERS),
    "daily_quotas": "source=calls pairs separated by commas, calls from 1, e.g. bocha=1000; sources: "
    + ", ".join(SOURCES),
    "llm_url": "an address such as https://openrouter.ai/api/v1/chat/completions",
    "llm_fallback_models": "model names separated by commas, tried in this order; empty for none",
    "alert_webhook_url": "an address such as https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…",
    "douban_url": "an address such as http://127.0.0.1:8790/douban.php",
    "search_url": "an address such as http://127.0.0.1:8080/search",
    "excluded_type_ids": "category ids (mac_type.type_id) separated by commas, e.g. 20,31",
    "included_type_ids": "category ids (mac_type.type_id) separated by commas; empty means all",
    "match_profile": " or ".join(PROFILES),
    "score_weights": "item=points pairs separated by commas, points from 0, e.g. director=14,actors=6; items: "
    + ", ".join(SCORE_ITEMS),
    "field_policies": "column=policy pairs separated by commas; policy is never, fill or overwrite; columns: "
    + ", ".join(DEFAULT_FIELD_POLICIES),
}


def category_ids(value: Any) -> Any:
    """Read a list of category ids."""
    if not isinstance(value, str):
        return value
    parts = split_list(value)
    if any(not part.isdecimal() for part in parts):
        raise ValueError("not a list of category ids")
    return frozenset(int(part) for part in parts)


def score_weights(value: Any) -> dict[str, float]:
    """Read points of score items."""
    value = split_pairs(value)
    refuse_unknown("item", value, SCORE_ITEMS)
    try:
        weights = {item: float(points) for item, points in value.items()}
    except (TypeError, ValueError):
        raise ValueError("points that are no number") from None
    if not all(math.isfinite(points) and points >= 0 for points in weights.values()):
        raise ValueError("points below 0 or without end")
    return weights


def daily_quotas(value: Any) -> dict[str, int]:
    """Read how many calls a day each source is allowed."""
    value = split_pairs(value)
    refuse_unknown("source", value, SOURCES)
    try:
        quotas = {source: int(calls) for source, calls in value.items()}
    except (TypeError, ValueError):
        raise ValueError("calls that are no whole number") from None
    if any(calls < 1 for calls in quotas.values()):
        raise ValueError("calls below 1")
    return quotas


def search_chain(value: Any) -> dict[str, str]:
    """Read the providers of a chain with their addresses, in order."""
    if not isinstance(value, str):
        return dict(value)
    parts = split_list(value)
    pairs = [part.partition("=") for part in parts]
    chain = {name.strip(): address.strip() or SEARCH_PROVIDERS.get(name.strip(), "") for name, _, address in pairs}
    refuse_unknown("provider", chain, SEARCH_PROVIDERS)
    if len(chain) != len(parts):
        raise ValueError("a provider twice")
    if not chain:
        raise ValueError("no provider")
    for address in chain.values():
        http_address(address)
    return chain
