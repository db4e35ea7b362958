"""Decisions come in from a file of the inbox, or pasted; no other file of the machine is ever shown."""

from __future__ import annotations

import csv
import io
import os
import re

import pytest
import yaml

from douban_pipeline.douban.review.imports.files import (
    MOST_BYTES,
    FileError,
    export_csv,
    inbox_of,
    parse_decisions,
    read_inbox_file,
)
from douban_pipeline.douban.review.imports.jobs import ImportConfig, import_decisions
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline_tests.douban.review.launched import launched
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
from douban_pipeline_tests.harness.fixtures.scenario import (
    FILMS,
    RIVER,
    TRAM,
    WHALE,
    row_of,
    subject,
    telling,
)

RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
POOR = {"vod_director": "", "vod_actor": "", "vod_class": ""}
ONE_CALL_AT_A_TIME = {"videos_at_once": 1}


@pytest.fixture
def scenario(stage, tmp_path):
    """Video 4 waits with two candidates, 5 was found nowhere, 6 is linked."""
    rows = [row_of(RIVER, 4, **POOR), row_of(WHALE, 5, vod_name="没有这部"), row_of(TRAM, 6)]
    found = stage(rows, [RIVER, RIVAL, *FILMS[1:]], home=tmp_path / "home", **ONE_CALL_AT_A_TIME)
    assert found.play(4, 6).success
    found.clock.advance(minutes=1)
    return found


@pytest.fixture
def shelf(stage, tmp_path):
    """Put cases into a library whose inbox is empty."""

    def put(*cases):
        found = stage(home=tmp_path / "home")
        found.library = shelved(found.library, cases)
        return found

    return put


def launch(scenario, *, reviewer="小王", note="本周", dry_run=False, file="", text=""):
    config = {"reviewer": reviewer, "note": note, "dry_run": dry_run, "file": file, "text": text}
    return launched(scenario, import_decisions, {"read_and_record": {"config": config}})


def put(scenario, name, data):
    folder = inbox_of(scenario.services.settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder / name


def problems(run):
    assert not run.success
    return run.failure.split("\n- ")[1:]


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_exported_filled_in_and_imported(scenario):
    queue = review_queue_of(scenario.services, most=10)
    assert 4 in {entry.vod_id for entry in queue.first}
    header, *rows = csv.reader(io.StringIO(export_csv(queue.first).decode("utf-8-sig"), newline=""))
    [row] = [row for row in rows if row[0] == "4"]
    for head, cell in (("决定", "选择候选"), ("候选序号", "2"), ("锁定", "是"), ("备注", "导演是别人")):
        row[header.index(head)] = cell
    text = io.StringIO()
    # As Excel saves "Unicode text".
    csv.writer(text, delimiter="\t").writerows([header, *rows])
    put(scenario, "审核.csv", text.getvalue().encode("utf-16"))
    before = scenario.library.all_bytes()
    shown = launch(scenario, file="审核.csv", dry_run=True)
    assert (shown.success, shown.output["dry_run"], scenario.decisions()) == (True, True, [])
    run = launch(scenario, file=" 审核.csv ")
    assert run.success
    second = next(each for each in scenario.candidates(4) if each["rank"] == 2)
    [verdict] = scenario.verdicts(4)
    columns = ("vod_id", "action", "douban_id", "lock", "verdict_id", "reviewer", "note", "state", "batch_id")
    assert telling(scenario.decisions(), *columns) == [
        (
            4,
            "choose",
            second["douban_id"],
            True,
            verdict["verdict_id"],
            "小王",
            "导演是别人",
            "pending",
            run.output["batch"],
        )
    ]
    assert [row["imported"] for row in scenario.decisions()] == [True]
    assert (run.output["recorded"], run.output.get("undecided", 0)) == (1, len(rows) - 1)
    assert scenario.library.all_bytes() == before
    again = launch(scenario, file="审核.csv")
    assert (again.success, again.output["known"], len(scenario.decisions())) == (True, 1, 1)


def test_a_line_from_a_sheet_about_another_verdict_is_refused(scenario):
    [verdict] = scenario.verdicts(4)
    text = f"vod_id,决定,verdict_id\n4,确认首选候选,{verdict['verdict_id'] + 1}\n"
    assert "候选已过时" in launch(scenario, text=text).failure


def test_refused_lines_are_reported_in_the_order_of_the_file_and_the_others_are_recorded(shelf):
    scenario = shelf(Case(4), Case(5), Case(6, candidate=None))
    text = (
        "vod_id,决定,豆瓣ID,备注\n"  # 1
        "404,忽略,,\n"  # 2: no such video
        "4,确认首选候选,,\n"  # 3: good
        "5,删除,,\n"  # 4: unreadable
        "6,确认首选候选,,\n"  # 5: no candidate
        "5,忽略,,短剧,过多\n"  # 6: unreadable
        "5,忽略,,短剧\n"  # 7: good
    )
    run = launch(scenario, text=text)
    first, _, *reported = run.output["refusals"].splitlines()
    assert first.endswith("已记录 2 条，拒绝 4 条")
    assert [re.match(r"- 第 (\d) 行", line)[1] for line in reported] == ["2", "4", "5", "6"]
    assert sorted(telling(scenario.decisions(), "vod_id", "action", "note", "state")) == [
        (4, "confirm_top1", "本周", "pending"),
        (5, "ignore", "短剧", "pending"),
        (6, "confirm_top1", "本周", "refused"),
        (404, "ignore", "本周", "refused"),
    ]


def test_a_dry_run_records_nothing_and_tells_the_same(shelf):
    scenario = shelf(Case(4), Case(5))
    run = launch(scenario, text="vod_id,决定\n4,确认首选候选\n5,删除\n", dry_run=True)
    assert run.output["refusals"].splitlines()[0] == "仅检查：1 条可以记录，拒绝 1 条"
    assert scenario.decisions() == []


@pytest.mark.mariadb
def test_a_thousand_lines_on_a_server(stage, mariadb_library, tmp_path):
    scenario = stage(on=mariadb_library, home=tmp_path / "home")
    scenario.library = shelved(scenario.library, [Case(vod_id) for vod_id in range(1, 1001)])
    lines = "".join(f"{vod_id},{'忽略' if vod_id % 100 else '忽咯'},{vod_id % 7}\n" for vod_id in range(1, 1001))
    put(scenario, "large.csv", ("vod_id,决定,天数\n" + lines).encode("gb18030"))
    run = launch(scenario, file="large.csv")
    assert run.output["refusals"].splitlines()[0] == "已记录 990 条，拒绝 10 条"
    assert len(scenario.decisions()) == 990


# --- what is wrong with a launch --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["file、text: 都是空的，请填写其一"]),
        ({"file": "a.csv", "text": "x"}, ["file、text: 都填写了，请只留其一"]),
        ({"reviewer": " "}, ["reviewer: 不能为空，请填写你的名字"]),
        ({"text": "vod_id\n4\n"}, ["第 1 行（表头）：缺少“决定”一列"]),
        ({"text": "vod_id,决定\n4,\n"}, ["没有一行填写了决定（共 1 行）"]),
        (
            {"text": "vod_id,决定\n4,删\n"},
            [
                "第 2 行：决定“删”不是一种决定；可以填："
                + "、".join(f"{word}（{action}）" for action, word in ACTIONS.items()),
            ],
        ),
    ],
)
def test_what_is_wrong_is_reported_at_once(shelf, given, expected):
    scenario = shelf(Case(4))
    assert problems(launch(scenario, **given)) == expected
    assert scenario.decisions() == []


def test_what_was_typed_stays_text(shelf):
    scenario = shelf(Case(4))
    name = "<script>alert(1)</script>[x](javascript:alert(2))"
    for text in (f"vod_id,决定,备注\n4,{name},\n", f"vod_id,决定,备注\n4,{name},\n4,忽略,\n", f"{name},a\n1,2\n"):
        run = launch(scenario, text=text)
        failed = [event for event in run.result.all_events if event.is_step_failure]
        found = failed[0].step_failure_data.user_failure_data.metadata if failed else {}
        values = [value.value for value in found.values()] if failed else run.output.values()
        shown = "".join(value for value in values if isinstance(value, str))
        assert "script" in shown
        assert "<script" not in shown
        assert not re.search(r"(?<!\\)\]\(javascript", shown)


def test_a_secret_of_the_environment_cannot_be_written_down(shelf, monkeypatch):
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    scenario = shelf(Case(4))
    run = launch(scenario, text={"env": "SITE_DATABASE_PASSWORD"})
    assert run.failure.endswith("配置中不得引用环境变量：SITE_DATABASE_PASSWORD")
    assert "geheim" not in str(run.result.all_events)


# --- the inbox --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../secret.csv", "/etc/passwd", "..", ".", ".hidden.csv", "a/b.csv", "a\\b.csv", "..\\secret.csv", "a\0.csv", ""],
)
def test_no_name_leads_out_of_the_inbox(shelf, name):
    scenario = shelf(Case(4))
    path = put(scenario, "good.csv", "vod_id,决定\n")
    (path.parent.parent / "secret.csv").write_text("geheim", encoding="utf-8")
    put(scenario, ".hidden.csv", "geheim")
    with pytest.raises(FileError) as caught:
        read_inbox_file(scenario.services.settings, name)
    [problem] = caught.value.problems
    assert problem.startswith("file 只能是收件夹里的文件名，不带路径，也不以点开头，现为 ")
    assert problem.endswith("；收件夹里现有：'good.csv'")


def test_no_link_leads_out_of_the_inbox(shelf):
    scenario = shelf(Case(4))
    path = put(scenario, "good.csv", "vod_id,决定\n")
    outside = path.parent.parent / "secret.csv"
    outside.write_text("geheim", encoding="utf-8")
    (path.parent / "link.csv").symlink_to(outside)
    run = launch(scenario, file="link.csv")
    assert problems(run) == ["'link.csv' 是链接，请放入文件本身；收件夹里现有：'good.csv'"]
    assert "geheim" not in str(run.result.all_events)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_read(shelf, kind):
    scenario = shelf(Case(4))
    path = put(scenario, "good.csv", "vod_id,决定\n").parent / "odd.csv"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    assert problems(launch(scenario, file="odd.csv")) == ["'odd.csv'：不是普通文件；收件夹里现有：'good.csv'"]


def test_a_file_that_is_not_there_is_reported_with_those_that_are(shelf):
    scenario = shelf(Case(4))
    folder = inbox_of(scenario.services.settings)
    assert problems(launch(scenario, file="a.csv")) == [f"收件夹 {folder} 里没有文件 'a.csv'；收件夹里现有：（空）"]
    assert folder.is_dir(), "so that people find it"
    for name in ("b.csv", "c.csv", "<b>.csv"):
        put(scenario, name, "x")
    run = launch(scenario, file="a.csv")
    assert problems(run) == [f"收件夹 {folder} 里没有文件 'a.csv'；收件夹里现有：'<b>.csv'、'b.csv'、'c.csv'"]


def test_a_file_that_is_too_large_is_not_read(shelf):
    scenario = shelf(Case(4))
    path = put(scenario, "large.csv", "")
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    [problem] = problems(launch(scenario, file="large.csv"))
    assert problem.startswith("'large.csv'：文件太大：20.0 MB，最多 20 MB；请分成几个文件")


# --- the launchpad ----------------------------------------------------------------------------------------------------


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe(shelf):
    config = import_decisions.run_config["ops"]["read_and_record"]["config"]
    assert set(config) == set(ImportConfig.model_fields)
    assert config["dry_run"] is True
    assert problems(launched(shelf(Case(4)), import_decisions)) == ["reviewer: 不能为空，请填写你的名字"]


def test_the_examples_of_the_manual_can_be_launched():
    examples = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", import_decisions.description, re.S)]
    assert len(examples) == 2
    for example in examples:
        assert fits_schema(import_decisions, example)
    text = examples[1]["ops"]["read_and_record"]["config"]["text"]
    assert [decision.vod_id for decision in parse_decisions(text.encode()).decisions.values()] == [1024, 2048]
