"""Settings of earlier releases, and what became of each: the only table of them.

A process that finds one in its environment stops with the sentence of `what_became_of`, so that nobody believes in a
value that nothing reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from douban_pipeline.core.environment import BASE_PREFIX
from douban_pipeline.core.language import terminal_text


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a setting.

    Attributes:
        value: The constant, as an operator would have written it; empty if it has another name now.
        name: Its name now, without the base prefix; empty if it is a constant.
        change: How its value has to be written now, if not as before.
    """

    value: str = ""
    name: str = ""
    change: str = ""

    def sentence(self, variable: str) -> str:
        """Return what to tell somebody who sets ``variable``."""
        if self.name:
            now, how = f"{BASE_PREFIX}{self.name}", f": {self.change}" if self.change else ""
            return terminal_text("{variable} is {now} now{how}").format(variable=variable, now=now, how=how)
        return terminal_text("{variable} is a constant now ({value}): remove it").format(
            variable=variable, value=self.value
        )


_ON = terminal_text("on")
_CONSTANTS: Mapping[str, Mapping[str, str]] = {
    "": {
        "ARCHIVE_DAYS": "170 d",
        "BACK_OFF_JITTER": "0.1",
        "DUE_JITTER_SECONDS": "120 s",
        "EMPTY_ANSWERS_IN_ROW": "10",
        "INTROS_PER_RUN": "10",
        "INTRO_INTERVAL_DAYS": "30 d",
        "INTRO_OTHER_MINUTES": "30–120 min",
        "INTRO_SECOND_READING": _ON,
        "INTRO_THROTTLED_MINUTES": "10–30 min",
        "INTRO_UNAVAILABLE_MINUTES": "5–10 min",
        "KNOWN_SUBJECTS": _ON,
        "LEASE_SECONDS": terminal_text("twice what a step may take"),
        "MAX_SYNC_RUNS": "2",
        "MIN_DUE_PER_RUN": "10",
        "MISS_CACHE_HOURS": "24 h",
        "NEWCOMERS": terminal_text("on where SYSTEMS names feeds"),
        "POSTER_REQUESTS_PER_MINUTE": "120",
        "PRECISION_LEAST_LABELS": "30",
        "PRECISION_TARGET": "0.95",
        "PRIORITY_FROM_COMMENTS": terminal_text("on where SYSTEMS names comments"),
        "RECHECKS_PER_DAY": "5000",
        "SUBJECT_CACHE_HOURS": "24 h",
        "TITLE_FLOOR": "0.55",
        "WARN_BACKLOG_GROWTH": "0.25",
        "WARN_FAILURE_RATE": "0.3",
        "WARN_NO_SUCCESS_HOURS": "6 h",
        "YEAR_GAP": "3",
    },
    "FEEDS_": {
        "BATCH_SIZE": "500",
        "HOST_CONCURRENCY": "2",
        "HOST_POLLS_PER_DAY": terminal_text("no limit"),
        "MAX_BODY_BYTES": "8 MB",
        "MAX_ENTRIES": "500",
        "MAX_GAP": "86400 s",
        "POLL_DAYS": "30 d",
        "RUN_MINUTES": "10 min",
        "WERSS_PREFIX": "/api/v1/wx",
        "WORKERS": "8",
    },
    "DIGEST_": {
        "CATCH_UP_DAYS": "14 d",
        "DEEPSEEK_MAX_TOKENS": "8000",
        "DEEPSEEK_REQUESTS_PER_MINUTE": "600",
        "DEEPSEEK_TEMPERATURE": "0.2",
        "DEEPSEEK_THINKING": terminal_text("enabled for deepseek-reasoner, unsent for others"),
        "DEEPSEEK_WIRE_MODELS": "deepseek-reasoner=deepseek-flash",
        "MAX_SLOT_ATTEMPTS": "3",
        "PUSH_TIMEOUT_SECONDS": "10 s",
        "RETRIES_PER_SLOT": "10",
        "RUBRIC_FOLDER": terminal_text("digest in HOME"),
        "SLOT_MINUTES": "20 min",
        "STALE_HOURS": "36 h",
        "WERSS_PREFIX": "/api/v1/wx",
        "WERSS_REQUESTS_PER_MINUTE": "6000",
    },
    "TMDB_": {
        "ANSWER_DEADLINE_SECONDS": "3 s",
        "ARCHIVE_DAYS": "30 d",
        "CONCURRENCY": "10",
        "ENTITIES_PER_RUN": "2000",
        "GRAPH_BATCH": "50",
        "OUTBOX_ATTEMPTS": "8",
        "OUTBOX_DAYS": "7 d",
        "POOL_MAX": "10",
        "POOL_MIN": "1",
        "RAW_DAYS": "180 d",
        "REFRESH_DAYS": "150 d",
        "REQUEST_DAYS": "30 d",
        "REQUEST_TIMEOUT_SECONDS": "10 s",
        "SEARCH_CACHE_DAYS": "7 d",
        "VIDEOS_PER_RUN": "500",
    },
    "COMMENTS_": {
        "CMS_MODERATION": terminal_text("on where IMPORT_BATCH is above 0"),
        "LINKS_TO_REVIEW": "2",
        "LIST_SECONDS": "600 s",
        "LIST_SIZE": "1000",
        "MAX_LAG_SECONDS": "5 s",
        "MAX_LENGTH": "2000",
        "PLUG_SECONDS": "1 s",
        "READ_SITE": terminal_text("the first of READ_SITES"),
        "REVIEW_MINUTES": "60 min",
        "REVIEW_PER_MINUTE": "60",
        "REVIEW_SECONDS": "5 s",
        "REVIEW_TOKENS_PER_DAY": "1000000",
        "SWEEP_MINUTES": "8 min",
        "WORKER_BATCH": "500",
        "WORKER_POLL_MS": "50 ms",
        "WORKER_THREADS": "4",
    },
}
"""Constants, by the system's prefix and their former name."""
_RENAMED: Mapping[str, Removed] = {
    "REVIEW_URL": Removed(name="PUBLIC_URL", change=terminal_text("without /review/ at its end")),
    "FEEDS_POLLS_PER_DAY": Removed(
        name="FEEDS_POLLS_PER_SOURCE_PER_DAY",
        change=terminal_text("divided by the number of sources; 0 was 24 of each"),
    ),
    "FEEDS_REQUEST_TIMEOUT_SECONDS": Removed(name="REQUEST_TIMEOUT_SECONDS"),
    "FEEDS_WERSS_URL": Removed(name="WERSS_URL"),
    "FEEDS_WERSS_USERNAME": Removed(name="WERSS_USERNAME"),
    "FEEDS_WERSS_PASSWORD": Removed(name="WERSS_PASSWORD"),
    "FEEDS_WERSS_ACCESS_KEY": Removed(name="WERSS_ACCESS_KEY"),
    "DIGEST_PUBLIC_URL": Removed(name="PUBLIC_URL"),
    "DIGEST_WERSS_URL": Removed(name="WERSS_URL"),
    "DIGEST_WERSS_USERNAME": Removed(name="WERSS_USERNAME"),
    "DIGEST_WERSS_PASSWORD": Removed(name="WERSS_PASSWORD"),
    "DIGEST_WERSS_ACCESS_KEY": Removed(name="WERSS_ACCESS_KEY"),
    "TMDB_API_TOKEN": Removed(name="TMDB_API_KEY"),
    "DIGEST_WERSS_TIMEOUT_SECONDS": Removed(name="REQUEST_TIMEOUT_SECONDS"),
}
"""Settings with another name now, by their former name."""
REMOVED: Mapping[str, Removed] = {
    **{
        f"{BASE_PREFIX}{system}{name}": Removed(value=value)
        for system, values in _CONSTANTS.items()
        for name, value in values.items()
    },
    **{f"{BASE_PREFIX}{name}": removed for name, removed in _RENAMED.items()},
}
"""Every removed setting, by its variable."""


def what_became_of(variable: str) -> str | None:
    """Return the sentence for a variable of earlier releases; None for any other."""
    removed = REMOVED.get(variable.upper())
    return removed.sentence(variable) if removed else None
