"""What questions are taken to be about, which candidate is chosen, and the graph of a moment. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.tmdb.enrichment.choice import POPULARITY, WantedEntity, choose, is_uncertain, rank, score
from douban_pipeline.tmdb.enrichment.route import LONGEST_QUESTION, Asked, Intent, Role
from douban_pipeline.tmdb.enrichment.router import (
    MOST_ENTITIES,
    RuleExtractor,
    RuleRouter,
)
from douban_pipeline.tmdb.enrichment.transient import TransientGraphBuilder
from douban_pipeline.tmdb.types import EntityKey, EntityType, NodeKey, NodeLabel, PayloadError, Relation
from douban_pipeline_tests.tmdb.given import RECORDED, actor, cast, crew, movie, show, title

DIRECTOR, ACTOR, WRITER = Role.DIRECTOR, Role.ACTOR, Role.WRITER


@pytest.mark.parametrize(
    ("question", "names", "role"),
    [
        ("《喜宴》的导演是谁？", ["喜宴"], DIRECTOR),
        ("喜宴的导演是谁", ["喜宴"], DIRECTOR),
        ("1993年的《喜宴》是谁演的", ["喜宴"], ACTOR),
        ("李安导演过哪些电影", ["李安"], DIRECTOR),
        ("郎雄演过什么？", ["郎雄"], ACTOR),
        ("谁导演了卧虎藏龙？", ["卧虎藏龙"], DIRECTOR),
        ("卧虎藏龙是谁导演的", ["卧虎藏龙"], DIRECTOR),
        ("《卧虎藏龙》的编剧都有谁", ["卧虎藏龙"], WRITER),
        ("李安和郎雄合作过哪些电影", ["李安", "郎雄"], ACTOR),
        ("Who directed The Wedding Banquet?", ["The Wedding Banquet"], DIRECTOR),
        ("Who is the director of Arrow?", ["Arrow"], DIRECTOR),
        ("movies by Ang Lee", ["Ang Lee"], None),
        ("“琅琊榜”讲了什么", ["琅琊榜"], None),
        ("介绍一下琅琊榜", ["琅琊榜"], None),
        ("推荐和《喜宴》类似的电影", ["喜宴"], None),
        ("郎雄有什么代表作", ["郎雄"], None),
        ("李安都有哪些代表作品？", ["李安"], None),
    ],
)
def test_questions_that_name_something(question: str, names: list[str], role: Role | None):
    route = RuleRouter().route(question, "movie")
    assert (route.selected_agent, route.query_intent) == ("tmdb", Intent.ENTITY)
    assert (list(route.extracted_entities), route.role_hint) == (names, role)


@pytest.mark.parametrize(
    ("question", "name", "season"),
    [
        ("怪奇物语第四季有几集", "怪奇物语", 4),
        ("《怪奇物语》第4季几集", "怪奇物语", 4),
        ("黑镜第三季有多少集？", "黑镜", 3),
        ("How many episodes are in season 4 of Stranger Things?", "Stranger Things", 4),
        ("怪奇物语有几季", "怪奇物语", None),
    ],
)
def test_questions_about_a_season(question: str, name: str, season: int | None):
    route = RuleRouter().route(question)
    assert (list(route.extracted_entities), route.asked, route.season) == ([name], Asked.EPISODES, season)


@pytest.mark.parametrize(
    ("question", "intent", "filters"),
    [
        ("推荐几部国产电视剧", Intent.SERIES, {"with_origin_country": "CN"}),
        ("韩剧推荐", Intent.SERIES, {"with_origin_country": "KR"}),
        ("有什么好看的科幻电影吗", Intent.MOVIES, {"with_genres": "878"}),
        ("剧情片推荐", Intent.MOVIES, {"with_genres": "18"}),
        ("推荐几部2015年的高分国产剧", Intent.SERIES, {"first_air_date_year": "2015", "vote_average.gte": "7"}),
        ("recommend an American comedy movie", Intent.MOVIES, {"with_genres": "35", "with_origin_country": "US"}),
        ("有什么值得看的推荐吗", Intent.MOVIES, {"sort_by": "popularity.desc"}),
    ],
)
def test_questions_for_a_recommendation(question: str, intent: Intent, filters: dict[str, str]):
    route = RuleRouter().route(question, "movie")
    assert (route.query_intent, list(route.extracted_entities)) == (intent, [])
    assert filters.items() <= route.filters.items()


@pytest.mark.parametrize(
    ("question", "prefix"), [("今天天气怎么样", "movie"), ("", "movie"), ("推荐一下", ""), ("《民法典》第几条", "law")]
)
def test_questions_that_are_not_for_tmdb(question: str, prefix: str):
    assert RuleRouter().route(question, prefix).query_intent is Intent.NONE


def test_the_questions_of_a_list_written_apart_from_the_rules():
    """464 questions as people type them, in Chinese, English and both, of one sentence or two."""
    questions = [json.loads(line) for line in (RECORDED.parent / "questions.jsonl").read_text("utf-8").splitlines()]
    routes = [(RuleRouter().route(each["q"]), each) for each in questions]
    misread = [each["q"] for route, each in routes if route.query_intent.value != each["intent"]]
    misnamed = [each["q"] for route, each in routes if list(route.extracted_entities) != each["names"]]
    assert len(questions) == 464
    assert len(misread) <= 5, misread
    assert len(misnamed) <= 18, misnamed


def test_the_year_and_what_is_marked_as_a_title():
    route = RuleRouter().route("《喜宴》1993年那部电影的导演是谁")
    assert (route.year, route.titles, route.media) == (1993, {"喜宴"}, EntityType.MOVIE)
    assert RuleRouter().route("《2046》的导演是谁").year is None


def test_another_extractor_takes_the_place_of_the_rules():
    class Model:
        def extract(self, query_text: str) -> list[str]:
            return ["喜宴"]

    assert RuleRouter(Model()).route("那部婚礼的片子").extracted_entities == ["喜宴"]


@given(st.text(max_size=900))
def test_any_text_is_routed(text: str):
    route = RuleRouter().route(text, "movie")
    assert len(route.extracted_entities) <= MOST_ENTITIES
    assert all(name and len(name) <= LONGEST_QUESTION for name in RuleExtractor().extract(text))


# --- choosing ---------------------------------------------------------------------------------------------------------


def found(
    tmdb_id: int, name: str, day: str = "", media: str = "movie", popularity: float = 1.0, **more: Any
) -> dict[str, Any]:
    names = {"title": name, "release_date": day} if media == "movie" else {"name": name, "first_air_date": day}
    return {"id": tmdb_id, "media_type": media, "popularity": popularity, **names, **more}


OLD, NEW = found(1, "喜宴", "1993-08-04", popularity=5), found(2, "喜宴", "2025-04-18", popularity=500)


def test_the_year_decides_and_popularity_only_between_equals():
    assert choose(rank(WantedEntity("喜宴", 1993, DIRECTOR, True), [OLD, NEW])).key.tmdb_id == 1  # type: ignore[union-attr]
    ranked = rank(WantedEntity("喜宴", None, DIRECTOR, True), [OLD, NEW])
    assert [each.key.tmdb_id for each in ranked] == [2, 1]
    assert 0 < ranked[0].score - ranked[1].score <= POPULARITY
    assert is_uncertain(ranked)


def test_no_popularity_is_worth_a_better_name():
    ranked = rank(WantedEntity("喜宴"), [found(3, "喜宴之夜", popularity=1e9), found(1, "喜宴", popularity=0)])
    assert ranked[0].key.tmdb_id == 1
    assert max(each.parts["popularity"] for each in ranked) <= POPULARITY


def test_names_in_all_languages_count():
    wanted = WantedEntity("Crouching Tiger, Hidden Dragon", is_title=True)
    item = found(146, "卧虎藏龙", original_title="臥虎藏龍")
    assert not score(wanted, EntityKey(EntityType.MOVIE, 146), item).exact
    translated = {"translations": {"translations": [{"iso_639_1": "en", "data": {"title": wanted.name}}]}}
    assert score(wanted, EntityKey(EntityType.MOVIE, 146), item | translated).exact
    other = {"alternative_titles": {"titles": [{"iso_3166_1": "US", "title": wanted.name}]}}
    assert choose([score(wanted, EntityKey(EntityType.MOVIE, 146), item | other)]) is not None


def test_the_role_says_which_person_is_meant_and_a_marked_title_is_no_person():
    people = [
        found(10, "王伟", media="person", known_for_department="Acting", popularity=90),
        found(11, "王伟", media="person", known_for_department="Directing"),
    ]
    assert rank(WantedEntity("王伟", role=DIRECTOR), people)[0].key.tmdb_id == 11
    assert rank(WantedEntity("王伟", role=ACTOR), people)[0].key.tmdb_id == 10
    assert rank(WantedEntity("王伟", is_title=True), people) == []


def test_films_and_series_are_told_apart_where_the_question_says_which():
    items = [found(1, "鹿鼎记", media="movie", popularity=50), found(2, "鹿鼎记", media="tv")]
    assert rank(WantedEntity("鹿鼎记", is_title=True, media=EntityType.TV), items)[0].key.type is EntityType.TV


@pytest.mark.parametrize(
    "items",
    [[], [{"media_type": "movie"}], [{"id": 1}], [{"id": "1", "media_type": "movie"}], [found(9, "完全不同的名字")]],
)
def test_what_is_not_like_enough_is_not_chosen(items: list[dict[str, Any]]):
    assert choose(rank(WantedEntity("喜宴"), items)) is None


@given(st.text(max_size=60), st.text(max_size=60), st.one_of(st.none(), st.integers(1900, 2050)), st.booleans())
def test_scores_stay_between_nothing_and_a_hundred(name: str, other: str, year: int | None, is_title: bool):
    for media in ("movie", "tv", "person"):
        for each in rank(WantedEntity(name, year, DIRECTOR, is_title), [found(1, other, "1993-01-01", media, 1e6)]):
            assert 0 <= each.score <= 100


# --- the graph of a moment --------------------------------------------------------------------------------------------


def payload(kind: str, raw: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "data": raw}


def test_the_graph_of_a_moment_has_the_nodes_and_edges_of_its_answers():
    film = movie(1, cast(7, "c1", "She"), crew(8, "c2"), crew(9, "c3", "Writer"))
    person = actor(7, title(1, "c1"), title(5, "c4", "tv")) | {"name": "七"}
    graph = TransientGraphBuilder().build_from_tmdb_payloads([payload("movie", film), payload("person", person)])
    key = NodeKey(NodeLabel.MOVIE, 1)
    assert graph.nodes[key].properties["vote_average"] == 7.0
    assert {"title", "overview", "release_date"} <= graph.nodes[key].properties.keys()
    assert graph.people(Relation.DIRECTED, key) == ["Person 8"]
    assert graph.people(Relation.CREW_MEMBER, key, "Writer") == ["Person 9"]
    assert graph.people(Relation.ACTED_IN, key) == ["七"], "what a person's own answer calls them wins"
    assert graph.titles(Relation.ACTED_IN, NodeKey(NodeLabel.PERSON, 7)) == [key, NodeKey(NodeLabel.TV, 5)]
    assert sum(edge.key.credit_id == "c1" for edge in graph.edges.values()) == 1, "both sides name one credit"
    shown = graph.to_json()
    assert {edge["type"] for edge in shown["edges"]} == {"DIRECTED", "ACTED_IN", "CREW_MEMBER", "BELONGS_TO_GENRE"}
    assert {node["label"] for node in shown["nodes"]} == {"Movie", "Person", "TVShow", "Genre"}


def test_a_series_and_what_is_no_payload():
    builder = TransientGraphBuilder()
    assert NodeKey(NodeLabel.TV, 3) in builder.build_from_tmdb_payloads([payload("tv", show(3))]).nodes
    with pytest.raises(PayloadError):
        builder.build_from_tmdb_payloads([{"type": "song", "data": {}}])
