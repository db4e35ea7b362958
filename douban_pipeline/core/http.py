"""One HTTP call to an outside source: paced by the gate, bounded in time and size, archived, then parsed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx
import stamina

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import NotFound, SourceError, SourceThrottled
from douban_pipeline.core.gate_base import BaseGate
from douban_pipeline.core.gate_outcomes import THROTTLE_JITTER
from douban_pipeline.core.gate_types import Outlook
from douban_pipeline.core.http_answers import Admit, Call, FetchedAnswer, HttpExchange, HttpRequest, refuse_status
from douban_pipeline.core.http_transport import MAX_BYTES, Hop, Transport, unusable
from douban_pipeline.core.payload import DEFAULT_RULES, AnswerRules

T = TypeVar("T")
FIRST_PAUSE = (0.5, 2.0)
"""Range of seconds before the first retry, drawn at random; doubled for each further retry."""


class Fetcher:
    """GET and POST requests to one source.

    Each attempt takes a slot of its own at the gate, each answer is archived before it is parsed, and parsing happens
    inside the slot, so that error bodies and captcha pages count at the gate too. Safe to share between threads.
    Loopback addresses are never sent through a proxy.

    Args:
        source: Name of the source at the gate and in the archive.
        gate: The gate; its `configure` must have been called for ``source``.
        archive: Where raw answers are stored; None stores none.
        clock: Source of the current time; also waits between attempts.
        timeout: Seconds for connecting and for each read.
        deadline: Seconds a call may take in total, with its redirects, however slowly the source sends.
        attempts: Maximum number of calls, counting the first; only connection errors, 5xx and 429 with a Retry-After
            are retried.
        total_time: Seconds after which no further attempt is started.
        max_bytes: Largest answer, uncompressed.
        missing_max_age: How long an archived `NotFound` is used, at most.
        rules: What the answers of this source mean, where sources differ.
        headers: Extra request headers. They may hold a secret: only the requested host gets them, and no error shows
            them.
        rng: Jitter between attempts.
        admit: Check that refuses addresses; all are allowed without it.
        keep_alive: Connections kept open between calls, for a source that is called many times a second. On a reused
            connection ``deadline`` counts from the headers of the answer, and ``timeout`` applies before.
        hop: See `Transport`: admits redirects to other hosts.
    """

    def __init__(
        self,
        source: str,
        gate: BaseGate,
        archive: Archive | None,
        clock: Clock,
        *,
        timeout: float = 10.0,
        deadline: float = 20.0,
        attempts: int = 3,
        total_time: float = 60.0,
        max_bytes: int = MAX_BYTES,
        missing_max_age: timedelta = timedelta(days=1),
        rules: AnswerRules = DEFAULT_RULES,
        headers: Mapping[str, str] | None = None,
        rng: Random | None = None,
        admit: Admit | None = None,
        keep_alive: int = 0,
        hop: Hop | None = None,
    ) -> None:
        self.source = source
        self._gate = gate
        self._archive = archive
        self._clock = clock
        self._attempts = attempts
        self._total_time = total_time
        self._missing_max_age = missing_max_age
        self._rules = rules
        self._rng = rng or Random()
        # On a reused connection the deadline begins with the headers.
        self._lasts = timedelta(seconds=deadline + (timeout if keep_alive else 0))
        self._transport = Transport(
            source,
            rules,
            dict(headers or {}),
            admit,
            timeout=timeout,
            deadline=deadline,
            max_bytes=max_bytes,
            keep_alive=keep_alive,
            hop=hop,
        )

    @property
    def closed(self) -> bool:
        """Whether the fetcher is closed."""
        return self._transport.closed

    def __enter__(self) -> Fetcher:
        """Return itself; leaving the block closes the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close the client; no call can be made afterwards. A second call does nothing."""
        self._transport.close()

    def get(self, url: str, params: Mapping[str, str], call: Call[T]) -> FetchedAnswer[T]:
        """Send a GET request; redirects are followed.

        Args:
            url: Address; query parameters it already has are kept.
            params: Query parameters to add or replace.
            call: What it is for, and how its answer is read.

        Raises:
            SourceError: The matching subclass; see `core.errors`.
        """
        return self._send(call, HttpRequest("GET", self._address(url, params)))

    def post(self, url: str, payload: Mapping[str, Any], call: Call[T]) -> FetchedAnswer[T]:
        """Send ``payload`` as JSON by POST; redirects are not followed.

        Raises:
            SourceError: The matching subclass; see `core.errors`.
            ValueError: The payload cannot be encoded as JSON.
        """
        content = json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
        return self._send(call, HttpRequest("POST", self._address(url, {}), content))

    def exchange(
        self,
        url: str,
        read: Callable[[HttpExchange], T],
        *,
        key: str,
        parser_version: str,
        headers: Mapping[str, str] | None = None,
    ) -> FetchedAnswer[T]:
        """Send a GET request like `get`, and pass status, headers and body to ``read``.

        Args:
            url: Address.
            read: Turns the answer into the value, whatever its status; raises a `SourceError` if it cannot. It is
                called before the general status rules, which apply to every answer for which it raises nothing.
            key: See `Call`.
            parser_version: See `Call`.
            headers: Headers of this request alone; only the requested host gets them.

        Raises:
            SourceError: The matching subclass; see `core.errors`.
        """
        call = Call(key=key, parser_version=parser_version, parse=_nothing)
        return self._send(call, HttpRequest("GET", self._address(url, {}), headers=headers), read)

    def log_in(
        self,
        url: str,
        form: Mapping[str, str],
        read: Callable[[HttpExchange], T],
        *,
        key: str,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Send a form by POST whose answer holds a secret: the answer is never archived.

        Args:
            url: Address.
            form: Fields and values.
            read: As in `exchange`.
            key: See `Call`.
            headers: As in `exchange`.

        Raises:
            SourceError: The matching subclass; see `core.errors`.
        """
        call = Call(key=key, parser_version="", parse=_nothing, archived=False)
        content, kind = urlencode(form).encode(), "application/x-www-form-urlencoded"
        return self._send(call, HttpRequest("POST", self._address(url, {}), content, headers, kind), read).value

    def cached(self, key: str, max_age: timedelta | None, parse: Callable[[bytes], T]) -> FetchedAnswer[T] | None:
        """Return the newest good answer in the archive, or None if the source must be called.

        Args:
            key: See `Call`.
            max_age: Oldest answer to accept; None accepts none.
            parse: See `Call`. Answers it refuses are skipped.

        Raises:
            NotFound: The newest answer is a `NotFound` younger than ``missing_max_age``.
        """
        if max_age is None or self._archive is None:
            return None
        for snapshot in self._archive.recent(self.source, key, max_age):
            if not self._rules.is_read(snapshot.status):
                continue
            try:
                value = parse(snapshot.body)
            except NotFound:
                if self._clock.now() - snapshot.seen_at <= self._missing_max_age:
                    raise
                return None
            except SourceError:
                continue
            return FetchedAnswer(value, snapshot.snapshot_id, snapshot.seen_at, from_cache=True)
        return None

    def outlook(self) -> Outlook:
        """Return what a call that joined the queue at the gate now could expect; see `Gate.outlook`."""
        return self._gate.outlook(self.source)

    def doubts(self, moment: datetime) -> bool:
        """Return whether an empty answer of the source at ``moment`` proves nothing; see `Gate.doubts`."""
        return self._gate.doubts(self.source, moment)

    def _address(self, url: str, params: Mapping[str, str]) -> httpx.URL:
        try:
            return httpx.URL(url).copy_merge_params(params)
        except (httpx.InvalidURL, ValueError) as error:
            raise unusable(self.source, error) from None

    def _send(
        self, call: Call[T], request: HttpRequest, read: Callable[[HttpExchange], T] | None = None
    ) -> FetchedAnswer[T]:
        started = self._clock.now()
        pause, done = 0.0, 0

        def pause_after(error: Exception) -> bool | float:
            nonlocal pause, done
            pause = self._pause_before_retry(error, done)
            done += 1
            late = self._clock.now() - started + timedelta(seconds=pause) > timedelta(seconds=self._total_time)
            # The wait itself happens below, on the injected clock; 0.0 makes stamina continue at once.
            return False if pause < 0 or late else 0.0

        for attempt in stamina.retry_context(on=pause_after, attempts=self._attempts, timeout=None):
            with attempt:
                self._clock.sleep(pause)
                return self._attempt(call, request, read)
        raise AssertionError("unreachable")

    def _pause_before_retry(self, error: Exception, retries: int) -> float:
        """Return the seconds to wait before the next attempt, after ``retries`` retries; negative for "no retry"."""
        if not isinstance(error, SourceError) or not error.retryable:
            return -1.0
        if isinstance(error, SourceThrottled):
            # The gate is closed that long plus its jitter; a little longer, and this call is the probe that opens it.
            if error.retry_after is None:
                return -1.0
            return error.retry_after * (1 + THROTTLE_JITTER) + self._rng.uniform(0.1, 0.5)
        return self._rng.uniform(*FIRST_PAUSE) * 2**retries

    def _attempt(
        self, call: Call[T], request: HttpRequest, read: Callable[[HttpExchange], T] | None
    ) -> FetchedAnswer[T]:
        with self._gate.slot(
            self.source,
            tokens=call.tokens,
            known=call.known,
            urgent=call.urgent,
            follows=call.follows,
            lasts=self._lasts,
            key=(key := _short(call.key)),
        ) as slot:
            answer = self._transport.send(request)
            slot.answered = "" if answer.status in _GATEWAY else key
            status, headers, body = answer.status, answer.headers, answer.body
            fetched_at = self._clock.now()
            snapshot_id = 0
            if self._archive is not None and call.archived:
                snapshot_id = self._archive.put(self.source, call.key, status, body, call.parser_version)
            if read is not None:
                value = read(answer)
                refuse_status(answer, self.source, self._rules, call.hints, fetched_at)
                return FetchedAnswer(value, snapshot_id, fetched_at, from_cache=False)
            if call.refuse is not None:
                call.refuse(status, headers, body)
            refuse_status(answer, self.source, self._rules, call.hints, fetched_at)
            value = call.parse(body)
            if call.tokens_of is not None:
                slot.tokens_used = call.tokens_of(value)
            if call.found is not None:
                slot.found = call.found(value)
            return FetchedAnswer(value, snapshot_id, fetched_at, from_cache=False)


_GATEWAY = frozenset({502, 503, 504})
"""HTTP statuses that are no answer about anything: who stands before the source says that it does not answer."""


def _short(key: str) -> str:
    """Return a key as the gate keeps it beside each of its recent calls."""
    return f"{zlib.crc32(key.encode()):08x}"


def _nothing(_body: bytes) -> Any:
    raise AssertionError("an exchange is read by its own function")
