"""What happened to a video is shown whole: in order, in the site's time, and with outside text escaped."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
import yaml

from douban_pipeline.douban.links import UNDONE
from douban_pipeline.douban.undo.jobs import HistoryConfig, video_history
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.harness.fixtures.library import build_library
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
from douban_pipeline_tests.harness.fixtures.scenario import CLOCKS, FILMS, RIVER, TRAM, WHALE, row_of

EVIL = "<script>|*_`[x](http://e.org)"


ALONE = {"videos_at_once": 1}
"""One call at a time: what waits for another's moves the clock."""


@pytest.fixture
def scenario(stage):
    return stage([row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6)], FILMS, **ALONE)


def tell(scenario, *vod_ids, **config):
    run = scenario.launch("video_history", {"show_history": {"config": {"vod_ids": list(vod_ids), **config}}})
    assert run.success, run.failure
    return run.output


def page(scenario, *vod_ids, **config):
    """Return the page without the signs that escape."""
    return tell(scenario, *vod_ids, **config)["history"].replace("\\", "").replace("\u00a0", " ")


def links(text):
    """Return the configs that the links of a text fill launchpads with, by what they say."""
    found = re.findall(r"\[([^\]]+)\]\((/locations/[^)]+)\)", text)
    return [(words, yaml.safe_load(unquote(address.split("config=")[1]))["ops"]) for words, address in found]


def decide(scenario, **decision):
    config = {"reviewer": "小李", "note": "看过海报", "dry_run": False, "decisions": [decision]}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success


def revert_writes(scenario, *change_ids):
    config = {"reviewer": "小王", "reason": "年份有误", "dry_run": False, "change_ids": list(change_ids)}
    assert scenario.launch("revert_changes", {"revert_writes": {"config": config}}).output["in_full"] == len(change_ids)


def events(text):
    return [line for line in text.splitlines() if line.startswith("- **")]


def test_a_whole_life(scenario):
    assert scenario.play().success
    scenario.clock.advance(hours=1)
    decide(scenario, vod_id=4, action="lock_id")
    assert scenario.play(4).success
    scenario.clock.advance(hours=1)
    [lock] = [change for change in scenario.library.log() if change["action"] == "lock_id"]
    revert_writes(scenario, lock["change_id"])
    [link] = [change for change in scenario.library.log() if change["vod_id"] == 4 and change["action"] == "link"]
    revert = scenario.library.log()[-1]

    text = page(scenario, 4)
    reported = events(text)
    assert [line[4:20] for line in reported] == ["2026-03-01 14:00"] + ["2026-03-01 13:00"] * 2 + [
        "2026-03-01 12:00"
    ] * 2
    assert [line[23:] for line in reported] == [
        f"变更 {revert['change_id']}：小王 撤销，有效",
        f"变更 {lock['change_id']}：小李 锁定豆瓣 ID，已撤销",
        "决定 1：小李 锁定豆瓣 ID [90000101](https://movie.douban.com/subject/90000101/)",
        f"变更 {link['change_id']}：自动 关联条目，有效",
        "判定 " + reported[-1][26:],
    ]
    assert "自动确认 → [90000101](https://movie.douban.com/subject/90000101/)，得分 " in reported[-1]
    head, tail = text.split("### 经过")
    for line in (
        "## 影片 4 长河落日记事",
        "- CMS 豆瓣 ID：[90000101](https://movie.douban.com/subject/90000101/)",
        "- 状态：已确认",
        "（来源：联网搜索匹配）",
        "- 豆瓣 ID 锁定：否",
        "- 简介锁定：否",
        "- vod_year：2021",
        "- 下次处理：2026-03-04 1",
    ):
        assert line in head, line
    for line in (
        f"撤销的是变更 {lock['change_id']}",
        f"撤销它的变更：{revert['change_id']}",
        "状态 douban_id_locked：否 → 是",
        "状态 douban_id_locked：是 → 否",
        "vod_douban_id：0 → 90000101",
        "vod_writer：（空） → 长河编",
        "看过海报",
        "年份有误",
        "已撤销，2026-03-01 13:00",
        f"批次 {link['batch_id']}，运行 {link['run_id']}，规则 {link['rule_version']}，判定 1",
        f"决定批次 {scenario.decisions()[0]['batch_id']}",
        "依据存档应答 2 份",
        "候选 1：长河落日记事（2021） [90000101]",
    ):
        assert line in tail, line


@pytest.mark.mariadb
def test_on_a_real_server_it_is_reported_alike(stage, scenario, mariadb_url):
    server = build_library(mariadb_url)  # of its own: numbers begin with 1, as in a file
    real = stage([row_of(RIVER, 4), row_of(WHALE, 5), row_of(TRAM, 6)], FILMS, on=server, **ALONE)
    pages = []
    for each in (scenario, real):
        assert each.play(4).success
        each.clock.advance(hours=1)
        decide(each, vod_id=4, action="lock_id")
        assert each.play(4).success
        text = page(each, 4)
        names = sorted({name for row in each.library.log() for name in (row["run_id"], row["batch_id"])})
        for name in (*names, *(row["run_id"] for row in each.verdicts()), *(x["batch_id"] for x in each.decisions())):
            text = text.replace(name, "…")
        pages.append(re.sub(r"运行 [0-9a-f-]{36}", "运行 …", text))
    assert pages[0] == pages[1]


def test_each_link_reverts_the_change_beside_it(scenario):
    assert scenario.play().success
    scenario.clock.advance(hours=1)
    decide(scenario, vod_id=4, action="lock_id")
    assert scenario.play(4).success
    lock, link = (
        next(
            change["change_id"]
            for change in scenario.library.log()
            if (change["vod_id"], change["action"]) == (4, action)
        )
        for action in ("lock_id", "link")
    )
    nobody = {"reviewer": "", "reason": "", "dry_run": True}
    person = {"reviewer": "小李", "reason": UNDONE, "dry_run": True}
    assert links(tell(scenario, 4)["history"]) == [
        ("撤销最近一步", {"revert_writes": {"config": {**nobody, "vod_ids": [4]}}}),
        (
            "重新匹配",
            {
                "store_decisions": {
                    "config": {
                        "reviewer": "",
                        "note": "",
                        "dry_run": True,
                        "decisions": [{"vod_id": 4, "action": "rematch"}],
                    }
                }
            },
        ),
        ("撤销此变更", {"revert_writes": {"config": {**person, "change_ids": [lock]}}}),
        ("撤销此决定写入的一切", {"revert_writes": {"config": {**person, "decision_ids": [1]}}}),
        ("撤销此变更", {"revert_writes": {"config": {**nobody, "change_ids": [link]}}}),
    ]
    revert_writes(scenario, lock, link)
    words = [words for words, _ in links(tell(scenario, 4)["history"])]
    assert words.count("撤销此变更") == 2, "what was taken back has no such link, the reverts have"


def plant(scenario, table, **values):
    scenario.library.execute(sa.insert(getattr(scenario.library.tables, table)).values(values))


def test_intros_failures_and_what_waits(scenario):
    now = scenario.clock.now()
    plant(
        scenario, "intro", vod_id=4, shard=4, douban_id=90_000_101, run_id="r", state="refused", reason="字数不符",
        violations=[{"code": "length"}], model="模型", prompt_version="intro-1", fact_sheet_hash="", cost_usd=0.0012,
        prompt_tokens=300, completion_tokens=100, created_at=now,
    )  # fmt: skip
    task = {"vod_id": 4, "shard": 4, "stage": "sync", "run_after": now, "created_at": now, "run_id": "r", "attempts": 2}
    plant(scenario, "task", task_type="SYNC_DOUBAN", status="PENDING", open_key="4:SYNC", last_error="超时", **task)
    plant(scenario, "task", task_type="AI_INTRO", status="FAIL", finished_at=now, last_error="两次未通过", **task)
    scenario.library.set_state(4, douban_sync_fail_count=2, douban_last_fail_at=now, douban_last_fail_reason="503")
    text = page(scenario, 4)
    assert [line[23:] for line in events(text)] == [
        "简介 1（依据条目 [90000101](https://movie.douban.com/subject/90000101/)）：未通过（字数不符）",
        "任务失败：AI 简介",
    ]
    for line in (
        "模型 模型，0.001200 美元，400 个 token，提示词 intro-1，运行 r",
        "核对指出 1 处问题",
        "两次未通过",
        "- 任务：更新字段，排队，2026-03-01 12:00 起，失败 2 次：超时",
        "- 豆瓣失败：连续 2 次，2026-03-01 12:00：503",
    ):
        assert line in text, line


def test_outside_text_is_escaped_wherever_it_comes_from(scenario):
    now = scenario.clock.now()
    scenario.library.set_cms(4, vod_name=EVIL, vod_actor=EVIL)
    scenario.library.set_state(4, douban_review_reason=EVIL, douban_last_fail_reason=EVIL, douban_id_source=EVIL[:20])
    common = {"vod_id": 4, "shard": 4, "run_id": EVIL}
    plant(
        scenario, "verdict", task_id=1, verdict="REVIEW", complete=True, source_healthy=True, explanation=EVIL,
        rule_version=EVIL[:20], profile="<b>", state="applied", state_reason=EVIL, created_at=now, **common,
    )  # fmt: skip
    plant(
        scenario, "candidate", verdict_id=1, vod_id=4, rank=1, douban_id=5, title=EVIL, score=50.0, points=[],
        conflicts={"x": EVIL}, created_at=now,
    )  # fmt: skip
    plant(
        scenario, "decision", action="ignore", reviewer=EVIL, note=EVIL, state="refused", state_reason=EVIL,
        batch_id=EVIL, created_at=now, **common,
    )  # fmt: skip
    plant(
        scenario, "log", action="sync", old_values={"vod_actor": EVIL}, new_values={"vod_actor": EVIL + "2"},
        state_old={}, state_new={"douban_review_reason": EVIL}, reason=EVIL, operator=EVIL, batch_id=EVIL,
        rule_version=EVIL[:20], state="applied", state_reason=EVIL, prepared_at=now, **common,
    )  # fmt: skip
    plant(
        scenario, "intro", state="failed", reason=EVIL, model=EVIL, prompt_version="<i>", fact_sheet_hash="",
        created_at=now, **common,
    )  # fmt: skip
    plant(
        scenario, "task", task_type="SYNC_DOUBAN", stage="sync", status="FAIL", last_error=EVIL, run_after=now,
        created_at=now, finished_at=now, **common,
    )  # fmt: skip
    text = tell(scenario, 4)["history"]
    assert len(events(text)) == 5
    assert "<" not in text
    # What opens code or a link is ours: every sign of the outside text has its backslash.
    ours = re.sub(r"\[[^\]\\]+\]\((?:/locations/|https://movie\.douban\.com/)[^)]*\)", "", text)
    ours = re.sub(r"\*\*\d{4}-\d\d-\d\d\s\d\d:\d\d\*\*", "", ours)
    for sign in "`*[]|":
        assert re.search(rf"(?<!\\)\{sign}", ours) is None, sign


def test_a_deleted_video_still_has_its_history(scenario):
    assert scenario.play().success
    scenario.library.execute("DELETE FROM mac_vod WHERE vod_id = 4")
    text = page(scenario, 4)
    assert "## 影片 4 （已从 CMS 中删除）" in text
    assert "自动 关联条目" in text


def test_videos_that_never_were_are_distinguished(scenario):
    reported = tell(scenario, 4, 99, 98)
    assert (reported["videos"], reported["unknown"]) == (1, "99、98")
    assert "## 影片 99\n\n没有这部影片" in reported["history"]
    assert "还没有任何判定、决定或写入" in reported["history"]
    run = scenario.launch("video_history", {"show_history": {"config": {"vod_ids": [98, 99]}}})
    assert not run.success
    assert "没有这些影片：98、99" in run.failure


@pytest.mark.parametrize(
    ("config", "problem"),
    [({"vod_ids": []}, "vod_ids: 不能为空"), ({"vod_ids": [4], "most": 0}, "most: 至少为 1，现为 0")],
)
def test_what_is_wrong_is_reported(scenario, config, problem):
    run = scenario.launch("video_history", {"show_history": {"config": config}})
    assert not run.success
    assert problem in run.failure


def test_only_so_many_videos_and_each_once(scenario):
    reported = tell(scenario, 4, 4, 5, 6, most=2)
    assert reported["videos"] == 2
    assert reported["left_out"] == "最多 2 部，未显示：6"
    assert re.findall(r"^## 影片 (\d+)", reported["history"], re.MULTILINE) == ["4", "5"]


def test_of_a_long_history_the_newest_are_reported(scenario, monkeypatch):
    monkeypatch.setattr("douban_pipeline.douban.undo.jobs.MOST_EVENTS", 3)
    monkeypatch.setattr("douban_pipeline.douban.undo.jobs.LEAST_EVENTS", 2)
    assert scenario.play().success
    for year in ("1991", "1992", "1993"):
        scenario.clock.advance(minutes=1)
        log = scenario.library.change_log("run")
        row = scenario.library.row(4)
        log.write([Change(4, "sync", {"vod_year": row["vod_year"]}, {"vod_year": year})])
    text = page(scenario, 4)
    assert [re.search(r"vod_year：\d+ → (\d+)", part).group(1) for part in text.split("- **")[1:]] == [
        "1993",
        "1992",
        "1991",
    ]
    assert "更早的还有 2 条" in text
    text = page(scenario, 4, 5)
    assert text.count("- **") == 4
    assert CLOCKS["title"] not in text


def test_nothing_is_written(scenario):
    assert scenario.play().success
    before = scenario.library.all_bytes(), scenario.library.states(), scenario.library.log()
    tell(scenario, 4, 5, 6)
    assert (scenario.library.all_bytes(), scenario.library.states(), scenario.library.log()) == before


def test_the_launchpad_is_prefilled():
    config = video_history.run_config["ops"]["show_history"]["config"]
    assert set(config) == set(HistoryConfig.model_fields)
    assert fits_schema(video_history, video_history.run_config)
