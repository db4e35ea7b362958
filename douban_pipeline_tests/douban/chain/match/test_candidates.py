"""Which hits are asked about: as few as the verdict allows, and what is left is kept to be shown."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.errors import GateClosed, SourceUnavailable
from douban_pipeline.douban.chain.match.candidates import CandidateFinder
from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.chain.match.search_progress import SHOWN
from douban_pipeline.douban.sources.douban_php import SubjectAnswer, SubjectRecord
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.sources.search import Hit, SearchAnswer, SearchIncomplete
from douban_pipeline.douban.sources.search_chain import Chain
from douban_pipeline.matching import Kind, Profile, Thresholds, Video
from douban_pipeline.matching.profiles import make_profile
from douban_pipeline_tests.harness.fixtures.clocks import START

TITLE = "长河落日记事"
WEEK = timedelta(days=7)
CREW = ("长河导",)


class Engine:
    """A search that gives one prepared answer after the other, and remembers what it was asked."""

    name = "engine"
    titles_only = True
    page_size = 3

    def __init__(self, *answers, silent=(), cached=False):
        self.answers = answers
        self.silent = silent
        self.cached = cached
        self.asked = []

    def search(self, question, *, max_age):
        number = len(self.asked)
        self.asked.append((question.wording(titles_only=self.titles_only), question.about, question.form))
        hits = tuple(self.answers[number]) if number < len(self.answers) else ()
        return SearchAnswer(
            hits,
            (number + 1,),
            0 if self.cached else 1,
            START,
            self.name,
            full=len(hits) >= self.page_size,
            of_titles=self.titles_only,
            silent=self.silent,
        )


class Douban:
    """Answers about subjects, by default what the search said of them; remembers about which."""

    def __init__(self, *records, gone=(), cached=False):
        self.records = {record.douban_id: record for record in records}
        self.gone = gone
        self.cached = cached
        self.asked = []

    def subject(self, douban_id, *, max_age):
        self.asked.append(douban_id)
        if douban_id in self.gone:
            raise SubjectMissing("douban", "gone")
        record = self.records.get(douban_id, SubjectRecord(douban_id, "别的片子"))
        return SubjectAnswer(record, 100 + douban_id, self.cached, START)


CALIBRATED = make_profile("calibrated")
"""Under the profile `plan` thin records go to review, and are asked about in all forms."""


def finder(engine, douban, top_n=5, **more):
    return CandidateFinder(engine, douban, top_n=top_n, search_age=WEEK, subject_age=WEEK, **more)


def hit(douban_id, title=TITLE, year=None, **known):
    return Hit(douban_id, title, f"https://movie.douban.com/subject/{douban_id}/", year=year, **known)


def record(douban_id, title=TITLE, year=None, **known):
    return SubjectRecord(douban_id, title, year=year, **known)


def crew(douban_id, title=TITLE, year=2021):
    return record(douban_id, title, year, directors=CREW)


def ids(found):
    return [each.douban_id for each in found.subjects], [each.douban_id for each in found.hits]


THIN = Video(7, TITLE, year=2021)
KNOWN = Video(7, TITLE, year=2021, directors=CREW)
YEARLESS = Video(7, TITLE, directors=CREW)


@pytest.mark.parametrize(
    ("video", "hits", "records", "asked", "kept"),
    [
        pytest.param(THIN, [], [], [], [], id="nothing found"),
        pytest.param(THIN, [hit(1), hit(2, "别的片子")], [record(1)], [1], [2], id="named like it, so no guess"),
        pytest.param(THIN, [hit(1, "别的片子"), hit(2)], [record(2)], [2], [1], id="the best first"),
        pytest.param(THIN, [hit(1, f"{TITLE} (豆瓣)")], [record(1)], [1], [], id="the site's tail"),
        pytest.param(THIN, [hit(1, f"{TITLE} - 电影 - 豆瓣")], [record(1)], [1], [], id="another tail"),
        pytest.param(THIN, [hit(1, ""), hit(2)], [record(2)], [2], [1], id="a hit without a title"),
        pytest.param(THIN, [hit(3), hit(2), hit(1)], [record(1), record(2), record(3)], [3, 2, 1], [], id="namesakes"),
        pytest.param(THIN, [hit(1), hit(2, f"{TITLE}之歌")], [record(1)], [1], [2], id="a longer name stays unasked"),
        pytest.param(THIN, [hit(1), hit(2, year=2019)], [record(1)], [1], [2], id="two years off stays unasked"),
        pytest.param(THIN, [hit(2, year=2019)], [record(2)], [2], [], id="unless nothing nearer is there"),
        pytest.param(THIN, [hit(1, year=2017), hit(2, year=2025)], [], [], [1, 2], id="years that rule out"),
        pytest.param(THIN, [hit(1, f"{TITLE} 第二季")], [record(1)], [1], [], id="a number on one side may be wrong"),
        pytest.param(
            Video(7, f"{TITLE} 第三季"), [hit(1, f"{TITLE} 第二季")], [], [], [1], id="another number rules out"
        ),
        pytest.param(
            Video(7, TITLE, kind=Kind.FILM), [hit(1, kind="tv"), hit(2)], [record(2)], [2], [1], id="a kind rules out"
        ),
        pytest.param(
            THIN,
            [hit(1, "别的片子"), hit(2, "另一部"), hit(3, "第三部")],
            [],
            [1],
            [2, 3],
            id="one guess: its alias may be what was found",
        ),
        pytest.param(
            THIN,
            [hit(1, f"{TITLE}之歌"), hit(2, f"{TITLE}传"), hit(3, "另一部")],
            [],
            [1, 2, 3],
            [],
            id="names somewhat alike are no guesses",
        ),
        pytest.param(
            THIN, [hit(1), hit(2)], [record(1, "别的片子"), record(2)], [1, 2], [], id="the engine's title was wrong"
        ),
        # People settle it: nobody else is asked about.
        pytest.param(KNOWN, [hit(1), hit(2), hit(3)], [crew(1)], [1], [2, 3], id="settled"),
        pytest.param(KNOWN, [hit(1), hit(2), hit(3)], [record(1, year=2021), crew(2)], [1, 2], [3], id="by the second"),
        pytest.param(
            YEARLESS,
            [hit(1, year=2021), hit(2, year=2024), hit(3, year=1990)],
            [crew(1), crew(2, year=2024)],
            [1, 2],
            [3],
            id="without a year a sequel with its crew may be it too",
        ),
    ],
)
def test_who_is_asked_about(video, hits, records, asked, kept):
    engine, douban = Engine(hits), Douban(*records)
    found = finder(engine, douban).find(video)
    assert douban.asked == asked
    assert ids(found) == (asked, kept)
    assert found.requests == len(engine.asked) + len(asked)


@pytest.mark.parametrize(
    ("answers", "searches"),
    [
        ([[hit(1)], [hit(2)]], 1),
        ([[hit(1, "别的片子")], [hit(2)]], 2),
        ([[hit(1, year=1990)], [hit(2)]], 2),
        ([[], [hit(2)]], 2),
        ([[], []], 2),
    ],
)
def test_a_search_ends_with_the_first_namesake(answers, searches):
    engine = Engine(*answers)
    found = finder(engine, Douban()).find(Video(7, TITLE, year=2021, aliases=("长河",)))
    assert [query for query, _, _ in engine.asked] == [TITLE, "长河"][:searches]
    assert found.snapshots == (1, 2)[:searches]


def test_the_first_answer_about_a_subject_counts():
    first, second = hit(1, "别的片子", 2021, kind="tv"), hit(1, TITLE, 1990)
    found = finder(Engine([first], [second]), Douban()).find(Video(7, f"{TITLE} HD", aliases=("长河",)))
    assert found.subjects == (FetchedCandidate(1, 101, "tv", "engine"),)


@pytest.mark.parametrize(
    ("hits", "crowded"),
    [
        ([hit(1), hit(2), hit(3)], True),
        ([hit(1), hit(2), hit(3, "别的片子")], False),
        ([hit(1), hit(2), hit(3, year=1990)], False),
        ([hit(1), hit(2)], False),
        ([], False),
    ],
)
def test_a_whole_page_of_namesakes_says_that_there_may_be_more(hits, crowded):
    assert finder(Engine(hits), Douban()).find(THIN).crowded is crowded


def test_what_is_not_asked_about_is_kept_while_there_is_little_to_show():
    hits = [hit(1), *(hit(number, f"毫不相干{number}") for number in range(2, 12)), hit(20, f"{TITLE} 第三季")]
    found = finder(Engine(hits), Douban(record(1))).find(THIN)
    assert ids(found) == ([1], [2, 3, 4, 5, 20])
    assert len(found.subjects) + len(found.hits) == SHOWN + 1, "and beside these what is named like it"


def test_nothing_found_while_an_engine_is_silent_is_tried_again_but_not_for_ever():
    engine = Engine(silent=("google: CAPTCHA",))
    with pytest.raises(SourceUnavailable, match="google: CAPTCHA"):
        finder(engine, Douban()).find(THIN, patience=1)
    assert finder(engine, Douban()).find(THIN, patience=0).subjects == ()
    something = Engine([hit(1)], silent=("google: CAPTCHA",))
    assert ids(finder(something, Douban(record(1))).find(THIN, patience=1)) == ([1], [])


HITS = st.builds(
    Hit,
    douban_id=st.integers(1, 9),
    title=st.sampled_from(["", TITLE, "另一部"]),
    url=st.sampled_from(["", "https://movie.douban.com/subject/1/"]),
    original_title=st.sampled_from(["", "Sunset"]),
    year=st.none() | st.integers(1900, 2030),
    kind=st.sampled_from(["", "movie", "tv"]),
    episodes=st.none() | st.integers(1, 99),
)
FOUND = st.builds(
    FoundCandidates,
    subjects=st.lists(st.builds(FetchedCandidate, st.integers(1), st.integers(1), st.sampled_from(["", "tv"]))).map(
        tuple
    ),
    hits=st.lists(HITS).map(tuple),
    crowded=st.booleans(),
    snapshots=st.lists(st.integers(1)).map(tuple),
    requests=st.integers(0, 9),
    complete=st.booleans(),
    source_healthy=st.booleans(),
)


@given(FOUND)
def test_what_was_found_survives_the_queue(found):
    assert FoundCandidates.from_payload(json.loads(json.dumps(found.to_payload()))) == found


class Web(Engine):
    """A web search: its queries may hold more than titles."""

    titles_only = False


@pytest.mark.parametrize(
    ("video", "subject", "engine", "searches", "asked"),
    [
        pytest.param(THIN, record(1), Web, 3, [1, 2, 3], id="nobody known: the web is asked in every form"),
        pytest.param(KNOWN, crew(1), Web, 1, [1], id="people settle it"),
        pytest.param(THIN, record(1), Engine, 1, [1], id="an index of titles names all at once"),
        pytest.param(THIN, record(1, "别的片子"), Web, 1, [1], id="no namesake after all"),
    ],
)
def test_a_web_search_is_asked_once_more_before_rivals_are_ruled_out(video, subject, engine, searches, asked):
    engine, douban = engine([hit(1)], [hit(1), hit(2, year=2022)], [hit(3)]), Douban(subject, record(2, year=2022))
    found = finder(engine, douban, profile=CALIBRATED).find(video)
    assert (len(engine.asked), douban.asked, len(found.snapshots)) == (searches, asked, searches)


class Closed(Web):
    """A web search that nobody may ask."""

    def search(self, question, *, max_age):
        super().search(question, max_age=max_age)
        raise GateClosed(self.name, "open", START)


def test_a_chain_asks_an_index_of_titles_for_nothing_else():
    web, index = Web(), Engine()
    found = finder(Chain([web, index]), Douban()).find(Video(7, f"{TITLE} HD", year=2021, aliases=("长河",)))
    assert [form for _, _, form in web.asked] == ["plain", "site", ""]
    assert [text for text, _, _ in index.asked] == [TITLE, "长河"], "as many titles as there are"
    assert (found.subjects, found.requests, len(found.snapshots)) == ((), 5, 5)


@pytest.mark.parametrize("video", [THIN, KNOWN, Video(7, TITLE, year=2021, aliases=("长河",))])
def test_what_an_index_of_titles_names_is_all_there_is_also_in_a_chain(video):
    web, index = Web(), Engine([hit(1), hit(2, year=2022)])
    sure = make_profile("calibrated")
    found = finder(Chain([web, index]), Douban(record(1, year=2021)), profile=sure).find(video)
    assert (len(web.asked), len(index.asked)) == (1, 1), "the web is not asked once more"
    assert ids(found) == ([1, 2], [])


@pytest.mark.parametrize(("page_size", "crowded"), [(1, True), (2, False)])
def test_a_page_is_as_full_as_its_own_engine_makes_it(page_size, crowded):
    web = Web([hit(1)])
    web.page_size = page_size
    assert finder(Chain([web, Engine()]), Douban(crew(1))).find(KNOWN).crowded is crowded


@pytest.mark.parametrize(
    ("hits", "records"),
    [
        pytest.param([hit(1, "毫不相干")], [], id="named otherwise"),
        pytest.param([hit(1, year=1980)], [], id="of another time"),
        pytest.param([hit(1)], [record(1, year=1980)], id="of another time, as it turns out"),
    ],
)
def test_nothing_is_concluded_when_what_the_rest_of_a_chain_found_does_not_fit(hits, records):
    closed = Closed()
    with pytest.raises(SearchIncomplete, match="engine: open") as caught:
        finder(Chain([closed, Web(hits, hits, hits)]), Douban(*records)).find(THIN)
    assert caught.value.cause.until == START, "it is asked again when the closed one opens"
    found = finder(Chain([Web(), Web(hits, hits, hits)]), Douban(*records)).find(THIN)
    assert ids(found) != ([], []), "once everybody was asked, it is a good answer"


def test_what_fits_is_good_whoever_of_a_chain_found_it():
    found = finder(Chain([Closed(), Web([hit(1)])]), Douban(crew(1)), profile=CALIBRATED).find(KNOWN)
    assert ids(found) == ([1], []), "the closed one is not needed"
    assert found.complete, "the search ends here with everybody well, too"


def test_a_video_without_a_title_is_not_searched_for():
    for engine in (Engine([hit(1)]), Web([hit(1)])):
        found = finder(engine, Douban()).find(Video(7, "  "))
        assert (engine.asked, found.subjects, found.hits, found.requests) == ([], (), (), 0)


def test_the_thresholds_in_force_say_what_is_worth_asking():
    hits = [hit(1, year=2025)]
    strict, wide = Douban(), Douban()
    finder(Engine(hits), strict).find(THIN)
    ages = {"search_age": WEEK, "subject_age": WEEK}
    CandidateFinder(Engine(hits), wide, top_n=5, **ages, profile=Profile(thresholds=Thresholds(year_gap=5))).find(THIN)
    assert (strict.asked, wide.asked) == ([], [1])


def test_what_an_index_names_first_is_asked_about_before_names_that_are_somewhat_alike():
    hits = [
        hit(1, "另一部片子", year=2021),
        *(hit(number, f"{TITLE}{number}部曲", year=2021) for number in range(2, 9)),
    ]
    douban = Douban(record(1, "另一部片子", 2021, aliases=(TITLE,)))
    found = finder(Engine(hits), douban).find(THIN)
    assert douban.asked[0] == 1
    assert 1 in ids(found)[0]


def test_namesakes_without_a_year_are_asked_about_until_their_people_settle_it():
    hits = [hit(number, year=1990 + number) for number in range(1, 12)]
    douban = Douban(*(record(each.douban_id, year=each.year) for each in hits[:-1]), crew(11, year=2001))
    finder(Engine(hits), douban).find(YEARLESS)
    assert douban.asked == list(range(1, 12))
    nobody = Douban(*(record(each.douban_id, year=each.year) for each in hits))
    finder(Engine(hits), nobody).find(Video(7, TITLE))
    assert len(nobody.asked) == 5
