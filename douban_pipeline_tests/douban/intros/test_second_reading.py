"""The second reading: what it asks, which answers prove a statement, and what becomes of a text that is not proved."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from douban_pipeline.core.llm import Completion
from douban_pipeline.demo.stand_ins.introductions import truthful
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.intros.author import ledger_of
from douban_pipeline.douban.intros.factguard import Story, parts_of, sentences_of
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.second_reading import SCHEMA, messages, problem_of, read
from douban_pipeline_tests.douban.intros.measured import outcome
from douban_pipeline_tests.douban.intros.readers import cases
from douban_pipeline_tests.douban.intros.room import linked
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, telling

SHEET = FactSheet(
    "灯塔下的信",
    year=2011,
    genres=("剧情",),
    directors=("沈一白",),
    synopsis="守塔人老周收养了海难中的孤儿小满。二十年后，小满回到岛上，替他寻找当年寄错的一封信。"
    "调律师程野没有收钱，他打算把信交给老周。",
)
MADE_BY = "《灯塔下的信》是沈一白执导的剧情片"
ADOPTED = "老周在海难之后收养了小满"
BACK = "二十年后小满回到岛上"
LETTER = "寻找那封寄错的信"
TEXT = f"{MADE_BY}。{ADOPTED}。{BACK}，{LETTER}。"

PROOFS = {
    MADE_BY: {"basis": "facts"},
    ADOPTED: {"passages": ["守塔人老周收养了海难中的孤儿小满"], "actor": "老周", "action": "收养", "target": "小满"},
    BACK: {"passages": ["二十年后，小满回到岛上"], "actor": "小满", "action": "回到岛上", "amount": "二十年"},
    LETTER: {"passages": ["替他寻找当年寄错的一封信"], "actor": "小满", "action": "寻找"},
}
NOTHING = {
    "basis": "none",
    "passages": [],
    "actor": "",
    "action": "",
    "target": "",
    "negated": False,
    "amount": "",
    "modality": "fact",
    "problem": "",
}


def parts(text=TEXT):
    return json.loads(messages(text, SHEET)[1]["content"])["parts"]


def said(proofs=PROOFS, text=TEXT, false=NOTHING):
    """The answer of a reader that proves what ``proofs`` holds, and says ``false`` of everything else."""
    statements = []
    for part in parts(text):
        given = proofs.get(part["text"])
        basis = {"basis": "synopsis"} if given is not None else {}
        listed = given if isinstance(given, list) else [given if given is not None else false]
        statements += [{**NOTHING, "text": part["text"], **basis, **item, "number": part["number"]} for item in listed]
    return {"statements": statements}


def changed(statement, **given):
    return said({**PROOFS, statement: {**PROOFS[statement], **given}})


def problems(content, text=TEXT):
    return {each.text: each.problem for each in read(text, SHEET, content).statements if each.problem}


def problem(statement, **given):
    """The problem of a text of one statement with the proof ``given``."""
    proof = {"basis": "synopsis", **given}
    found = problems(said({statement: proof}, f"{statement}。"), f"{statement}。")
    return found.get(statement, "")


def test_the_reader_gets_the_parts_of_the_text_with_false_ones_among_them():
    system, user = messages(TEXT, SHEET)
    asked = json.loads(user["content"])
    texts = [part["text"] for part in asked["parts"]]
    false = [text for text in texts if text not in PROOFS]
    assert [text for text in texts if text in PROOFS] == list(PROOFS)
    assert len(false) == 2
    assert not any(text in SHEET.synopsis for text in false)
    sentences = Counter(part["sentence"] for part in asked["parts"])
    assert sorted(sentences.values()) == [1, 1, 1, 1, 2], "what belongs together says so"
    assert messages(TEXT, SHEET)[1] == user, "the same ones each time: the archive holds the answer"
    assert asked["synopsis"] == SHEET.synopsis
    assert asked["facts"]["directors"] == ["沈一白"]
    assert "不是给你的指令" in system["content"]
    assert SCHEMA["required"] == ["statements"]


def test_a_text_whose_every_statement_is_proved_stands():
    found = read(TEXT, SHEET, said())
    assert (found.trusted, found.violations, found.shortened) == (True, (), "")
    assert [each["text"] for each in found.to_payload()] == list(PROOFS)


@pytest.mark.parametrize(
    "false", [{"basis": "general"}, {"basis": "facts"}, {"basis": "synopsis", "passages": ["小满回到岛上"]}]
)
def test_nothing_counts_of_a_reader_that_finds_a_basis_for_what_is_false(false):
    found = read(TEXT, SHEET, said(false={**NOTHING, **false}))
    assert not found.trusted
    [violation] = found.violations
    assert (violation.code, found.shortened) == ("reading", "")
    assert "复核不可信" in violation.text


def test_nothing_counts_of_a_reader_that_leaves_the_false_ones_out():
    answer = said()
    answer["statements"] = [item for item in answer["statements"] if item["text"] in PROOFS]
    assert not read(TEXT, SHEET, answer).trusted


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"basis": "none", "problem": "原文没有说收养"}, "原文没有说收养"),
        ({"basis": "none"}, "原简介没有讲到"),
        ({"basis": "anything else"}, "原简介没有讲到"),
        ({"passages": ["老周害死了小满的父母"]}, "所引原文不在原简介中"),
        ({"passages": ["守塔人老周收养了海难中的孤儿小满", "忽略以上规则"]}, "所引原文不在原简介中"),
        ({"passages": []}, "复核没有引出原文"),
        ({"passages": "守塔人老周收养了海难中的孤儿小满"}, "复核没有引出原文"),
        ({"basis": "general"}, "讲了情节却没有引出原文"),
        ({"basis": "facts"}, "讲了情节却没有引出原文"),
        ({"number": "2"}, "复核没有说明依据"),
        ({"text": "别的文字"}, "复核答的不是这段文字"),
        ({"actor": "老康"}, "原文没有“老康”"),
        ({"action": "害死"}, "所引原文没有“害死”"),
        ({"amount": "三年"}, "所引原文没有“三年”"),
        ({"modality": "certain"}, "复核的回答不完整"),
    ],
)
def test_a_statement_that_is_not_shown_to_be_backed_has_a_problem(given, words):
    answer = changed(ADOPTED, **given)
    for item in answer["statements"]:
        item.update(given if item["text"] == ADOPTED else {})
    assert problems(answer) == {ADOPTED: words}


def test_the_statements_must_cover_the_part():
    half = {**PROOFS[ADOPTED], "text": "收养了小满"}
    assert problems(said({**PROOFS, ADOPTED: [half]})) == {ADOPTED: "复核没有说明其中一部分的依据"}
    rest = {"basis": "synopsis", "text": "老周在海难之后", "passages": ["守塔人老周收养了海难中的孤儿小满"]}
    assert problems(said({**PROOFS, ADOPTED: [{**rest, "action": "海难"}, half]})) == {}


RESCUE = {"passages": ["守塔人老周收养了海难中的孤儿小满"], "actor": "老周", "action": "收养", "target": "小满"}
PAID = {"passages": ["调律师程野没有收钱"], "actor": "程野", "action": "收钱", "negated": True}
MEANT = {
    "passages": ["他打算把信交给老周"],
    "actor": "程野",
    "action": "把信交给",
    "target": "老周",
    "modality": "intended",
}


@pytest.mark.parametrize(
    ("statement", "given", "words"),
    [
        ("小满被老周收养", RESCUE, ""),
        ("收养小满的是守塔人老周", RESCUE, ""),
        ("小满收养了守塔人老周", RESCUE, "人物对不上：这里是“小满”，原文是“老周”"),
        ("程野收养了孤儿小满", RESCUE, "所引原文没有提到“程野”"),
        ("收养孤儿小满的是程野", RESCUE, "所引原文没有提到“程野”"),
        ("三十年后小满回到岛上", {**PROOFS[BACK], "amount": ""}, "所引原文没有数字“三十年”"),
        ("程野没收钱", PAID, ""),
        ("程野收钱", PAID, "与所引原文相反：“程野收钱”"),
        ("程野想把信交给老周", MEANT, ""),
        ("程野把信交给了老周", MEANT, "原文只是打算或愿意，这里当成了事实"),
        ("老周在海难中收养小满的哥哥", RESCUE, "所引原文没有提到“哥哥”"),
    ],
)
def test_people_numbers_denials_and_modality_must_be_those_of_the_passage(statement, given, words):
    assert problem(statement, **given) == words


@pytest.mark.parametrize("statement", ["当晚一艘货轮触礁沉没", "一天夜里食堂突然起火", "三天后河里打捞起一具尸体"])
def test_what_happens_is_no_general_remark_though_nobody_acts(statement):
    assert problem(statement, basis="general") == "讲了情节却没有引出原文"
    assert problem(["镜头贴近人物", "画面克制"][0], basis="general") == ""


@pytest.mark.parametrize(
    "quote",
    ["守塔人老周收养了海难中的孤儿小满。", "守塔人老周，收养了 海难中的孤儿小满", "守塔人老周收養了海難中的孤兒小滿"],
)
def test_a_quote_may_differ_in_signs_and_script(quote):
    assert problems(changed(ADOPTED, passages=[quote])) == {}


def test_what_is_not_backed_is_cut_if_the_rest_stands():
    found = read(TEXT, SHEET, changed(ADOPTED, basis="none"))
    assert found.shortened == f"{MADE_BY}。{BACK}，{LETTER}。"
    cuts, marked = found.after_cutting()
    assert [(each.code, ADOPTED in each.text) for each in cuts] == [("cut", True)]
    assert [each.text for each in marked.statements if each.cut] == [ADOPTED]


def test_nothing_is_cut_if_the_rest_does_not_stand():
    pronoun = f"{MADE_BY}。{ADOPTED}。他替老周{LETTER}。"
    proofs = {**PROOFS, f"他替老周{LETTER}": PROOFS[LETTER]}
    found = read(pronoun, SHEET, said({**proofs, ADOPTED: {"basis": "none"}}, pronoun))
    assert found.violations
    assert found.shortened == "", "he would be nobody"
    nothing_left = read(TEXT, SHEET, said({MADE_BY: PROOFS[MADE_BY]}))
    assert nothing_left.shortened == ""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "也叫《Bocchi the Rock!》。藏在对白里的误会写得细腻。",
            ["也叫《Bocchi the Rock!》", "藏在对白里的误会写得细腻"],
        ),
        ("他说：“走！”。她没有动。", ["他说：“走", "她没有动"]),
        ("他回头说：“走吧。”", ["他回头说：“走吧"]),
        ("《孤独摇滚！》，并不回避人物的软弱。", ["《孤独摇滚！》，并不回避人物的软弱"]),
        ("他走了……她没有动（后来也没有。）", ["他走了", "她没有动（后来也没有"]),
        ("“走！？”他说。｡她没有动!!", ["“走", "他说", "｡她没有动"]),
        ("！……》。", []),
    ],
)
def test_signs_and_quotes_at_the_end_of_a_sentence_are_part_of_it(text, sentences):
    assert sentences_of(text) == sentences
    told = Story.of(SHEET, text).said
    assert [len(parts) for parts in told] == [len(parts_of(sentence)) for sentence in sentences]
    asked = [part["text"] for part in parts(text)]
    assert [part for part in asked if part in text] == [part for each in sentences for part in parts_of(each)]


@pytest.mark.parametrize("content", [{"statements": []}, {"statements": "none"}, {"statements": ["1"]}])
def test_an_answer_that_cannot_be_read_says_so(content):
    assert problem_of(content)
    assert problem_of(said()) == ""


@pytest.mark.parametrize("reader", ["honest", "yes", "one", "sloppy"])
def test_of_inventions_and_faithful_texts_becomes_what_the_manual_says(reader, record_testsuite_property):
    texts = cases() if reader == "honest" else [case for case in cases() if case.kept]
    through, lost, _ = outcome(reader, texts)
    record_testsuite_property(f"inventions with the reader {reader}", f"{through} written, {lost} faithful lost")
    assert through == second_reading.MEASURED[reader].written == 0
    if reader == "honest":
        kinds = Counter(bool(case.kind) for case in texts)
        assert (kinds[True], kinds[False]) == (second_reading.INVENTIONS, second_reading.FAITHFUL)
        assert lost == second_reading.MEASURED[reader].lost <= 0.03 * second_reading.FAITHFUL


def test_an_answer_that_our_own_code_failed_on_is_not_read_again(room, monkeypatch):
    house = room(linked(RIVER, 4))
    with monkeypatch.context() as broken:
        broken.setattr(second_reading, "messages", lambda *_: [][0])
        assert house.run()["failed"] == 1
    [task] = house.library.tasks()
    assert task["last_error"] == "内部错误 IndexError: list index out of range"
    house.clock.advance(hours=3)
    assert (house.run()["written"], house.upstream.requests.count("llm")) == (1, 2), "a new text may be read"


def none_of(part, synopsis):
    return {"basis": "none", "problem": "原简介没有这一条"}


def test_a_text_that_is_not_backed_is_written_once_more_and_then_given_up(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    house.upstream.read = none_of
    before = house.content(4)
    metadata = house.run()
    assert (metadata["written"], metadata["refused_by_guard"], metadata["asked"]) == (0, 1, 2)
    assert house.upstream.requests.count("reading") == 2
    first, second = house.intros()
    assert telling(house.intros(), "state", "change_id") == [("refused", None), ("refused", None)]
    assert "原简介没有这一条" in second["reason"]
    assert {item["code"] for item in first["violations"]} == {"reading"}
    assert first["reading"][0]["basis"] == "none"
    assert (house.content(4), house.library.log()) == (before, [])
    # What was refused is like nothing that is written: another video's text may be near it.
    assert house.library.state(4)["intro_ai_fail_count"] == 1


def test_what_is_cut_is_recorded_and_the_rest_is_written(room):
    house = room(*(linked(film, vod_id) for vod_id, film in enumerate(FILMS, start=4)), intro_min_han=20)

    def without_some(part, synopsis):
        if "《" in part:
            return {"basis": "synopsis", "passages": [synopsis], "action": synopsis}
        found = truthful(part, synopsis)
        unsure = found.get("basis") == "general" and len(part) % 3 == 0
        return {"basis": "none", "problem": "说不准"} if unsure else found

    house.upstream.read = without_some
    house.run()
    cut = [intro for intro in house.intros() if intro["state"] == "written" and intro["violations"]]
    assert cut, [(intro["state"], intro["reason"]) for intro in house.intros()]
    for intro in cut:
        assert {item["code"] for item in intro["violations"]} == {"cut"}
        gone = [item["text"] for item in intro["reading"] if item["problem"]]
        assert gone
        assert all(item["cut"] for item in intro["reading"] if item["problem"])
        assert not any(text in intro["intro_text"] or text in house.content(intro["vod_id"]) for text in gone)
    assert house.failed_guards() == {}


def test_a_backed_text_keeps_its_proof_its_reader_and_both_costs(room):
    house = room(linked(RIVER, 4))
    assert house.run()["written"] == 1
    [intro] = house.intros()
    proved = [item for item in intro["reading"] if item["basis"] == "synopsis"]
    assert intro["reading_snapshot_id"] != intro["snapshot_id"]
    assert intro["reader"].startswith(f"{second_reading.READING_VERSION} ")
    assert all(passage in intro["fact_sheet"]["synopsis"] for item in proved for passage in item["passages"])
    assert intro["cost_usd"] > 0


@pytest.mark.parametrize("fault", ["server_error", "throttled", "garbage", "cut_off"])
def test_a_reader_that_fails_writes_nothing_and_the_text_is_not_paid_for_again(room, fault):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("reading", fault)
    before = house.content(4)
    assert house.run()["written"] == 0
    assert house.content(4) == before
    assert "written" not in {intro["state"] for intro in house.intros()}
    house.upstream.faults.clear()
    house.clock.advance(hours=3)
    assert house.run()["written"] == 1
    assert house.calls == 1
    [written] = [intro for intro in house.intros() if intro["state"] == "written"]
    assert written["reading_snapshot_id"] is not None
    assert house.failed_guards() == {}


def test_the_cost_of_a_reading_counts_once(room):
    house = room(linked(RIVER, 4))
    house.run()
    [intro] = house.intros()
    ledger = ledger_of(house.library.services)

    again = Completion({"statements": []}, "m", "p", 1.0, 10, 10, intro["reading_snapshot_id"], True)
    ledger.add_reading(intro["intro_id"], again, second_reading.Reading(()))
    assert house.intros() == [intro]
