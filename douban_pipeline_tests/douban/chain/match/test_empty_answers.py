"""A search that answers a clean empty list to everything: noticed after a few questions, made good within a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.core.gate_evidence import DoubtWindow
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.reports.health.alerts import open_alerts, settle
from douban_pipeline.douban.reports.health.causes import MEASURED, current_causes
from douban_pipeline.douban.reports.health.metrics import measure
from douban_pipeline.douban.sources.known_titles import FAMOUS, KnownTitles
from douban_pipeline.douban.store.shown_status import shown_status
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.fixtures.scenario import Scenario, row_of, subject

Stage = Callable[..., Scenario]
DAY = timedelta(days=1)
OLD = ("青石旧事", "白鹭旧事", "红砖旧事")
KNOWN = [subject(90_003_000 + number, title, 2005 + number) for number, title in enumerate(OLD)]
NAMES = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
FILMS = [subject(90_002_000 + number, f"{name}城夜行船记", 2001 + number) for number, name in enumerate(NAMES)]
"""Two dozen films that a search finds by their names."""
FIRST = 4 + 100 * SHARDS


def at_home(stage: Stage, **options: Any) -> Scenario:
    """Return a library of one shard whose three first videos were linked while the search was well."""
    rows = [row_of(film, 4 + SHARDS * number) for number, film in enumerate(KNOWN)]
    options = {"search_concurrency": 3, "douban_concurrency": 1, **options}
    scenario = stage(rows, [*KNOWN, *FILMS], **options)
    assert scenario.play().metadata("synced_fields")["written"] == len(KNOWN)
    return scenario


def add(scenario: Scenario, films: list[dict[str, Any]], first: int = FIRST) -> list[int]:
    """Let the site get a video of each film; return their ids."""
    rows = [row_of(film, first + SHARDS * number) for number, film in enumerate(films)]
    scenario.library.add(*rows)
    scenario.library.intake.initialise(spread=False)
    return [row["vod_id"] for row in rows]


def gate(scenario: Scenario, source: str = "searxng") -> Any:
    [status] = [status for status in scenario.services.gate.status() if status.source == source]
    return status


def visits(scenario: Scenario, vod_ids: list[int]) -> list[timedelta]:
    """Return after how long each video is visited next."""
    now = scenario.clock.now()
    return [scenario.library.state(vod_id)["douban_next_sync_at"] - now for vod_id in vod_ids]


def linked(scenario: Scenario, vod_ids: list[int]) -> list[int]:
    return [scenario.cms(vod_id, "vod_douban_id")[0] for vod_id in vod_ids]


def test_it_is_silent_after_a_dozen_questions_and_nothing_is_judged(stage: Stage) -> None:
    scenario = at_home(stage)
    ids = add(scenario, FILMS)
    asked = scenario.upstream.requests.count("search")
    scenario.upstream.faults.add("search", "empty")
    run = scenario.play()
    assert run.success
    assert scenario.upstream.requests.count("search") - asked <= 13, "ten, two under way, a known title"
    assert scenario.upstream.requests.keys("search")[-1].startswith(OLD)
    assert [verdict for verdict in scenario.verdicts() if verdict["verdict"] == "NOT_FOUND"] == []
    for vod_id in ids:
        task, state = scenario.task(vod_id), scenario.library.state(vod_id)
        assert (task["status"], task["attempts"], state["douban_sync_fail_count"]) == ("PENDING", 0, 0)
        assert state["douban_review_reason"] == ""
    status = gate(scenario)
    assert (status.state, status.failures) == (GateState.OPEN, 0)
    assert status.reason.startswith("结果存疑：连续 10 次搜索没有结果，且 1 次搜不到已知影片")

    # For an hour nothing but a known title is asked for now and then; then the search is well.
    asked = scenario.upstream.requests.count("search")
    for _ in range(12):
        scenario.clock.advance(minutes=5)
        assert scenario.play().success
    assert 3 <= scenario.upstream.requests.count("search") - asked <= 12
    assert [verdict for verdict in scenario.verdicts() if verdict["verdict"] == "NOT_FOUND"] == []
    scenario.upstream.faults.clear()
    for _ in range(3):
        scenario.clock.advance(minutes=20)
        scenario.play()
    assert linked(scenario, ids) == [film["id"] for film in FILMS]
    assert (gate(scenario).state, gate(scenario).doubt) == (GateState.CLOSED, "")


def test_what_was_judged_before_it_was_noticed_is_visited_again_within_a_day(stage: Stage) -> None:
    scenario = at_home(stage)
    scenario.upstream.faults.add("search", "empty")
    early = add(scenario, FILMS[:2])
    scenario.play()
    assert [scenario.verdicts(vod_id)[-1]["verdict"] for vod_id in early] == ["NOT_FOUND"] * 2, (
        "six answers prove little"
    )
    assert min(visits(scenario, early)) > 2 * DAY
    late = add(scenario, FILMS[2:], FIRST + 1000 * SHARDS)
    scenario.play()
    assert gate(scenario).state is GateState.OPEN
    assert scenario.play().metadata("due_videos")["revisited"] == 2
    assert max(visits(scenario, early)) <= timedelta(hours=12)
    assert scenario.play().metadata("due_videos")["revisited"] == 0, "once a doubt"
    # What the archive holds of that time is not believed either: the miss would count for a day.
    scenario.upstream.faults.clear()
    for _ in range(4):
        scenario.clock.advance(minutes=30)
        scenario.play()
    assert linked(scenario, [*early, *late]) == [film["id"] for film in FILMS]


def test_videos_that_are_truly_nowhere_are_not_found_at_the_cost_of_a_known_title(stage: Stage) -> None:
    scenario = at_home(stage, videos_at_once=1)
    asked = scenario.upstream.requests.count("search")
    nobodys = [subject(91_000_000 + number, f"{name}无人知晓之物", 1960 + number) for number, name in enumerate(NAMES)]
    ids = add(scenario, nobodys)
    scenario.play()
    verdicts = [scenario.verdicts(vod_id)[-1]["verdict"] for vod_id in ids]
    assert set(verdicts) == {"NOT_FOUND"}
    probes = [key for key in scenario.upstream.requests.keys("search")[asked:] if key.startswith(OLD)]
    assert len(probes) == 1
    assert (gate(scenario).state, gate(scenario).doubts) == (GateState.CLOSED, ())
    assert min(visits(scenario, ids)) > 2 * DAY, "nothing is visited again"


def test_people_are_told_once_for_as_long_as_it_lasts(stage: Stage) -> None:
    scenario = at_home(stage)
    add(scenario, FILMS)
    scenario.upstream.faults.add("search", "empty")

    def alerts() -> list[tuple[str, int]]:
        settle(scenario.services, MEASURED, current_causes(scenario.services, measure(scenario.services), None))
        return [(alert.title, alert.times) for alert in open_alerts(scenario.services)]

    for _ in range(6):
        scenario.play()
        assert alerts() == [("搜索来源的空结果不可信：SearXNG 搜索", 1)]
        scenario.clock.advance(minutes=5)
    scenario.upstream.faults.clear()
    for _ in range(2):
        scenario.clock.advance(minutes=20)
        scenario.play()
    assert alerts() == []


def test_in_a_chain_the_other_goes_on_but_nothing_is_said_to_be_nowhere(stage: Stage) -> None:
    scenario = at_home(stage)
    urls = {"searxng": scenario.upstream.search_url, "douban_suggest": scenario.upstream.suggest_url}
    scenario = scenario.under(search_provider="chain", search_chain=urls)
    ids = add(scenario, [*FILMS[:12], subject(91_000_500, "谁也没有听说过的东西", 1961)])
    scenario.upstream.faults.add("search", "empty")
    scenario.play()
    assert linked(scenario, ids) == [*(film["id"] for film in FILMS[:12]), 0]
    assert gate(scenario).state is GateState.OPEN
    assert gate(scenario, "douban_suggest").state is GateState.CLOSED
    assert scenario.verdicts(ids[-1]) == []


@pytest.mark.parametrize("provider", ["searxng", "douban_suggest", "bocha"])
def test_a_known_title_is_one_that_this_search_found(stage: Stage, provider: str) -> None:
    scenario = stage([row_of(KNOWN[0], 4)], KNOWN)
    place = {"searxng": "search", "douban_suggest": "suggest", "bocha": "bocha"}[provider]
    url = getattr(scenario.upstream, f"{place}_url")
    scenario = scenario.under(search_provider=provider, search_url=url, bocha_api_key="sk-test")
    services = scenario.services
    titles = KnownTitles(services.engine, services.tables, services.archive)
    search: Any = services.search
    assert titles.choose(search).douban_id in {douban_id for douban_id, _, _ in FAMOUS}, "nothing is linked yet"
    scenario.play()
    known = titles.choose(search)
    assert known.douban_id == KNOWN[0]["id"]
    assert known.question.wording(titles_only=search.titles_only).startswith(KNOWN[0]["title"])
    # An answer that is gone, or that another search gave, says nothing of this one.
    table = services.tables.snapshot
    scenario.library.execute(sa.update(table).where(table.c.source == provider).values(source="other"))
    assert titles.choose(search).douban_id != KNOWN[0]["id"]


def test_a_person_has_any_window_visited_again(stage: Stage) -> None:
    scenario = at_home(stage)
    began = scenario.clock.now()
    scenario.upstream.faults.add("search", "empty")
    ids = add(scenario, FILMS[:2])
    scenario.play()
    scenario.upstream.faults.clear()
    scenario.clock.advance(hours=2)
    zone = scenario.services.settings.zone
    config = {
        "reviewer": "小王",
        "note": "引擎失效",
        "source": "searxng",
        "since": f"{began.astimezone(zone):%Y-%m-%d %H:%M}",
        "until": f"{scenario.clock.now().astimezone(zone):%Y-%m-%d %H:%M}",
    }
    before = visits(scenario, ids)
    for changed, words in (({"source": "bing"}, "source"), ({"until": "昨天"}, "不是时间"), ({"note": ""}, "note")):
        refused = scenario.launch("revisit_not_found", {"queue_revisits": {"config": {**config, **changed}}})
        assert (refused.success, words in str(refused.failure)) == (False, True)
    assert scenario.launch("revisit_not_found", {"queue_revisits": {"config": config}}).success
    assert visits(scenario, ids) == before, "a dry run by default"
    assert {shown_status(scenario.library.state(vod_id)) for vod_id in ids} == {"NOT_FOUND"}
    assert scenario.launch("revisit_not_found", {"queue_revisits": {"config": {**config, "dry_run": False}}}).success
    assert max(visits(scenario, ids)) <= timedelta(hours=12)
    assert {shown_status(scenario.library.state(vod_id)) for vod_id in ids} == {"UNCHECKED"}
    assert scenario.services.gate.doubts("searxng", began + timedelta(minutes=1))
    scenario.clock.advance(hours=1)
    scenario.play()
    assert linked(scenario, ids) == [film["id"] for film in FILMS[:2]], "not by the archived miss"


def test_what_named_something_like_the_video_in_that_window_is_believed(stage: Stage) -> None:
    film = FILMS[0]
    scenario = stage([row_of(film, 4, vod_year="1980", vod_director="旧人", vod_actor="")], FILMS)
    began = scenario.clock.now()
    scenario.play()
    scenario.clock.advance(hours=1)
    scenario.services.gate.distrust("searxng", DoubtWindow(began, scenario.clock.now()))
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
    scenario.clock.advance(hours=1)
    scenario.play()
    # The search has the same answer in the archive: doubted, it would be searched for again, for weeks.
    assert [verdict["verdict"] for verdict in scenario.verdicts(4)] == ["NOT_FOUND", "NOT_FOUND"]
    assert scenario.task(4)["status"] == "SUCCESS"
