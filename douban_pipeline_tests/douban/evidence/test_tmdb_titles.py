"""Reading TMDB's titles from its real tables, and what they change in the chain: a link more, with its reason."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.match.jobs import recheck_links
from douban_pipeline.douban.chain.sync.link_doubts import subject_doubt
from douban_pipeline.douban.evidence.added_facts import Added, TitleFacts
from douban_pipeline.douban.evidence.tmdb_titles import TmdbTitles, TmdbUnreachableError
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.quality.library_replay import judge_again
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdicts
from douban_pipeline.tmdb.store.links import Match, keep
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.douban.review.launched import launched
from douban_pipeline_tests.harness.fixtures.scenario import row_of, subject
from douban_pipeline_tests.tmdb.given import answer, cast, crew, movie, show

URL = "TMDB_DATABASE_URL"
AWAY = "postgresql://nobody@127.0.0.1:1/x"

FILM = movie(
    7,
    crew(1, "c1", name="蓝鲸导", original_name="Lan Jing"),
    crew(2, "c2", job="Writer", name="蓝鲸编"),
    *(cast(10 + place, f"a{place}", name=f"演员{place}") for place in range(15)),
    title="蓝鲸与灯塔守望者",
    original_title="The Whale Keeper",
    release_date="2022-03-04",
    imdb_id="tt0000007",
    alternative_titles={
        "titles": [{"iso_3166_1": "FR", "title": "Le Gardien"}, {"iso_3166_1": "TW", "title": "藍鯨守望者"}, 5]
    },
    translations={
        "translations": [
            {"iso_639_1": "zh", "iso_3166_1": "HK", "data": {"title": "燈塔與鯨"}},
            {"iso_639_1": "de", "iso_3166_1": "DE", "data": {"title": "Der Wal"}},
        ]
    },
)
SERIES = show(
    8,
    name="雪线以上的村庄",
    original_name="Above the Snow",
    first_air_date="2015-01-01",
    external_ids={"imdb_id": "tt0000008"},
    seasons=[
        {"season_number": 0},
        {"season_number": 1, "air_date": "2015-01-01"},
        {"season_number": 2, "air_date": None},
    ],
)


def link(store, vod_id, entity, tmdb_id, state="confirmed"):
    match = Match(vod_id, "x", state, "", EntityKey(EntityType(entity), tmdb_id), 90.0)
    store.run(lambda connection: keep(connection, match))


@pytest.fixture
def filled(store):
    """A store with a film and a series."""
    store.persist_payloads([answer("movie", FILM), answer("tv", SERIES)])
    store.persist_payloads([answer("movie", {**FILM, "title": "Whale Guard"}, "en-US")])
    return store


@pytest.mark.postgres
def test_what_tmdb_says_of_linked_videos_is_read_from_its_tables(filled, store_url):
    link(filled, 1, "movie", 7)
    link(filled, 2, "tv", 8)
    link(filled, 3, "movie", 7, "review")
    link(filled, 4, "movie", 404)
    titles = TmdbTitles(store_url, setting=URL)
    found = titles.of([1, 2, 3, 4, 5])
    titles.close()
    assert found == {
        1: TitleFacts(
            "movie/7",
            (*("蓝鲸与灯塔守望者", "藍鯨守望者", "燈塔與鯨", "Whale Guard"), *("The Whale Keeper", "Le Gardien")),
            2022,
            ("蓝鲸导", "Lan Jing"),
            tuple(f"演员{place}" for place in range(10)),
            "tt0000007",
        ),
        2: TitleFacts(
            "tv/8", ("雪线以上的村庄", "Above the Snow"), 2015, imdb_id="tt0000008", seasons={1: 2015, 2: None}
        ),
    }


@pytest.mark.postgres
def test_a_database_without_the_schema_counts_as_unreachable(store_url):
    titles = TmdbTitles(store_url.rpartition("/")[0] + "/postgres", setting=URL)
    with pytest.raises(TmdbUnreachableError, match=f"{URL}: .*vod_link"):
        titles.of([1])
    titles.close()


def test_a_database_that_cannot_be_reached_is_tried_once():
    titles = TmdbTitles(AWAY, setting=URL)
    with pytest.raises(TmdbUnreachableError, match=URL) as first:
        titles.of([1])
    with pytest.raises(TmdbUnreachableError, match=URL) as second:
        titles.of([1])
    assert (first.value.again, second.value.again) == (False, True)
    titles.close()


WHALE = subject(90_000_102, "蓝鲸与灯塔守望者", 2022, aka=["The Whale Keeper and the Lighthouse"])
LATIN = row_of(WHALE, 4, vod_name="The Whale Keeper")


def with_tmdb(scenario, url):
    return scenario.under(evidence_from_tmdb=True, tmdb_database_url=url)


@pytest.mark.postgres
def test_a_video_with_a_latin_title_alone_is_reviewed_without_and_confirmed_with_tmdb(stage, filled, store_url):
    link(filled, 4, "movie", 7)
    given = {"search_provider": "douban_suggest"}
    without = stage([LATIN], [WHALE], **given)
    without.play()
    [verdict] = without.verdicts(4)
    assert (verdict["verdict"], Added.of_facts(verdict["facts"])) == ("REVIEW", None)

    scenario = with_tmdb(stage([LATIN], [WHALE], **given), store_url)
    run = scenario.play()
    [verdict] = scenario.verdicts(4)
    added = Added.of_facts(verdict["facts"])
    assert (verdict["verdict"], scenario.cms(4, "vod_douban_id")) == ("CONFIRMED", (90_000_102,))
    assert (added.key, added.imdb_id, added.directors, added.year) == ("movie/7", "tt0000007", (), None)
    assert added.aliases[0] == "蓝鲸与灯塔守望者"
    assert set(added.aliases) <= set(verdict["facts"]["aliases"])
    assert verdict["explanation"].endswith("（参考 TMDB movie/7，IMDb tt0000007：别名）")
    assert [run.metadata(step)["with_evidence"] for step in ("search_candidates", "scored_matches")] == [1, 1]

    # Judged again, and synced, without TMDB's database: what was added is with the verdict.
    services = scenario.services
    [[stored]] = StoredVerdicts(services, RescoreSelection()).batches()
    assert stored.case.added == added
    assert judge_again(stored, profile_of(services.settings)).status == "CONFIRMED"
    named_otherwise = replace(services.douban.subject(WHALE["id"], max_age=None).record, aliases=())
    row, state = scenario.library.row(4), scenario.library.state(4)
    item = SimpleNamespace(row=row, state=state, accepted=False)
    assert subject_doubt(services, item, named_otherwise) is None
    moved = SimpleNamespace(row={**row, "vod_year": "1990"}, state=state, accepted=False)
    assert "年" in subject_doubt(services, moved, named_otherwise)
    scenario.clock.advance(days=40)
    later = with_tmdb(scenario, AWAY)
    later.play()
    assert later.library.states()[4]["douban_review_status"] == "CONFIRMED"
    order = {"reviewer": "小王", "note": "再看看", "vod_ids": [4], "dry_run": False}
    launched(later, recheck_links, {"queue_rechecks": {"config": order}})
    later.play()
    newest = later.verdicts(4)[-1]
    assert (later.task(4)["task_type"], newest["verdict"]) == ("RECHECK", "CONFIRMED")
    assert Added.of_facts(newest["facts"]) == added
    scenario.library.execute(sa.update(scenario.library.tables.verdict).values(facts={}))
    assert "与影片不符" in subject_doubt(services, item, named_otherwise), "only what was added bridges the names"


@pytest.mark.postgres
def test_the_age_is_that_of_the_oldest_answer_that_a_fact_is_from(filled, store_url):
    link(filled, 1, "movie", 7)
    link(filled, 2, "tv", 8)
    filled.run(lambda connection: connection.execute("UPDATE tmdb.movies SET fetched_at = '2026-05-02T00:00:00Z'"))
    filled.run(
        lambda connection: connection.execute("UPDATE tmdb.movie_translations SET fetched_at = '2026-05-01T00:00:00Z'")
    )
    filled.run(lambda connection: connection.execute("UPDATE tmdb.tv_shows SET fetched_at = '2026-05-03T00:00:00Z'"))
    titles = TmdbTitles(store_url, setting=URL)
    found = titles.of([1, 2])
    titles.close()
    assert [found[vod_id].said_at for vod_id in (1, 2)] == [
        datetime(2026, 5, 1, tzinfo=UTC),
        datetime(2026, 5, 3, tzinfo=UTC),
    ]


def test_matching_goes_on_where_tmdb_cannot_be_reached_and_says_so_once(stage, caplog):
    film = subject(90_000_101, "长河落日记事", 2021)
    scenario = with_tmdb(stage([row_of(film, 4)], [film]), AWAY)
    with caplog.at_level(logging.WARNING, "play"):
        run = scenario.play()
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)
    assert run.metadata("scored_matches")["with_evidence"] == 0
    told = [record.getMessage() for record in caplog.records if "TMDB" in record.getMessage()]
    assert len(told) == 1
    assert "matching goes on without TMDB's titles: DOUBAN_PIPELINE_TMDB_DATABASE_URL" in told[0]
