"""The language model over real HTTP: what it is asked, what it answers, and what of that is archived and counted."""

from __future__ import annotations

import json
import logging
import zlib
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from douban_pipeline.core.errors import GateClosed, SourceWall
from douban_pipeline.core.llm import SOURCE, Completion, LanguageModel, ModelAnswerUnusable, ModelRefused, ObjectForm
from douban_pipeline.core.llm_answers import ModelRejected
from douban_pipeline_tests.core.model_calls import (
    KEY,
    MESSAGES,
    PROMPT,
    SCHEMA,
    USAGE,
    answer,
    complete,
    error,
    failure,
    model,
)
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Source


def stored(house: House) -> bytes:
    """Everything the archive and the gate hold, as text."""
    snapshot, gate = house.tables.snapshot, house.tables.gate
    with house.engine.connect() as connection:
        answers = [zlib.decompress(body) for body in connection.execute(select(snapshot.c.body)).scalars()]
        rows = [*connection.execute(select(snapshot)), *connection.execute(select(gate))]
    return b"".join(answers) + repr(rows).encode()


# --- asking -----------------------------------------------------------------------------------------------------


def test_a_good_answer_is_a_completion(library_house: House, source: Source) -> None:
    source.says(answer('{"intro": "一段简介。", "used": []}'))
    got = complete(model(library_house, source.url))
    assert got == Completion(
        {"intro": "一段简介。", "used": []},
        model=USAGE.model,
        provider=USAGE.provider,
        cost_usd=USAGE.cost_usd,
        prompt_tokens=USAGE.prompt_tokens,
        completion_tokens=USAGE.completion_tokens,
        snapshot_id=got.snapshot_id,
        from_cache=False,
    )
    assert json.loads(library_house.archive.get(got.snapshot_id).body)["id"] == "gen-1"


def test_what_is_asked(model_house: House, source: Source) -> None:
    source.says(answer())
    complete(model(model_house, source.url, fallbacks=("a/b", "c/d"), max_tokens=700))
    (body,), (sent,) = source.bodies, source.headers
    request = json.loads(body)
    assert request.pop("temperature") < 0.5
    assert request == {
        "model": "deepseek/deepseek-v3.2",
        "models": ["a/b", "c/d"],
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": {"name": "intro", "strict": True, "schema": SCHEMA}},
        "provider": {"require_parameters": True, "data_collection": "deny", "allow_fallbacks": True},
        "max_tokens": 700,
        "stream": False,
    }
    assert sent["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in body


def test_without_fallbacks_none_are_sent(model_house: House, source: Source) -> None:
    source.says(answer())
    complete(model(model_house, source.url))
    assert "models" not in json.loads(source.bodies[0])


def test_the_key_and_the_question_stay_out_of_archive_gate_and_errors(
    house: House, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    quoting = error(400, message=f"messages.1: invalid input '{PROMPT[:20]}'")
    echoing = error(401, message=f"Incorrect API key provided: {KEY}")
    flagged = error(403, message="flagged", reasons=["violence"], flagged_input=PROMPT)
    found = [failure(house, source, say) for say in (quoting, flagged, echoing)]
    assert [type(one) for one in found] == [ModelRejected, ModelRefused, SourceWall]
    written = repr([(str(one), repr(one), repr(one.args)) for one in found]) + caplog.text
    for secret in (KEY, PROMPT, PROMPT[:20]):
        assert secret not in written
    assert repr(model(house, source.url)).count(KEY) == 0
    source.says(answer())
    house.gate.close(SOURCE)
    complete(model(house, source.url))
    kept = stored(house).replace(f"Incorrect API key provided: {KEY}".encode(), b"")  # what the source itself said
    assert KEY.encode() not in kept


def test_tokens_are_reserved_and_then_counted_as_they_were(house: House, source: Source) -> None:
    house.gate.configure(SOURCE, 60, 2, tokens_per_minute=100_000, tokens_per_day=100_000)
    source.says(answer())
    complete(model(house, source.url))
    assert house.status(SOURCE).tokens_today == 390
    source.says(answer(usage={}))
    complete(model(house, source.url, max_tokens=500))
    reserved = house.status(SOURCE).tokens_today - 390
    assert 500 + len(PROMPT) < reserved < 2000, "an answer that does not say what it took is counted as estimated"


def test_a_question_that_no_longer_fits_into_the_day_is_not_asked(house: House, source: Source) -> None:
    house.gate.configure(SOURCE, 60, 2, tokens_per_minute=100_000, tokens_per_day=2_000)
    with pytest.raises(GateClosed):
        complete(model(house, source.url, max_tokens=5_000))
    assert source.asked == []


# --- the archive ------------------------------------------------------------------------------------------------


def test_a_paid_answer_is_not_paid_again(house: House, source: Source) -> None:
    source.says(answer(), answer('{"intro": "eine andere"}'))
    first = complete(model(house, source.url))
    house.clock.advance(minutes=50)
    again = complete(model(house, source.url), max_age=timedelta(hours=1))
    assert (again.content, again.snapshot_id, again.cost_usd) == (first.content, first.snapshot_id, first.cost_usd)
    assert (first.from_cache, again.from_cache) == (False, True)
    assert len(source.asked) == 1
    house.clock.advance(minutes=20)
    assert not complete(model(house, source.url), max_age=timedelta(hours=1)).from_cache
    assert not complete(model(house, source.url), key="intro:2").from_cache


@pytest.mark.parametrize("bad", [answer('{"intro": "'), answer(finish="length"), error(402, limit_source="x")])
def test_an_archived_answer_that_cannot_be_used_is_passed_over(house: House, source: Source, bad: Any) -> None:
    failure(house, source, bad)
    house.gate.close(SOURCE)
    source.says(answer())
    got = complete(model(house, source.url), max_age=timedelta(hours=1))
    assert (got.content["intro"], got.from_cache) == ("一段简介。", False)


# --- answers that leave something out -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.5, "prompt_tokens": 1}, 0.5),
        ({"cost": 1, "prompt_tokens": 1}, 1.0),
        ({"cost": 0, "prompt_tokens": 1}, 0.0),
        ({"prompt_tokens": 1}, None),
        ({"cost": "0.5", "prompt_tokens": 1}, None),
        ({"cost": -1, "prompt_tokens": 1}, None),
        ({"cost": True, "prompt_tokens": 1}, None),
        ({"cost": None, "prompt_tokens": 1}, None),
    ],
)
def test_a_cost_that_is_not_said_is_noted(
    model_house: House, source: Source, caplog: pytest.LogCaptureFixture, usage: Any, cost: float | None
) -> None:
    source.says(answer(usage=usage))
    assert complete(model(model_house, source.url)).cost_usd == (cost or 0.0)
    assert ("does not state its cost" in caplog.text) is (cost is None)


def test_a_service_without_schemas_is_asked_for_an_object(house: House, source: Source) -> None:
    said = answer('```json\n{"intro": "一段"}\n```', usage={"prompt_tokens": 5, "completion_tokens": 7})
    source.says(said, answer(" \n "), answer('{"intro": "x"}'), error(422))
    form = ObjectForm(temperature=0.1, thinking="enabled")
    asked = LanguageModel(house.fetcher(SOURCE, attempts=1), source.url, model="deepseek-flash", form=form)
    assert complete(asked).content == {"intro": "一段"}
    sent = json.loads(source.bodies[0])
    assert sent["response_format"] == {"type": "json_object"}
    assert (sent["thinking"], sent["temperature"]) == ({"type": "enabled"}, 0.1)
    assert "provider" not in sent
    with pytest.raises(ModelAnswerUnusable, match="without content"):
        complete(asked)
    with pytest.raises(ModelAnswerUnusable, match="too short"):
        asked.complete(MESSAGES, SCHEMA, name="intro", key="k", problem_of=lambda content: "too short")
    with pytest.raises(ModelRejected):
        complete(asked)
