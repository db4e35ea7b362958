"""One call for many texts says what one call for each would."""

from itertools import product

from rapidfuzz import fuzz

from douban_pipeline.matching.people import overlap
from douban_pipeline.matching.text import ratios

TEXTS = (
    "阿尔伯特芬尼",
    "艾伯特芬尼",
    "芬尼",
    "凯文科斯特纳",
    "thefrozenkitchen",
    "thefrozenkitten",
    "战狼#2",
    "战狼#3",
    "",
)


def test_many_texts_are_compared_as_one_by_one_and_keep_their_order():
    for text, least in product(TEXTS, (0.0, 40.0, 50.0, 100.0)):
        each = [(place, fuzz.ratio(text, other)) for place, other in enumerate(TEXTS)]
        assert ratios(text, TEXTS, least) == [(place, ratio) for place, ratio in each if ratio >= least]


def test_initials_are_letters_of_a_transliterated_name():
    assert overlap(("保罗·A·佩里",), ("保罗·a·佩里", "李明")).matched == 1
    assert overlap(("保罗·A·佩里",), ("保罗·佩里",)).matched == 1, "spelt without the initial"
    assert overlap(("Ａ·B",), ("a b",)).matched == 1, "no Chinese name"
