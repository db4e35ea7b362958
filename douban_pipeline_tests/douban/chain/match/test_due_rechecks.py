"""Links that are judged again by themselves: why, from what, within which allowance, and what a reviewer is shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.match import due_rechecks, verdict_rows
from douban_pipeline.douban.chain.match.due_rechecks import RecheckReason, queue_due_rechecks
from douban_pipeline.douban.chain.match.rechecks import CurrentLink
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.queue_table import pressing_table
from douban_pipeline.douban.review.worklist.sheet import cards_of
from douban_pipeline.douban.store.tasks import RECHECK_PRIORITY, SEARCHED
from douban_pipeline.matching import Kind, Subject, Video, judge
from douban_pipeline.matching.profiles import PLAN
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, KITE, RIVER, TRAM, WHALE, row_of
from douban_pipeline_tests.harness.fixtures.sent_statements import sent_statements
from douban_pipeline_tests.stand_ins.replay import ReplayServer

LINK = ("vod_douban_id", "douban_id_source", "douban_id_locked", "douban_id_confidence")


@pytest.fixture
def confirmed(stage):
    """Two links that the pipeline confirmed and synced, their next visits far ahead."""
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    assert scenario.play().metadata("scored_matches")["confirmed"] == 2
    for vod_id in (4, 5):
        scenario.library.set_state(vod_id, douban_next_sync_at=scenario.clock.now() + timedelta(days=400))
    return scenario


def queued(scenario, *, parts=1, part=0, **rules):
    return queue_due_rechecks(scenario.services, range(part, 64, parts), parts=parts, run_id="rechecks", **rules)


def asked(scenario):
    return [scenario.upstream.requests.count(source) for source in ("search", "douban")]


def links(scenario):
    return {vod_id: [state[name] for name in LINK] for vod_id, state in scenario.library.states().items()}


def sync_again(scenario, **changed):
    """Let video 4 be synced while Douban says something else of its subject."""
    films = [{**RIVER, **changed}, *FILMS[1:]]
    with ReplayServer(films) as other:
        later = scenario.under(douban_url=other.douban_url)
        scenario.clock.advance(days=2)
        scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
        assert later.play().success
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now() + timedelta(days=400))


def test_what_the_same_rules_confirmed_lately_is_left_alone(confirmed, monkeypatch):
    monkeypatch.setattr(due_rechecks, "RECHECK_PERCENT", 100)
    report = queued(confirmed)
    assert (report.links, report.queued, report.left.total()) == (2, [], 0)


def test_other_rules_judge_from_the_archive_and_ask_nobody(confirmed, monkeypatch):
    before, held, requests = confirmed.library.all_bytes(), links(confirmed), asked(confirmed)
    report = queued(confirmed, rule_version="rules-next")
    assert [(item.vod_id, item.reason) for item in report.queued] == [(4, "rules"), (5, "rules")]
    assert (report.searched, queued(confirmed, rule_version="rules-next").queued) == (0, [])
    monkeypatch.setattr(verdict_rows, "RULE_VERSION", "rules-next")
    run = confirmed.play()
    told = run.metadata("scored_matches")
    assert (told["rechecked"], told["rechecked_doubtful"], told["confirmed"]) == (2, 0, 2)
    assert asked(confirmed) == requests
    assert (links(confirmed), confirmed.library.all_bytes()) == (held, before)
    assert [verdict["rule_version"] for verdict in confirmed.verdicts(4)][-1] == "rules-next"
    # Judged again, they are not due any more.
    assert queued(confirmed, rule_version="rules-next").queued == []


def test_a_subject_that_says_something_else_is_judged_by_it(confirmed):
    sync_again(confirmed, rating=3.1, votes=9)
    assert queued(confirmed).queued == [], "ratings decide nothing"
    sync_again(confirmed, year=2020)
    requests = asked(confirmed)
    [item] = queued(confirmed).queued
    assert (item.vod_id, item.reason, item.found is not None) == (4, RecheckReason.FACTS, True)
    assert confirmed.play().metadata("scored_matches")["rechecked"] == 1
    assert asked(confirmed) == requests
    assert [row["year"] for row in confirmed.candidates(4)][-1] == 2020
    assert queued(confirmed).queued == []


def test_what_would_not_be_confirmed_goes_to_review_with_both_verdicts(confirmed):
    sync_again(confirmed, year=2019, pubdates=["2019-05-01(中国大陆)"])
    held = links(confirmed)
    confirmed.library.execute("UPDATE mac_vod SET vod_director = '', vod_actor = '', vod_area = '' WHERE vod_id = 4")
    before = confirmed.library.all_bytes()
    queued(confirmed)
    told = confirmed.play().metadata("scored_matches")
    assert (told["rechecked"], told["rechecked_doubtful"]) == (1, 1)
    state = confirmed.library.state(4)
    assert state["douban_review_status"] == "REVIEW"
    assert state["douban_review_reason"].startswith(
        f"复查（条目资料有变）：豆瓣 ID {RIVER['id']} 按现在的规则不再确认；"
    )
    assert (links(confirmed), confirmed.library.all_bytes()) == (held, before)
    queue = review_queue_of(confirmed.services, most=10)
    [entry] = queue.first
    first, second = confirmed.verdicts(4)
    assert (entry.both.then.verdict_id, entry.both.now.verdict_id) == (first["verdict_id"], second["verdict_id"])
    assert entry.both.then.score == first["score"] > entry.both.now.score
    [card] = cards_of(confirmed.services, queue.first)
    rows = {label: (then, now, differs) for label, then, now, differs in card["both"]["rows"]}
    assert rows["结论"] == ("已确认", "待审核", True)
    assert rows["得分"][0] == f"{first['score']:.1f}"
    assert rows["年份（条目）"] == ("2021", "2019", True)
    assert rows["导演（分）"][1:] == ("未比较", True)
    assert f"现有关联当时 {first['score']:.1f}，现在" in pressing_table(queue, {}, confirmed.services.location)


@pytest.mark.parametrize("why", ["locked", "ignored", "decided", "gone", "recycled"])
def test_what_is_not_automations_to_question_is_left_alone(confirmed, why):
    values = {
        "locked": {"douban_id_locked": True},
        "ignored": {"douban_review_status": "IGNORED"},
        "gone": {"douban_next_sync_at": None},
        "decided": {},
        "recycled": {},
    }[why]
    if why == "recycled":
        confirmed.library.set_cms(4, vod_recycle_time=5)
    elif values:
        confirmed.library.set_state(4, **values)
    else:
        confirmed.library.execute(
            "INSERT INTO mac_douban_decision (vod_id, shard, action, reviewer, state, run_id, created_at) "
            "VALUES (4, 4, 'rematch', '小王', 'pending', 'r', '2026-01-01 00:00:00')"
        )
    assert [item.vod_id for item in queued(confirmed, rule_version="rules-next").queued] == [5]


def test_a_backlog_of_videos_to_match_does_not_keep_them_waiting(confirmed):
    confirmed.library.add(row_of(TRAM, 68), row_of(KITE, 132))
    confirmed.library.intake.initialise(spread=False)
    small = confirmed.under(batch_size=1)
    assert [item.vod_id for item in queued(small, rule_version="rules-next").queued] == [4, 5]
    told = small.play(4).metadata("scored_matches")
    assert (told["judged"], told["rechecked"]) == (2, 1)


def test_by_age_a_share_a_day_is_searched_for_anew_the_oldest_first(confirmed, monkeypatch):
    confirmed.clock.advance(days=40)
    monkeypatch.setattr(due_rechecks, "RECHECK_PERCENT", 50)
    first = queued(confirmed)
    assert [(item.vod_id, item.reason, item.found) for item in first.queued] == [(4, RecheckReason.AGE, None)]
    assert (queued(confirmed).queued, first.today) == ([], 1), "one of two a day"
    requests = asked(confirmed)
    assert confirmed.play().metadata("scored_matches")["rechecked"] == 1
    assert asked(confirmed) > requests
    confirmed.clock.advance(days=1)
    assert [item.vod_id for item in queued(confirmed).queued] == [5]
    monkeypatch.setattr(due_rechecks, "RECHECK_PERCENT", 0)
    assert queued(confirmed).queued == []


def test_a_few_links_get_their_share_over_the_days(confirmed, monkeypatch):
    confirmed.clock.advance(days=40)
    monkeypatch.setattr(due_rechecks, "RECHECK_PERCENT", 5)
    found = 0
    for _ in range(20):
        found += len(queued(confirmed).queued)
        confirmed.clock.advance(days=1)
    assert found == 2


def test_the_days_allowance_bounds_all_of_them(confirmed, monkeypatch):
    monkeypatch.setattr(due_rechecks, "RECHECKS_PER_DAY", 1)
    report = queued(confirmed, rule_version="rules-next")
    assert (len(report.queued), report.left, report.today) == (1, {"rules": 1}, 1)
    assert queued(confirmed, rule_version="rules-next").queued == []


def test_without_the_archive_rules_are_tried_by_a_search_within_the_same_share(confirmed, monkeypatch):
    snapshot = confirmed.library.tables.snapshot
    confirmed.library.execute(sa.delete(snapshot).where(snapshot.c.source == "douban"))
    assert queued(confirmed, rule_version="rules-next").left == {"rules": 2}
    monkeypatch.setattr(due_rechecks, "RECHECK_PERCENT", 100)
    [item, other] = queued(confirmed, rule_version="rules-next").queued
    assert (item.found, other.found) == (None, None)


FACTS = {
    "directors": ("甲导",),
    "actors": ("乙", "丙"),
    "regions": ("中国大陆",),
    "genres": ("剧情",),
    "kind": Kind.FILM,
}
VIDEO = Video(4, "长河落日记事", year=2021, **FACTS)


@pytest.mark.parametrize(
    ("subjects", "status"),
    [
        ([Subject(RIVER["id"], "长河落日记事")], "CONFIRMED"),
        ([Subject(RIVER["id"], "蓝鲸与灯塔守望者", year=1990, directors=("丁",), regions=("美国",))], "REVIEW"),
        ([Subject(KITE["id"], "长河落日记事", year=2021, rating=8.0, **FACTS)], "REVIEW"),
    ],
)
def test_an_id_of_the_cms_that_nothing_ever_confirmed_is_questioned_on_evidence_only(subjects, status):
    link = CurrentLink(RIVER["id"], unproven=True, why="久未复查")
    assert link.recheck(judge(VIDEO, subjects, profile=PLAN))[0] == status


def test_the_rechecks_of_today_are_found_without_reading_all_tasks(shared_library):
    library = shared_library.renewed()
    recheck = {"task_type": "RECHECK", "stage": "SEARCH", "status": "SUCCESS", "priority": RECHECK_PRIORITY}
    rows = [
        {
            "vod_id": number,
            "shard": number % 64,
            **recheck,
            "run_after": START,
            "created_at": START - number * timedelta(minutes=10),
            "payload": {SEARCHED: number % 2 == 0},
        }
        for number in range(1, 2001)
    ]
    with library.engine.begin() as connection:
        connection.execute(sa.insert(library.tables.task), rows)
    if library.mysql:
        library.query("ANALYZE TABLE mac_douban_task")
    with sent_statements(library.engine) as sent:
        report = queue_due_rechecks(library.services, range(64), parts=1, run_id="run")
    assert 1 < report.today < 150
    [(statement, parameters)] = [item for item in sent if "created_at >=" in item[0]]
    [step] = library.plan(statement, parameters)
    if library.mysql:
        assert (step["key"], int(step["rows"]) < 300) == ("ix_mac_douban_task_created", True), step
    else:
        assert "ix_mac_douban_task_created (task_type=? AND created_at>?)" in step["detail"]
