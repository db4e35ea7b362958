"""The digest's rules: slots as moments, HTML as text, what is a finding, what a text may not do, what an answer is."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.digest import findings
from douban_pipeline.digest.answers import AnalysisAnswer, DigestAnswer, problem_of
from douban_pipeline.digest.articles import body_of, content_hash, text_of, url_hash
from douban_pipeline.digest.prompts import IN_ORDER, ONLY_JSON, analysis_prompt, delimited
from douban_pipeline.digest.rubrics import RubricError, read_rubric, write_defaults
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.slots import (
    SlotKey,
    days_to_watch,
    early_refusal,
    missed_slots,
    newest_moment,
    push_refusal,
    window_of,
)
from douban_pipeline.digest.types import DayStats, Finding, WaitingArticle
from douban_pipeline_tests.digest.hostile import HOSTILE
from douban_pipeline_tests.digest.stage import DAY, key, moment
from douban_pipeline_tests.harness.fixtures.full_disk import largest_file

ZONE = ZoneInfo("Asia/Shanghai")
NIGHT = SlotKey(DAY, "22:00")


def test_a_slot_is_a_moment_of_the_site_whenever_it_runs() -> None:
    assert str(NIGHT) == "2026-11-20|22:00"
    assert SlotKey.parse("2026-11-20|22:00") == NIGHT
    assert NIGHT.scheduled_at(ZONE) == datetime(2026, 11, 20, 14, tzinfo=UTC)
    for wrong in ("2026-11-20", "2026-11-31|07:00", "2026-11-20|25:00", "x|07:00"):
        with pytest.raises(ValueError, match=r"."):
            SlotKey.parse(wrong)


@pytest.mark.parametrize(
    ("hours", "backfill", "early", "pushes"),
    [
        (-10, False, True, True),
        (0, False, False, True),
        (2.5, False, False, True),
        (2.5, True, False, False),
        (11.9, False, False, True),
        (13, False, False, False),
        (240, True, False, False),
    ],
)
def test_a_slot_runs_from_its_moment_on_and_pushes_for_half_a_day(
    hours: float, backfill: bool, early: bool, pushes: bool
) -> None:
    now = NIGHT.scheduled_at(ZONE) + timedelta(hours=hours)
    assert bool(early_refusal(NIGHT, now, ZONE)) is early
    assert (push_refusal(NIGHT, now, ZONE, backfill=backfill) is None) is pushes


def test_the_watchdog_looks_at_the_day_whose_hour_has_passed_and_at_last_night() -> None:
    grace = timedelta(minutes=30)

    def days(clock: str, day: date = DAY) -> list[date]:
        return days_to_watch(moment(clock, day), "22:00", grace, ZONE)

    assert days("22:29") == []
    assert days("22:30") == [DAY]
    assert days("00:10", DAY + timedelta(days=1)) == [DAY]
    assert days("10:30", DAY + timedelta(days=1)) == []


def test_the_window_is_three_days_or_since_the_last_good_read() -> None:
    now = moment("07:00")
    usual, longest = timedelta(days=3), timedelta(days=14)
    assert window_of(now, usual, longest, None).start == now - usual
    assert window_of(now, usual, longest, now - timedelta(days=1)).start == now - usual
    late = window_of(now, usual, longest, now - timedelta(days=5))
    assert (late.start, late.extended) == (now - timedelta(days=5), True)
    assert window_of(now, usual, longest, now - timedelta(days=50)).start == now - longest


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>你<b>好</b>，<span>世界</span></p><p>第二段</p>", "你好，世界\n第二段"),
        ("<html><head><style>p{color:red}</style><title>t</title></head><body><p>正文</p></body></html>", "正文"),
        ("<p>a</p><script>alert(1)</script><noscript>n</noscript><div style='display:none'>藏</div>", "a"),
        ("一行<br>又一行&nbsp;&amp;\u200b 完", "一行\n又一行 & 完"),
        ("<section style='visibility: hidden'><p>微信默认如此</p></section>", "微信默认如此"),
        ("没有标签", "没有标签"),
        ("<p>\x00坏\ud800字符</p>".encode("utf-8", "replace").decode(), "坏?字符"),
    ],
)
def test_html_is_what_a_reader_sees(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "html",
    [
        None,
        "",
        "<html><head><style>a</style></head><body> </body></html>",
        "DELETED",
        "<p>DELETED</p>",
        "<p>转换失败: 'NoneType' object has no attribute 'strip'</p>",
    ],
)
def test_what_stands_for_a_body_that_is_not_there_is_none(html: str | None) -> None:
    found = body_of(html)
    assert not found.text
    assert found.missing


def test_doubles_share_text_or_address() -> None:
    long = "正文" * 100
    assert content_hash("标题", f"{long} 乙\n丙") == content_hash("另一个", f"{long}乙丙")
    assert content_hash("标 题", "甲 乙") == content_hash("标题", "甲乙") != content_hash("另一个", "甲乙")
    first = url_hash("https://mp.weixin.qq.com/s?__biz=a&mid=1&idx=1&sn=b&chksm=x#rd")
    assert first == url_hash("http://mp.weixin.qq.com/s?mid=1&__biz=a&idx=1&sn=b&scene=27")
    assert first != url_hash("https://mp.weixin.qq.com/s?__biz=a&mid=2&idx=1&sn=b")
    assert url_hash("") is None
    assert url_hash("https://a.org/read?tid-1") != url_hash("https://a.org/read?tid-2")
    assert url_hash("https://a.org/thread-1#post-1") != url_hash("https://a.org/thread-1#post-2")


def finding(analysis_id: int, score: int, hour: int | None = 1, suspicions: tuple[str, ...] = ()) -> Finding:
    at = None if hour is None else datetime(2026, 11, 20, hour, tzinfo=UTC)
    return Finding(analysis_id, analysis_id, score, f"t{analysis_id}", "号", "s", at, suspicions)


def test_findings_reach_the_threshold_and_ties_go_to_the_earlier() -> None:
    rows = [
        finding(1, 59),
        finding(2, 60),
        finding(3, 90, 5),
        finding(4, 90, 3),
        finding(5, 90, 3),
        finding(6, 90, None),
    ]
    found = findings.reaching(rows, 60)
    assert [each.analysis_id for each in found] == [4, 5, 3, 6, 2]
    assert findings.finding_title("14:00", found) == "【机会提醒】14:00 发现 5 条（最高分 90）"
    body = findings.finding_body([finding(1, 99, suspicions=("原因",)), finding(2, 61)])
    assert body.splitlines() == ["⚠ 存疑 t1（号，99 分）", "s", "原因", "61 分 · t2（号）"]


SLOTS_DONE = ("07:00", "22:00")


@pytest.mark.parametrize(
    ("stats", "outcome", "text"),
    [
        (DayStats(9, 9, 5, 0, 90, SLOTS_DONE), "found", "5 条机会（最高分 90）"),
        (DayStats(15, 1, 1, 10, 90, SLOTS_DONE, 4), "found", "1 条机会（最高分 90）；另有 14 篇未能分析"),
        (
            DayStats(5, 5, 2, 0, 90, ("22:00",), unread=("07:00",)),
            "found",
            "2 条机会（最高分 90）；另有 07:00 没有读到来源",
        ),
        (DayStats(9, 9, 0, 0, 40, SLOTS_DONE), "nothing_found", "已读 9 篇，没有投资机会"),
        (DayStats(9, 5, 0, 3, 40, SLOTS_DONE, 1), "nothing_found", "已读 5 篇，没有投资机会；另有 4 篇未能分析"),
        (
            DayStats(5, 5, 0, 0, 40, ("22:00",), unread=("07:00",)),
            "nothing_found",
            "已读 5 篇，没有投资机会；另有 07:00 没有读到来源",
        ),
        (DayStats(0, 0, 0, 0, None, SLOTS_DONE), "nothing_found", "今日没有新文章"),
        (DayStats(4, 0, 0, 4, None, SLOTS_DONE), "unread", "今日 4 篇文章都没能分析，有无机会不知道"),
        (DayStats(4, 0, 0, 0, None, SLOTS_DONE, 4), "unread", "今日 4 篇文章都没能分析，有无机会不知道"),
        (DayStats(0, 0, 0, 0, None, ("22:00",), unread=("07:00",)), "unread", "今日没能读取文章，有无机会不知道"),
        (DayStats(0, 0, 0, 0, None, (), missed=SLOTS_DONE), "unread", "今日没能读取文章，有无机会不知道"),
    ],
)
def test_a_day_says_nothing_was_found_only_of_what_was_read(stats: DayStats, outcome: str, text: str) -> None:
    assert findings.outcome_of(stats).value == outcome
    assert findings.report_title("2026-11-20", stats) == f"【日报】2026-11-20：{text}"


def test_the_coverage_of_a_day_names_what_is_missing() -> None:
    stats = DayStats(9, 5, 0, 3, 40, ("22:00",), 1, 2, ("07:00",), ("12:00", "14:00"), 3)
    assert findings.coverage(stats) == (
        "收到 9 篇，分析 5 篇，失败 3 篇，等待 1 篇，存疑 2 篇，存疑而未推送 3 篇，"
        "没有读到来源的时段 07:00，没有运行的时段 12:00、14:00"
    )


def test_a_slot_of_the_past_takes_nothing_newer_than_itself() -> None:
    schedule, due = ("07:00", "12:00", "22:00"), moment("12:00")

    def until(now: datetime, *, pushes: bool = True) -> datetime | None:
        return newest_moment(key("12:00"), schedule, now, ZoneInfo("Asia/Shanghai"), pushes=pushes)

    assert until(due) is None
    assert until(moment("21:59")) is None
    assert until(moment("21:59"), pushes=False) == due
    assert until(moment("22:00")) == due
    assert until(moment("07:00", DAY + timedelta(days=2))) == due


def test_slots_that_were_due_and_never_ran_are_missed() -> None:
    schedule, zone = ("07:00", "12:00", "22:00"), ZoneInfo("Asia/Shanghai")
    assert missed_slots(DAY, schedule, ["07:00"], moment("21:00"), zone) == ("12:00",)
    assert missed_slots(DAY, schedule, [], moment("07:00"), zone) == ()


def test_texts_of_answers_fit_every_database() -> None:
    long = "长" * 100_000
    opportunity = {"title": "a\0b", "reason": long, "targets": ["c\0d", None]}
    content = {"score": 1, "has_opportunity": True, "summary": f"\0{long}", "opportunities": [opportunity]}
    answer = AnalysisAnswer.model_validate(content)
    [found] = answer.opportunities
    assert (found.title, found.targets) == ("ab", ["cd", ""])
    assert max(len(text.encode()) for text in (answer.summary, found.reason)) < 65_536
    digest = DigestAnswer.model_validate({"has_opportunity": False, "digest_md": f"a\0{long}"})
    assert digest.digest_md == f"a{long}"


@pytest.mark.parametrize(
    ("score", "kept"),
    [(0, 0), (100, 100), (173.4, 100), (-5, 0), ("88", 88), (60.4, 60), (True, None), ("高", None), (None, None)],
)
def test_a_score_is_a_whole_number_from_0_to_100(score: object, kept: int | None) -> None:
    content = {"score": score, "has_opportunity": True, "summary": "x", "opportunities": None}
    assert bool(problem_of("analysis", content)) is (kept is None)
    if kept is not None:
        assert AnalysisAnswer.model_validate(content).score == kept


def article(text: str, title: str = "标题") -> WaitingArticle:
    return WaitingArticle(1, "号", title, "", "", text, None)


def data_of(user: str) -> dict[str, str]:
    """Return what stands between the marks, which must be the only ones of their name."""
    marks = re.findall(r"</?article-([0-9a-f]{24})>", user)
    assert len(marks) == 2
    assert len(set(marks)) == 1
    inside = user.split(f"<article-{marks[0]}>\n", 1)[1].split(f"\n</article-{marks[0]}>", 1)[0]
    found: dict[str, str] = json.loads(inside)
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_no_hostile_text_leaves_its_marks(text: str, tmp_path: Path) -> None:
    prompt = analysis_prompt(read_rubric(tmp_path), article(text, title=text[:50]), 16_000)
    assert data_of(prompt.user)["text"] == text
    assert text not in prompt.system


@given(st.text(), st.text())
def test_data_cannot_contain_its_own_end(title: str, text: str) -> None:
    clean = {"title": title.encode("utf-8", "replace").decode(), "text": text.encode("utf-8", "replace").decode()}
    assert data_of(delimited(clean)) == clean


def test_a_long_text_is_cut_and_said_to_be(tmp_path: Path) -> None:
    prompt = analysis_prompt(read_rubric(tmp_path), article("长" * 16_001), 16_000)
    assert prompt.truncated
    assert prompt.user.endswith("需核验原文）")
    assert data_of(prompt.user)["text"] == "长" * 16_000


def test_every_try_is_a_new_conversation_in_the_plan_s_words(tmp_path: Path) -> None:
    prompt = analysis_prompt(read_rubric(tmp_path), article("正文"), 16_000)
    tries = [prompt.messages(attempt) for attempt in range(4)]
    assert [[message["role"] for message in each] for each in tries] == [["system", "user"]] * 4
    users = [each[1]["content"] for each in tries]
    assert users[0] == users[1] == prompt.user
    assert users[2] == f"{prompt.user}\n\n{ONLY_JSON}"
    assert users[3].endswith(IN_ORDER)
    assert "json" in prompt.system
    assert '"score"' in prompt.system


def test_the_plan_s_parameters_are_the_defaults(tmp_path: Path) -> None:
    chosen = DigestSettings(_env_file=None, home=tmp_path)
    assert chosen.window_days == 3
    assert chosen.schedule_slots == ("07:00", "12:00", "14:00", "18:00", "22:00")
    assert (chosen.push_score_threshold, chosen.max_articles_per_slot) == (60, 50)
    assert (chosen.deepseek_model, chosen.deepseek_max_retries) == ("deepseek-reasoner", 3)
    assert (chosen.deepseek_content_truncate_chars, chosen.worker_concurrency) == (16_000, 2)


def test_the_operator_s_files_count_and_change_the_hash(tmp_path: Path) -> None:
    before = read_rubric(tmp_path)
    assert "投资机会" in before.subject
    assert write_defaults(tmp_path)
    assert read_rubric(tmp_path).hash == before.hash
    (tmp_path / "rubric.md").write_text("只看影视。", encoding="utf-8")
    assert write_defaults(tmp_path) == []
    assert read_rubric(tmp_path).rubric == "只看影视。"
    assert read_rubric(tmp_path).hash != before.hash
    (tmp_path / "rubric.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RubricError, match=r"rubric\.md"):
        read_rubric(tmp_path)


def test_a_rubric_that_a_full_disk_cut_off_is_not_taken_for_the_operator_s(tmp_path: Path) -> None:
    with largest_file(100), pytest.raises(OSError, match="File too large"):
        write_defaults(tmp_path / "digest")
    assert not list((tmp_path / "digest").iterdir())
    assert [path.name for path in write_defaults(tmp_path / "digest")] == ["subject.md", "rubric.md"]
