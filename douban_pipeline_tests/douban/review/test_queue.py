"""The review queue shows what waits for a person, the most pressing first, and nothing that outside text can break."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import unquote

import dagster as dg
import pytest
import yaml

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS
from douban_pipeline.douban.review.worklist.queue import first_frame, review_queue_of
from douban_pipeline.douban.review.worklist.queue_table import holders_shown, pressing_table
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import days_ago, video
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of, subject

HOSTILE = "<script>alert(1)</script>|表`格`*之*\n## [点我](javascript:alert(2))"
RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
POOR = {"vod_director": "", "vod_actor": "", "vod_class": ""}
SERIES = {"type_id": 13}
FILM = {"type_id": 6}


@pytest.fixture
def scenario(stage):
    """Four videos wait: 4 with two candidates, 5 with a failing source, 6 and 7 with doubtful ids; 8 and 9 do not."""
    rows = [
        row_of(RIVER, 4, vod_hits=10, **POOR),
        row_of(WHALE, 5, vod_hits=500),
        video(6, vod_name="甲", vod_hits=50, vod_douban_id=90_000_103),
        video(7, vod_name="乙", vod_hits=50, vod_douban_id=90_000_104, vod_time=1),
        video(8, vod_hits=9999),
        video(9, vod_hits=9999),
    ]
    found = stage(rows, [RIVER, RIVAL, *FILMS[1:]])
    assert found.play(4, steps=STEPS[:3]).success
    later = found.clock.now()
    found.library.set_state(5, douban_sync_fail_count=5, douban_review_reason="连续失败 5 次：douban: HTTP 500")
    found.library.set_state(6, douban_review_status="REVIEW", douban_review_reason="可疑")
    found.library.set_state(7, douban_review_status="REVIEW", douban_next_sync_at=later)
    found.library.set_state(8, douban_review_status="IGNORED", douban_next_sync_at=None)
    found.library.set_state(9, douban_sync_fail_count=4)
    return found


def shown(library, most: int = 100) -> list[list[int]]:
    """Return the queue's groups as ids."""
    return [[entry.vod_id for entry in group] for group in review_queue_of(library.services, most=most).groups]


def test_doubtful_ids_that_visitors_see_come_before_what_only_waits(scenario):
    queue = review_queue_of(scenario.services, most=10)
    assert [entry.vod_id for entry in queue.first] == [6, 5, 4, 7]
    assert (queue.length, queue.by_status) == (4, {"UNCHECKED": 1, "REVIEW": 3})
    short = review_queue_of(scenario.services, most=2)
    assert ([entry.vod_id for entry in short.first], short.length) == ([6, 5], 4)


def test_each_entry_shows_the_candidates_of_its_newest_verdict(scenario):
    entries = {entry.vod_id: entry for entry in review_queue_of(scenario.services, most=10, candidates=1).first}
    entry, [verdict] = entries[4], scenario.verdicts(4)
    assert (entry.title, entry.year, entry.category, entry.hits) == ("长河落日记事", "2021", "动作片", 10)
    assert entry.updated == START - timedelta(days=10)
    assert entry.reason == verdict["explanation"]
    assert (entry.verdict_id, entry.score, entry.lead) == (verdict["verdict_id"], verdict["score"], verdict["lead"])
    assert (entry.facts["regions"], entry.facts["directors"]) == (("大陆",), ())
    [best] = entry.candidates
    stored = scenario.candidates(4)[0]
    assert (best.rank, best.douban_id, best.score) == (1, stored["douban_id"], stored["score"])
    assert {name for name, points in best.points.items() if points} == {"title", "year", "region", "tie_break"}
    assert best.points["title"] == 45.0
    # A newer verdict without candidates has none to show: the older ones are history.
    scenario.library.set_cms(4, vod_name="改了名的另一部片")
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
    assert scenario.play(4, steps=STEPS[:3]).success
    scenario.library.set_state(4, douban_review_status="REVIEW")
    [entry] = [each for each in review_queue_of(scenario.services, most=10).first if each.vod_id == 4]
    assert (entry.candidates, entry.verdict_id) == ((), scenario.verdicts(4)[-1]["verdict_id"])


def test_a_video_that_was_never_judged_has_no_points(scenario):
    entries = {entry.vod_id: entry for entry in review_queue_of(scenario.services, most=10).first}
    assert [(entries[7].verdict_id, entries[7].score, entries[7].lead)] == [(0, None, None)]


def test_facts_are_those_of_now_and_an_older_verdict_is_marked(scenario):
    def entry():
        return next(each for each in review_queue_of(scenario.services, most=10).first if each.vod_id == 4)

    assert not entry().stale
    scenario.library.set_cms(4, vod_hits=77)
    assert not entry().stale, "no verdict rests on that"
    scenario.library.set_cms(4, vod_director="新导演")
    assert entry().stale
    assert entry().facts["directors"] == ("新导演",)


@pytest.mark.parametrize(("column", "value"), [("vod_recycle_time", 1_700_000_000), (None, None)])
def test_a_deleted_video_waits_for_nobody(scenario, column, value):
    if column:
        scenario.library.set_cms(6, **{column: value})
    else:
        scenario.library.execute("DELETE FROM mac_vod WHERE vod_id = 6")
        scenario.library.intake.sweep(0, 1)
    queue = review_queue_of(scenario.services, most=10)
    assert ([entry.vod_id for entry in queue.first], queue.length) == ([5, 4, 7], 3)


@pytest.mark.parametrize(
    ("action", "state", "waits"),
    [
        ("choose", DecisionState.PENDING, False),
        ("ignore", DecisionState.PENDING, False),
        ("rematch", DecisionState.PENDING, False),
        ("lock_intro", DecisionState.PENDING, True),
        ("lock_id", DecisionState.PENDING, True),
        ("choose", DecisionState.REFUSED, True),
        ("choose", DecisionState.REVERTED, True),
    ],
)
def test_who_has_a_decision_waits_for_the_machine(scenario, action: str, state: str, waits: bool):
    decide(scenario.library, 6, action, state=state)
    queue = review_queue_of(scenario.services, most=10)
    assert (6 in [entry.vod_id for entry in queue.first], queue.decided) == (waits, int(not waits))
    assert queue.length == 3 + waits


def test_seasons_of_one_work_stand_together_where_the_most_pressing_does(shared_library):
    library = shelved(
        shared_library,
        [
            Case(4, {"vod_name": "长河 第三季", "vod_hits": 5, **SERIES}),
            Case(5, {"vod_name": "别的剧", "vod_hits": 5000, **SERIES}),
            Case(6, {"vod_name": "长河第二季", "vod_hits": 900_000, **SERIES}),
            Case(7, {"vod_name": "长河", "vod_hits": 0, "vod_time": 1, **SERIES}),
            Case(8, {"vod_name": "长河", "vod_hits": 100, **FILM}),  # a film is another work
            Case(9, {"vod_name": "长河2：归来", "vod_hits": 90, **FILM}),  # its subtitle makes it another base
        ],
    )
    assert shown(library) == [[7, 6, 4], [5], [8], [9]]
    assert [entry.franchise for entry in review_queue_of(library.services, most=3).first] == ["长河"] * 3
    # The last group gives up its least pressing members first.
    assert shown(library, most=2) == [[6, 4]]
    assert shown(library, most=1) == [[6]]
    assert review_queue_of(library.services, most=1).length == 6


def test_a_franchise_without_end_is_cut_into_looks(shared_library):
    episodes = [Case(vod_id, {"vod_name": f"奔跑第{vod_id}季", "vod_hits": 1000 - vod_id}) for vod_id in range(4, 34)]
    library = shelved(shared_library, [*episodes, Case(40, {"vod_name": "别的", "vod_hits": 985})])
    groups = shown(library)
    assert [len(group) for group in groups] == [12, 1, 12, 6]
    assert groups[0] == list(range(4, 16))
    assert groups[1] == [40]


def test_close_calls_come_first(shared_library):
    same = {"vod_hits": 100, "vod_time": days_ago(30)}
    library = shelved(
        shared_library,
        [
            Case(4, {**same, "vod_name": "甲"}, verdict={"score": 60.0, "lead": None}),
            Case(5, {**same, "vod_name": "乙"}, verdict={"score": 84.0, "lead": None}),
            Case(6, {**same, "vod_name": "丙"}, verdict={"score": 84.0, "lead": 1.0}),
            Case(7, {**same, "vod_name": "丁", "vod_douban_id": 90_000_000}, {"vod_douban_id": 90_000_000}),
            Case(8, {**same, "vod_name": "戊", "vod_hits": 200}, verdict=None),
        ],
    )
    assert [vod_id for [vod_id] in shown(library)] == [7, 6, 5, 4, 8]


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_more_than_one_statement_may_name_is_read_in_pieces(shared_library, most: int):
    library = shelved(shared_library, [Case(vod_id, {"vod_name": f"{vod_id}号片子"}) for vod_id in range(1, 1101)])
    queue = review_queue_of(library.services, most=most)
    assert (queue.length, len(queue.first)) == (1100, most)
    assert all([candidate.douban_id for candidate in entry.candidates] == [90_000_000 + entry.vod_id]
               for entry in queue.first)  # fmt: skip


def report(scenario, config=None):
    """Make the report."""
    return scenario.launch("nightly_reports", config, asset_selection=[dg.AssetKey("review_queue")])


def test_what_the_report_shows(scenario):
    found = report(scenario).metadata("review_queue")
    counted = ("waiting", "status_review", "status_unchecked", "decided", "shown")
    assert [found[name] for name in counted] == [4, 3, 1, 0, 4]
    assert list(found)[:3] == ["most_pressing", "csv", "waiting"], "what people click"
    first = [line.split("|")[1].strip() for line in found["most_pressing"].splitlines()[2:]]
    assert first == ["6", "5", "4", "7"]
    assert "[90000103](https://movie.douban.com/subject/90000103/)" in found["most_pressing"]
    assert "连续失败 5 次：douban: HTTP 500" in found["most_pressing"]
    lines = found["candidates"].splitlines()
    assert len(lines) == 2, "a line each where the columns do not fit: both candidates of video 4"
    assert all("片名 45" in line and " 0 " not in line for line in lines)
    reports = scenario.library.settings.home / "reports"
    assert found["csv"] == str(reports / "review_queue.csv")
    assert "长河落日记事" in (reports / "review_queue.csv").read_text("utf-8-sig")
    # Looking changes nothing.
    again = report(scenario).metadata("review_queue")
    assert again == found


def test_fewer_are_shown_when_fewer_are_asked_for_and_the_table_says_so(scenario):
    config = {"review_queue": {"config": {"most": 3}}}
    found = report(scenario, config).metadata("review_queue")
    assert (found["waiting"], found["shown"]) == (4, 3)
    assert found["most_pressing"].endswith("这是最要紧的 3 部，另有 1 部待审核。")


def test_where_there_is_a_service_the_report_links_there(scenario):
    served = scenario.under(public_url="https://example.org", reports_url="https://example.org/reports/")
    found = report(served).metadata("review_queue")
    assert found["sheet"] == "https://example.org/review/"
    assert found["csv"] == "https://example.org/reports/review_queue.csv"


def test_a_folder_that_cannot_be_written_is_reported(scenario, tmp_path):
    (tmp_path / "home" / "reports").parent.mkdir(exist_ok=True)
    (tmp_path / "home" / "reports").write_text("in the way")
    run = report(scenario)
    assert not run.success
    assert f"{tmp_path / 'home' / 'reports' / 'review_queue.csv'} 无法写入" in run.failure
    assert "DOUBAN_PIPELINE_HOME" in run.failure


def links_of(text: str, vod_id: int) -> dict[str, dict]:
    """Return the configs that the links of a video's row in the table open, by their text."""
    plain = text.replace("\u2060", "").replace("\u00a0", " ")
    [line] = [line for line in plain.splitlines() if re.match(rf"\|\s*{vod_id} ", line)]
    links = re.findall(r"\[([^\]]+)\]\((/locations/[^)]+/jobs/record_decisions/playground/setup\?config=[^)]+)\)", line)
    assert all(len(path) < MOST_CHARACTERS for _, path in links)
    return {text: yaml.safe_load(unquote(path.partition("config=")[2])) for text, path in links}


def test_the_links_of_the_table_settle_a_video_as_soon_as_somebody_signs(scenario):
    scenario.library.set_state(5, douban_id_locked=True)
    table = report(scenario).metadata("review_queue")["most_pressing"]
    verdict = {"verdict_id": scenario.verdicts(4)[-1]["verdict_id"]}
    first, second = (candidate["douban_id"] for candidate in scenario.candidates(4))
    chosen = {"vod_id": 4, "action": "choose"}
    wanted = {
        4: {
            "确认首选": {**chosen, "douban_id": first, **verdict},
            "选其他…": {**chosen, "douban_id": second, **verdict},
            "忽略 180 天": {"vod_id": 4, "action": "ignore", "days": 180, **verdict},
        },
        5: {
            "重新匹配": {"vod_id": 5, "action": "rematch"},
            "指定 ID…": {"vod_id": 5, "action": "set_id", "douban_id": 0},
            "忽略 180 天": {"vod_id": 5, "action": "ignore", "days": 180},
            "解锁": {"vod_id": 5, "action": "unlock_id"},
        },
        6: {
            "重新匹配": {"vod_id": 6, "action": "rematch"},
            "指定 ID…": {"vod_id": 6, "action": "set_id", "douban_id": 0},
            "忽略 180 天": {"vod_id": 6, "action": "ignore", "days": 180},
            "清除": {"vod_id": 6, "action": "clear_id"},
        },
    }
    for vod_id, links in wanted.items():
        found = links_of(table, vod_id)
        assert {text: config["ops"]["store_decisions"]["config"]["decisions"] for text, config in found.items()} == {
            text: [decision] for text, decision in links.items()
        }
    # Nobody signed yet: it is refused as it is, and recorded with a name.
    config = links_of(table, 4)["确认首选"]["ops"]
    unsigned = scenario.launch("record_decisions", config)
    assert not unsigned.success
    assert "reviewer: 不能为空，请填写你的名字" in unsigned.failure
    config["store_decisions"]["config"]["reviewer"] = "小王"
    assert scenario.launch("record_decisions", config).success
    assert [(each["vod_id"], each["douban_id"]) for each in scenario.decisions()] == [(4, first)]


@pytest.mark.parametrize("locked", [False, True])
def test_a_subject_that_another_video_has_is_confirmed_by_a_link_that_says_so(scenario, locked: bool):
    first, second = (candidate["douban_id"] for candidate in scenario.candidates(4))
    for vod_id in (8, 9):
        scenario.library.set_cms(vod_id, vod_douban_id=first)
        scenario.library.set_state(vod_id, vod_douban_id=first, douban_review_status="CONFIRMED")
    scenario.library.set_state(4, douban_id_locked=locked)
    found = report(scenario).metadata("review_queue")
    [row] = [line for line in found["most_pressing"].splitlines() if line.startswith("| 4 ")]
    assert "已关联影片 8、9；" in row
    links = links_of(found["most_pressing"], 4)
    text = "替换并接受冲突" if locked else "确认并接受冲突"
    assert next(iter(links)) == text
    config = links[text]["ops"]
    [decision] = config["store_decisions"]["config"]["decisions"]
    assert (decision["douban_id"], decision["accept_conflicts"]) == (first, True)
    [other] = links["选其他…"]["ops"]["store_decisions"]["config"]["decisions"]
    assert (other["douban_id"], other.get("accept_conflicts", False)) == (second, False)
    assert [line.count("已关联影片 8、9") for line in found["candidates"].splitlines()] == [1, 0]
    config["store_decisions"]["config"]["reviewer"] = "小王"
    assert scenario.launch("record_decisions", config).success


def test_the_ui_shows_the_first_and_says_how_many_more_there_are(shared_library):
    cases = [Case(vod_id, {"vod_name": f"{vod_id}号片子"}) for vod_id in range(4, 44)]
    library = shelved(shared_library, cases)
    queue = review_queue_of(library.services, most=30)
    text = pressing_table(queue, holders_shown(library.services, queue), library.services.location)
    assert len(text.splitlines()) == 2 + 16 + 2
    assert text.endswith("这是最要紧的 16 部，另有 24 部待审核。")


def test_rows_lead_to_the_site_and_its_player(shared_library):
    library = shelved(shared_library, [Case(4)])
    queue = review_queue_of(library.services, most=30)
    site = {"page": "https://site.example/v/{id}.html", "player": "https://site.example/p/{id}.html"}
    row = pressing_table(queue, {}, library.services.location, site).splitlines()[2]
    assert row.startswith("| [4](https://site.example/v/4.html) [▶](https://site.example/p/4.html) |")
    assert pressing_table(queue, {}, library.services.location).splitlines()[2].startswith("| 4 ")


@pytest.mark.parametrize(
    ("stored", "frame"),
    [
        ("https://a.example/1.jpg", "https://a.example/1.jpg"),
        ("开头$upload/1.jpg#结尾$upload/2.jpg", "upload/1.jpg"),
        ("", ""),
        ("#upload/2.jpg", ""),
    ],
)
def test_the_first_of_the_screenshots(stored: str, frame: str):
    assert first_frame(stored) == frame


def test_a_long_reason_is_cut(scenario):
    scenario.library.set_state(5, douban_review_reason="因" * 41)
    scenario.library.set_state(6, douban_review_reason="由" * 40)
    text = report(scenario).metadata("review_queue")["most_pressing"]
    assert f" {'因' * 39}… " in text
    assert f" {'由' * 40} " in text


def test_a_reason_does_not_repeat_what_the_columns_say_of_the_best_but_names_another(scenario):
    def row() -> str:
        text = report(scenario).metadata("review_queue")["most_pressing"]
        return next(line for line in text.splitlines() if line.startswith("| 4 "))

    best, other = scenario.candidates(4)
    [verdict] = scenario.verdicts(4)
    head, _, rest = verdict["explanation"].partition("；")
    assert head.startswith(f"《{best['title']}》（{best['year']}）得分 {best['score']:.1f}")
    assert f" {rest[:39]}" in row()
    assert "《" not in row()
    other_head = f"《{other['title']}》（{other['year']}）得分 {other['score'] - 9:.1f}；季数不一致"
    scenario.library.set_state(4, douban_review_reason=other_head)
    assert f" {other_head} " in row()


def test_the_link_to_another_candidate_says_which_id_is_which(scenario):
    table = report(scenario).metadata("review_queue")["most_pressing"].replace("\u2060", "")
    [path] = re.findall(r"\[选其他…\]\(([^)]+)\)", table)
    comments = [line for line in unquote(path).splitlines() if line.startswith("#")]
    assert comments == [f"# {each['rank']}: {each['douban_id']} 长河落日记事 (2021)" for each in scenario.candidates(4)]


def test_a_verdict_out_of_date_and_a_locked_id_are_not_confirmed_by_a_click(scenario):
    def links() -> dict[str, dict]:
        return links_of(report(scenario).metadata("review_queue")["most_pressing"], 4)

    scenario.library.set_state(4, douban_id_locked=True)
    [decision] = links()["替换锁定"]["ops"]["store_decisions"]["config"]["decisions"]
    assert decision["action"] == "replace_and_lock"
    scenario.library.set_cms(4, vod_director="新导演")
    assert list(links()) == ["重新匹配", "指定 ID…", "忽略 180 天", "解锁"]


def test_an_empty_queue_says_so(stage):
    found = report(stage([video(4)])).metadata("review_queue")
    assert (found["waiting"], found["shown"], found["most_pressing"], found["candidates"]) == (0, 0, "—", "—")


def test_hostile_text_stays_text(stage):
    entry = subject(90_000_301, f"长河{HOSTILE}", 2021)
    name = f"长河{HOSTILE}"
    scenario = stage([row_of(entry, 4, vod_name=name, vod_year="2020", **POOR), row_of(RIVER, 68)], [entry, RIVER])
    runs = [scenario.run()]
    assert runs[0].success
    scenario.library.set_state(4, douban_review_status="REVIEW", douban_review_reason=HOSTILE)
    runs.append(scenario.launch("nightly_reports"))
    shown = 0
    for run in runs:
        for asset in run.materialized:
            for value in run.metadata(asset).values():
                if isinstance(value, str):
                    shown += "alert" in value
                    assert "<script" not in value
                    assert not re.search(r"(?<!\\)\]\(javascript", value)
                    table = [line for line in value.splitlines() if line.startswith("|")]
                    for line in table:
                        columns = len(line.replace("\\\\", "").replace("\\|", "").split("|"))
                        assert columns == len(table[0].split("|")), "one row a video"
    assert shown >= 3
