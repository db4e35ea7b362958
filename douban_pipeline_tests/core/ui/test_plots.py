"""Plots are well-formed SVG that shows what it was given, and nothing of what a title may hold beside letters."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from douban_pipeline.core.intervals import Interval, wilson
from douban_pipeline.core.ui.plots import WIDTH, Bar, Line, bars, curve, percent

HOSTILE = '"><script>alert("x")</script>&amp;\'《》'
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(item.itertext()) for item in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def numbers(svg: str, element: str, attribute: str) -> list[float]:
    return [float(item.attrib[attribute]) for item in ElementTree.fromstring(svg).iter(SVG + element)]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50.0 %"),
        (0.01, "1.0 %"),
        (0.0093811, "0.94 %"),
        (0.0005, "0.05 %"),
        (0.00001, "0.001 %"),
        (0.000001, "< 0.001 %"),
        (0.9906, "99.06 %"),
        (0.99999, "99.999 %"),
        (0.9999999, "> 99.999 %"),
    ],
)
def test_percentages_are_nothing_or_all_only_where_they_are(share: float, words: str):
    assert percent(share) == words


def test_bars_are_as_long_as_their_shares():
    drawn = bars([Bar("甲", 0.5), Bar("乙", 1.0), Bar("丙", 0.0)], title="题", high=1.0)
    half, whole, nothing = numbers(drawn, "rect", "width")
    assert half == pytest.approx(whole / 2, abs=0.1)
    assert nothing == 0
    assert {"题", "甲", "50.0 %", "100 %", "0 %"} <= set(texts(drawn))


def test_a_row_without_a_value_is_named_and_not_drawn():
    drawn = bars([Bar("无", None, note="0/0")], title="题")
    assert "— · 0/0" in texts(drawn)
    assert not numbers(drawn, "rect", "width")


def test_an_axis_that_does_not_start_at_nothing_has_points_instead_of_bars():
    drawn = bars([Bar("合拍", 0.99, wilson(99, 100))], title="题", low=0.9, high=1.0, goal=0.99)
    assert not numbers(drawn, "rect", "width")
    assert len(numbers(drawn, "circle", "cx")) == 1
    assert 'class="dp-goal"' in drawn
    with pytest.raises(ValueError, match="no length"):
        bars([Bar("甲", 0.5)], title="题", low=1.0, high=1.0)


def test_what_goes_beyond_the_edge_is_cut_without_a_cap():
    def caps(bound: float) -> int:
        return bars([Bar("甲", 0.1, Interval(0.05, bound))], title="题", high=0.2).count("v8")

    assert (caps(0.15), caps(0.9)) == (2, 1)
    assert max(numbers(bars([Bar("甲", 0.9)], title="题", high=0.2), "rect", "width")) < WIDTH


def test_a_curve_rises_and_marks_where_we_are():
    drawn = curve(
        [
            Line("实线", [(0.1, 0.0), (0.5, 0.01)], mark=(0.5, 0.01)),
            Line("虚线", [(0.5, 0.01), (1.0, 0.02)], dashed=True),
        ],
        title="曲线",
        x_label="覆盖",
        y_label="错误",
    )
    [line] = re.findall(r'class="dp-l dp-l1" d="M(\d[^"]*L[^"]*)"', drawn)
    (x1, y1), (x2, y2) = (map(float, point.split()) for point in line.split("L"))
    assert x1 < x2
    assert y1 > y2  # SVG counts downwards
    assert numbers(drawn, "circle", "cx") == [x2]
    assert {"曲线", "实线", "虚线", "覆盖", "错误", "100 %", "2 %"} <= set(texts(drawn))


def test_a_curve_of_very_many_points_stays_small():
    points = [(number / 100_000, number / 100_000) for number in range(100_001)]
    drawn = curve([Line("甲", points)], title="题", x_label="", y_label="")
    assert len(drawn) < 12_000
    assert drawn.endswith('L420.0 80.0"/></svg>')  # to the very end


def test_nothing_is_drawn_of_nothing():
    assert bars([], title="题") == ""
    assert curve([], title="题", x_label="", y_label="") == ""
    assert curve([Line("空", [])], title="题", x_label="", y_label="") == ""


def test_shares_of_nothing_alone_still_have_an_axis():
    assert "0 %" in texts(bars([Bar("甲", 0.0)], title="题"))
    assert ElementTree.fromstring(curve([Line("甲", [(0.0, 0.0)])], title="题", x_label="", y_label="")) is not None


def test_texts_are_escaped_and_long_ones_cut_with_the_whole_behind():
    drawn = bars([Bar(HOSTILE * 3, 0.5, note=HOSTILE)], title=HOSTILE)
    assert "<script" not in drawn
    [title] = [item.text for item in ElementTree.fromstring(drawn).iter(f"{SVG}title")]
    assert title == HOSTILE * 3
    assert any(text.endswith("…") for text in texts(drawn))
    drawn = curve([Line(HOSTILE, [(0.1, 0.1)])], title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE)
    assert "<script" not in drawn
    assert HOSTILE in texts(drawn)


def test_nothing_comes_from_elsewhere():
    drawn = bars([Bar("甲", 0.5, wilson(1, 2))], title="题")
    assert re.findall(r'https?://[^"]+', drawn) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in drawn
