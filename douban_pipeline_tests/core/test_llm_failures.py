"""Failures of the language model over real HTTP: each is the error it stands for, and what it cost is kept."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnavailable, SourceUnpaid, SourceWall
from douban_pipeline.core.gate_outcomes import IN_A_ROW
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.llm import SOURCE, ModelAnswerUnusable, ModelRefused
from douban_pipeline.core.llm_answers import ModelBrokeOff, ModelRejected
from douban_pipeline_tests.core.model_calls import USAGE, answer, complete, error, failure, model
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source


@pytest.mark.parametrize(
    ("say", "kind", "calls"),
    [
        (error(400), ModelRejected, 1),
        (error(401), SourceWall, 1),
        (error(402), SourceUnpaid, 1),
        (error(402, limit_source="openrouter_credits"), SourceUnpaid, 1),
        (error(402, limit_source="openrouter_key_limit"), SourceUnpaid, 1),
        (error(402, limit_source="openrouter_something_new"), SourceUnpaid, 1),
        (error(402, limit_source="openrouter_credits", reason="weight_exceeds_budget"), SourceUnavailable, 1),
        (error(402, limit_source="weight_exceeds_budget"), SourceUnavailable, 1),
        (error(402, limit_source="openrouter_in_flight_budget"), SourceThrottled, 1),
        (error(402, limit_source="openrouter_in_flight_budget", wait="3600"), SourceThrottled, 1),
        (error(403), SourceUnavailable, 1),
        (error(403, reasons=["violence"], flagged_input="x"), ModelRefused, 1),
        (error(403, patterns=["ignore all"]), ModelRefused, 1),
        (error(403, limit_source="openrouter_key_limit"), SourceUnpaid, 1),
        (error(403, limit_source="openrouter_workspace_budget"), SourceUnpaid, 1),
        (Say("<html>403 Forbidden</html>", status=403), SourceWall, 1),
        (error(404), SourceUnavailable, 1),
        (error(400, message="Content Exists Risk"), ModelRefused, 1),
        (error(400, message="系统检测到输入内容可能包含不安全或敏感内容"), ModelRefused, 1),
        (error("content_filter", status=400), ModelRefused, 1),
        (error(400, message="Model Not Exist"), ModelRejected, 1),
        (error(408), SourceUnavailable, 3),
        (error(413), ModelRejected, 1),
        (error(429), SourceThrottled, 1),
        (error(429, wait="7200"), SourceThrottled, 1),
        (Say(status=429), SourceThrottled, 1),
        (error(503), SourceUnavailable, 3),
        (error(503, wait="7200"), SourceThrottled, 1),
        # errors in a success
        (error(401, status=200), SourceWall, 1),
        (error(402, status=200), SourceUnpaid, 1),
        (error(402, status=200, limit_source="openrouter_in_flight_budget"), SourceThrottled, 1),
        (error(403, status=200, reasons=["x"]), ModelRefused, 1),
        (error(429, status=200), SourceThrottled, 1),
        (error("429", status=200), SourceThrottled, 1),
        (error(502, status=200), SourceUnavailable, 3),
        (error(400, status=200), ModelRejected, 1),
        (error("internal", status=200), SourceUnavailable, 1),
        (Say({"error": "oops"}), SourceUnavailable, 1),
        (answer(usage={}, choice={"error": {"code": 502, "message": "x"}}, finish="error"), SourceUnavailable, 3),
        (answer(usage={}, choice={"error": {"code": 429, "message": "x"}}, finish="error"), SourceThrottled, 1),
        (answer(usage={}, finish="error"), SourceUnavailable, 1),
    ],
)  # fmt: skip
def test_each_failure_is_the_error_it_stands_for(
    model_house: House, source: Source, say: Any, kind: type[SourceError], calls: int
) -> None:
    found = failure(model_house, source, say)
    assert type(found) is kind
    assert len(source.asked) == calls
    assert found.reason
    assert "\n" not in found.reason
    assert len(found.reason) <= 200
    status = model_house.status(SOURCE)
    assert status.in_use == 0
    opens = kind in (SourceWall, SourceUnpaid, SourceThrottled)
    assert status.state is (GateState.OPEN if opens else GateState.CLOSED)


@pytest.mark.parametrize(
    ("say", "wait"),
    [
        (error(429, wait="1200"), 1200.0),
        (error(429, wait="Fri, 01 Jan 2100 00:00:00 GMT"), 86_400.0),
        (error(429), None),
        (error(402, limit_source="openrouter_in_flight_budget", wait="1200"), 1200.0),
        (error(402, limit_source="openrouter_in_flight_budget", wait="soon"), None),
        (error(503, wait="1200"), 1200.0),
    ],
)
def test_how_long_to_wait_is_known_where_it_is_said(
    model_house: House, source: Source, say: Say, wait: float | None
) -> None:
    found = failure(model_house, source, say)
    assert isinstance(found, SourceThrottled)
    assert found.retry_after == wait


def test_money_under_way_is_waited_for_as_long_as_asked(model_house: House, source: Source) -> None:
    before = model_house.clock.now()
    source.says(error(402, limit_source="openrouter_in_flight_budget", wait="5"), answer())
    assert complete(model(model_house, source.url)).content == {"intro": "一段简介。"}
    assert 5 <= (model_house.clock.now() - before).total_seconds() < 15


def test_an_error_names_its_codes_and_not_a_long_story(model_house: House, source: Source) -> None:
    say = error(
        402,
        limit_source="openrouter_credits",
        error_type="payment_required",
        message="Add\n credits, " + "please " * 80,
    )
    reason = failure(model_house, source, say).reason
    assert reason.startswith("error 402 (openrouter_credits, payment_required): Add credits, please")
    assert len(reason) == 200


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (answer(""), ModelAnswerUnusable),
        (answer(None), ModelAnswerUnusable),
        (answer([{"type": "text", "text": '{"intro": "x"}'}]), ModelAnswerUnusable),
        (answer('{"intro": "x", "intro": "y"}'), ModelAnswerUnusable),
        (answer('{"intro": "x", "used": [NaN]}'), ModelAnswerUnusable),
        (answer(r'{"intro": "x\ud83c"}'), ModelAnswerUnusable),
        (answer('{"a":' * 5000 + "1" + "}" * 5000), ModelAnswerUnusable),
        (answer('"x"'), ModelAnswerUnusable),
        (answer("{}"), ModelAnswerUnusable),
        (answer('{"introduction": "x"}'), ModelAnswerUnusable),
        (answer('{"intro": null}'), ModelAnswerUnusable),
        (answer('{"intro": 7}'), ModelAnswerUnusable),
        (answer('{"intro": "x", "used": "y"}'), ModelAnswerUnusable),
        (answer(finish="length"), ModelAnswerUnusable),
        (answer(finish="tool_calls"), ModelAnswerUnusable),
        (answer(finish="error"), ModelBrokeOff),
        (answer(choices=[]), ModelBrokeOff),
        (answer(choices=None), ModelBrokeOff),
        (answer(choices=["x"]), ModelBrokeOff),
        (answer(choice={"message": None}), ModelAnswerUnusable),
        (answer("", finish="insufficient_system_resource"), ModelBrokeOff),
        (answer(error={"code": 502, "message": "broke off"}), ModelBrokeOff),
        (answer(finish="content_filter"), ModelRefused),
        (answer("", message={"refusal": "I cannot"}), ModelRefused),
        (answer(error={"code": 403, "metadata": {"reasons": ["x"]}}), ModelRefused),
    ],
)
def test_what_an_unusable_answer_cost_is_kept(
    model_house: House, source: Source, say: Any, kind: type[SourceError]
) -> None:
    found = failure(model_house, source, say)
    assert type(found) is kind
    assert isinstance(found, ModelAnswerUnusable)
    assert found.usage == USAGE
    assert len(source.asked) == 1, "a second paid call would hide the cost of the first"
    copy = pickle.loads(pickle.dumps(found))
    assert (str(copy), copy.usage) == (str(found), USAGE)


@pytest.mark.parametrize(
    "say",
    [
        error(403, reasons=["violence"]),
        error(400, message="Content Exists Risk"),
        error(413),
        answer("抱歉，我不能写。"),
        answer("{}"),
        answer(finish="length"),
    ],
    ids=["flagged", "filtered", "too large", "in words", "unfit", "cut off"],
)
def test_what_is_wrong_with_some_films_is_no_illness_of_the_model(model_house: House, source: Source, say: Any) -> None:
    for _ in range(25):
        failure(model_house, source, say)
    status = model_house.status(SOURCE)
    assert (status.state, status.failures) == (GateState.CLOSED, 0)


def test_a_model_whose_answers_break_off_is_unhealthy(model_house: House, source: Source) -> None:
    """It costs money each time."""
    source.says(*[answer(choices=[])] * 40)
    for number in range(IN_A_ROW):
        with pytest.raises(ModelBrokeOff):
            complete(model(model_house, source.url), key=f"intro:{number}")
    assert model_house.status(SOURCE).state is GateState.OPEN
