"""Whether quoted passages say what a sentence says: case by case, and measured with readers that never object.

`reading_cases_tried.txt` was at hand when the rules were made; `reading_cases_kept.txt` was set aside and measured once
with the rules as they were: `intros/measured.py`. Its shares stand here so that they do not get worse.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.second_reading import objections
from douban_pipeline_tests.douban.intros.readers import READERS, answer
from douban_pipeline_tests.douban.intros.test_plot_support import refused, stories

DOCS = Path(__file__).parents[3] / "docs"
TRIED_THROUGH = {"one": 1, "random": 1, "nearest": 11, "everything": 13}
SOURCE = (
    "守塔人老秦在风暴之夜从海里救起少年程野。三年后，程野带着老秦找到了红桥。调律师老康教他听弦，老康没有收钱。"
    "法庭没有当场宣判，船上的三名船员都活着。"
)
SHEET = FactSheet("灯塔来信", year=2011, genres=("剧情",), directors=("沈一白",), synopsis=SOURCE)


def reading(text, *quotes, sheet=SHEET):
    return [each.text.rsplit("（", 1)[-1].rstrip("）") for each in objections(text, sheet, answer([list(quotes)]))]


RESCUE, EXCHANGED = "守塔人老秦在风暴之夜从海里救起少年程野", "人物对不上：这里是“程野”，原文是“老秦”"


@pytest.mark.parametrize(
    ("sentence", "quotes"),
    [
        ("风暴夜里，老秦把程野从海里救了上来", [RESCUE]),
        ("程野是老秦在风暴之夜从海里救起的少年", [RESCUE]),
        ("程野在风暴之夜被老秦从海里救起", [RESCUE]),
        ("三年后，两人找到了红桥", ["三年后，程野带着老秦找到了红桥"]),
        ("老康教程野听弦", ["调律师老康教他听弦", "程野带着老秦找到了红桥"]),
        ("法庭没有当场判决", ["法庭没有当场宣判"]),
        ("沈一白执导的这部2011年剧情片讲老秦从海里救起程野", [RESCUE]),
    ],
)
def test_a_passage_backs_its_sentence(sentence, quotes):
    assert reading(sentence, *quotes) == []


@pytest.mark.parametrize(
    ("sentence", "quotes", "problem"),
    [
        (
            "程野在风暴之夜从海里救起老秦",
            [RESCUE],
            "人物对不上：这里是“程野”，原文是“老秦”",
        ),
        (
            "老秦在风暴之夜被程野从海里救起",
            [RESCUE],
            "人物对不上：这里是“程野”，原文是“老秦”",
        ),
        ("老秦教他听弦", ["调律师老康教他听弦"], "人物对不上：这里是“老秦”，原文是“老康”"),
        ("老秦在风暴之夜从海里救起程野", ["调律师老康教他听弦"], "所引原文讲的不是这句话"),
        ("老秦在风暴之夜从海里救起老康", [RESCUE], "所引原文没有提到“老康”"),
        ("二十年后，程野带着老秦找到了红桥", ["三年后，程野带着老秦找到了红桥"], "所引原文没有数字“二十年”"),
        ("法庭当场宣判", ["法庭没有当场宣判"], "与所引原文相反：“法庭当场宣判”"),
        ("船上的三名船员都已死去", ["船上的三名船员都活着"], "与所引原文相反：“死去”"),
        (
            "老秦在风暴之夜从海里救起程野，众人敲锣打鼓抬着花轿绕城游行",
            [RESCUE],
            "所引原文没有讲到“众人敲锣打鼓抬着花轿绕城游行”",
        ),
    ],
)
def test_a_passage_that_says_something_else_is_refused_with_the_reason(sentence, quotes, problem):
    assert reading(sentence, *quotes) == [problem]


@pytest.mark.parametrize("sentence", ["当晚一艘货轮触礁沉没", "一天夜里食堂突然起火", "三天后河里打捞起一具尸体"])
def test_what_happens_is_no_general_remark_though_nobody_acts(sentence):
    general = {"sentences": [{"number": 1, "basis": "general", "quotes": [], "problem": ""}]}
    [problem] = objections(sentence, SHEET, general)
    assert "讲了情节却没有引出原文" in problem.text
    assert objections("镜头贴近人物，画面克制", SHEET, general) == ()


def let_through(name, reader):
    """Return how many inventions the guard and the reading let through, and how many faithful texts both refuse."""
    random = Random(7)
    told = stories(name)
    invented = [(story, text) for story in told for _, text in story.invented()]
    faithful = [(story, text) for story in told for text in story.faithful.values()]

    def stopped(story, text):
        quoted = READERS[reader](text, story.source, random)
        return refused(text, story.sheet) or bool(objections(text, story.sheet, answer(quoted)))

    return sum(not stopped(*each) for each in invented), sum(stopped(*each) for each in faithful), len(invented)


@pytest.mark.parametrize("reader", READERS)
def test_what_readers_that_never_object_let_through_does_not_grow(reader, record_testsuite_property):
    tried, _, _ = let_through("reading_cases_tried.txt", reader)
    kept, lost, number = let_through("reading_cases_kept.txt", reader)
    record_testsuite_property(f"inventions written, quotes {reader}", f"{kept} of {number}")
    assert number == second_reading.INVENTIONS
    assert tried <= TRIED_THROUGH[reader]
    assert kept <= second_reading.THROUGH_READING[reader]
    if reader == "nearest":
        assert lost <= second_reading.REFUSED_WITH_READING


def test_the_guard_alone_lets_through_what_the_manual_says():
    told = stories("reading_cases_kept.txt")
    assert (
        sum(not refused(text, story.sheet) for story in told for _, text in story.invented())
        <= second_reading.THROUGH_GUARD
    )
    faithful = [(text, story.sheet) for story in told for text in story.faithful.values()]
    assert len(faithful) == second_reading.FAITHFUL
    assert sum(refused(*each) for each in faithful) <= second_reading.REFUSED_BY_GUARD


@pytest.mark.parametrize("page", ["operate.md", "operate.zh-CN.md"])
def test_the_manual_holds_the_measured_table(page):
    cells = ("one", "random", "nearest", "everything")
    row = " | ".join(f"{second_reading.THROUGH_READING[reader]}" for reader in cells)
    text = (DOCS / page).read_text("utf-8")
    assert f"| {second_reading.THROUGH_GUARD} | {row} |" in text
