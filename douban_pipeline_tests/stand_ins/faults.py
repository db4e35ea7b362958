"""Configurable faults of the replay upstream, and its log of requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from douban_pipeline_tests.stand_ins.inventions import INVENTIONS

ENDPOINTS = ("douban", "search", "suggest", "bocha", "llm", "reading")
"""Endpoints that can fail: douban.php, SearXNG, Douban's suggest, Bocha, and OpenRouter for writing an introduction
and for stating its basis."""

FAULTS = (
    "captcha",
    "login_redirect",
    "forbidden",
    "throttled",
    "server_error",
    "timeout",
    "wrong_id",
    "empty",
    "garbage",
    "error_in_200",
    "empty_body",
    "wrong_page",
)
"""``captcha``: Douban's human check with status 200; on SearXNG no results and engines that name a captcha.
``login_redirect``: 302 to a login page on this same server. ``forbidden``: 403. ``throttled``: 429, with Retry-After
if given. ``server_error``: 500. ``timeout``: no answer until the client closes the connection. ``wrong_id``: the answer
for another subject. ``empty``: a well-formed answer without data. ``garbage``: 200 with truncated JSON.
``error_in_200``: 200 with an error in the body, in that upstream's form. ``empty_body``: 200 with an empty body.
``wrong_page``: 200 with an unrelated page, as shown by a parked domain or a half-installed server."""

MODEL_FAULTS = (
    "unpaid",
    "key_spent",
    "in_flight",
    "too_heavy",
    "budget_spent",
    "request_timeout",
    "no_provider",
    "rejected",
    "cut_off",
    "refused",
)
"""Further answers of OpenRouter. ``unpaid``, ``key_spent``, ``in_flight``, ``too_heavy``: 402 for lack of credits, for
the key's used allowance, temporarily (with Retry-After if given), and for the size of this request. ``budget_spent``:
403 for a used budget (``forbidden`` is 403 by moderation). ``request_timeout``: 408. ``no_provider``: 503, with
Retry-After if given. ``rejected``: 400. ``cut_off``: an answer truncated at the maximum length. ``refused``: the model
refuses."""

_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule for a fault.

    Attributes:
        endpoint: One of `ENDPOINTS`.
        fault: One of `FAULTS`; for ``llm`` and ``reading`` also one of `MODEL_FAULTS`; for ``llm`` also one of
            `inventions.INVENTIONS`.
        match: Only requests for this: the whole subject id (``douban``), a part of the query (``search``,
            ``suggest``, ``bocha``) or of the last user message (``llm``, ``reading``); ``None`` for all.
        times: Remaining requests it applies to; ``None`` for no limit.
        retry_after: Seconds, sent as Retry-After with ``throttled`` and similar faults.
        stubborn: Whether an invention is repeated when the request names the problem of the previous text.
    """

    endpoint: str
    fault: str
    match: str | None = None
    times: int | None = None
    retry_after: float | None = None
    stubborn: bool = False

    def __post_init__(self) -> None:
        """Validate the rule.

        Raises:
            ValueError: The endpoint or fault does not exist, or a number is below its minimum.
        """
        if self.endpoint not in ENDPOINTS:
            raise ValueError(f"endpoint {self.endpoint!r}: use one of {', '.join(ENDPOINTS)}")
        own = {"llm": (*MODEL_FAULTS, *INVENTIONS), "reading": MODEL_FAULTS}
        known = (*FAULTS, *own.get(self.endpoint, ()))
        if self.fault not in known:
            raise ValueError(f"fault {self.fault!r}: use one of {', '.join(known)}")
        if self.times is not None and self.times < 1:
            raise ValueError(f"times {self.times!r}: at least 1, or none for ever")
        if self.retry_after is not None and self.retry_after < 0:
            raise ValueError(f"retry_after {self.retry_after!r}: seconds, 0 or more")

    @classmethod
    def parse(cls, rule: Any) -> Fault:
        """Return the rule that a JSON object describes; the keys are the attributes' names.

        Raises:
            ValueError: It is not such an object.
        """
        if not isinstance(rule, Mapping):
            raise ValueError(f"a rule is an object, not {rule!r}")
        unknown = set(rule) - set(cls.__slots__)
        if unknown or not {"endpoint", "fault"} <= set(rule):
            raise ValueError(
                f"a rule has endpoint, fault and perhaps match, times, retry_after, stubborn, not {sorted(rule)}"
            )
        kinds = {"times": int, "retry_after": float, "stubborn": bool}
        try:
            values: dict[str, Any] = {
                name: kinds.get(name, str)(value) if value is not None else None for name, value in rule.items()
            }
        except TypeError as error:
            raise ValueError(str(error)) from error
        return cls(**values)

    def applies(self, endpoint: str, key: str, *, corrected: bool = False) -> bool:
        """Return whether a request for ``key`` at ``endpoint`` matches this rule.

        Args:
            endpoint: Endpoint of the request.
            key: Subject or query of the request.
            corrected: Whether it names the problem of the previous answer.
        """
        if endpoint != self.endpoint or (corrected and self.fault in INVENTIONS and not self.stubborn):
            return False
        if self.match is None:
            return True
        return key == self.match if endpoint == "douban" else self.match in key


class Faults:
    """The current rules, oldest first; thread-safe while the server runs."""

    def __init__(self) -> None:
        """Start without rules."""
        self._lock = threading.Lock()
        self._rules: list[Fault] = []

    def add(
        self,
        endpoint: str,
        fault: str,
        *,
        match: str | int | None = None,
        times: int | None = None,
        retry_after: float | None = None,
        stubborn: bool = False,
    ) -> None:
        """Add one rule; see `Fault` for the arguments and errors."""
        self.append(Fault(endpoint, fault, None if match is None else str(match), times, retry_after, stubborn))

    def append(self, rule: Fault) -> None:
        """Append one rule."""
        with self._lock:
            self._rules.append(rule)

    def replace(self, rules: Iterable[Fault]) -> None:
        """Replace all rules by ``rules``."""
        new = list(rules)
        with self._lock:
            self._rules = new

    def clear(self) -> None:
        """Remove all rules."""
        self.replace(())

    def take(self, endpoint: str, key: str, *, corrected: bool = False) -> Fault | None:
        """Return the first rule that matches a request and count it, or ``None``; see `Fault.applies`."""
        with self._lock:
            for place, rule in enumerate(self._rules):
                if rule.applies(endpoint, key, corrected=corrected):
                    if rule.times == 1:
                        del self._rules[place]
                    elif rule.times is not None:
                        self._rules[place] = replace(rule, times=rule.times - 1)
                    return rule
        return None

    def describe(self) -> list[dict[str, Any]]:
        """Return the current rules as JSON objects, without those used up."""
        with self._lock:
            return [asdict(rule) for rule in self._rules]


def inventing(
    share: float, kinds: Sequence[str] = INVENTIONS, *, stubborn: float = 0.0
) -> Callable[[int, Mapping[str, Any]], Fault | None]:
    """Return a function that selects films about which the simulated model invents something, reproducibly.

    Args:
        share: Share of the films, by title and year.
        kinds: Kinds of inventions, one per film.
        stubborn: Share of those whose invention is repeated when it is reported.
    """

    def invent(_: int, facts: Mapping[str, Any]) -> Fault | None:
        rng = Random(f"{facts.get('title')} {facts.get('year')}")
        kind, chosen, repeated = rng.choice(kinds), rng.random() < share, rng.random() < stubborn
        return Fault("llm", kind, stubborn=repeated) if chosen else None

    return invent


class RequestLog:
    """Log of the server's requests with their times, so that tests can check pacing and repeated requests."""

    def __init__(self) -> None:
        """Start with an empty log."""
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(ENDPOINTS, 0)
        self._seen: dict[str, deque[tuple[float, str]]] = {
            endpoint: deque(maxlen=_REMEMBERED) for endpoint in ENDPOINTS
        }

    def record(self, endpoint: str, key: str, moment: float) -> None:
        """Record a request for ``key`` (a subject id or a query) at ``moment`` (unix seconds)."""
        with self._lock:
            self._counts[endpoint] += 1
            self._seen[endpoint].append((moment, key))

    def clear(self) -> None:
        """Clear the log."""
        with self._lock:
            for endpoint in ENDPOINTS:
                self._counts[endpoint] = 0
                self._seen[endpoint].clear()

    def count(self, endpoint: str) -> int:
        """Return the number of requests to ``endpoint``."""
        with self._lock:
            return self._counts[endpoint]

    def keys(self, endpoint: str) -> list[str]:
        """Return the keys requested from ``endpoint``, oldest first (the last 200,000)."""
        with self._lock:
            return [key for _, key in self._seen[endpoint]]

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return, by endpoint, ``count``, ``times`` (unix seconds) and ``keys``, oldest first."""
        with self._lock:
            return {
                endpoint: {
                    "count": self._counts[endpoint],
                    "times": [moment for moment, _ in self._seen[endpoint]],
                    "keys": [key for _, key in self._seen[endpoint]],
                }
                for endpoint in ENDPOINTS
            }
