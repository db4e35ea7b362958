"""TMDB's facts leave every column that holds some before six months are over; links and what was decided stay."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.match.jobs import recheck_links
from douban_pipeline.douban.chain.sync.link_doubts import subject_doubt
from douban_pipeline.douban.evidence.added_facts import EVIDENCE, Added
from douban_pipeline.douban.operations import tmdb_facts_result
from douban_pipeline.douban.upkeep.expiry import EARLY, TERM, Overdue, expire, overdue
from douban_pipeline.douban.upkeep.jobs import prune_history
from douban_pipeline_tests.douban.evidence.test_tmdb_titles import AWAY, FILM, link, with_tmdb
from douban_pipeline_tests.douban.review.launched import launched
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scenario import row_of, subject
from douban_pipeline_tests.tmdb.given import answer

DAY = timedelta(days=1)
WHALE = subject(
    90_000_102,
    "蓝鲸与灯塔守望者",
    2022,
    directors=["蓝鲸导"],
    actors=["演员0", "演员1", "演员2"],
    aka=["The Whale Keeper and the Lighthouse"],
)
NOBODY = row_of(WHALE, 4, vod_name="The Whale Keeper", vod_director="", vod_actor="", vod_year="0")
ONLY_TMDBS = ("藍鯨守望者", "燈塔與鯨", "Le Gardien", "Lan Jing", "演员9")
"""Facts that only TMDB has: Douban says the others too."""


def holding(library, *words):
    """Return the columns of our tables that hold one of some words."""
    found = set()
    with library.engine.connect() as connection:
        for table in library.tables.metadata.sorted_tables:
            for row in connection.execute(sa.text(f"SELECT * FROM {table.name}")).mappings():
                for name, value in row.items():
                    # Search answers are stored compressed.
                    text = zlib.decompress(value).decode() if isinstance(value, bytes) else str(value)
                    if any(word in text or json.dumps(word)[1:-1] in text for word in words):
                        found.add(f"{table.name.removeprefix(library.prefix)}.{name}")
    return found


@pytest.fixture
def confirmed(stage, store, store_url, shared_library):
    """A scenario in which TMDB's names, people and year have confirmed a link, at the start of the clock."""
    store.persist_payloads([answer("movie", FILM)])
    store.run(lambda connection: connection.execute("UPDATE tmdb.movies SET fetched_at = %s", (START,)))
    link(store, 4, "movie", 7)
    scenario = with_tmdb(stage([NOBODY], [WHALE], on=shared_library, search_provider="douban_suggest"), store_url)
    scenario.play()
    assert scenario.cms(4, "vod_douban_id") == (90_000_102,)
    return scenario


def written_of_old(scenario, added):
    """Put the texts that verdicts wrote before they stopped listing the facts into the rows that have them now."""
    listed = f"（参考 TMDB movie/7，IMDb tt0000007：别名 {'、'.join(added.aliases[:2])}（港）；主演 演员9）"
    library, tables = scenario.library, scenario.library.tables
    for column in (
        *(tables.verdict.c.explanation, tables.video.c.douban_review_reason, tables.log.c.reason),
        tables.task.c.last_error,
    ):
        library.execute(sa.update(column.table).values({column: f"《蓝鲸》得分 95.0；导演相符。{listed}"}))
    library.execute(sa.update(tables.log).values(state_old={"douban_review_reason": listed, "vod_douban_id": 0}))
    note = {"name": "actors", "points": 1, "weight": 8, "note": f"本地 {'、'.join(added.actors[:3])} / 豆瓣 别人"}
    library.execute(sa.update(tables.candidate).values(points=[note], conflicts={"X": f"本地《{added.aliases[1]}》"}))


@pytest.mark.postgres
def test_what_tmdb_said_leaves_every_column_before_its_term_and_the_link_stays(confirmed):
    library, clock = confirmed.library, confirmed.clock
    [before] = confirmed.verdicts(4)
    added = Added.of_facts(before["facts"])
    assert added.kinds == ("aliases", "year", "directors", "actors")
    assert holding(library, *ONLY_TMDBS) <= {"douban_verdict.facts", "douban_snapshot.request_key"}, "no text has them"
    assert holding(library, *ONLY_TMDBS) >= {"douban_verdict.facts"}
    logged = library.log()
    # The site states no year: what was asked with it was asked in TMDB's words.
    asked = sa.select(library.tables.snapshot.c.request_key).where(
        library.tables.snapshot.c.request_key.endswith(":2022")
    )
    assert library.query(asked)

    clock.advance(days=(TERM - EARLY - DAY).days)
    assert expire(confirmed.services) == 0
    clock.advance(days=2)
    assert (expire(confirmed.services, dry_run=True), expire(confirmed.services)) == (1, 1)

    assert holding(library, *ONLY_TMDBS) == set()
    assert library.query(asked) == []
    [after] = confirmed.verdicts(4)
    kept = ("verdict", "douban_id", "score", "lead", "reasons", "strata", "explanation", "state", "fingerprint")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    left = Added.of_facts(after["facts"])
    assert (left.key, left.imdb_id, left.kinds) == ("movie/7", "tt0000007", added.kinds)
    assert (after["facts"]["title"], after["facts"]["year"], after["facts"]["actors"]) == ("The Whale Keeper", None, [])
    assert library.log() == logged
    assert confirmed.cms(4, "vod_douban_id") == (90_000_102,)
    assert expire(confirmed.services) == 0


@pytest.mark.postgres
def test_texts_that_listed_them_lose_them_too(confirmed):
    library = confirmed.library
    [verdict] = confirmed.verdicts(4)
    written_of_old(confirmed, Added.of_facts(verdict["facts"]))
    texts = {
        *("douban_verdict.explanation", "douban_video.douban_review_reason", "douban_log.reason"),
        *("douban_log.state_old", "douban_task.last_error"),
    }
    assert holding(library, "演员9") >= texts
    confirmed.clock.advance(days=TERM.days + 1)
    with library.engine.connect() as connection:
        found = overdue(confirmed.services, connection)
    assert {each.column.removeprefix(library.prefix) for each in found} == {*texts, "douban_verdict.facts"}
    expire(confirmed.services)
    assert holding(library, *ONLY_TMDBS) == set()
    with library.engine.connect() as connection:
        assert overdue(confirmed.services, connection) == []
    [entry] = library.log()
    assert entry["reason"] == (
        "《蓝鲸》得分 95.0；导演相符。（参考 TMDB movie/7，IMDb tt0000007：别名、年份、导演、主演）"
    )
    assert entry["state_old"]["vod_douban_id"] == 0
    [candidate] = confirmed.candidates(4)
    assert (candidate["points"][0]["note"], candidate["conflicts"]) == ("TMDB 的资料 / 豆瓣 别人", {"X": "TMDB 的别名"})


@pytest.mark.postgres
def test_a_link_whose_evidence_expired_is_neither_doubted_nor_undone_while_tmdb_is_away(confirmed):
    services, library = confirmed.services, confirmed.library
    confirmed.clock.advance(days=TERM.days)
    expire(services)
    renamed = replace(services.douban.subject(WHALE["id"], max_age=None).record, aliases=())
    item = SimpleNamespace(row=library.row(4), state=library.state(4), accepted=False)
    assert subject_doubt(services, item, renamed) is None
    other = replace(renamed, douban_id=90_000_999)
    assert "与影片不符" in subject_doubt(services, item, other), "the evidence was for another subject"

    # As if the CMS had none of the fields that the link has filled since.
    library.set_cms(4, vod_sub="", vod_year="0", vod_director="", vod_actor="", vod_pubdate="")
    away = with_tmdb(confirmed, AWAY)
    order = {"reviewer": "小王", "note": "再看看", "vod_ids": [4], "dry_run": False}
    launched(away, recheck_links, {"queue_rechecks": {"config": order}})
    away.play()
    assert library.state(4)["douban_review_status"] == "CONFIRMED"
    assert "读不到 TMDB" in next(task for task in library.tasks() if task["task_type"] == "RECHECK")["last_error"]


@pytest.mark.postgres
def test_what_is_carried_on_keeps_its_age(confirmed):
    confirmed.clock.advance(days=100)
    away = with_tmdb(confirmed, AWAY)
    order = {"reviewer": "小王", "note": "再看看", "vod_ids": [4], "dry_run": False}
    launched(away, recheck_links, {"queue_rechecks": {"config": order}})
    away.play()
    first, second = away.verdicts(4)
    assert EVIDENCE in second["facts"]
    assert second["created_at"] - first["created_at"] >= 100 * DAY
    away.clock.advance(days=(TERM - EARLY).days - 99)
    assert expire(away.services) == 2, "the newer verdict holds what TMDB said before the older one"


@pytest.mark.postgres
def test_the_check_and_the_command_name_the_columns(confirmed):
    services, library = confirmed.services, confirmed.library
    named = f"{library.prefix}douban_verdict.facts"
    confirmed.clock.advance(days=TERM.days - 1)
    assert "no_tmdb_facts_beyond_terms" not in confirmed.check().failed_guards
    assert tmdb_facts_result(services).state == "ok"
    confirmed.clock.advance(days=2)
    with library.engine.connect() as connection:
        assert overdue(services, connection) == [Overdue(named, 1)]
    assert "no_tmdb_facts_beyond_terms" in confirmed.check().failed_guards
    result = tmdb_facts_result(services)
    assert (result.state, named in result.message, "prune_history" in result.remedy) == ("warn", True, True)
    expire(services)
    assert "no_tmdb_facts_beyond_terms" not in confirmed.check().failed_guards


@pytest.mark.postgres
def test_the_nightly_job_expires_them(confirmed):
    confirmed.clock.advance(days=TERM.days)
    run = launched(confirmed, prune_history, {"prune": {"config": {"dry_run": False}}})
    assert run.success
    assert holding(confirmed.library, *ONLY_TMDBS) == set()
