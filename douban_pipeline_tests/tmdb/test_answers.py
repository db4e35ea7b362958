"""What an answer means, from how it was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from douban_pipeline.tmdb.answers import Meaning, language_of, read_answer, request_of, without_appended
from douban_pipeline_tests.tmdb.given import recorded

LIST = {"page": 1, "results": [{"id": 5, "title": "A"}, {"id": "x"}, 7]}
MULTI = {
    "results": [
        {"id": 1, "media_type": "movie"},
        {"id": 2, "media_type": "tv"},
        {"id": 3, "media_type": "person", "known_for": [{"id": 4, "media_type": "movie"}]},
        {"id": 9, "media_type": "collection"},
    ]
}
MISSING = {"success": False, "status_code": 34}


@pytest.mark.parametrize(
    ("path", "status", "body", "meaning", "key"),
    [
        ("/3/movie/5", 200, {"id": 5}, Meaning.ENTITY, "movie/5"),
        ("/3/tv/5", 200, {"id": 5}, Meaning.ENTITY, "tv/5"),
        ("person/5?language=da", 200, {"id": 5}, Meaning.ENTITY, "person/5"),
        ("https://api.themoviedb.org/3/movie/5", 200, {"id": 5}, Meaning.ENTITY, "movie/5"),
        ("/3/movie/tt1345836", 200, {"id": 5}, Meaning.ENTITY, "movie/5"),
        ("/3/tv/latest", 200, {"id": 5}, Meaning.ENTITY, "tv/5"),
        ("/3/movie/5", 200, {"id": 6}, Meaning.FAILED, None),
        ("/3/movie/5", 200, [], Meaning.FAILED, None),
        ("/3/movie/5", 404, MISSING, Meaning.GONE, "movie/5"),
        ("/3/movie/5", 404, "<html>", Meaning.FAILED, None),
        ("/3/movie/5", 401, {"success": False, "status_code": 7}, Meaning.FAILED, None),
        ("/3/movie/5", 429, {"status_code": 25}, Meaning.FAILED, None),
        ("/3/movie/5", 503, None, Meaning.FAILED, None),
        ("/3/movie/5", 200, {"success": False, "status_code": 34}, Meaning.GONE, "movie/5"),
        ("/3/movie/5/keywords", 404, MISSING, Meaning.FAILED, None),
        ("/3/movie/5/keywords", 200, {"id": 5}, Meaning.UNUSED, "movie/5"),
        ("/3/movie/5/translations", 200, {"id": 5}, Meaning.TRANSLATIONS, "movie/5"),
        ("/3/movie/5/credits", 200, {"cast": [], "crew": []}, Meaning.MENTIONS, "movie/5"),
        ("/3/movie/changes", 200, {"results": [{"id": 1}]}, Meaning.UNUSED, None),
        ("/3/tv/episode/62085/changes", 200, {}, Meaning.UNUSED, None),
        ("/3/tv/5/season/1", 200, {}, Meaning.UNUSED, None),
        ("/3/search/collection", 200, LIST, Meaning.UNUSED, None),
        ("/3/genre/tv/list", 200, {"genres": []}, Meaning.GENRES, None),
        ("/3/configuration/jobs", 200, [], Meaning.UNUSED, None),
        ("/3/account", 200, {"id": 7}, Meaning.UNKNOWN, None),
        ("/", 200, None, Meaning.UNKNOWN, None),
        ("/3/movie/99999999999", 200, {"id": 1}, Meaning.UNKNOWN, None),
    ],
)
def test_meanings(path: str, status: int, body: Any, meaning: Meaning, key: str | None):
    reading = read_answer(request_of(path), status, body)
    assert reading.meaning is meaning
    if key or meaning is Meaning.FAILED:
        assert (str(reading.key) if reading.key else None) == key


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/3/search/multi", MULTI, ["movie/1", "tv/2", "person/3", "movie/4"]),
        ("/3/trending/all/day", MULTI, ["movie/1", "tv/2", "person/3", "movie/4"]),
        ("/3/search/movie", LIST, ["movie/5"]),
        ("/3/discover/tv", LIST, ["tv/5"]),
        ("/3/movie/popular", LIST, ["movie/5"]),
        ("/3/movie/7/similar", LIST, ["movie/5"]),
        ("/3/find/tt1", {"movie_results": [{"id": 5}], "tv_results": [{"id": 6}]}, ["movie/5", "tv/6"]),
        ("/3/movie/7/credits", {"cast": [{"id": 1}], "crew": [{"id": 2}]}, ["person/1", "person/2"]),
        ("/3/person/7/movie_credits", {"cast": [{"id": 1}]}, ["movie/1"]),
        ("/3/person/7/combined_credits", {"cast": [{"id": 1, "media_type": "tv"}]}, ["tv/1"]),
        ("/3/person/7/tagged_images", {"results": [{"media": {"id": 1, "media_type": "tv"}}]}, ["tv/1"]),
        ("/3/search/multi", {"results": None}, []),
        ("/3/search/multi", "text", []),
    ],
)
def test_entities_that_an_answer_names(path: str, body: Any, named: list[str]):
    reading = read_answer(request_of(path), 200, body)
    assert reading.meaning is Meaning.MENTIONS
    assert [f"{mention.type.value}/{mention.item['id']}" for mention in reading.mentions] == named


@pytest.mark.parametrize(
    ("given_value", "language"),
    [("zh-CN", "zh-CN"), ("zh_cn", "zh-CN"), ("IT", "it"), ("", None), (None, None), ("x' OR 1", None)],
)
def test_languages(given_value: object, language: str | None):
    assert language_of(given_value) == language


def test_a_request_without_a_language_is_answered_in_english():
    assert request_of("/movie/1").language == "en-US"
    assert request_of("/movie/1", {"language": ["de-DE"]}).language == "de-DE"


def test_what_was_appended_is_left_out():
    request = request_of("/3/movie/5", "append_to_response=images, videos")
    assert without_appended(request, {"id": 5, "images": {}, "videos": {}, "title": "A"}) == {"id": 5, "title": "A"}


def test_recorded_answers_are_of_every_kind_and_none_is_unknown():
    meanings = {
        read_answer(request_of(each["path"], each["query"]), each["status"], each["body"]).meaning
        for each in recorded()
    }
    assert meanings == set(Meaning) - {Meaning.UNKNOWN}
