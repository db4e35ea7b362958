"""One decision about many videos: shown before it is recorded, and recorded where it is sound."""

from __future__ import annotations

import re

import pytest
import yaml

from douban_pipeline.douban.review.batch.jobs import BatchConfig, record_batch_decisions
from douban_pipeline_tests.douban.review.launched import launched
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
from douban_pipeline_tests.harness.fixtures.scenario import telling

REVIEW = {"statuses": ["REVIEW"]}


@pytest.fixture
def scenario(stage):
    """A library of nothing: `shelf` fills it."""
    return stage()


def shelf(scenario, *cases):
    library = shelved(scenario.library, cases)
    scenario.library = library
    return scenario


def launch(scenario, *, dry_run=False, reviewer="小王", note="批量", **config):
    given = {"reviewer": reviewer, "note": note, "dry_run": dry_run, **config}
    return launched(scenario, record_batch_decisions, {"select_and_record": {"config": given}})


def column(markdown, head):
    """Return a column of a Markdown table."""
    [heads, _, *rows] = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    return [row[heads.index(head)] for row in rows]


def test_a_dry_run_shows_everything_and_writes_nothing(scenario):
    shelf(scenario, Case(4, {"vod_hits": 900}), Case(5), Case(6, verdict={"score": 70.0}), Case(7, {"vod_hits": 90}))
    before = (scenario.library.all_bytes(), scenario.library.states())
    run = launch(scenario, dry_run=True, action="confirm_top1", max_rows=2, **REVIEW)
    assert run.success
    output = run.output
    assert (output["matched"], output["selected"], output["beyond_max_rows"], output["left_out"]) == (4, 2, 1, 1)
    assert (column(output["videos"], "影片"), column(output["videos"], "得分")) == (["4", "7"], ["92.0", "92.0"])
    assert column(output["videos"], "片名") == ["影片4", "影片7"]
    assert column(output["videos"], "状态") == ["REVIEW", "REVIEW"]
    assert column(output["videos"], "决定") == ["confirm\\_top1 确认首选候选"] * 2
    assert column(output["videos"], "条目")[0] == "[90000004](https://movie.douban.com/subject/90000004/)"
    assert column(output["videos_left_out"], "原因") == ["首选得分 70.0 低于 85"]
    assert column(output["decisions"], "结果") == ["仅检查，可以记录"] * 2
    assert (output["dry_run"], output["recorded"]) == (True, 0)
    assert not {"batch", "undo"} & set(output), "there is nothing to take back"
    assert scenario.decisions() == []
    assert (scenario.library.all_bytes(), scenario.library.states()) == before


def test_what_is_recorded(scenario):
    shelf(scenario, Case(4), Case(5))
    run = launch(scenario, action="confirm_top1", lock=True, reviewer=" 小王 ", **REVIEW)
    assert run.success
    verdicts = {row["vod_id"]: row["verdict_id"] for row in scenario.verdicts()}
    columns = ("vod_id", "action", "douban_id", "lock", "verdict_id", "reviewer", "note", "state", "batch_id", "run_id")
    rest = ("小王", "批量", "pending", run.output["batch"], run.run_id)
    assert sorted(telling(scenario.decisions(), *columns)) == [
        (4, "confirm_top1", 90_000_004, True, verdicts[4], *rest),
        (5, "confirm_top1", 90_000_005, True, verdicts[5], *rest),
    ]
    again = launch(scenario, action="confirm_top1", lock=True, **REVIEW)
    assert (again.success, again.output["known"], len(scenario.decisions())) == (True, 2, 2), "twice is harmless"


def test_sound_ones_are_recorded_though_others_are_not(scenario):
    linked = {"vod_douban_id": 90_000_500}
    shelf(scenario, *(Case(vod_id, *([linked, linked] if vod_id % 2 else [])) for vod_id in range(4, 9)))
    run = launch(scenario, action="lock_id", **REVIEW)
    assert run.success
    first, _, *sentences = run.output["refusals"].splitlines()
    assert "已记录 2 条，拒绝 3 条" in first
    assert [re.search(r"影片 (\d+)", sentence)[1] for sentence in sorted(sentences)] == ["4", "6", "8"]
    assert sorted(telling(scenario.decisions(), "vod_id", "state")) == [
        (4, "refused"),
        (5, "pending"),
        (6, "refused"),
        (7, "pending"),
        (8, "refused"),
    ]


@pytest.mark.parametrize(
    ("action", "column_of_lock"), [("unlock_id", "douban_id_locked"), ("unlock_intro", "intro_locked")]
)
def test_unlocking_in_bulk_is_for_those_who_are_sure(stage, action, column_of_lock):
    locked = {"vod_douban_id": 90_000_500, column_of_lock: True}
    scenario = shelf(stage(bulk_unlockers=("小王",)), Case(4, state=locked), Case(5, state=locked), Case(6))
    what = {"unlock_id": "豆瓣 ID", "unlock_intro": "简介"}[action]
    sentence = f"将解锁 2 部影片的{what}，此后自动运行可以改动它们；确认请设 i_am_sure: true"
    shown = launch(scenario, dry_run=True, action=action, **REVIEW)
    assert (shown.success, shown.output["unlocking"]) == (True, sentence)
    refused = launch(scenario, action=action, **REVIEW)
    assert not refused.success
    assert refused.failure.endswith(f"未记录任何决定：{sentence}")
    assert scenario.decisions() == []
    done = launch(scenario, action=action, i_am_sure=True, **REVIEW)
    assert (done.success, "unlocking" in done.output) == (True, False)
    assert sorted(telling(scenario.decisions(), "vod_id", "action")) == [(4, action), (5, action)]


@pytest.mark.parametrize("allowed", [(), ("老李", "小王二")])
def test_unlocking_in_bulk_is_refused_without_the_right_and_the_refusal_is_kept(stage, allowed):
    locked = {"vod_douban_id": 90_000_500, "douban_id_locked": True}
    scenario = shelf(stage(bulk_unlockers=allowed), Case(4, state=locked), Case(5, state=locked), Case(6))
    sentence = (
        "一次解锁 2 部影片是批量解锁，小王 没有这个权限（DOUBAN_PIPELINE_BULK_UNLOCKERS）；"
        "请由有权限的人来做，或每次只解锁一部"
    )
    refused = launch(scenario, action="unlock_id", i_am_sure=True, **REVIEW)
    assert not refused.success
    assert sentence in refused.failure
    kept = telling(scenario.decisions(), "vod_id", "action", "reviewer", "state", "state_reason")
    assert sorted(kept) == [(n, "unlock_id", "小王", "refused", sentence) for n in (4, 5)]
    # A single video is no bulk, and whoever has the right is asked for nothing but to be sure.
    assert launch(scenario, action="unlock_id", i_am_sure=True, vod_ids=[4]).success
    allowed_one = shelf(stage(bulk_unlockers=("老李", "XIAO WANG")), Case(4, state=locked), Case(5, state=locked))
    assert launch(allowed_one, reviewer=" xiao wang ", action="unlock_id", i_am_sure=True, **REVIEW).success


def test_where_nothing_is_applied_for_now_it_is_said(stage):
    scenario = shelf(stage(dry_run=True), Case(4))
    assert "DOUBAN_PIPELINE_DRY_RUN=true" in launch(scenario, action="ignore", **REVIEW).output["waits"]
    scenario = shelf(stage(), Case(4))
    assert "waits" not in launch(scenario, action="ignore", **REVIEW).output


def test_nothing_to_decide_about_is_no_failure(scenario):
    shelf(scenario, Case(4, verdict={"score": 70.0}))
    run = launch(scenario, action="confirm_top1", **REVIEW)
    assert run.success
    output = run.output
    assert (output["matched"], output["selected"], output["left_out"], output["videos"]) == (1, 0, 1, "—")
    assert scenario.decisions() == []


def test_everything_that_is_wrong_is_reported_at_once(scenario):
    shelf(scenario, Case(4))
    run = launch(scenario, action="set_id", days=3, min_score=90.0, max_score=80.0, max_rows=5001)
    assert not run.success
    assert run.failure.split("\n- ")[1:] == [
        "set_id 需要 douban_id（10000 至 4294967295），现为 0",
        "set_id 不使用 days，请改为 0",
        "min_score: 不得大于 max_score（80），现为 90",
        "max_rows: 应在 1 到 5000 之间，现为 5001",
    ]


def test_nobody_decides_without_a_name(scenario):
    shelf(scenario, Case(4))
    run = launch(scenario, reviewer=" ", action="ignore", **REVIEW)
    assert "reviewer: 不能为空，请填写你的名字" in run.failure
    assert scenario.decisions() == []


def test_titles_from_outside_stay_text(scenario):
    name = "<script>alert(1)</script>|`[x](javascript:alert(2))"
    shelf(scenario, Case(4, {"vod_name": name}, candidate={"title": name, "conflicts": {"YEAR_OFF": name}}), Case(5))
    for action in ("confirm_top1", "ignore"):
        output = launch(scenario, dry_run=True, action=action, **REVIEW).output
        text = "".join(value for value in output.values() if isinstance(value, str))
        assert "alert" in text
        assert "<script" not in text
        assert not re.search(r"(?<!\\)\]\(javascript", text)


def test_a_secret_of_the_environment_cannot_be_written_down(scenario, monkeypatch):
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    shelf(scenario, Case(4))
    for config in ({"note": {"env": "SITE_DATABASE_PASSWORD"}}, {"with_codes": [{"env": "SITE_DATABASE_PASSWORD"}]}):
        run = launch(scenario, action="ignore", **{**REVIEW, **config})
        assert run.failure.endswith("配置中不得引用环境变量：SITE_DATABASE_PASSWORD")
        assert "geheim" not in str(run.result.all_events)
    assert scenario.decisions() == []


@pytest.mark.mariadb
def test_a_few_hundred_with_some_bad_ones(stage, mariadb_library):
    scenario = stage(on=mariadb_library)
    shelf(
        scenario,
        *(
            Case(vod_id, {"vod_hits": vod_id}, verdict={"score": 70.0} if vod_id % 10 == 3 else {})
            for vod_id in range(1, 301)
        ),
    )
    # A subject that two videos would get: neither does.
    table = scenario.library.tables.candidate
    scenario.library.execute(table.update().where(table.c.vod_id.in_([100, 200])).values(douban_id=90_000_999))
    run = launch(scenario, action="confirm_top1", max_rows=260, **REVIEW)
    assert run.success
    assert "已记录 258 条，拒绝 2 条" in run.output["refusals"].splitlines()[0]
    assert set(re.findall(r"（影片 (\d+)《", run.output["refusals"])) == {"100", "200"}
    states = telling(scenario.decisions(), "state")
    assert (states.count(("pending",)), states.count(("refused",))) == (258, 2)
    reported = [entry.user_message for entry in scenario.instance.all_logs(run.run_id)]
    assert "300 videos match: 260 selected, 30 left out, 10 beyond max_rows" in reported


# --- the launchpad ----------------------------------------------------------------------------------------------------


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe(scenario):
    config = record_batch_decisions.run_config["ops"]["select_and_record"]["config"]
    assert set(config) == set(BatchConfig.model_fields)
    assert (config["dry_run"], config["i_am_sure"], config["max_rows"]) == (True, False, 100)
    assert fits_schema(record_batch_decisions, record_batch_decisions.run_config)
    message = launched(scenario, record_batch_decisions).failure
    assert message == "未记录任何决定：\n- reviewer: 不能为空，请填写你的名字"


def test_the_examples_of_the_manual_can_be_launched():
    manual = record_batch_decisions.description
    examples = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)]
    actions = {example["ops"]["select_and_record"]["config"]["action"] for example in examples}
    assert actions == {"confirm_top1", "ignore", "clear_id", "unlock_intro", "unlock_id"}
    for example in examples:
        assert fits_schema(record_batch_decisions, example)
    documented = set(re.findall(r"`([a-z_]+)[`:]", manual))
    assert set(BatchConfig.model_fields) <= documented
