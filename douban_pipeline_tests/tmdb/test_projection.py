"""From answers to columns, nodes and edges, and their hashes."""

from __future__ import annotations

import copy
import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.tmdb import values
from douban_pipeline.tmdb.projection import columns_of, is_full, project
from douban_pipeline.tmdb.types import EntityType, NodeLabel, PayloadError, Relation
from douban_pipeline.tmdb.values import clean, count_of, day_of, number_of
from douban_pipeline_tests.tmdb.given import actor, cast, crew, movie, recorded, show, title

MOVIE, PERSON, TV = EntityType.MOVIE, EntityType.PERSON, EntityType.TV


def edges(entity: EntityType, raw: dict[str, Any]) -> list[tuple[str, int, int, str, dict[str, Any]]]:
    return [
        (
            edge.key.relation.value,
            edge.key.start.tmdb_id,
            edge.key.end.tmdb_id,
            edge.key.credit_id,
            dict(edge.properties),
        )
        for edge in project(entity, raw).edges
    ]


@pytest.mark.parametrize(
    ("entity", "raw", "expected"),
    [
        (MOVIE, movie(1, cast(2, "a", "She"), genres=[]), ("ACTED_IN", 2, 1, "a", {"character": "She"})),
        (MOVIE, movie(1, crew(2, "a", "Director"), genres=[]), ("DIRECTED", 2, 1, "a", {})),
        (
            MOVIE,
            movie(1, crew(2, "a", "Editor"), genres=[]),
            ("CREW_MEMBER", 2, 1, "a", {"job": "Editor", "department": "Directing"}),
        ),
        (MOVIE, movie(1), ("BELONGS_TO_GENRE", 1, 18, "", {})),
        (PERSON, actor(2, title(1, "a", character="She")), ("ACTED_IN", 2, 1, "a", {"character": "She"})),
        (PERSON, actor(2, title(1, "a", "tv", job="Director")), ("DIRECTED", 2, 1, "a", {})),
        (
            TV,
            show(1, genres=[], created_by=[{"id": 2, "name": "V", "credit_id": "a"}]),
            ("CREW_MEMBER", 2, 1, "a", {"job": "Creator", "department": "Creator"}),
        ),
        (
            TV,
            show(
                1,
                genres=[],
                aggregate_credits={"cast": [{"id": 2, "roles": [{"credit_id": "a", "character": "X"}]}], "crew": []},
            ),
            ("ACTED_IN", 2, 1, "a", {"character": "X"}),
        ),
        (
            TV,
            show(
                1,
                genres=[],
                aggregate_credits={"cast": [], "crew": [{"id": 2, "jobs": [{"credit_id": "a", "job": "Director"}]}]},
            ),
            ("DIRECTED", 2, 1, "a", {}),
        ),
    ],
)
def test_each_credit_is_an_edge(entity: EntityType, raw: dict[str, Any], expected: tuple[Any, ...]):
    assert edges(entity, raw) == [expected]


def test_movie_and_person_tell_of_the_same_edge():
    from_movie = project(MOVIE, movie(1, cast(2, "a", "She"), genres=[])).edges
    assert from_movie == project(PERSON, actor(2, title(1, "a", character="She"))).edges


def test_two_roles_of_one_person_are_two_edges_and_a_credit_that_comes_twice_is_one():
    raw = show(1, cast(2, "a"), genres=[])
    raw["aggregate_credits"] = {
        "cast": [{"id": 2, "roles": [{"credit_id": "a", "character": "She"}, {"credit_id": "b", "character": "It"}]}],
        "crew": [],
    }
    assert [edge[3] for edge in edges(TV, raw)] == ["a", "b"]


@pytest.mark.parametrize(
    "credit",
    [
        {"id": 2},
        {"id": None, "credit_id": "a"},
        {"id": "2", "credit_id": "a"},
        {"id": True, "credit_id": "a"},
        {"id": 2**31, "credit_id": "a"},
        {"id": -2, "credit_id": "a"},
        {"id": 2, "credit_id": ""},
        {"id": 2, "credit_id": 7},
        "text",
        None,
    ],
)
def test_a_credit_without_keys_is_left_out(credit: Any):
    raw = movie(1, genres=None)
    raw["credits"]["cast"] = [credit, cast(3, "b")]
    assert [edge[1] for edge in edges(MOVIE, raw)] == [3]


def test_properties_that_are_no_texts_are_left_out():
    raw = movie(1, cast(2, "a", character=["x"]), title={"a": 1}, overview=5, genres=[])
    node = project(MOVIE, raw).node
    assert node.properties["title"] == "Original 1"
    assert node.properties["overview"] is None
    assert edges(MOVIE, raw)[0][4] == {"character": None}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"id": 1, "title": " 喜宴 ", "original_title": "x"}, "喜宴"),
        ({"id": 1, "title": "", "original_title": "The Wedding Banquet"}, "The Wedding Banquet"),
        (
            {
                "id": 1,
                "title": "",
                "original_title": "x",
                "translations": {
                    "translations": [
                        {"iso_639_1": "zh", "iso_3166_1": "HK", "data": {"title": "囍宴"}},
                        {"iso_639_1": "zh", "iso_3166_1": "TW", "data": {"title": "喜宴"}},
                    ]
                },
            },
            "喜宴",
        ),
        ({"id": 1}, None),
    ],
)
def test_a_title_falls_back_to_other_chinese_and_the_original(raw: dict[str, Any], name: str | None):
    assert columns_of(MOVIE, raw)["title"] == name


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ("1993-08-04", date(1993, 8, 4)),
        ("", None),
        ("0000-00-00", None),
        ("2017-13-45", None),
        (None, None),
        (1993, None),
    ],
)
def test_days(given_value: object, expected: date | None):
    assert day_of(given_value) == expected


def test_numbers_that_no_column_holds_are_none():
    assert [count_of(value) for value in (5, 2**53 + 1, -1, 1.5, True, "5")] == [5, None, None, None, None, None]
    assert [number_of(value) for value in (5, 2**53 + 1, float("nan"), 10**400, True)] == [5, 2**53, None, None, None]


@pytest.mark.parametrize(
    ("entity", "raw", "full"),
    [
        (MOVIE, movie(1), True),
        (MOVIE, {"id": 1}, False),
        (MOVIE, {"id": 1, "credits": {"cast": []}}, False),
        (MOVIE, {"id": 1, "credits": None}, False),
        (PERSON, actor(1), True),
        (PERSON, {"id": 1, "movie_credits": {"cast": [], "crew": []}}, False),
        (PERSON, {"id": 1, **{each: {"cast": [], "crew": []} for each in ("movie_credits", "tv_credits")}}, True),
        (TV, {"id": 1, "aggregate_credits": {"cast": [], "crew": []}}, True),
        (TV, {"id": 1, "aggregate_credits": {}}, False),
    ],
)
def test_full_is_what_has_its_credits(entity: EntityType, raw: dict[str, Any], full: bool):
    assert is_full(entity, raw) is full


def test_votes_are_for_graphs_that_are_not_kept():
    assert "vote_average" not in project(MOVIE, movie(1)).node.properties
    assert project(MOVIE, movie(1), votes=True).node.properties["vote_average"] == 7.0


# --- hashes -----------------------------------------------------------------------------------------------------------


def hash_of(raw: dict[str, Any]) -> str:
    return values.graph_hash(project(MOVIE, raw))


FILM = movie(1, cast(2, "a"), cast(3, "b"), crew(4, "c"))


@pytest.mark.parametrize(
    ("change", "in_graph"),
    [
        ({"popularity": 99.5, "vote_average": 1.0, "vote_count": 99, "softcore": False}, False),
        ({"backdrop_path": "/x.jpg", "revenue": 2**60}, False),
        ({"credits": {"cast": [cast(3, "b", order=5), cast(2, "a")], "crew": [crew(4, "c")]}}, False),
        ({"genres": [{"name": "剧情", "id": 18}]}, False),
        ({"title": "Another"}, True),
        ({"overview": ""}, True),
        ({"release_date": "1994-01-01"}, True),
        ({"genres": []}, True),
        ({"credits": {"cast": [cast(2, "a")], "crew": [crew(4, "c")]}}, True),
        ({"credits": {"cast": [cast(2, "a"), cast(3, "b", "He")], "crew": [crew(4, "c")]}}, True),
        ({"credits": {"cast": [cast(2, "a"), cast(3, "b", name="Ang")], "crew": [crew(4, "c")]}}, True),
        ({"credits": {"cast": [cast(2, "a"), cast(3, "b")], "crew": [crew(4, "c", "Editor")]}}, True),
    ],
)
def test_the_hash_of_the_graph_changes_only_with_nodes_or_edges(change: dict[str, Any], in_graph: bool):
    changed = {**copy.deepcopy(FILM), **change}
    assert (hash_of(changed) != hash_of(FILM)) is in_graph
    assert (values.raw_hash(changed) != values.raw_hash(FILM)) is (changed != FILM)


def test_hashes_are_versioned_and_stay_what_they_are():
    """Another value here means that everything counts as changed once: then the version must change, too."""
    assert (
        values.raw_hash({"b": 7.5, "a": "é"}) == "v1:5ed57e42dc77f6b55b8a475a37b7aa7a608d4625358522d2f331a32f2786f740"
    )
    assert hash_of(FILM) == "v2:5b0807e31dc05113860e3064e4cba92c19840dbcdbd201b58cc2f4d9f3c37309"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}])
def test_what_is_no_json_is_refused(value: Any):
    with pytest.raises(PayloadError):
        values.canonical({"id": 1, "x": value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_the_canonical_text_is_json_without_nul_and_the_same_for_itself(raw: dict[str, Any]):
    text = values.canonical(raw)
    assert "\\u0000" not in text or "\\\\u0000" in text
    assert values.canonical(json.loads(text)) == text
    text.encode()


@given(JSON)
def test_cleaning_twice_is_cleaning_once(value: Any):
    assert clean(clean(value)) == clean(value)


@given(
    st.fixed_dictionaries({"id": st.integers(1, 9), "name": JSON, "credits": JSON, "genres": JSON, "created_by": JSON})
)
def test_anything_with_an_id_can_be_projected(raw: dict[str, Any]):
    for entity in EntityType:
        found = project(entity, raw)
        values.graph_hash(found)
        named = {other.key for other in found.others} | {found.node.key}
        assert all({edge.key.start, edge.key.end} <= named for edge in found.edges)


@pytest.mark.parametrize("tmdb_id", [None, 0, -1, "5", 2**31, True, 1.5])
def test_an_answer_without_an_id_is_refused(tmdb_id: Any):
    with pytest.raises(PayloadError, match="no id"):
        project(MOVIE, {"id": tmdb_id})


def test_recorded_answers():
    [film] = [each["body"] for each in recorded() if each["path"] == "/3/movie/tt1345836"]
    found = project(MOVIE, film)
    assert found.node.key.label is NodeLabel.MOVIE
    assert found.node.properties["title"] == "The Dark Knight Rises"
    assert ("DIRECTED", 525) in [(edge.key.relation.value, edge.key.start.tmdb_id) for edge in found.edges]
    [willis] = [each["body"] for each in recorded() if each["query"].get("append_to_response") == "combined_credits"]
    assert is_full(PERSON, willis)
    assert {edge.key.relation for edge in project(PERSON, willis).edges} >= {Relation.ACTED_IN, Relation.CREW_MEMBER}
