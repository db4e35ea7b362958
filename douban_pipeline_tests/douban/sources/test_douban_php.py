"""The Douban client over real HTTP, on each database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.core.errors import GateClosed, SourceError, SourceThrottled, SourceUnavailable, SourceWall
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.gate_outcomes import IN_A_ROW
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.stand_ins.answers import douban_answer
from douban_pipeline.douban.match_inputs import subject_facts
from douban_pipeline.douban.sources.douban_php import DoubanClient, parse_subject
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

WEEK = timedelta(days=7)
FILM = {"code": 1, "msg": "ok", "data": {"vod_name": "肖申克的救赎", "vod_year": "1994", "vod_douban_id": 1292052}}
MISSING = {"code": 404, "msg": "条目不存在"}


def client(house: House, source: Source) -> DoubanClient:
    return DoubanClient(house.fetcher("douban"), source.url + "?callback=douban")


def test_a_subject_comes_from_the_source_then_from_the_archive(library_house: House, source: Source) -> None:
    source.says(FILM)
    douban = client(library_house, source)
    first = douban.subject(1292052, max_age=WEEK)
    assert (first.record.title, first.record.year, first.record.id_confirmed) == ("肖申克的救赎", 1994, True)
    assert (first.from_cache, first.fetched_at) == (False, START)
    library_house.clock.advance(days=1)
    second = douban.subject(1292052, max_age=WEEK)
    assert (second.record, second.snapshot_id) == (first.record, first.snapshot_id)
    assert (second.from_cache, second.fetched_at) == (True, START)
    assert source.asked == [("/douban.php", {"callback": ["douban"], "id": ["1292052"]})]
    assert parse_subject(library_house.archive.get(first.snapshot_id).body, 1292052) == first.record


@pytest.mark.parametrize(
    ("say", "kind", "state"),
    [
        (Say(MISSING), SubjectMissing, GateState.CLOSED),
        (Say(MISSING, status=404), SubjectMissing, GateState.CLOSED),
        (Say({"data": {"vod_name": "别的", "vod_douban_id": 1291546}}), SubjectMismatch, GateState.CLOSED),
        (Say({"code": 1, "data": {"vod_name": ""}}), SourceUnavailable, GateState.CLOSED),
        (Say({"detail": "Not Found"}, status=404), SourceUnavailable, GateState.CLOSED),
        (Say({"code": 102, "msg": "检测到有异常请求"}), SourceWall, GateState.OPEN),
        (Say({"code": 1309, "msg": "subject_ip_rate_limit"}), SourceWall, GateState.OPEN),
        (Say("<html><a href='https://accounts.douban.com'>登录</a></html>"), SourceWall, GateState.OPEN),
    ],
)
def test_what_is_no_subject(house: House, source: Source, say: Say, kind: type[Exception], state: GateState) -> None:
    source.says(say)
    with pytest.raises(kind) as caught:
        client(house, source).subject(1292052, max_age=WEEK)
    assert type(caught.value) is kind
    assert house.status().state is state
    assert house.status().failures == (0 if kind in (SubjectMissing, SourceThrottled) else 1)


def test_error_bodies_open_the_breaker(house: House, source: Source) -> None:
    source.says({"code": 102, "msg": "服务器错误"})
    douban = client(house, source)
    for subject in range(IN_A_ROW):
        with pytest.raises(SourceUnavailable):
            douban.subject(1292052 + subject, max_age=WEEK)
    with pytest.raises(GateClosed, match="服务器错误"):
        douban.subject(1292099, max_age=WEEK)
    assert len(source.asked) == IN_A_ROW


def test_a_missing_subject_is_remembered_for_a_day(house: House, source: Source) -> None:
    source.says(MISSING)
    douban = client(house, source)
    for hours in (0, 23):
        house.clock.advance(hours=hours)
        with pytest.raises(SubjectMissing):
            douban.subject(1292052, max_age=WEEK)
    assert len(source.asked) == 1
    house.clock.advance(hours=2)
    source.says(FILM)
    assert douban.subject(1292052, max_age=WEEK).record.title == "肖申克的救赎"


def test_an_id_that_is_none_is_never_asked_for(house: House, source: Source) -> None:
    with pytest.raises(SubjectMissing, match="9999"):
        client(house, source).subject(9999, max_age=None)
    assert source.asked == []


def test_what_the_matcher_compares_is_read_alike_without_the_rest() -> None:
    for record in load_subjects():
        body, douban_id = douban_answer(record).body, int(record["id"])
        whole = parse_subject(body, douban_id)
        compared = parse_subject(body, douban_id, compared_only=True)
        assert subject_facts(compared, "tv") == subject_facts(whole, "tv")
        assert (compared.summary, compared.picture, compared.writers) == ("", "", ())


@pytest.mark.parametrize(
    "say",
    [
        Say({"code": 1, "msg": "ok", "data": {}}),
        Say({"code": 1, "msg": "ok", "data": {"vod_name": "别的", "vod_douban_id": 1291546}}),
        Say("{"),
    ],
    ids=["no data", "another", "garbage"],
)
def test_a_few_faulty_subjects_keep_no_other_waiting(house: House, source: Source, say: Say) -> None:
    douban = client(house, source)
    source.says(*[say] * 90)
    for number in range(30):
        with pytest.raises(SourceError) as caught:
            douban.subject(1292053 + number % 5, max_age=None)
        assert not isinstance(caught.value, GateClosed)
    assert house.status().state is GateState.CLOSED
    assert not house.gate.was_unhealthy("douban", house.clock.now())


def test_what_a_gate_says_is_a_sentence(house: House, source: Source) -> None:
    douban = client(house, source)
    source.says(*[Say({"code": 1, "msg": "ok", "data": []})] * 40)
    for number in range(IN_A_ROW):
        with pytest.raises(SourceUnavailable):
            douban.subject(1292053 + number, max_age=None)
    assert house.status().state is GateState.OPEN
    assert failure_text(house.status().reason) == "应答里没有数据（代码 1：ok）"
