"""Calls the model until it gives a valid answer: the plan's retries, and the conditions that end a slot's calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from douban_pipeline.core.errors import (
    GateClosed,
    QuotaSpent,
    SourceError,
    SourceThrottled,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.llm import Completion, ModelAnswerUnusable, ModelRefused
from douban_pipeline.core.llm_answers import ModelRejected
from douban_pipeline.digest.answers import Kind, problem_of
from douban_pipeline.digest.prompts import Prompt
from douban_pipeline.digest.services import MODEL, DigestServices

PAID_FOR = timedelta(days=2)
"""An archived answer of at most this age to the same prompt is reused, so that a killed run does not pay twice."""
PATIENCE_SECONDS = 300.0
"""How long one request waits in total for a closed gate."""
_FIRST_PAUSE = (0.8, 1.6)
_LONGEST_PAUSE = 60.0


@dataclass
class Tries:
    """The calls for one request.

    Attributes:
        calls: Number of calls.
        throttled: Number of calls that were throttled.
        fault: Why the last answer could not be used; empty if the model answered none: an outage is no fault of what
            was asked.
        final: Whether it would be the same again: a filter refuses the text.
        rejected: Whether the service did not take the request, which may be its own fault.
    """

    calls: int = 0
    throttled: int = 0
    fault: str = ""
    final: bool = False
    rejected: bool = False

    def note(self, error: SourceError) -> None:
        """Count a call that failed."""
        self.calls += 1
        self.throttled += isinstance(error, SourceThrottled)
        self.rejected = isinstance(error, ModelRejected)
        self.final = isinstance(error, ModelRefused)
        if error.healthy:
            self.fault = error.reason


class CallsEnded(Exception):  # noqa: N818 (it says what happened)
    """Further calls of the model are useless in this slot; the text gives the reason.

    Attributes:
        alert: Whether it needs a person, for example to pay.
        refused: Whether the model takes no calls; False if only the time for them is used up.
        tries: The calls that were made for the request before.
    """

    def __init__(self, reason: str, *, alert: bool, refused: bool = True) -> None:
        self.reason = failure_text(reason)
        super().__init__(self.reason)
        self.alert = alert
        self.refused = refused
        self.tries = Tries()


class NoAnswer(Exception):  # noqa: N818
    """All tries failed.

    Attributes:
        reason: Why the last one failed.
        tries: The calls.
    """

    def __init__(self, reason: str, tries: Tries) -> None:
        self.reason = failure_text(reason)
        super().__init__(self.reason)
        self.tries = tries


@dataclass(frozen=True, slots=True)
class Answered:
    """A valid answer, with the number of calls it took and how many were throttled."""

    completion: Completion
    calls: int
    throttled: int


@dataclass
class Asker:
    """Calls the model; safe to share between threads.

    Attributes:
        services: The services.
        deadline: No call is started after this time.
        rng: Jitter of the pauses.
        fresh: Whether archived answers are ignored.
    """

    services: DigestServices
    deadline: datetime
    rng: Random
    fresh: bool = False

    def ask(self, kind: Kind, prompt: Prompt, schema: Mapping[str, Any], name: str) -> Answered:
        """Call the model until an answer is valid: a first call and the configured retries, each a new conversation.

        Args:
            kind: Kind of answer.
            prompt: The prompt.
            schema: Keys required in the answer.
            name: Subject of the request, part of the archive's key.

        Raises:
            CallsEnded: The key is refused, the account is empty, the daily quota is used up, the source is down, or the
                deadline has passed; no other call is useful in this slot.
            NoAnswer: All tries failed, or the service rejects or refuses the request.
        """
        tries = Tries()
        try:
            return self._ask(kind, prompt, schema, name, tries)
        except CallsEnded as error:
            error.tries = tries
            raise

    def _ask(self, kind: Kind, prompt: Prompt, schema: Mapping[str, Any], name: str, tries: Tries) -> Answered:
        waited = 0.0
        attempt = 0
        most = self.services.settings.deepseek_max_retries
        while True:
            if self.services.now() >= self.deadline:
                raise CallsEnded("本时段的分析时间已用完", alert=False, refused=False)
            try:
                completion = self.services.model.complete(
                    prompt.messages(attempt),
                    schema,
                    name=name[:40],
                    key=f"{name} {prompt.hash[:32]} {self.services.wire_model}"[:400],
                    max_age=None if self.fresh else PAID_FOR,
                    problem_of=lambda content: problem_of(kind, content),
                )
                return Answered(completion, tries.calls + (not completion.from_cache), tries.throttled)
            except GateClosed as error:
                # No call was made, so it does not count as a try.
                waited = self._wait_for_gate(error, waited)
                continue
            except SourceError as error:
                tries.note(error)
                pause = self._pause(error, attempt, tries)
            if attempt >= most:
                raise NoAnswer(f"{most + 1} 次调用都失败：{pause.reason}", tries)
            attempt += 1
            self._sleep(pause.seconds)

    def _pause(self, error: SourceError, attempt: int, tries: Tries) -> _Pause:
        if isinstance(error, SourceUnpaid):
            raise CallsEnded(f"模型余额不足（402）：{error.reason}", alert=True) from error
        if isinstance(error, SourceWall):
            raise CallsEnded(f"模型密钥不被接受（401/403）：{error.reason}", alert=True) from error
        if tries.final or tries.rejected or error.healthy is None:
            raise NoAnswer(error.reason, tries) from error
        if isinstance(error, ModelAnswerUnusable):
            return _Pause(error.reason, 0.0)
        if isinstance(error, SourceThrottled) and error.retry_after is not None:
            return _Pause(error.reason, error.retry_after * (1 + 0.1 * self.rng.random()))
        return _Pause(error.reason, min(self.rng.uniform(*_FIRST_PAUSE) * 2**attempt, _LONGEST_PAUSE))

    def _wait_for_gate(self, error: GateClosed, waited: float) -> float:
        if isinstance(error, QuotaSpent):
            raise CallsEnded(error.reason, alert=True) from error
        seconds = max((error.until - self.services.now()).total_seconds(), 0.0) + self.rng.uniform(0.1, 0.5)
        if waited + seconds > PATIENCE_SECONDS:
            raise CallsEnded(f"{MODEL} 的闸门关闭：{error.reason}", alert=False) from error
        self._sleep(seconds)
        return waited + seconds

    def _sleep(self, seconds: float) -> None:
        if self.services.now() + timedelta(seconds=seconds) >= self.deadline:
            raise CallsEnded("本时段的分析时间已用完", alert=False, refused=False)
        self.services.clock.sleep(seconds)


@dataclass(frozen=True, slots=True)
class _Pause:
    reason: str
    seconds: float
