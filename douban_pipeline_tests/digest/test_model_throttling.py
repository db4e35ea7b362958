"""The model answers 429: fewer calls at once, over real HTTP and for all processes, until it answers well again."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from email.message import Message
from pathlib import Path
from queue import Queue

import pytest

from douban_pipeline.core.errors import SourceThrottled
from douban_pipeline.core.gate_outcomes import RAISED_AFTER
from douban_pipeline.core.llm import Completion
from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn, authorization
from douban_pipeline.digest.prompts import ANALYSIS_SCHEMA
from douban_pipeline.digest.services import MODEL, DigestServices, open_services
from douban_pipeline_tests.digest.stage import HandClock, stage
from douban_pipeline_tests.stand_ins.completions import ModelStandIn

PATIENCE = 30.0
"""Seconds after which a test that hangs fails."""


class HeldModel(LoopbackStandIn):
    """A model that answers only when it is told how: "" is a good answer, else the name of a fault."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self.answers: Queue[str] = Queue()
        self._lock = threading.Lock()

    def respond(self, _method: str, _target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        self.arrived.release()
        fault = self.answers.get(timeout=PATIENCE)
        with self._lock:
            return ModelStandIn(always=fault).answer(body, authorization(headers))

    def answer(self, fault: str, calls: int = 1) -> None:
        """Wait until ``calls`` calls are under way at once, then answer them all."""
        for _ in range(calls):
            assert self.arrived.acquire(timeout=PATIENCE), f"fewer than {calls} calls at once"
        for _ in range(calls):
            self.answers.put(fault)


class MadeToWaitError(Exception):
    """The gate let a call wait."""


class ImpatientClock(HandClock):
    """A clock of somebody who does not wait."""

    def sleep(self, seconds: float) -> None:
        raise MadeToWaitError


def ask(services: DigestServices, name: str) -> Completion:
    messages = [{"role": "user", "content": f"{name} JSON"}]
    return services.model.complete(messages, ANALYSIS_SCHEMA, name=name, key=name)


def another_process(services: DigestServices, now: datetime) -> DigestServices:
    return open_services(services.settings, ImpatientClock(now))


def test_a_throttling_model_gets_one_call_at_once_until_it_answers_well(tmp_path: Path) -> None:
    with (
        HeldModel() as model,
        stage(tmp_path, deepseek_url=model.base, deepseek_timeout_seconds=PATIENCE) as at,
        ThreadPoolExecutor(2) as pool,
    ):
        services = at.services

        def begin(*names: str) -> list[Future[Completion]]:
            return [pool.submit(ask, services, name) for name in names]

        def calls_at_once() -> int:
            [gate] = [each for each in services.gate.status() if each.source == MODEL]
            return gate.at_once

        throttled = begin("first", "second")
        model.answer("throttled", calls=2)
        for call in throttled:
            with pytest.raises(SourceThrottled):
                call.result(PATIENCE)
        assert calls_at_once() == 1
        at.clock.sleep(120)
        for number in range(RAISED_AFTER):
            [alone] = begin(f"alone {number}")
            if number:  # the first one is the probe that closes the breaker
                assert model.arrived.acquire(timeout=PATIENCE)
                other = another_process(services, at.clock.at)
                with pytest.raises(MadeToWaitError):
                    ask(other, "too many")
                other.close()
                model.arrived.release()
            model.answer("")
            assert alone.result(PATIENCE).content["score"] >= 0
        assert calls_at_once() == 2
        again = begin("third", "fourth")
        model.answer("", calls=2)
        for call in again:
            call.result(PATIENCE)
