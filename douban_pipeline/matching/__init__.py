"""Matching: pure rules that find the Douban subject of a local video. No I/O, no clock, no Dagster.

``titles`` parses titles; ``similarity``, ``people``, ``kinds`` and ``fields`` compare names and fields; ``scoring``
gives points; ``ranking`` orders the candidates; ``verdicts`` decides, and the acceptance gate (``acceptance``) can only
make the verdict stricter. ``guard`` repeats the rules of a confirmation on plain values, for checks and for the write
path. ``hits`` selects the search hits that are worth a request, ``queries`` builds the search queries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from douban_pipeline.matching.codes import HARD_REJECTS, SENTENCES, Code
    from douban_pipeline.matching.facts import Kind, Subject, Video
    from douban_pipeline.matching.guard import violations
    from douban_pipeline.matching.hits import Likeness, ends_search, likeness, may_match_too
    from douban_pipeline.matching.profiles import Profile, make_profile
    from douban_pipeline.matching.queries import search_queries, suggest_queries
    from douban_pipeline.matching.ranking import Candidate, rank
    from douban_pipeline.matching.scoring import Comparison, Item, ItemOutcome, compare
    from douban_pipeline.matching.text import normalise
    from douban_pipeline.matching.titles import ParsedTitle, cache_key, clean_title, parse_title, readings
    from douban_pipeline.matching.verdicts import Status, Verdict, judge
    from douban_pipeline.matching.weights import PROFILES, Thresholds, Weights

RULE_VERSION = "rules-9"
"""Version of the matching rules, stored with every verdict and every write.

Increase it whenever the same facts could lead to a different verdict.
"""

__all__ = [
    "HARD_REJECTS",
    "PROFILES",
    "RULE_VERSION",
    "SENTENCES",
    "Candidate",
    "Code",
    "Comparison",
    "Item",
    "ItemOutcome",
    "Kind",
    "Likeness",
    "ParsedTitle",
    "Profile",
    "Status",
    "Subject",
    "Thresholds",
    "Verdict",
    "Video",
    "Weights",
    "cache_key",
    "clean_title",
    "compare",
    "ends_search",
    "judge",
    "likeness",
    "make_profile",
    "may_match_too",
    "normalise",
    "parse_title",
    "rank",
    "readings",
    "search_queries",
    "suggest_queries",
    "violations",
]

_NAMES = {
    "codes": "HARD_REJECTS SENTENCES Code",
    "facts": "Kind Subject Video",
    "guard": "violations",
    "hits": "Likeness ends_search likeness may_match_too",
    "profiles": "Profile make_profile",
    "queries": "search_queries suggest_queries",
    "ranking": "Candidate rank",
    "scoring": "Comparison Item ItemOutcome compare",
    "text": "normalise",
    "titles": "ParsedTitle cache_key clean_title parse_title readings",
    "verdicts": "Status Verdict judge",
    "weights": "PROFILES Thresholds Weights",
}
"""The public names of the modules, by module."""


def __getattr__(name: str) -> Any:
    """Return a public name; its module is imported at its first use, as most commands need none of the dictionaries."""
    module = next((module for module, names in _NAMES.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
