"""The language model over real HTTP: every answer is a completion or the error it stands for, its cost kept."""

from __future__ import annotations

import json
import logging
import pickle
import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from douban_pipeline.core.errors import (
    GateClosed,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.llm import (
    SOURCE,
    Completion,
    LanguageModel,
    ModelAnswerUnusable,
    ModelRefused,
    ModelUsage,
    ObjectForm,
    headers,
)
from douban_pipeline.core.llm_answers import ModelRejected
from douban_pipeline.demo.faults import INVENTIONS, MODEL_FAULTS
from douban_pipeline.demo.replay import ReplayServer
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source, build_house

KEY = "sk-or-v1-very-secret"
SCHEMA = {
    "type": "object",
    "properties": {"intro": {"type": "string"}, "used": {"type": "array"}},
    "required": ["intro"],
    "additionalProperties": False,
}
PROMPT = "为《霸王别姬》写一段简介，只写给出的事实。"
MESSAGES = [{"role": "system", "content": "写简介"}, {"role": "user", "content": PROMPT}]
PAID = {"prompt_tokens": 300, "completion_tokens": 90, "total_tokens": 390, "cost": 0.00042}
USAGE = ModelUsage("deepseek/deepseek-v3.2", "DeepInfra", 0.00042, 300, 90)


def answer(
    content: Any = '{"intro": "一段简介。"}', *, usage: Any = PAID, finish: Any = "stop", **more: Any
) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": None, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": finish, "message": message, **more.pop("choice", {})}
    model = {"model": "deepseek/deepseek-v3.2", "provider": "DeepInfra"}
    return {"id": "gen-1", **model, "choices": [choice], "usage": usage, **more}


def error(code: Any, *, status: int | None = None, wait: str = "", message: str = "It failed", **metadata: Any) -> Say:
    body = {"error": {"code": code, "message": message, **({"metadata": metadata} if metadata else {})}}
    return Say(body, status=status or code, headers={"Retry-After": wait} if wait else {})


def model(house: House, url: str, **options: Any) -> LanguageModel:
    return LanguageModel(house.fetcher(SOURCE, headers=headers(KEY)), url, model="deepseek/deepseek-v3.2", **options)


def complete(asked: LanguageModel, *, key: str = "intro:1", max_age: timedelta | None = None) -> Completion:
    return asked.complete(MESSAGES, SCHEMA, name="intro", key=key, max_age=max_age)


def failure(house: House, source: Source, *said: Say | dict[str, Any] | str | bytes) -> SourceError:
    source.says(*said)
    with pytest.raises(SourceError) as caught:
        complete(model(house, source.url))
    return caught.value


def stored(house: House) -> bytes:
    """Everything the archive and the gate hold, as text."""
    snapshot, gate = house.tables.snapshot, house.tables.gate
    with house.engine.connect() as connection:
        answers = [zlib.decompress(body) for body in connection.execute(select(snapshot.c.body)).scalars()]
        rows = [*connection.execute(select(snapshot)), *connection.execute(select(gate))]
    return b"".join(answers) + repr(rows).encode()


@pytest.fixture(scope="module")
def ground_floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One ground floor for the many cases that need nothing of it but a well source."""
    yield from build_house(f"sqlite:///{tmp_path_factory.mktemp('llm') / 'house.db'}", FakeClock())


@pytest.fixture
def shared(ground_floor: House) -> House:
    """The ground floor as if nothing had been asked of it today."""
    ground_floor.clock.advance(days=1)
    ground_floor.gate.close(SOURCE)
    return ground_floor


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


def test_what_is_asked(shared: House, source: Source) -> None:
    source.says(answer())
    complete(model(shared, source.url, fallbacks=("a/b", "c/d"), max_tokens=700))
    (body,), (sent,) = source.bodies, source.headers
    request = json.loads(body)
    assert request.pop("temperature") < 0.5
    assert request == {
        "model": "deepseek/deepseek-v3.2",
        "models": ["a/b", "c/d"],
        "messages": MESSAGES,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "intro", "strict": True, "schema": SCHEMA},
        },
        "provider": {"require_parameters": True, "data_collection": "deny", "allow_fallbacks": True},
        "max_tokens": 700,
        "stream": False,
    }
    assert sent["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in body


def test_without_fallbacks_none_are_sent(shared: House, source: Source) -> None:
    source.says(answer())
    complete(model(shared, source.url))
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


# --- errors -----------------------------------------------------------------------------------------------------


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
        (error(404), ModelRejected, 1),
        (error(408), SourceUnavailable, 3),
        (error(413), ModelRejected, 1),
        (error(429), SourceThrottled, 1),
        (error(429, wait="7200"), SourceThrottled, 1),
        (Say(status=429), SourceThrottled, 1),
        (error(500), SourceUnavailable, 3),
        (error(502), SourceUnavailable, 3),
        (error(503), SourceUnavailable, 3),
        (error(503, wait="7200"), SourceThrottled, 1),
        (Say("<html>Bad gateway</html>", status=502), SourceUnavailable, 3),
        (Say(b"", status=200), SourceUnavailable, 1),
        (Say(b"[]"), SourceUnavailable, 1),
        (Say(b'{"choices": ['), SourceUnavailable, 1),
        (Say("<html>登录</html>"), SourceWall, 1),
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
    shared: House, source: Source, say: Any, kind: type[SourceError], calls: int
) -> None:
    found = failure(shared, source, say)
    assert type(found) is kind
    assert len(source.asked) == calls
    assert found.reason
    assert "\n" not in found.reason
    assert len(found.reason) <= 200
    status = shared.status(SOURCE)
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
    shared: House, source: Source, say: Say, wait: float | None
) -> None:
    found = failure(shared, source, say)
    assert isinstance(found, SourceThrottled)
    assert found.retry_after == wait


def test_money_under_way_is_waited_for_as_long_as_asked(shared: House, source: Source) -> None:
    before = shared.clock.now()
    source.says(error(402, limit_source="openrouter_in_flight_budget", wait="5"), answer())
    assert complete(model(shared, source.url)).content == {"intro": "一段简介。"}
    assert 5 <= (shared.clock.now() - before).total_seconds() < 15


def test_an_error_names_its_codes_and_not_a_long_story(shared: House, source: Source) -> None:
    say = error(
        402,
        limit_source="openrouter_credits",
        error_type="payment_required",
        message="Add\n credits, " + "please " * 80,
    )
    reason = failure(shared, source, say).reason
    assert reason.startswith("error 402 (openrouter_credits, payment_required): Add credits, please")
    assert len(reason) == 200


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (answer(""), ModelAnswerUnusable),
        (answer("  \n"), ModelAnswerUnusable),
        (answer(None), ModelAnswerUnusable),
        (answer([{"type": "text", "text": '{"intro": "x"}'}]), ModelAnswerUnusable),
        (answer('{"intro": "'), ModelAnswerUnusable),
        (answer("一段简介。"), ModelAnswerUnusable),
        (answer('```json\n{"intro": "x"}\n```'), ModelAnswerUnusable),
        (answer('{"intro": "x"} {"intro": "y"}'), ModelAnswerUnusable),
        (answer('{"intro": "x", "intro": "y"}'), ModelAnswerUnusable),
        (answer('{"intro": "x", "used": [NaN]}'), ModelAnswerUnusable),
        (answer(r'{"intro": "x\ud83c"}'), ModelAnswerUnusable),
        (answer('{"a":' * 5000 + "1" + "}" * 5000), ModelAnswerUnusable),
        (answer("[]"), ModelAnswerUnusable),
        (answer('"x"'), ModelAnswerUnusable),
        (answer("{}"), ModelAnswerUnusable),
        (answer('{"introduction": "x"}'), ModelAnswerUnusable),
        (answer('{"intro": null}'), ModelAnswerUnusable),
        (answer('{"intro": 7}'), ModelAnswerUnusable),
        (answer('{"intro": "x", "used": "y"}'), ModelAnswerUnusable),
        (answer(finish="length"), ModelAnswerUnusable),
        (answer(finish="tool_calls"), ModelAnswerUnusable),
        (answer(finish="error"), ModelAnswerUnusable),
        (answer(choices=[]), ModelAnswerUnusable),
        (answer(choices=None), ModelAnswerUnusable),
        (answer(choices=["x"]), ModelAnswerUnusable),
        (answer(choice={"message": None}), ModelAnswerUnusable),
        (answer(error={"code": 502, "message": "broke off"}), ModelAnswerUnusable),
        (answer(finish="content_filter"), ModelRefused),
        (answer("", message={"refusal": "I cannot"}), ModelRefused),
        (answer(error={"code": 403, "metadata": {"reasons": ["x"]}}), ModelRefused),
    ],
)
def test_what_an_unusable_answer_cost_is_kept(shared: House, source: Source, say: Any, kind: type[SourceError]) -> None:
    found = failure(shared, source, say)
    assert type(found) is kind
    assert isinstance(found, ModelAnswerUnusable)
    assert found.usage == USAGE
    assert len(source.asked) == 1, "a second paid call would hide the cost of the first"
    copy = pickle.loads(pickle.dumps(found))
    assert (str(copy), copy.usage) == (str(found), USAGE)


def test_a_model_that_refuses_some_films_is_not_unhealthy(shared: House, source: Source) -> None:
    for _ in range(12):
        failure(shared, source, error(403, reasons=["violence"]))
    status = shared.status(SOURCE)
    assert (status.state, status.failures) == (GateState.CLOSED, 0)


def test_a_model_that_never_answers_usably_is_unhealthy(shared: House, source: Source) -> None:
    """It costs money each time."""
    for _ in range(40):
        if isinstance(failure(shared, source, answer("{}")), GateClosed):
            break
    assert shared.status(SOURCE).state is GateState.OPEN


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
    shared: House, source: Source, caplog: pytest.LogCaptureFixture, usage: Any, cost: float | None
) -> None:
    source.says(answer(usage=usage))
    assert complete(model(shared, source.url)).cost_usd == (cost or 0.0)
    assert ("does not state its cost" in caplog.text) is (cost is None)


def test_names_of_model_and_provider_are_short_lines(shared: House, source: Source) -> None:
    source.says({**answer(), "model": "a\nb\x1b[31m" + "x" * 500, "provider": None, "usage": "none"})
    got = complete(model(shared, source.url))
    assert got.model.startswith("a b[31mxx")
    assert (len(got.model), got.provider, got.prompt_tokens, got.cost_usd) == (100, "", 0, 0.0)


# --- the bundled stand-in ---------------------------------------------------------------------------------------

FACTS = {"title": "霸王别姬", "year": 1993, "genres": ["剧情"], "directors": ["陈凯歌"], "synopsis": "两个伶人的半生。"}
ASK = [{"role": "user", "content": json.dumps({"facts": FACTS, "length": [120, 300]}, ensure_ascii=False)}]


def test_the_stand_in_answers_the_same_client(shared: House) -> None:
    with ReplayServer([]) as upstream:
        got = model(shared, upstream.llm_url).complete(ASK, SCHEMA, name="intro", key="k")
        assert "《霸王别姬》" in got.content["intro"]
        assert got.cost_usd > 0
        for kind in INVENTIONS:
            upstream.faults.add("llm", kind, times=1)
            wrong = model(shared, upstream.llm_url).complete(ASK, SCHEMA, name="intro", key=kind)
            assert wrong.content["intro"] != got.content["intro"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("captcha", SourceWall),
        ("login_redirect", SourceError),
        ("forbidden", ModelRefused),
        ("throttled", SourceThrottled),
        ("server_error", SourceUnavailable),
        ("empty", ModelAnswerUnusable),
        ("garbage", ModelAnswerUnusable),
        ("error_in_200", SourceUnavailable),
        ("unpaid", SourceUnpaid),
        ("key_spent", SourceUnpaid),
        ("in_flight", SourceThrottled),
        ("too_heavy", SourceUnavailable),
        ("budget_spent", SourceUnpaid),
        ("request_timeout", SourceUnavailable),
        ("no_provider", SourceUnavailable),
        ("rejected", ModelRejected),
        ("cut_off", ModelAnswerUnusable),
        ("refused", ModelRefused),
    ],
)
def test_every_fault_of_the_stand_in_is_understood(shared: House, fault: str, kind: type[SourceError]) -> None:
    with ReplayServer([]) as upstream:
        upstream.faults.add("llm", fault)
        with pytest.raises(SourceError) as caught:
            model(shared, upstream.llm_url).complete(ASK, SCHEMA, name="intro", key="k")
        assert isinstance(caught.value, kind)
        assert kind is SourceError or type(caught.value) is kind


def test_no_fault_of_the_model_is_left_out() -> None:
    (mark,) = test_every_fault_of_the_stand_in_is_understood.pytestmark  # type: ignore[attr-defined]
    assert set(MODEL_FAULTS) <= {fault for fault, _ in mark.args[1]}


def test_a_service_without_schemas_is_asked_for_an_object_and_may_fence_it(house: House, source: Source) -> None:
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
