"""Scoring a section: what is read of it, what is stored, what is published, and what a sweep leaves alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, func, insert, select, update

from douban_pipeline.comments.heat.experiments import Experiment, Policies, Variant
from douban_pipeline.comments.heat.factors import READ
from douban_pipeline.comments.heat.ranking import HeatRanking, Policy, columns_to_read, rank
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope, rule_set
from douban_pipeline.comments.heat.what_if import what_if
from douban_pipeline.comments.scoring import columns as reader
from douban_pipeline.comments.scoring import heat_lists, policies, sections
from douban_pipeline.comments.scoring.columns import ColumnsError, SectionColumns, read_columns
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.scoring.impressions import BEFORE, add_impressions, roll_up
from douban_pipeline.comments.scoring.sections import active_sections, score_active, score_section
from douban_pipeline.comments.scoring.touched import TouchedHeat
from douban_pipeline.comments.store.tables import comment, event, impression, rule, score, section
from douban_pipeline.comments.types import Attribute, CommentStatus, EventKind
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.sections import NOW, comment_tables, plant_comments, plant_section
from douban_pipeline_tests.comments.stage import stage, user
from douban_pipeline_tests.conftest import missing, server_url

HOUR = timedelta(hours=1)
SPAM = Rule("spam", "content =~~ '加群'", RuleDecision.SINK, 2.0)
COMMENTS = [
    {"like_count": 40, "child_visible": 6, "age_hours": 3, "level": 4, "text": "这一集的配乐真好，值得再看一遍"},
    {"like_count": 9, "age_hours": 5, "attributes": int(Attribute.OWNER_LIKED | Attribute.FEATURED)},
    {"like_count": 12, "dislike_count": 3, "report_count": 1, "age_hours": 2, "publisher_id": 0, "text": "加群领取"},
    {"age_hours": 90, "hours": {2: (50, 3), 30: (100, 4), 24 * 9: (700, 20)}},
    {"like_count": 99, "status": int(CommentStatus.DELETED), "age_hours": 1},
]


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    with comment_tables(sqlite_url) as found:
        plant_section(found, 1)
        yield found


@pytest.fixture
def any_engine(any_database_url: str) -> Iterator[Engine]:
    with comment_tables(any_database_url) as found:
        plant_section(found, 1)
        yield found


@pytest.fixture
def client() -> Iterator[Redis]:
    found = Redis.from_url(server_url("redis"))
    try:
        found.ping()
    except RedisError as error:
        missing("redis", str(error))
    yield found
    found.close()


@pytest.fixture
def prefix(client: Redis) -> Iterator[str]:
    """Keys of this test alone: others use the same Redis at the same time."""
    own = f"test-{uuid.uuid4().hex[:8]}:"
    yield own
    for key in client.scan_iter(f"{own}*"):
        client.delete(key)


@pytest.fixture
def lists(client: Redis, prefix: str) -> HeatLists:
    return HeatLists(client, prefix)


def heat_of(engine: Engine) -> dict[int, int]:
    with reading(engine) as connection:
        return {row.comment_id: row.heat for row in connection.execute(select(score))}


def test_every_column_is_read_as_it_is_stored(any_engine):
    ids = plant_comments(any_engine, 1, COMMENTS)
    plant_comments(any_engine, 1, [{"root_id": ids[0], "like_count": 5}], floor=10)
    plant_section(any_engine, 2)
    plant_comments(any_engine, 2, [{"like_count": 7}])
    with reading(any_engine) as connection:
        found = read_columns(connection, 1, [each.name for each in READ], NOW)
    order = np.argsort(found.ids)
    assert found.ids[order].tolist() == ids
    assert found.shown[order].tolist() == [True, True, True, True, False]
    assert not found.scored.any()
    shown = {name: column[order].tolist() for name, column in found.read.items()}
    assert shown == {
        "likes": [40, 9, 12, 0, 99],
        "dislikes": [0, 0, 3, 0, 0],
        "reports": [0, 0, 1, 0, 0],
        "replies": [6, 0, 0, 0, 0],
        "length": [15, 2, 4, 2, 2],
        "level": [4, 0, 0, 0, 0],
        "age_hours": pytest.approx([3, 5, 2, 90, 1]),
        "impressions": [0, 0, 0, 850, 0],
        "impressions_day": [0, 0, 0, 50, 0],
        "likes_day": [0, 0, 0, 3, 0],
        "impressions_week": [0, 0, 0, 150, 0],
        "likes_week": [0, 0, 0, 7, 0],
        "owner_liked": [False, True, False, False, False],
        "owner_replied": [False] * 5,
        "featured": [False, True, False, False, False],
        "promoted": [False] * 5,
        "guest": [False, False, True, False, False],
        "content": ["这一集的配乐真好，值得再看一遍", "好看", "加群领取", "好看", "好看"],
    }


def test_batches_add_up_to_the_section(any_engine, monkeypatch):
    ids = plant_comments(any_engine, 1, [{"like_count": number} for number in range(17)])
    monkeypatch.setattr(reader, "BATCH", 5)
    with reading(any_engine) as connection:
        found = read_columns(connection, 1, ["likes"], NOW)
        nothing = read_columns(connection, 9, ["likes", "content", "impressions"], NOW)
    assert dict(zip(found.ids.tolist(), found.read["likes"].tolist(), strict=True)) == dict(
        zip(ids, range(17), strict=True)
    )
    assert len(nothing) == 0


@pytest.mark.mariadb
def test_a_batch_that_is_cut_short_is_refused(mariadb_url, monkeypatch):
    monkeypatch.setattr(reader, "_PACKED", 40)
    with comment_tables(mariadb_url) as engine:
        plant_section(engine, 1)
        plant_comments(engine, 1, COMMENTS)
        with reading(engine) as connection, pytest.raises(ColumnsError, match="cut them short"):
            read_columns(connection, 1, ["likes"], NOW)


def test_a_section_is_scored_stored_and_published_in_one_order(engine, lists):
    ids = plant_comments(engine, 1, COMMENTS)
    done = score_section(engine, lists, 1, Policy(rules=rule_set([SPAM])), NOW)
    assert (done.comments, done.published, done.written, done.hits) == (5, 4, 5, {"spam": 1})
    stored = heat_of(engine)
    by_table = sorted((each for each in ids if each != ids[4]), key=lambda each: (stored[each], each), reverse=True)
    published = lists.page(1, None, 10)
    assert [number for _, number in published] == by_table
    assert [heat for heat, _ in published] == [stored[each] for each in by_table]
    assert by_table[0] == ids[0]
    assert by_table[-1] == ids[2]
    with reading(engine) as connection:
        row = connection.execute(select(score).where(score.c.comment_id == ids[2])).mappings().one()
    assert row["decisions"] == ["spam"]
    assert row["parts"]["rules"] == -2.0
    assert sum(row["parts"].values()) == pytest.approx(row["score"], abs=2e-6)
    assert row["score_at"] == NOW


def test_a_second_sweep_writes_only_what_changed(any_engine, lists):
    ids = plant_comments(any_engine, 1, [*COMMENTS, {"age_hours": 24 * 300, "like_count": 4}])
    score_section(any_engine, lists, 1, Policy(), NOW)
    assert score_section(any_engine, lists, 1, Policy(), NOW).written == 0
    before = heat_of(any_engine)
    later = score_section(any_engine, lists, 1, Policy(), NOW + HOUR / 4)
    after = heat_of(any_engine)
    assert 0 < later.written < 6
    assert before[ids[5]] == after[ids[5]]
    assert before[ids[2]] > after[ids[2]]
    with any_engine.begin() as connection:
        connection.execute(update(comment).where(comment.c.comment_id == ids[5]).values(like_count=500))
    assert score_section(any_engine, lists, 1, Policy(), NOW + HOUR / 4).written == 1
    stored = heat_of(any_engine)
    published = lists.page(1, None, 10)
    assert {number: heat for heat, number in published} == {each: stored[each] for each in stored if each != ids[4]}


def test_without_redis_the_tables_have_the_order(engine):
    plant_comments(engine, 1, COMMENTS)
    done = score_section(engine, None, 1, Policy(), NOW)
    assert done.written == 5
    assert len(set(heat_of(engine).values())) == 5


def test_moves_in_the_top_are_counted_after_the_first_time(engine):
    ids = plant_comments(engine, 1, [{"like_count": 100 - number, "age_hours": number} for number in range(12)])
    assert score_section(engine, None, 1, Policy(), NOW).moved == 0
    with engine.begin() as connection:
        values = {"attributes": int(Attribute.OWNER_LIKED), "child_visible": 300}
        connection.execute(update(comment).where(comment.c.comment_id == ids[9]).values(**values))
    assert score_section(engine, None, 1, Policy(), NOW).moved == 10


def test_active_sections_are_scored_the_latest_first_within_the_time(engine):
    plant_section(engine, 2, active_at=NOW + HOUR)
    plant_section(engine, 3, active_at=NOW - timedelta(days=8))
    for number in (1, 2, 3):
        plant_comments(engine, number, COMMENTS)
    assert active_sections(engine, NOW) == [(2, 1), (1, 1)]
    experiment = Experiment("all", "s", (Variant("slow", 1.0, {"decay": 0.01}),), RuleScope(sections=(2,)))
    chosen = Policies({}, [], [experiment])
    done = list(score_active(engine, None, chosen, NOW, seconds=60, clock=lambda: 0.0))
    assert [(each.section_id, each.variant) for each in done] == [(2, "all/slow"), (1, "")]
    ticks = iter([0.0, 0.0, 61.0])
    late = list(score_active(engine, None, chosen, NOW, seconds=60, clock=lambda: next(ticks)))
    assert [each.section_id for each in late] == [2]


def ranked(engine: Engine, policy: Policy) -> tuple[SectionColumns, HeatRanking]:
    """Return the roots of the section and their order."""
    with reading(engine) as connection:
        columns = read_columns(connection, 1, columns_to_read(policy), NOW)
    return columns, rank(columns.ids, columns.read, policy)


def test_rules_are_tried_saved_revised_and_retired(engine):
    plant_comments(engine, 1, COMMENTS)
    columns, before = ranked(engine, Policy(rules=rule_set([SPAM])))
    tried = policies.with_rule([], SPAM)
    found = what_if(
        rank(columns.ids, columns.read, Policy()), rank(columns.ids, columns.read, Policy(rules=rule_set(tried)))
    )
    with engine.begin() as connection:
        assert policies.save_rule(connection, SPAM, found, "ann", NOW) == 1
        assert policies.save_rule(connection, SPAM, found, "ann", NOW) == 2
        assert policies.rules_in_force(connection) == [SPAM]
        row = connection.execute(select(rule.c.what_if, rule.c.state).where(rule.c.revision == 2)).one()
        assert row.what_if["hits"] == {"spam": 1}
        assert policies.policies(connection, {"decay": 0.2}).of(1, 1).weights.decay == 0.2
        assert policies.retire_rule(connection, "spam", NOW)
        assert not policies.retire_rule(connection, "spam", NOW)
        assert policies.rules_in_force(connection) == []
    assert len(before) == 5


def test_a_stored_rule_that_is_no_longer_understood_is_named(engine):
    plant_comments(engine, 1, COMMENTS)
    _, ranking = ranked(engine, Policy())
    with engine.begin() as connection:
        policies.save_rule(connection, SPAM, what_if(ranking, ranking), "ann", NOW)
        connection.execute(update(rule).values(expression="gone > 3"))
        with pytest.raises(ProblemsError, match=r"规则「spam」（gone > 3）：没有名为 gone 的因子"):
            policies.policies(connection, {})
        connection.execute(update(rule).values(decision="vanish"))
        with pytest.raises(ProblemsError, match="decision「vanish」无法识别"):
            policies.rules_in_force(connection)


def test_experiments_run_and_end(engine):
    experiment = Experiment("slow", "s", (Variant("half", 0.5, {"decay": 0.06}, ("spam",)),), RuleScope(types=(1,)))
    with engine.begin() as connection:
        policies.save_experiment(connection, experiment, "ann", NOW)
        with pytest.raises(ProblemsError, match="没有名为「spam」的规则"):
            policies.policies(connection, {})
        policies.save_experiment(connection, Experiment("slow", "t", (Variant("all", 1.0),)), "ann", NOW)
        assert policies.policies(connection, {}).of(5, 2).variant == "slow/all"
        assert policies.end_experiment(connection, "slow", NOW)
        assert policies.policies(connection, {}).of(5, 2).variant == ""


def test_impressions_are_added_to_the_hour_and_the_past_becomes_one_row(any_engine):
    ids = plant_comments(any_engine, 1, [{}, {}])
    with any_engine.begin() as connection:
        assert add_impressions(connection, {ids[0]: 3, 77: 9}, NOW - timedelta(days=20)) == 1
        add_impressions(connection, {ids[0]: 4}, NOW - timedelta(days=9), {ids[0]: 2, ids[1]: 1})
        add_impressions(connection, {ids[0]: 5}, NOW)
        add_impressions(connection, {ids[0]: 6}, NOW)
    assert roll_up(any_engine, NOW) == 3
    assert roll_up(any_engine, NOW) == 0
    assert roll_up(any_engine, NOW + timedelta(days=9)) == 1
    with reading(any_engine) as connection:
        rows = connection.execute(select(impression).order_by(impression.c.comment_id)).all()
        shown = connection.execute(select(func.sum(impression.c.shown))).scalar()
    assert [(row.comment_id, row.hour, row.shown, row.liked) for row in rows] == [
        (ids[0], BEFORE, 18, 2),
        (ids[1], BEFORE, 0, 1),
    ]
    assert shown == 18


IDS = np.array([105, 104, 103, 102, 101])
HEAT = np.array([9, 7, 7, 7, -3])


def test_a_list_is_read_by_page_and_by_place_across_segments(lists, monkeypatch):
    monkeypatch.setattr(heat_lists, "SEGMENT", 2)
    assert lists.page(1, None, 3) is None
    assert lists.page(1, (7, 103), 2) is None
    made = lists.publish(1, IDS, HEAT, NOW)
    assert (made.count, made.segments) == (5, 3)
    assert lists.current(1) == made
    assert lists.page(1, None, 3) == [(9, 105), (7, 104), (7, 103)]
    assert lists.page(1, (7, 103), 9) == [(7, 102), (-3, 101)]
    assert lists.page(1, (-3, 101), 9) == []
    assert lists.page(1, (7, 103), 2) == [(7, 102), (-3, 101)]
    assert lists.page(1, (8, 999), 2) == [(7, 104), (7, 103)]
    assert lists.ids(1).tolist() == IDS.tolist()


@pytest.mark.parametrize("segment", [7, 1000])
def test_a_place_is_found_among_many_of_equal_heat_in_it_or_not(lists, monkeypatch, segment):
    monkeypatch.setattr(heat_lists, "SEGMENT", segment)
    heat, ids = np.array([3] * 4 + [0] * 40 + [-2] * 6), np.arange(200, 100, -2)
    lists.publish(1, ids, heat, NOW)
    places = list(zip(heat.tolist(), ids.tolist(), strict=True))
    for asked in [
        *places,
        *((level, number) for level, number in places for number in (number - 1, number + 1)),
        (1, 1),
    ]:
        assert lists.page(1, asked, 10) == [place for place in places if place < asked][:10], asked


def test_a_list_is_swapped_whole_and_the_old_one_expires(lists, client, prefix):
    lists.publish(1, IDS, HEAT, NOW)
    old = {key: client.ttl(key) for key in client.keys(f"{prefix}{{1}}:heat:*")}
    assert all(ttl > heat_lists.GRACE for ttl in old.values())
    lists.publish(1, IDS[:2], HEAT[:2], NOW)
    assert lists.page(1, None, 9) == [(9, 105), (7, 104)]
    assert all(0 < client.ttl(key) <= heat_lists.GRACE for key in old)
    lists.publish(1, IDS[:0], HEAT[:0], NOW)
    assert lists.page(1, None, 9) == []
    lists.drop(1)
    assert lists.page(1, None, 9) is None


def test_an_interrupted_publication_changes_nothing_and_expires(lists, client, prefix, monkeypatch):
    lists.publish(1, IDS, HEAT, NOW)
    monkeypatch.setattr(lists, "_swap", lambda **_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        lists.publish(1, IDS[:1], HEAT[:1], NOW)
    assert len(lists.page(1, None, 9)) == 5
    assert all(client.ttl(key) > 0 for key in client.keys(f"{prefix}*"))


def test_single_comments_are_put_where_they_belong_and_taken_out(lists, monkeypatch):
    monkeypatch.setattr(heat_lists, "SEGMENT", 2)
    assert not lists.put(1, [(8, 106)])
    lists.publish(1, IDS, HEAT, NOW)
    assert lists.put(1, [(8, 106)])
    assert lists.put(1, [(9, 106), (10, 102)])
    assert [number for _, number in lists.page(1, None, 9)] == [102, 106, 105, 104, 103, 101]
    lists.remove(1, [105, 999])
    assert [number for _, number in lists.page(1, None, 9)] == [102, 106, 104, 103, 101]
    lists.remove(2, [105])


def test_a_list_that_lost_a_segment_is_given_up(lists, client, prefix, monkeypatch):
    monkeypatch.setattr(heat_lists, "SEGMENT", 2)
    made = lists.publish(1, IDS, HEAT, NOW)
    client.delete(f"{prefix}{{1}}:heat:{made.version}:2")
    assert lists.page(1, None, 9) is None
    assert lists.page(1, (99, 1), 9) is None
    assert not lists.put(1, [(-50, 107)])
    assert lists.current(1) is None


def test_votes_that_arrive_while_a_sweep_stores_are_not_overwritten(any_database_url, lists, monkeypatch):
    with stage(any_database_url) as place:
        place.worker._heat = TouchedHeat(place.engine, {})
        roots = [place.publish(user(number), f"根 {number}") for number in range(2, 6)]
        place.work()
        place.clock.advance(hours=2)
        store, once = sections.store_scores, iter([True])

        def late(*given):
            if next(once, False):
                for number in range(20, 34):
                    place.vote(user(number), roots[0], 1)
                place.publish(user(50), "回", roots[1])
                place.work()
            return store(*given)

        monkeypatch.setattr(sections, "store_scores", late)
        score_section(place.engine, lists, place.section_id, Policy(), place.clock.now())
        after = heat_of(place.engine)
        assert score_section(place.engine, lists, place.section_id, Policy(), place.clock.now()).written == 0
        assert max(after, key=lambda number: after[number]) == roots[0]
        assert [number for _, number in lists.page(place.section_id, None, 2)] == roots[:2]


def test_what_happens_while_a_list_is_made_and_stored_is_in_it(any_engine, lists, monkeypatch):
    ids = plant_comments(any_engine, 1, COMMENTS)
    publish, store, late = lists.publish, sections.store_scores, []

    def happen(number, status):
        told = {"shard": 1, "section_id": 1, "actor": "u:1", "payload": {}, "created_at": NOW, "state": 2}
        with any_engine.begin() as connection:
            connection.execute(update(comment).where(comment.c.comment_id == number).values(status=int(status)))
            serial = connection.execute(select(section.c.event_seq)).scalar_one() + 1
            named = {"kind": EventKind.SET_STATUS, "comment_id": number, "seq": serial, "request_key": f"{serial}"}
            connection.execute(insert(event).values(**told, **named))
            connection.execute(update(section).values(event_seq=serial))

    def published(*given):
        late.extend(plant_comments(any_engine, 1, [{}, {}], floor=50))
        happen(late[0], CommentStatus.NORMAL)
        happen(late[1], CommentStatus.REVIEW)
        happen(ids[0], CommentStatus.DELETED)
        return publish(*given)

    def stored(*given):
        assert {number for _, number in lists.page(1, None, 9)} == {*ids[1:4], late[0]}
        happen(ids[4], CommentStatus.NORMAL)
        return store(*given)

    monkeypatch.setattr(lists, "publish", published)
    monkeypatch.setattr(sections, "store_scores", stored)
    score_section(any_engine, lists, 1, Policy(), NOW)
    page = lists.page(1, None, 9)
    assert {number for _, number in page} == {*ids[1:5], late[0]}
    with any_engine.connect() as connection:
        heat = dict(connection.execute(select(score.c.comment_id, score.c.heat)).tuples().all())
    assert page == sorted(((heat[number], number) for _, number in page), reverse=True)
