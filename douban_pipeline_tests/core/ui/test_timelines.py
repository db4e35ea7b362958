"""Plots over time and of amounts show what they were given, in its place and in proportion."""

from __future__ import annotations

import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from douban_pipeline.core.ui.plots import WIDTH, AmountRow, Series, Track, columns, spans, timeline
from douban_pipeline_tests.core.ui.test_plots import HOSTILE, SVG, texts
from douban_pipeline_tests.harness.fixtures.clocks import START

END = START + timedelta(hours=10)
GAP = timedelta(hours=2)


def drawn(svg: str, style: str) -> list[str]:
    return [
        item.attrib["d"] for item in ElementTree.fromstring(svg).iter(f"{SVG}path") if item.attrib["class"] == style
    ]


def lines(svg: str, colour: int = 1) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (point.split() for point in line.removeprefix("M").split("L"))]
        for line in drawn(svg, f"dp-l dp-l{colour}")
    ]


def blocks(svg: str, colour: int) -> list[tuple[float, float, float]]:
    """Return left, bottom and top of every block of a colour, those of the legend not."""
    [area] = drawn(svg, f"dp-p{colour}")[1:] or [""]
    return [tuple(map(float, found)) for found in re.findall(r"M(\S+) (\S+)V(\S+)h", area)]  # type: ignore[misc]


def over_time(*tracks: Track, **options: object) -> str:
    given = {"title": "题", "start": START, "end": END, "marks": [], "gap": GAP, **options}
    return timeline(tracks, **given)  # type: ignore[arg-type]


def at(*hours_and_values: tuple[float, float]) -> list[tuple[object, float]]:
    return [(START + timedelta(hours=hours), value) for hours, value in hours_and_values]


def test_a_line_goes_from_edge_to_edge_as_time_does():
    svg = over_time(Track("积压", at((0, 0), (1, 100), (2, 50), (3, 50))), gap=GAP, end=START + timedelta(hours=3))
    [[first, second, third, last]] = lines(svg)
    assert second[0] - first[0] == pytest.approx(last[0] - third[0], abs=0.2)
    assert last[0] == WIDTH - 8
    assert first[1] > third[1] > second[1], "SVG counts downwards"
    assert first[1] - third[1] == pytest.approx((first[1] - second[1]) / 2, abs=0.2)
    assert {"题", "积压", "0", "100"} <= set(texts(svg))


def test_what_nobody_measured_is_a_gap():
    svg = over_time(Track("甲", at((0, 1), (1, 2), (5, 3), (6, 4))))
    assert [len(line) for line in lines(svg)] == [2, 2]
    [lone] = lines(over_time(Track("甲", at((5, 3)))))
    assert lone[0][0] < lone[1][0], "a single point is seen too"


def test_what_lies_outside_is_left_out():
    svg = over_time(Track("甲", at((-1, 900), (1, 1), (2, 2), (11, 900))), Track("乙", at((1, 3)), colour=2))
    assert [len(line) for line in lines(svg)] == [2]
    assert len(lines(svg, 2)) == 1
    assert "1,000" not in texts(svg)
    assert over_time(Track("甲", at((-1, 900)))) == ""


def test_moments_are_marked_where_they_are_and_within_the_picture():
    svg = over_time(Track("甲", at((0, 1), (10, 2))), marks=[(START, "早"), (END, "晚些时候"), (END + GAP, "太晚")])
    found = {
        "".join(item.itertext()): float(item.attrib["x"]) for item in ElementTree.fromstring(svg).iter(f"{SVG}text")
    }
    assert found["早"] < found["晚些时候"] <= WIDTH - 20
    assert "太晚" not in found


def test_columns_stand_on_one_another():
    svg = columns([Series("成", [10, 0, 4], 3), Series("败", [10, 5, 0], 2)], title="题", marks=["一", "", "三"])
    (left, ground, top), (_, _, small) = blocks(svg, 3)
    on_top, alone = blocks(svg, 2)
    assert on_top == pytest.approx((left, top, top - (ground - top)), abs=0.2)
    assert alone[1] == ground
    assert (ground - small) / (ground - top) == pytest.approx(0.4, abs=0.01)
    assert {"一", "三", "成", "败", "20"} <= set(texts(svg))


def test_a_limit_out_of_reach_is_only_named():
    svg = columns([Series("请求", [1, 2])], title="题", marks=["", ""], limit=6000, limit_name="上限 6000")
    assert drawn(svg, "dp-goal") == []
    assert "题 · 上限 6000" in svg


def test_a_limit_is_drawn_even_where_nothing_comes_near_it():
    svg = columns([Series("请求", [1, 2])], title="题", marks=["", ""], limit=30, limit_name="上限 30")
    limit = drawn(svg, "dp-goal")[-1]
    assert float(limit.split()[1].partition("H")[0]) < min(top for _, _, top in blocks(svg, 1))
    assert {"上限 30", "30"} <= set(texts(svg))
    assert "dp-goal" not in {item.attrib.get("class") for item in ElementTree.fromstring(columns_of_nothing()).iter()}


def columns_of_nothing() -> str:
    return columns([Series("请求", [0, 0])], title="题", marks=["", ""])


def test_numbers_of_nothing_still_have_an_axis_of_whole_numbers():
    assert {"0", "1", "2", "3", "4"} <= set(texts(columns_of_nothing()))
    assert blocks(columns_of_nothing(), 1) == []


def test_a_bar_is_what_is_usual_and_its_line_reaches_further():
    rows = [AmountRow("甲", 60, 120), AmountRow("乙", 120, 240)]
    svg = spans(
        rows, title="题", usual="平均", reach="最多", format_amount=lambda seconds: f"{seconds:g}s", unit=(60, "分")
    )
    ends = [float(bar.partition("H")[2].partition("v")[0]) for bar in drawn(svg, "dp-b")[1:]]
    starts = [float(bar.split()[0].removeprefix("M")) for bar in drawn(svg, "dp-b")[1:]]
    reaches = [float(line.partition("H")[2].partition("m")[0]) for line in drawn(svg, "dp-w")[1:]]
    assert starts[0] == starts[1]
    assert ends[1] - starts[1] == pytest.approx(2 * (ends[0] - starts[0]), abs=0.2)
    assert reaches == pytest.approx([ends[1], 2 * ends[1] - starts[1]], abs=0.2)
    assert {"甲", "60s · 120s", "平均", "最多", "0 分", "4 分"} <= set(texts(svg))


def test_nothing_is_drawn_of_nothing():
    assert over_time() == over_time(Track("空", [])) == ""
    assert columns([], title="题", marks=[]) == ""
    assert spans([], title="题", usual="", reach="", format_amount=str) == ""
    assert spans([AmountRow("零", 0.0, 0.0)], title="题", usual="", reach="", format_amount=str)


def test_a_legend_that_is_too_long_for_a_line_takes_two():
    names = ["很长的名字" * 3, "另一个名字" * 3, "短"]
    svg = columns([Series(name, [1], at) for at, name in enumerate(names, 1)], title="题", marks=["一"])
    for item in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        assert float(item.attrib["x"]) + 13 * len("".join(item.itertext())) <= WIDTH + 13
    assert set(names) <= set(texts(svg))


def test_texts_are_escaped():
    for svg in (
        over_time(Track(HOSTILE, at((1, 1))), title=HOSTILE, marks=[(START, HOSTILE)]),
        columns([Series(HOSTILE, [1])], title=HOSTILE, marks=[HOSTILE], limit=1, limit_name=HOSTILE),
        spans(
            [AmountRow(HOSTILE, 1, 2)],
            title=HOSTILE,
            usual=HOSTILE,
            reach=HOSTILE,
            format_amount=str,
            unit=(1, HOSTILE),
        ),
    ):
        assert "<script" not in svg
        assert HOSTILE in texts(svg)
