"""Archived answers read with the parsers of this release: what comes out is reported, and nothing else changes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.core import archive as archive_module
from douban_pipeline.core.archive import Snapshot
from douban_pipeline.core.errors import SourceError
from douban_pipeline.demo.stand_ins.answers import douban_answer
from douban_pipeline.douban.upkeep import jobs
from douban_pipeline.douban.upkeep.reparse import MISSING, PARSERS, READ, Parser, RefusedAnswer, Reparsed, reparse
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.runs import Run
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE

OLD = "douban-0"
NOW = PARSERS["douban"].version


def put(library: Library, key: str, body: bytes | str, status: int = 200, version: str = OLD) -> int:
    content = body if isinstance(body, bytes) else body.encode()
    return library.services.archive.put("douban", key, status, content, version)


def put_all(library: Library) -> dict[str, int]:
    """Keep an answer of every kind; return their snapshots by what the parser makes of them."""
    river, whale = douban_answer(RIVER).body, douban_answer(WHALE).body
    return {
        "good": put(library, f"subject:{RIVER['id']}", river),
        "known": put(library, f"subject:{WHALE['id']}", whale, version=NOW),
        "missing": put(library, "subject:90000777", json.dumps({"code": 404, "msg": "条目不存在"}), 404),
        "another": put(library, "subject:90000888", river),
        "wall": put(library, "subject:90000999", "<html>验证码</html>"),
        "forbidden": put(library, f"subject:{RIVER['id']}", "<html>403</html>", 403),
        "page": put(library, "subject:90000999", "<html>你好</html>"),
    }


def reparse_answers(library: Library, **options: Any) -> Reparsed:
    given = {"only_older_versions": True, "limit": 0, "dry_run": True, "progress": lambda _done: None}
    return reparse(library.services, "douban", **{**given, **options})


def versions(library: Library) -> dict[int, str]:
    table = library.tables.snapshot
    rows = library.query(sa.select(table.c.snapshot_id, table.c.parser_version))
    return {row["snapshot_id"]: row["parser_version"] for row in rows}


def everything(library: Library) -> list[Any]:
    return [library.query(sa.select(table)) for table in library.tables.metadata.sorted_tables]


def test_every_outcome_is_counted_and_shown(library: Library) -> None:
    ids = put_all(library)
    before = everything(library)
    found = reparse_answers(library)
    assert found.outcomes == {
        (OLD, READ): 1,
        (OLD, MISSING): 1,
        (OLD, "SubjectMismatch"): 1,
        (OLD, "SourceWall"): 1,
        (OLD, "HTTP 403"): 1,
        (OLD, "SourceUnavailable"): 1,
    }
    assert (found.looked_at, found.good, found.noted) == (6, 2, 0)
    assert found.refused["SubjectMismatch"] == [
        RefusedAnswer(ids["another"], "subject:90000888", f"asked for 90000888, answered {RIVER['id']}")
    ]
    assert {refused.snapshot_id for several in found.refused.values() for refused in several} == {
        ids[name] for name in ("another", "wall", "forbidden", "page")
    }
    assert everything(library) == before


def test_what_is_read_is_noted_so_that_the_rest_is_left(library: Library) -> None:
    ids = put_all(library)
    assert reparse_answers(library, dry_run=False).noted == 2
    assert {name for name, number in ids.items() if versions(library)[number] == NOW} == {"good", "known", "missing"}
    again = reparse_answers(library, dry_run=False)
    assert (again.looked_at, again.good, again.noted) == (4, 0, 0)
    assert reparse_answers(library, only_older_versions=False).looked_at == 7


def test_a_limit_takes_the_oldest(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "_BODIES", 2)
    body = douban_answer(RIVER).body
    ids = [put(library, f"subject:{RIVER['id']}", body + b" " * number) for number in range(5)]
    found = reparse_answers(library, limit=3, dry_run=False)
    assert (found.looked_at, found.noted) == (3, 3)
    assert [versions(library)[number] for number in ids] == [NOW] * 3 + [OLD] * 2


def test_a_parser_that_breaks_is_reported_and_does_not_stop_the_rest(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(answer: Snapshot) -> object:
        return json.loads(answer.body)["data"]["vod_nmae"] if answer.request_key == "subject:1" else None

    monkeypatch.setitem(PARSERS, "douban", Parser("douban-3", parse))
    first, _ = put(library, "subject:1", '{"data": {}}'), put(library, "subject:2", "{}")
    found = reparse_answers(library)
    assert found.by_outcome == {"KeyError": 1, READ: 1}
    assert found.refused == {"KeyError": [RefusedAnswer(first, "subject:1", "'vod_nmae'")]}


def launch(library: Library, instance: dg.DagsterInstance, **config: Any) -> Run:
    definitions = dg.Definitions(jobs=jobs.jobs, resources={"services": library.services})
    job = definitions.resolve_job_def("reparse_archive")
    given = {"ops": {"reparse_answers": {"config": config}}} if config else None
    return Run(job.execute_in_process(run_config=given, instance=instance, raise_on_error=False))


def test_the_job_counts_and_notes_only_when_it_is_asked_to(
    library: Library, dagster_instance: dg.DagsterInstance
) -> None:
    ids = put_all(library)
    run = launch(library, dagster_instance)
    assert (run.output["dry_run"], run.output["looked_at"], run.output["read"], run.output["noted"]) == (True, 6, 2, 0)
    assert run.output["parser_version"] == NOW
    assert versions(library)[ids["good"]] == OLD
    assert f"| {OLD} | HTTP 403 | 1 " in " ".join(run.output["outcomes"].split())
    assert "subject:90000888" in run.output["examples"]
    run = launch(library, dagster_instance, dry_run=False, source="douban")
    assert (run.output["dry_run"], run.output["noted"]) == (False, 2)
    assert versions(library)[ids["good"]] == NOW


def test_every_mistake_is_reported_at_once(library: Library, dagster_instance: dg.DagsterInstance) -> None:
    run = launch(library, dagster_instance, source="imdb")
    assert run.failure.split("\n- ")[1:] == ["source: 只能是 douban、searxng、douban_suggest、bocha，现为 'imdb'"]


# --- versions of the parsers ------------------------------------------------------------------------------------------


FULL_SUBJECT = {
    "code": 1,
    "msg": "ok",
    "data": {
        "vod_name": "长河落日&amp;记事 第二季",
        "vod_sub": "The River / 大河/长河 / River, Long River",
        "vod_original_title": "The River",
        "vod_year": "2021-05",
        "vod_pubdate": "2021-05-01(中国大陆)/2021-06-02(美国)",
        "vod_area": "中国大陆 / 美国",
        "vod_lang": "汉语普通话,英语",
        "vod_class": "剧情 / 悬疑",
        "vod_director": "甲导 / 乙导",
        "vod_writer": "丙编",
        "vod_actor": "甲,乙,丙",
        "vod_duration": "118分钟",
        "vod_total": "24",
        "vod_douban_score": "7.9",
        "vod_score": "3.1",
        "vod_content": "<p>第一段。</p><p>第二段。</p>",
        "vod_pic": "//img.example.org/1.jpg",
        "vod_tag": "悬疑,大河",
        "vod_douban_id": 90_000_101,
        "vod_reurl": "https://movie.douban.com/subject/90000101/",
    },
}
BROKEN = ["", "{", "null", "[]", "{}", "<html>验证码</html>", "<html>你好</html>", '{"code": 0, "msg": "rate_limit"}']
WEB_HITS = [
    {"url": "https://movie.douban.com/subject/90000101/", "title": "长河 (豆瓣)", "content": "导演: 甲"},
    {"url": "https://m.douban.com/movie/subject/90000102/?x=1", "title": "长河&amp;2", "content": None},
    {"url": "https://book.douban.com/subject/90000103/", "title": "书"},
    {"url": "https://movie.douban.com/subject/90000101/comments", "title": "短评"},
    {"title": "没有地址"},
]
BODIES: dict[str, list[Any]] = {
    "douban": [
        FULL_SUBJECT,
        {**FULL_SUBJECT, "data": {**FULL_SUBJECT["data"], "vod_douban_id": 0, "vod_reurl": ""}},  # type: ignore[dict-item]
        {**FULL_SUBJECT, "data": {**FULL_SUBJECT["data"], "vod_douban_id": 90_000_102}},  # type: ignore[dict-item]
        {"vod_name": "未知", "vod_behind": "Some Note", "vod_duration": "1:58:00", "vod_douban_score": "0.0"},
        'cb({"code": "200", "data": [{"vod_name": "无", "vod_year": 1999, "vod_total": "全12集"}]});',
        {"code": 404, "msg": "条目不存在"},
        {"code": 0, "msg": "key 错误"},
        {"code": 0, "msg": "接口不存在"},
        *BROKEN,
    ],
    "searxng": [
        {"results": WEB_HITS, "unresponsive_engines": [["bing", "CAPTCHA"]]},
        {"results": []},
        {"results": [], "unresponsive_engines": ["bing"]},
        {"results": [{"title": "没有地址"}]},
        *BROKEN,
    ],
    "douban_suggest": [
        [
            {"id": "90000101", "title": "长河", "sub_title": "The River", "type": "movie", "year": "2021"},
            {"id": 90_000_102, "title": "长河", "type": "movie", "episode": "24", "year": ""},
            {"id": "90000103", "title": "人", "type": "celebrity"},
            {"id": "77", "title": "太小"},
            {"id": "", "title": "只有地址", "url": "https://movie.douban.com/subject/90000104/?suggest=x"},
        ],
        {"msg": "search_access_rate_limit", "code": 1080},
        [{"title": "没有编号"}],
        *BROKEN,
    ],
    "bocha": [
        {
            "code": 200,
            "data": {
                "_type": "SearchResponse",
                "webPages": {"value": [{"url": hit.get("url"), "name": hit["title"]} for hit in WEB_HITS]},
            },
        },
        {"code": 200, "data": {"_type": "SearchResponse", "webPages": None}},
        {"code": 200, "data": {"_type": "SearchResponse", "webPages": {"value": "x"}}},
        {"code": 200, "data": {}},
        {"code": "403", "message": "You do not have enough money"},
        {"code": "429", "message": "You have reached the request limit"},
        {"code": "401", "message": "Invalid API KEY"},
        *BROKEN,
    ],
}
"""Answers of all kinds that a parser meets. The digests below are of these: whoever changes them renews those."""

DIGESTS = {
    "douban-3": "8e1b58495e2da4a1cbcad9b7604e8bc1bcf66e604c78ba8794b8bae46cb4bad2",
    "searxng-1": "932c3165063dfbb3b96439f48febf86596a004cfb13a8a754ec7cd520745faa8",
    "douban_suggest-1": "19c958e06274f75681a5e0afae3067a9538d187bf931c9f581af460d32e2e3db",
    "bocha-1": "efd3db51c1782cd2cd3060e31ce66a653be86640dcee18ef68e89b0b491b4ab1",
}
"""What each version of a parser makes of `BODIES`, as a SHA-256."""


def readings(source: str, parse: Callable[[Snapshot], object]) -> str:
    """Return what a parser makes of its answers; of errors the kind only, their words may change."""
    reported: list[Any] = []
    for body in BODIES[source]:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        answer = Snapshot(1, source, "subject:90000101", 200, text.encode(), "", START, START)
        try:
            value = parse(answer)
        except SourceError as error:
            reported.append(type(error).__name__)
        else:
            assert dataclasses.is_dataclass(value)
            reported.append(dataclasses.asdict(value))  # type: ignore[arg-type]
    return json.dumps(reported, ensure_ascii=False, sort_keys=True)


@pytest.mark.parametrize("source", sorted(PARSERS))
def test_a_parser_that_reads_differently_has_a_new_version(source: str) -> None:
    parser = PARSERS[source]
    found = readings(source, parser.parse)
    digest = hashlib.sha256(found.encode()).hexdigest()
    assert digest == DIGESTS.get(parser.version), (
        f"the parser of {source} reads answers differently than {parser.version} did: raise its version, and give the "
        f"new one the digest {digest}. It reads now:\n{found}"
    )
