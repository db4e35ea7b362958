"""What a search for candidates costs over HTTP: few requests, none twice, and a failed one is never an empty answer."""

from __future__ import annotations

from douban_pipeline.douban.chain.match.candidates import CandidateFinder
from douban_pipeline.douban.chain.match.judgement import judge_found
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.matching import Status, Video
from douban_pipeline.matching.profiles import PLAN
from douban_pipeline.matching.site_videos import video_facts
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of, subject
from douban_pipeline_tests.stand_ins.replay import ReplayServer

TITLE = "长河落日记事"


def finder(scenario, **changed):
    settings = scenario.library.settings
    ages = {"search_age": settings.search_cache_age, "subject_age": SUBJECT_CACHE_AGE}
    services = scenario.services
    return CandidateFinder(services.search, services.douban, **({"top_n": 5} | ages | changed))


def facts(scenario, vod_id):
    return video_facts(scenario.library.row(vod_id), scenario.services.cms, scenario.services.categories)


def ids(found):
    return [each.douban_id for each in found.subjects]


def asked(scenario):
    requests = scenario.upstream.requests
    return requests.keys("search"), requests.keys("douban")


def test_a_video_that_is_plainly_named_costs_two_requests(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    found = finder(scenario).find(facts(scenario, 4))
    assert asked(scenario) == ([f"{TITLE} 豆瓣"], ["90000101"])
    assert ids(found) == [90_000_101]
    assert (found.hits, found.crowded, found.requests, len(found.snapshots)) == ((), False, 2, 1)


def test_a_video_that_nobody_names_is_asked_for_in_three_forms(stage):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_year="2021", vod_director="某人")], FILMS)
    found = finder(scenario).find(facts(scenario, 4))
    forms = ["查无此片之谜 豆瓣", "查无此片之谜 2021 site:movie.douban.com/subject", "查无此片之谜 某人 豆瓣 subject"]
    assert asked(scenario) == (forms, [])
    assert (found.subjects, found.hits, found.requests) == ((), (), 3)


def test_nothing_is_asked_twice(stage):
    scenario = stage([row_of(RIVER, 4), row_of(RIVER, 5, vod_name="長河落日記事")], FILMS)
    first = finder(scenario).find(facts(scenario, 4))
    before = asked(scenario)
    again = finder(scenario).find(facts(scenario, 4))
    spelt_otherwise = finder(scenario).find(facts(scenario, 5))
    assert asked(scenario) == before
    assert (again.requests, spelt_otherwise.requests) == (0, 0)
    assert again.subjects == first.subjects == spelt_otherwise.subjects
    assert again.snapshots == first.snapshots


def test_an_old_answer_is_asked_for_anew(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    look = finder(scenario)
    look.find(facts(scenario, 4))
    scenario.clock.advance(hours=25)
    assert look.find(facts(scenario, 4)).requests == 1, "the subject, not the search"
    scenario.clock.advance(days=15)
    assert look.find(facts(scenario, 4)).requests == 2


def test_people_in_a_query_are_part_of_its_key(stage):
    unknown = {"vod_name": "查无此片之谜", "vod_year": "2021"}
    scenario = stage([video(4, vod_director="某人", **unknown), video(5, vod_director="别人", **unknown)], FILMS)
    look = finder(scenario)
    assert look.find(facts(scenario, 4)).requests == 3
    assert look.find(facts(scenario, 5)).requests == 1, "title and year are shared, the director is not"


def test_a_subject_that_is_gone_is_passed_over(stage):
    sequel = subject(90_000_201, "长河落日记事 第二季", 2023)
    with ReplayServer([sequel]) as younger:  # Douban no longer has what the engine still knows
        scenario = stage([row_of(RIVER, 4)], [RIVER, sequel], douban_url=younger.douban_url)
        found = finder(scenario).find(facts(scenario, 4))
        assert sorted(younger.requests.keys("douban")) == ["90000101", "90000201"]
    assert ids(found) == [90_000_201]
    # What is left goes to a person, after all three questions.
    assert found.requests == 5, "the answer that says so was a request too"


def test_no_more_details_are_asked_for_than_wanted(stage):
    family = [subject(90_000_300 + n, f"长河落日记事{mark}", 2021) for n, mark in enumerate("甲乙丙丁戊己")]
    scenario = stage([row_of(RIVER, 4)], family)
    found = finder(scenario, top_n=3).find(facts(scenario, 4))
    assert len(scenario.upstream.requests.keys("douban")) == len(found.subjects) == 3
    assert {hit.douban_id for hit in found.hits} == {entry["id"] for entry in family} - set(ids(found))


def test_douban_suggest_is_asked_for_titles_alone(stage):
    entry = subject(90_000_401, "长河落日记事 第二季", 2021, kind="tv", episodes=24)
    scenario = stage(
        [row_of(entry, 4, vod_name="长河落日记事 第二季 1080P", type_id=13), row_of(WHALE, 5)],
        [entry, WHALE],
        search_provider="douban_suggest",
    )
    found = finder(scenario).find(facts(scenario, 4))
    queries = scenario.upstream.requests.keys("suggest")
    assert queries == ["长河落日记事 第二季"], "found by the first: no more are asked"
    assert not asked(scenario)[0]
    assert ids(found) == [90_000_401]
    other = finder(scenario).find(Video(9, "查无此片之谜 第三季", year=2020, aliases=("无名之谜",)))
    assert scenario.upstream.requests.keys("suggest")[1:] == ["查无此片之谜 第三季", "无名之谜", "查无此片之谜"]
    assert (other.subjects, other.hits) == ((), ())


def test_a_video_that_goes_to_review_has_had_its_three_questions(stage):
    """Nobody that is known of it agrees, so that a person will look: after all questions were asked."""
    scenario = stage([row_of(RIVER, 4, vod_director="", vod_actor="某甲")], FILMS)
    found = finder(scenario).find(facts(scenario, 4))
    bodies = {each.douban_id: scenario.services.archive.get(each.snapshot_id).body for each in found.subjects}
    records = {douban_id: parse_subject(body, douban_id) for douban_id, body in bodies.items()}
    assert judge_found(facts(scenario, 4), found, records, PLAN).status is Status.REVIEW
    forms = [f"{TITLE} 豆瓣", f"{TITLE} 2021 site:movie.douban.com/subject", f"{TITLE} 某甲 豆瓣 subject"]
    assert asked(scenario)[0] == forms
