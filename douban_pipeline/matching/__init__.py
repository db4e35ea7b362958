"""Matching: pure rules that say which Douban subject a local video is. No I/O, no clock, no Dagster.

Titles are taken apart (``titles``), fields compared (``people``, ``regions``, ``kinds``, ``years``, ``lengths``),
points given (``scoring``), and a verdict reached (``verdicts``) that the acceptance gate (``acceptance``) can only
make stricter. ``guard`` repeats the rules of a confirmation on plain values, for checks and for the write path.
"""

from __future__ import annotations

from douban_pipeline.matching.codes import HARD_REJECTS, SENTENCES, Code
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.guard import violations
from douban_pipeline.matching.profiles import PROFILES, Profile, make_profile
from douban_pipeline.matching.promise import Promise, may_be_too, promise, settles
from douban_pipeline.matching.queries import search_queries, suggest_queries
from douban_pipeline.matching.scoring import Comparison, Item, Outcome, Thresholds, Weights, compare
from douban_pipeline.matching.text import normalise
from douban_pipeline.matching.titles import ParsedTitle, cache_key, clean_title, parse_title, readings
from douban_pipeline.matching.verdicts import Candidate, Status, Verdict, judge, rank

RULE_VERSION = "rules-2"
"""Names the rules a verdict was reached by; stored with every verdict and every write.

Raise it whenever the same facts could lead to another verdict.
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
    "Kind",
    "Outcome",
    "ParsedTitle",
    "Profile",
    "Promise",
    "Status",
    "Subject",
    "Thresholds",
    "Verdict",
    "Video",
    "Weights",
    "cache_key",
    "clean_title",
    "compare",
    "judge",
    "make_profile",
    "may_be_too",
    "normalise",
    "parse_title",
    "promise",
    "rank",
    "readings",
    "search_queries",
    "settles",
    "suggest_queries",
    "violations",
]
